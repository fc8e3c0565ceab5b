//! What a provider sends: the least of a body, signed anew at each try, as providers with a time in their signature do.

use std::time::{SystemTime, UNIX_EPOCH};

use hookgate_signature::Tolerance;
use hookgate_webhook::Provider;

use crate::evidence::{Key, Source};
use crate::settings::{CANARY, SECRETS};

/// The headers and the body of one try.
pub(crate) struct Delivery {
    /// Names and values.
    pub(crate) headers: Vec<(&'static str, String)>,
    /// The bytes that were signed.
    pub(crate) body: String,
}

/// Signs an event at this moment.
pub(crate) fn deliver(key: &Key) -> Delivery {
    let id = &key.id;
    let (provider, secret, body, own) = match key.source {
        Source::Inbox => (
            Provider::Stripe,
            SECRETS[0],
            format!(
                r#"{{"id":"{id}","type":"invoice.paid","created":1790000000,"livemode":true,"data":{{"object":{{"id":"in_1","note":"{CANARY}"}}}}}}"#
            ),
            vec![],
        ),
        Source::Forward => (
            Provider::Shopify,
            SECRETS[1],
            format!(r#"{{"id":1,"name":"{id}","note":"{CANARY}"}}"#),
            vec![
                ("X-Shopify-Webhook-Id", id.clone()),
                ("X-Shopify-Topic", "orders/paid".to_owned()),
            ],
        ),
    };
    let keys = provider.keys(&[secret.into()], Tolerance::Off);
    let keys = keys.expect("the secret fits the scheme");
    let mut headers = keys.sign(id, unix_us() / 1_000_000, body.as_bytes());
    headers.extend(own);
    Delivery { headers, body }
}

/// Unix microseconds.
#[expect(clippy::disallowed_methods, reason = "a provider has a clock of its own")]
pub(crate) fn unix_us() -> i64 {
    let since = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .expect("the clock stands after 1970");
    i64::try_from(since.as_micros()).expect("the year fits")
}
