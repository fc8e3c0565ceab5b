//! Whatever is signed, a reader answers.

use hookgate_webhook::{Provider, Unreadable};
use proptest::collection::vec;
use proptest::prelude::*;

use crate::{deliver, malformed, send, word};

const HEADERS: [&str; 11] = [
    "X-GitHub-Delivery",
    "X-GitHub-Event",
    "X-GitHub-Hook-Installation-Target-ID",
    "X-GitHub-Hook-Installation-Target-Type",
    "X-Shopify-Webhook-Id",
    "X-Shopify-Topic",
    "X-Shopify-Triggered-At",
    "X-Razorpay-Event-Id",
    "Idempotency-Key",
    "X-Gitlab-Event",
    "X-Gitlab-Instance",
];

fn providers() -> impl Strategy<Value = Provider> {
    proptest::sample::select(Provider::ALL.to_vec())
}

/// JSON with the names that readers look for, twice and in odd places as well.
fn json() -> impl Strategy<Value = String> {
    let name = proptest::sample::select(vec![
        "id",
        "type",
        "data",
        "object",
        "created",
        "timestamp",
        "\\u0069d",
        "x",
    ]);
    let leaf = prop_oneof![
        "-?[0-9]{1,25}",
        Just("1e400".to_owned()),
        Just("null".to_owned()),
        Just(r#""\ud800""#.to_owned()),
        any::<String>().prop_map(|text| serde_json::to_string(&text).unwrap()),
    ];
    let value = leaf.prop_recursive(5, 40, 6, move |inner| {
        prop_oneof![
            vec((name.clone(), inner.clone()), 0..6).prop_map(|fields| {
                let fields: Vec<_> = fields
                    .iter()
                    .map(|(name, value)| format!("\"{name}\":{value}"))
                    .collect();
                format!("{{{}}}", fields.join(","))
            }),
            vec(inner, 0..4).prop_map(|values| format!("[{}]", values.join(","))),
        ]
    });
    (value.clone(), value).prop_flat_map(|(data, id)| {
        let object = format!(r#"{{"data":{data},"id":{id},"type":"a","webhookEventId":"b","eventId":{id}}}"#);
        prop_oneof![
            Just(format!("[{object},\n{object}]\r\n")),
            Just(format!(r#"{{"destination":{id},"events":[{object}, {object}]}}"#)),
            Just(object),
        ]
    })
}

proptest! {
    #[test]
    fn no_bytes_make_a_reader_panic(
        provider in providers(),
        body in prop_oneof![vec(any::<u8>(), 0..300), json().prop_map(String::into_bytes), "payload=[%0-9A-F{}&=+]{0,40}".prop_map(String::into_bytes)],
        values in vec(vec(any::<u8>(), 0..300), 11),
    ) {
        let headers: Vec<_> = HEADERS.into_iter().zip(values.iter().map(|value| &value[..])).collect();
        match deliver(provider, "msg_1", &headers, &body) {
            Ok(Ok(reading)) => for event in reading.events {
                let within = match event.batch {
                    None => event.body[..] == body[..],
                    Some(_) => body.windows(event.body.len()).any(|part| part == event.body),
                };
                prop_assert!(within, "{:?} is no part of what came", event);
            },
            Ok(Err(unreadable)) => prop_assert!(Unreadable::REASONS.contains(&unreadable.reason())),
            Err(reason) => prop_assert!(matches!(provider, Provider::Adyen | Provider::Linear), "{reason}"),
        }
    }

    #[test]
    fn a_truncated_sample_is_malformed(provider in providers(), serial: u64, keep in 0.0..1.0f64) {
        let mut sample = provider.sample(None, serial.into(), crate::NOW_MS).unwrap();
        // A line break behind the JSON may be missing.
        let cut = (sample.body.trim_ascii_end().len() as f64 * keep) as usize;
        sample.body.truncate(cut);
        let outcome = word(send(provider, &sample, &[]));
        match provider {
            // What is left of a form is a form, once it has a field.
            Provider::Twilio if sample.body.contains(&b'=') => prop_assert_eq!(outcome, "ok"),
            _ => prop_assert_eq!(outcome, malformed(provider)),
        }
    }
}
