//! Secrets that are others, or are read in another way.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use hookgate_signature::{Keys, Tolerance};
use hookgate_webhook::Provider;
use hookgate_webhook::doctor::{BodyChange, Cause, SecretChange};
use secrecy::ExposeSecret;

use super::{JSON, NOW, STRIPE, Saved, broken, of_body, signed, signed_with};

const KEY: &[u8] = b"thirty-two bytes that are a key.";

pub(super) fn cases() -> Vec<(&'static str, Saved, Cause)> {
    let base64 = STANDARD.encode(KEY);
    let prefixed = format!("whsec_{base64}");
    let standard = signed_with(Provider::StandardWebhooks, &[&prefixed]);
    let key = std::str::from_utf8(KEY).unwrap();
    let hex: String = KEY.iter().map(|byte| format!("{byte:02x}")).collect();
    let of = |signing: &str, configured: &str| {
        broken(of_body(Provider::Github, signing, JSON), |saved| {
            saved.secret(configured)
        })
    };
    // What signs with a text as the key, sent as Standard Webhooks.
    let as_text = |text: &str| {
        let stripe = STANDARD.encode(text);
        broken(signed_with(Provider::StandardWebhooks, &[&stripe]), |saved| {
            saved.secret(&prefixed)
        })
    };
    vec![
        (
            "the sender took a base64 secret as text",
            as_text(&prefixed),
            Cause::Secret(SecretChange::Text),
        ),
        (
            "the same, without `whsec_`",
            as_text(&base64),
            Cause::Secret(SecretChange::TextWithoutPrefix),
        ),
        (
            "the sender decoded a text secret from base64",
            of(key, &prefixed),
            Cause::Secret(SecretChange::Base64),
        ),
        (
            "the sender decoded a text secret from hexadecimal",
            of(key, &hex),
            Cause::Secret(SecretChange::Hex),
        ),
        (
            "the prefix of the secret was not copied",
            broken(of_body(Provider::Stripe, STRIPE, JSON), |saved| {
                saved.secret("hookgate_doctor_stripe");
            }),
            Cause::Secret(SecretChange::TextWithPrefix),
        ),
        (
            "the sender's secret ends with a line break",
            broken(of("x", "a secret"), |saved| {
                let keys = Keys::of_bytes(saved.provider.knowledge().scheme, b"a secret\n", Tolerance::Off);
                let (name, value) = keys.unwrap().sign("", NOW, &saved.body).remove(0);
                saved.set(name, &value);
            }),
            Cause::Secret(SecretChange::SpaceAfter),
        ),
        (
            "the configured secret has quotation marks",
            of("a secret", "\"a secret\""),
            Cause::Secret(SecretChange::Unquoted),
        ),
        (
            "the token is sent with `Bearer` and configured without",
            broken(
                signed_with(Provider::Revenuecat, &["Bearer of the tests"]),
                |saved| {
                    saved.secret("of the tests");
                },
            ),
            Cause::Secret(SecretChange::BearerAdded),
        ),
        (
            "the token is configured with `Bearer` and sent without",
            broken(signed_with(Provider::Revenuecat, &["of the tests"]), |saved| {
                saved.secret("Bearer of the tests");
            }),
            Cause::Secret(SecretChange::BearerRemoved),
        ),
        (
            "only the label of an endpoint is configured",
            broken(signed(Provider::Paypal), |saved| {
                saved.secrets.retain(|secret| secret.expose_secret().len() <= 64)
            }),
            Cause::NamedKey,
        ),
        (
            "the secret of another source",
            broken(of("that of eu", "that of us"), |saved| {
                saved.others = vec![(
                    "github-eu",
                    Provider::Github,
                    vec!["old".into(), "that of eu".into()],
                )];
            }),
            Cause::Secret(SecretChange::OfSource("github-eu".to_owned())),
        ),
        (
            "the published secret",
            broken(signed(Provider::Github), |saved| saved.secret("a real one")),
            Cause::Secret(SecretChange::Dev),
        ),
        (
            "the secret of another source, and a line break more",
            broken(of("that of eu", "that of us"), |saved| {
                saved.others = vec![("github-eu", Provider::Github, vec!["that of eu".into()])];
                saved.body.push(b'\n');
            }),
            Cause::SecretAndBody(
                SecretChange::OfSource("github-eu".to_owned()),
                BodyChange::LineBreakRemoved,
            ),
        ),
        (
            "a secret that nobody knows",
            broken(standard, |saved| saved.secret(&STANDARD.encode([7; 32]))),
            Cause::Unknown,
        ),
    ]
}
