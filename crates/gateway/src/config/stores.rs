//! Where claims and events are kept: the addresses, read as the stores themselves will read them.

use hookgate_claim::{Epoch, RedisClaims, RedisMode, RedisSettings};
use hookgate_ledger::{Limits, PostgresLedger};
use secrecy::SecretString;

use super::reader::{self, Reader, Wrong};
use super::{ClaimStore, LedgerStore, setting as s};

/// Where events are kept: all that a command on the database alone needs.
///
/// # Errors
/// [`Wrong`] if `DATABASE_URL` is not of an accepted form.
pub fn database(reader: &Reader) -> Result<LedgerStore, Wrong> {
    let store = reader.value(&s::DATABASE_URL, ledger)?;
    if let LedgerStore::Postgres(url) = &store {
        // Connects to nothing, but reads the URL as the ledger will.
        PostgresLedger::connect(url, Limits::default())
            .map_err(|unusable| reader.refused(&s::DATABASE_URL, &unusable))?;
    }
    Ok(store)
}

pub(super) fn claims(reader: &Reader) -> Result<ClaimStore, Wrong> {
    let entries = reader.value(&s::MEMORY_CLAIMS, reader::positive)?;
    let mode = reader.value(&s::REDIS_MODE, |text| match text {
        "single" => Some(RedisMode::Single),
        "sentinel" => Some(RedisMode::Sentinel),
        "cluster" => Some(RedisMode::Cluster),
        _ => None,
    })?;
    let timeout = reader.value(&s::REDIS_TIMEOUT, reader::duration_from(reader::MOMENT))?;
    let store = reader.optional(&s::REDIS_URL, |text| match text {
        "" => None,
        "none" => Some(ClaimStore::None),
        urls => {
            let urls: Vec<SecretString> = urls.split(',').map(|url| url.trim().into()).collect();
            Some(ClaimStore::Redis(RedisSettings::new(mode, urls, timeout)))
        }
    })?;
    if let Some(ClaimStore::Redis(settings)) = &store {
        // Connects to nothing, but reads the URLs as the claims will.
        RedisClaims::new(settings.clone(), Epoch::default())
            .map_err(|bad| reader.refused(&s::REDIS_URL, &bad))?;
    }
    Ok(store.unwrap_or(ClaimStore::Memory(entries)))
}

fn ledger(url: &str) -> Option<LedgerStore> {
    match url.split_once("://") {
        None if url == "none" => Some(LedgerStore::None),
        Some(("sqlite", path)) if !path.is_empty() => Some(LedgerStore::Sqlite(path.into())),
        Some(("postgres" | "postgresql", _)) => Some(LedgerStore::Postgres(url.into())),
        _ => None,
    }
}
