//! Headers as people may see them. What was kept is what a target needs, so among it are signatures and, for
//! some providers, passwords. Only names that are known to hold none are shown; a new one is masked until
//! somebody has thought about it.

use hookgate_webhook::Provider;
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
    "webhook-id",
    "webhook-timestamp",
    "webhook-signature",
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

/// What the file of a provider that is built in names says what an event is, or is true of one body only and so opens
/// nothing. What opens more than that, such as a static token, is named nowhere and kept nowhere.
fn is_plain(name: &str) -> bool {
    let mut known = Provider::ALL
        .iter()
        .flat_map(|provider| provider.knowledge().forwarded_headers);
    PLAIN.contains(&name) || known.any(|known| known.eq_ignore_ascii_case(name))
}

/// A value that is no UTF-8 is read as Latin-1, so that each byte is one character.
fn text(value: Vec<u8>) -> String {
    String::from_utf8(value)
        .unwrap_or_else(|error| error.as_bytes().iter().copied().map(char::from).collect())
}

#[cfg(test)]
mod tests {
    use hookgate_signature::Scheme;

    use super::*;

    fn check(name: &str, shown: bool) {
        let view = HeaderView::masked((name.into(), b"value".to_vec()));
        assert_eq!(view.value, if shown { "value" } else { MASK }, "{name}");
    }

    #[test]
    fn no_provider_has_its_password_kept() {
        for provider in Provider::ALL {
            let known = provider.knowledge();
            if let Scheme::Token(token) = known.scheme {
                let kept = known
                    .forwarded_headers
                    .iter()
                    .any(|name| name.eq_ignore_ascii_case(token.header));
                assert!(!kept, "{}", known.name);
                check(token.header, false);
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
