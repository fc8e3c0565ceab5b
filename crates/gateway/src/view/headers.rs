//! Headers as people may see them. What was kept is what a target needs, so among it are signatures and, for
//! some providers, passwords. Only names that are known to hold none are shown; a new one is masked until
//! somebody has thought about it.

use serde::Serialize;

/// Shown whatever their provider.
const PLAIN: &[&str] = &[
    "content-type",
    "content-encoding",
    "user-agent",
    "traceparent",
    "tracestate",
];

/// Ends of names that say what an event is and not who may send it.
const PLAIN_ENDS: &[&str] = &[
    "-event",
    "-topic",
    "-delivery",
    "-event-id",
    "-webhook-id",
    "webhook-id",
    "-timestamp",
];

/// A header that was kept.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct HeaderView {
    /// Its name, in lower case.
    pub name: String,
    /// Its value; null if it may be a secret.
    pub value: Option<String>,
    /// Length of the value.
    pub bytes: usize,
}

impl HeaderView {
    /// As it may be seen.
    pub(super) fn masked((name, value): (Box<str>, Vec<u8>)) -> Self {
        let name = name.to_ascii_lowercase();
        let plain = PLAIN.contains(&name.as_str()) || PLAIN_ENDS.iter().any(|end| name.ends_with(end));
        Self {
            value: plain.then(|| String::from_utf8_lossy(&value).into_owned()),
            bytes: value.len(),
            name,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(name: &str, shown: bool) {
        let view = HeaderView::masked((name.into(), b"value".to_vec()));
        assert_eq!(view.value.is_some(), shown, "{name}");
        assert_eq!(view.bytes, 5);
    }

    #[test]
    fn only_what_holds_no_secret_is_shown() {
        for name in [
            "Content-Type",
            "x-github-event",
            "x-github-delivery",
            "webhook-id",
            "x-shopify-topic",
        ] {
            check(name, true);
        }
        let secrets = [
            "Authorization",
            "Proxy-Authorization",
            "Cookie",
            "Stripe-Signature",
            "x-hub-signature-256",
            "asaas-access-token",
            "x-something-new",
        ];
        for name in secrets {
            check(name, false);
        }
    }
}
