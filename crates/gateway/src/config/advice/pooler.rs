//! Whether an address looks like a pooler's. Only a sign: what is behind it the ledger finds out by how it behaves.

use secrecy::ExposeSecret as _;

use super::Advice;
use crate::config::LedgerStore;

/// Behind a transaction pooler each transaction may run in another session: nobody hears the news that was asked
/// for, and a failover breaks no connection.
pub(super) fn advice(ledger: &LedgerStore) -> Option<Advice> {
    let LedgerStore::Postgres(url) = ledger else {
        return None;
    };
    let sign = sign(url.expose_secret())?;
    Some(Advice::warning(format!(
        "DATABASE_URL looks like the address of a pooler ({sign}): through one that pools transactions no news of events pass, so a fresh event starts up to 200 ms later, and each call costs three more round trips: use session pooling or the database's own address"
    )))
}

/// What about an address is a pooler's; nothing of the address itself.
fn sign(url: &str) -> Option<&'static str> {
    let url = reqwest::Url::parse(url).ok()?;
    let host = url.host_str().unwrap_or_default().to_ascii_lowercase();
    let named = ["pooler", "pgbouncer", "pgcat", "odyssey"];
    if matches!(url.port(), Some(6432 | 6543)) {
        Some("its port")
    } else if named.iter().any(|name| host.contains(name)) {
        Some("its host's name")
    } else if url.query_pairs().any(|(name, _)| name == "pgbouncer") {
        Some("its parameter pgbouncer")
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_that_looks_like_a_poolers_is_known_by_its_port_host_or_parameters() {
        for (url, expected) in [
            ("postgres://u:p@db:6432/hookgate", Some("its port")),
            (
                "postgres://u:p@aws-0.pooler.example.com/hookgate",
                Some("its host's name"),
            ),
            ("postgresql://u@PgBouncer/hookgate", Some("its host's name")),
            (
                "postgres://u@db/hookgate?sslmode=require&pgbouncer=true",
                Some("its parameter pgbouncer"),
            ),
            ("postgres://pooler:pgbouncer@db:5432/pooler?sslmode=require", None),
            ("postgres://u@db/hookgate", None),
        ] {
            assert_eq!(sign(url), expected, "{url}");
        }
    }
}
