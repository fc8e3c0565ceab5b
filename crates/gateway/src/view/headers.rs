//! Headers as people may see them. What was kept is what a target needs, so among it are signatures and, for
//! some providers, passwords. Only names that are known to hold none are shown; a new one is masked until
//! somebody has thought about it.

use serde::Serialize;
use utoipa::ToSchema;

/// Shown whatever their provider.
const PLAIN: &[&str] = &[
    "content-type",
    "content-encoding",
    "user-agent",
    "traceparent",
    "tracestate",
    "hookgate-batch",
];

/// Those of providers that say what an event is, or that are true of one body only and so open nothing.
const PLAIN_OF_PROVIDERS: &[&str] = &[
    "stripe-signature",
    "webhook-id",
    "webhook-timestamp",
    "webhook-signature",
    "x-hub-signature",
    "x-hub-signature-256",
    "x-github-delivery",
    "x-github-event",
    "x-github-hook-id",
    "x-github-hook-installation-target-id",
    "x-github-hook-installation-target-type",
];

/// The same of Shopify, which are called so with and without `x-`.
const PLAIN_OF_SHOPIFY: &[&str] = &[
    "shopify-hmac-sha256",
    "shopify-webhook-id",
    "shopify-event-id",
    "shopify-topic",
    "shopify-shop-domain",
    "shopify-api-version",
    "shopify-triggered-at",
];

/// Stands for a value that is not shown.
const MASK: &str = "***";

/// A header that was kept.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct HeaderView {
    /// Its name, in lower case.
    pub name: String,
    /// Its value, or `***` if it may be a secret.
    pub value: String,
}

impl HeaderView {
    /// As it may be seen.
    pub fn masked((name, value): (Box<str>, Vec<u8>)) -> Self {
        let name = name.to_ascii_lowercase();
        Self {
            value: if is_plain(&name) {
                text(value)
            } else {
                MASK.to_owned()
            },
            name,
        }
    }
}

fn is_plain(name: &str) -> bool {
    let branded = name.strip_prefix("x-").unwrap_or(name);
    PLAIN.contains(&name) || PLAIN_OF_PROVIDERS.contains(&name) || PLAIN_OF_SHOPIFY.contains(&branded)
}

/// A value that is no UTF-8 is read as Latin-1, so that each byte is one character.
fn text(value: Vec<u8>) -> String {
    String::from_utf8(value)
        .unwrap_or_else(|error| error.as_bytes().iter().copied().map(char::from).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(name: &str, shown: bool) {
        let view = HeaderView::masked((name.into(), b"value".to_vec()));
        assert_eq!(view.value, if shown { "value" } else { MASK }, "{name}");
    }

    #[test]
    fn all_that_todays_providers_send_has_been_thought_about() {
        for provider in hookgate_webhook::Provider::ALL {
            for name in provider.knowledge().forwarded_headers {
                check(name, true);
            }
        }
    }

    #[test]
    fn only_what_holds_no_secret_is_shown() {
        for name in [
            "Content-Type",
            "x-github-event",
            "x-github-delivery",
            "webhook-id",
            "x-shopify-topic",
            "Shopify-Shop-Domain",
            "Stripe-Signature",
            "x-hub-signature-256",
        ] {
            check(name, true);
        }
        let secrets = [
            "Authorization",
            "Proxy-Authorization",
            "Cookie",
            "X-API-Key",
            "asaas-access-token",
            "x-something-new",
            "x-session-id",
            "x-client-signature",
            "x-content-type",
        ];
        for name in secrets {
            check(name, false);
        }
    }
}
