//! Says which key of a source's table is at fault, and what it takes.

use super::source::SourceTable;
use super::{public_url, setting, tolerance};

/// Which key of a table is at fault, and what it takes. The message of the deserializer would quote the
/// value, and that may be a secret.
pub(super) fn fault(table: &toml::Value) -> String {
    let Some(table) = table.as_table() else {
        return "it is not a table of settings".to_owned();
    };
    let alone =
        |(key, value): (&String, &toml::Value)| toml::Table::from_iter([(key.clone(), value.clone())]);
    let at_fault = table
        .iter()
        .find(|entry| alone(*entry).try_into::<SourceTable>().is_err());
    match at_fault.map(|(key, _)| (key, form(key))) {
        Some((key, Some(form))) => format!("{key} is not accepted: expected {form}"),
        Some((key, None)) => format!("{key} is not a setting of a source"),
        None => "it cannot be read".to_owned(),
    }
}

/// What a key of a source's table takes; `None` if there is no such key.
fn form(key: &str) -> Option<&'static str> {
    Some(match key {
        "provider" => "the name of a provider, e.g. \"stripe\"",
        "secrets" => "a list of texts, e.g. [\"…\"]",
        "secret_file" => "the path of a file with one secret a line",
        "tolerance" => tolerance::ACCEPTS,
        "public_url" => public_url::ACCEPTS,
        "handler" => setting::HANDLER.accepts,
        "consumer" => setting::CONSUMER.accepts,
        "target" => "the name of a [targets.NAME] table",
        "retry_max_attempts" => setting::RETRY_MAX_ATTEMPTS.accepts,
        "retry_base" => setting::RETRY_BASE.accepts,
        "concurrency" => setting::WORKER_CONCURRENCY.accepts,
        "target_url" => setting::TARGET_URL.accepts,
        "target_secret" => setting::TARGET_SECRET.accepts,
        "handler_timeout" => setting::HANDLER_TIMEOUT.accepts,
        "claim_lease" => setting::CLAIM_LEASE.accepts,
        "signature" | "event" | "sender" => "a table that describes a sender of your own",
        "max_body_bytes" => setting::MAX_BODY_BYTES.accepts,
        _ => return None,
    })
}
