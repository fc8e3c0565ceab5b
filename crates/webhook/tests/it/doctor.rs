//! The doctor: genuine samples, broken in one way each. What it names is what was broken, in a sentence that the
//! documentation lists and that holds nothing secret.

mod bodies;
mod headers;
mod others;
mod secrets;

use bytes::Bytes;
use hookgate_signature::{Delivery, Tolerance};
use hookgate_webhook::doctor::{BodyChange, Case, Cause, Diagnosis, Endpoint, TRIALS_MAX, diagnose};
use hookgate_webhook::{Provider, Sending};
use proptest::collection::vec;
use proptest::prelude::*;
use secrecy::{ExposeSecret, SecretString};

use crate::{NOW_MS, URL};

const NOW: i64 = NOW_MS / 1000;
const DOCUMENT: &str = include_str!("../../../../docs/doctor.md");

/// A request as it was saved, and the source that it is for.
#[derive(Clone)]
struct Saved {
    provider: Provider,
    secrets: Vec<SecretString>,
    url: String,
    headers: Vec<(String, Vec<u8>)>,
    body: Vec<u8>,
    now: i64,
    others: Vec<(&'static str, Provider, Vec<SecretString>)>,
}

/// A genuine sample, signed with these secrets' first.
fn signed_with(provider: Provider, secrets: &[&str]) -> Saved {
    let sample = provider.sample(None, 1, NOW_MS).unwrap();
    let secrets: Vec<SecretString> = secrets.iter().copied().map(SecretString::from).collect();
    let keys = provider.keys(&secrets, Tolerance::Off).unwrap();
    let signed = provider.sign(&keys, &sample, &Sending { url: URL, now: NOW });
    Saved {
        provider,
        secrets,
        url: signed.url,
        headers: signed
            .headers
            .into_iter()
            .map(|(name, value)| (name.to_owned(), value.into_bytes()))
            .collect(),
        body: signed.body.to_vec(),
        now: NOW,
        others: Vec::new(),
    }
}

fn signed(provider: Provider) -> Saved {
    signed_with(provider, provider.knowledge().dev_secrets)
}

/// A genuine delivery of this very body.
fn of_body(provider: Provider, secret: &str, body: &[u8]) -> Saved {
    let mut saved = signed(provider);
    saved.secrets = vec![secret.into()];
    let keys = provider.keys(&saved.secrets, Tolerance::Off).unwrap();
    for (name, value) in keys.sign("msg_1", NOW, body) {
        saved.set(name, &value);
    }
    saved.body = body.to_vec();
    saved
}

impl Saved {
    fn diagnose(&self) -> Diagnosis {
        let others: Vec<_> = self
            .others
            .iter()
            .map(|(name, provider, secrets)| endpoint(name, *provider, secrets))
            .collect();
        let case = Case {
            endpoint: endpoint("it", self.provider, &self.secrets),
            delivery: Delivery {
                method: "POST",
                url: Some(&self.url),
                headers: self
                    .headers
                    .iter()
                    .map(|(name, value)| (&**name, &**value))
                    .collect(),
                body: Bytes::from(self.body.clone()),
            },
            target: None,
            others: &others,
        };
        diagnose(&case, self.now).unwrap()
    }

    fn signature(&self) -> &'static str {
        self.provider.knowledge().scheme.header()
    }

    fn value(&self, name: &str) -> String {
        let found = self
            .headers
            .iter()
            .find(|(own, _)| own.eq_ignore_ascii_case(name));
        String::from_utf8(found.unwrap().1.clone()).unwrap()
    }

    fn set(&mut self, name: &str, value: &str) {
        self.headers.retain(|(own, _)| !own.eq_ignore_ascii_case(name));
        self.headers.push((name.to_owned(), value.as_bytes().to_vec()));
    }

    fn rename(&mut self, change: impl Fn(&str) -> String) {
        for (name, _) in &mut self.headers {
            *name = change(name);
        }
    }

    fn secret(&mut self, secret: &str) {
        self.secrets = vec![secret.into()];
    }
}

fn endpoint<'a>(name: &'a str, provider: Provider, secrets: &'a [SecretString]) -> Endpoint<'a> {
    Endpoint {
        name,
        provider,
        secrets,
        tolerance: provider.knowledge().tolerance,
        body_bytes_max: 1 << 20,
    }
}

fn broken(mut saved: Saved, change: impl FnOnce(&mut Saved)) -> Saved {
    change(&mut saved);
    saved
}

const JSON: &[u8] = "{\n  \"id\": \"evt_1\",\n  \"type\": \"a\",\n  \"name\": \"Zoë €/<x>\"\n}".as_bytes();
const COMPACT: &[u8] = "{\"id\":\"evt_1\",\"type\":\"a\",\"name\":\"Zoë €/<x>\"}".as_bytes();
const STRIPE: &str = "whsec_hookgate_doctor_stripe";

/// Every way to break a delivery, what it is to be called, and the cause that is to be found.
fn cases() -> Vec<(&'static str, Saved, Cause)> {
    let mut cases = bodies::cases();
    cases.extend(secrets::cases());
    cases.extend(headers::cases());
    cases.extend(others::cases());
    cases
}

#[test]
fn every_way_to_break_a_delivery_is_recognised() {
    for (name, saved, cause) in cases() {
        let diagnosis = saved.diagnose();
        assert_eq!(diagnosis.cause, cause, "{name}: {}", diagnosis.sentence);
        assert!(!diagnosis.is_ok());
        assert!(diagnosis.tried <= TRIALS_MAX);
    }
}

#[test]
fn the_documentation_lists_every_symptom_with_its_very_sentence() {
    let rows: Vec<_> = DOCUMENT
        .lines()
        .filter(|line| line.starts_with("| "))
        .skip(1)
        .map(|line| line.split(" | ").collect::<Vec<_>>())
        .map(|cells| (cells[0].trim_start_matches("| ").to_owned(), cells[1].to_owned()))
        .collect();
    let found: Vec<_> = cases()
        .into_iter()
        .map(|(name, saved, _)| (name.to_owned(), saved.diagnose().sentence))
        .collect();
    assert_eq!(rows, found);
}

#[test]
fn a_sentence_is_one_sentence_and_holds_nothing_secret() {
    for (name, saved, _) in cases() {
        let diagnosis = saved.diagnose();
        let sentence = &diagnosis.sentence;
        assert!(sentence.ends_with('.') && !sentence.contains('\n'), "{sentence}");
        assert!(!sentence.contains(". "), "{name}: {sentence}");
        let everything = format!("{diagnosis:?}");
        let hidden = saved
            .secrets
            .iter()
            .map(|secret| secret.expose_secret().to_owned());
        let others = saved.others.iter().flat_map(|(_, _, secrets)| secrets);
        let others = others.map(|secret| secret.expose_secret().to_owned());
        let mut hidden: Vec<_> = hidden.chain(others).filter(|text| text.len() > 7).collect();
        for (header, value) in &saved.headers {
            let value = String::from_utf8_lossy(value).into_owned();
            let pieces = value.split([',', ' ', ';', '=']).filter(|piece| piece.len() > 20);
            let signatures =
                pieces.filter(|_| header.to_lowercase().contains("sign") || header.contains("Hmac"));
            hidden.extend(signatures.map(str::to_owned));
        }
        let body = String::from_utf8_lossy(&saved.body).into_owned();
        let texts = body
            .split('"')
            .filter(|text| text.len() > 8 && !text.contains([':', ' ']));
        hidden.extend(
            texts
                .filter(|text| text.bytes().any(|byte| byte.is_ascii_digit()))
                .map(str::to_owned),
        );
        for secret in hidden {
            assert!(
                !everything.contains(&secret),
                "{name} tells {secret}: {everything}"
            );
        }
    }
}

#[test]
fn a_genuine_delivery_of_every_provider_is_said_to_be_good() {
    for provider in Provider::ALL {
        let saved = signed(provider);
        let diagnosis = saved.diagnose();
        assert!(diagnosis.is_ok(), "{}: {}", provider.name(), diagnosis.sentence);
        assert_eq!((diagnosis.refusal, diagnosis.tried), (None, 0));
        assert!(diagnosis.sentence.starts_with("The signature is good: secret "));
    }
    let mut stripe = signed_with(Provider::Stripe, &[STRIPE]);
    stripe.secrets.insert(0, "whsec_the_next_one".into());
    stripe.now += 100;
    assert_eq!(
        stripe.diagnose().sentence,
        "The signature is good: secret 1 of 2 fits, no other is used; event evt_000000000000000000000001 \
         (invoice.paid); it stays good for 200 s."
    );
}

#[test]
fn a_delivery_of_any_provider_that_covers_its_body_is_told_from_one_with_a_byte_more() {
    for provider in Provider::ALL {
        let mut saved = signed(provider);
        saved.body.push(b'\n');
        let diagnosis = saved.diagnose();
        // A token, or a signature over fields alone, does not cover the byte.
        if !diagnosis.is_ok() && !matches!(diagnosis.cause, Cause::Unreadable(_)) {
            assert_eq!(
                diagnosis.cause,
                Cause::Body(BodyChange::LineBreakRemoved),
                "{}: {}",
                provider.name(),
                diagnosis.sentence
            );
        }
    }
}

#[test]
fn a_sha1_signature_that_fits_proves_the_secret() {
    // The example of RFC 2202, section 3, test case 2.
    let mut saved = of_body(Provider::Github, "Jefe", b"what do ya want for nothing?");
    saved.headers.clear();
    saved.set("X-Hub-Signature", "sha1=effcdf6ae5eb2fa2d27416d5f184df9c259a7c79");
    let cause = saved.diagnose().cause;
    assert!(
        matches!(
            cause,
            Cause::Hash {
                fits: true,
                hash: "SHA-1",
                ..
            }
        ),
        "{cause:?}"
    );
}

#[test]
fn deep_or_wide_json_is_left_alone() {
    for body in [
        "[".repeat(100_000),
        format!("{}{}", "[".repeat(100_000), "]".repeat(100_000)),
        "[[[[".repeat(9),
    ] {
        let mut saved = signed(Provider::Stripe);
        saved.body = body.into_bytes();
        assert_eq!(saved.diagnose().cause, Cause::Unknown);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn nothing_makes_the_doctor_panic(
        provider in proptest::sample::select(Provider::ALL.to_vec()),
        body in prop_oneof![
            vec(any::<u8>(), 0..200),
            "[\\[\\]{}\",:a\\\\u0-9 \\n]{0,60}".prop_map(String::into_bytes),
        ],
        value in prop_oneof![vec(any::<u8>(), 0..120), "(t=[0-9]{0,20},)?(v1[=,])?[0-9a-fA-F+/=]{0,90}".prop_map(String::into_bytes)],
        name in "[a-zA-Z_-]{0,20}",
        url in "(https?://)?[a-z@:/?%0-9é]{0,30}",
        now in any::<i64>(),
    ) {
        let mut saved = signed(provider);
        saved.body = body;
        saved.url = url;
        saved.now = now;
        let signature = saved.signature().to_owned();
        saved.headers.retain(|(own, _)| *own != signature);
        saved.headers.push((signature, value.clone()));
        saved.headers.push((name, value));
        let diagnosis = saved.diagnose();
        prop_assert!(diagnosis.tried <= TRIALS_MAX);
        prop_assert!(diagnosis.sentence.ends_with('.'));
    }
}
