//! Recordings of real deliveries, damaged at random: whatever comes over the wire, schemes and readers give an answer,
//! and a body of the worst shape at a large size costs no more than its size. A reader whose time grew with the square
//! of the size would not come to the end of these tests.

use std::sync::LazyLock;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use hookgate_signature::{Refusal, Tolerance};
use hookgate_webhook::{Provider, Reading, Unreadable};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::Index;
use secrecy::SecretString;
use serde_json::Value;

use crate::{NOW_MS, URL, deliver, open, word};

/// A recorded delivery and the keys of its endpoint.
#[derive(Debug, Clone)]
struct Recording {
    provider: Provider,
    url: String,
    secrets: Vec<String>,
    headers: Vec<(String, Vec<u8>)>,
    body: Vec<u8>,
}

static CORPUS: LazyLock<Vec<Recording>> = LazyLock::new(|| crate::vectors::lines().map(recording).collect());

fn recording(line: &str) -> Recording {
    let vector: Value = serde_json::from_str(line).unwrap();
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let list = |value: &Value| value.as_array().unwrap().clone();
    Recording {
        provider: text(&vector["provider"]).parse().unwrap(),
        url: vector["url"].as_str().unwrap_or(URL).to_owned(),
        secrets: list(&vector["secrets"]).iter().map(text).collect(),
        headers: list(&vector["headers"])
            .iter()
            .map(|pair| (text(&pair[0]), text(&pair[1]).into_bytes()))
            .collect(),
        body: STANDARD.decode(text(&vector["body_b64"])).unwrap(),
    }
}

/// One damage to a run of bytes.
#[derive(Debug, Clone)]
enum Damage {
    Change(Index, u8),
    Cut(Index),
    Drop(Index, Index),
    Insert(Index, Vec<u8>),
    Double(Index, Index),
}

fn damage() -> impl Strategy<Value = Damage> {
    let pieces = prop_oneof![
        vec(any::<u8>(), 1..6),
        proptest::sample::select(vec![
            &b"="[..],
            b",",
            b";",
            b" ",
            b"\"",
            b"{",
            b"}",
            b"[",
            b"]",
            b":",
            b"&",
            b"%",
            b"+",
            b"\\",
            b"\0",
            b"\xff",
            b"\xef\xbb\xbf",
            b"\\u0000",
            b"\\ud800",
            b"t=",
            b"v1=",
            b"null",
            b"1e999",
            b"-",
            b".",
            b"\r\n",
        ])
        .prop_map(<[u8]>::to_vec),
    ];
    prop_oneof![
        (any::<Index>(), any::<u8>()).prop_map(|(at, byte)| Damage::Change(at, byte)),
        any::<Index>().prop_map(Damage::Cut),
        (any::<Index>(), any::<Index>()).prop_map(|(from, to)| Damage::Drop(from, to)),
        (any::<Index>(), pieces).prop_map(|(at, piece)| Damage::Insert(at, piece)),
        (any::<Index>(), any::<Index>()).prop_map(|(from, to)| Damage::Double(from, to)),
    ]
}

impl Damage {
    fn does(&self, bytes: &mut Vec<u8>) {
        if bytes.is_empty() {
            return;
        }
        let length = bytes.len();
        let range = |from: &Index, to: &Index| {
            let (from, to) = (from.index(length), to.index(length));
            from.min(to)..from.max(to)
        };
        match self {
            Self::Change(at, byte) => bytes[at.index(length)] = *byte,
            Self::Cut(at) => bytes.truncate(at.index(length)),
            Self::Drop(from, to) => drop(bytes.drain(range(from, to))),
            Self::Insert(at, piece) => drop(bytes.splice(at.index(length)..at.index(length), piece.clone())),
            Self::Double(from, to) => {
                let again = bytes[range(from, to)].to_vec();
                bytes.extend(again);
            }
        }
    }
}

/// Every event is a part of what was sent, and every refusal has a word.
fn is_an_answer(body: &Bytes, outcome: Result<Result<Reading, Unreadable>, &'static str>) {
    match outcome {
        Ok(Ok(reading)) => {
            for event in reading.events {
                assert!(
                    body.windows(event.body.len().max(1))
                        .any(|part| part == event.body)
                        || event.body.is_empty()
                );
            }
        }
        Ok(Err(unreadable)) => assert!(Unreadable::REASONS.contains(&unreadable.reason())),
        Err(reason) => assert!(Refusal::REASONS.contains(&reason)),
    }
}

fn any_recording() -> impl Strategy<Value = Recording> {
    any::<Index>().prop_map(|index| index.get(&CORPUS).clone())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn a_damaged_recording_is_answered(
        mut recording in any_recording(),
        header in any::<Index>(),
        of_header in vec(damage(), 0..3),
        of_body in vec(damage(), 0..3),
        of_url in vec(damage(), 0..2),
        again in any::<bool>(),
    ) {
        if !recording.headers.is_empty() {
            let at = header.index(recording.headers.len());
            of_header.iter().for_each(|damage| damage.does(&mut recording.headers[at].1));
            if again {
                let copy = recording.headers[at].clone();
                recording.headers.push(copy);
            }
        }
        of_body.iter().for_each(|damage| damage.does(&mut recording.body));
        let mut url = recording.url.clone().into_bytes();
        of_url.iter().for_each(|damage| damage.does(&mut url));
        let url = String::from_utf8_lossy(&url).into_owned();
        let body = Bytes::from(recording.body.clone());
        let secrets: Vec<_> = recording.secrets.iter().cloned().map(SecretString::from).collect();
        let keys = recording.provider.keys(&secrets, Tolerance::Off).unwrap();
        let headers: Vec<_> = recording.headers.iter().map(|(name, value)| (&**name, &**value)).collect();
        let delivery = hookgate_signature::Delivery {
            method: "POST",
            url: Some(&url),
            headers: headers.iter().copied().collect(),
            body: body.clone(),
        };
        let verified = recording.provider.verify(&keys, delivery, NOW_MS / 1000);
        let outcome = match verified {
            Ok(verified) => Ok(recording.provider.read(&verified)),
            Err(refusal) => Err(refusal.reason()),
        };
        is_an_answer(&body, outcome);
    }

    /// Behind the signature stands a reader, which a damaged body reaches only if it is signed as it is.
    #[test]
    fn a_damaged_body_that_is_signed_is_answered(mut recording in any_recording(), of_body in vec(damage(), 1..5)) {
        of_body.iter().for_each(|damage| damage.does(&mut recording.body));
        let headers: Vec<_> = recording.headers.iter().map(|(name, value)| (&**name, &**value)).collect();
        let own = recording.provider.knowledge().scheme.headers();
        let others: Vec<_> = headers
            .into_iter()
            .filter(|(name, _)| !own.iter().any(|own| own.eq_ignore_ascii_case(name)))
            .collect();
        let outcome = deliver(recording.provider, "msg_1", &others, &recording.body);
        is_an_answer(&Bytes::from(recording.body), outcome);
    }
}

/// Bodies of about this size, each of a shape that is the worst for somebody.
fn worst(bytes: usize) -> Vec<Vec<u8>> {
    let repeated = |before: &str, unit: &str, after: &str| {
        let count = bytes / unit.len();
        format!("{before}{}{after}", unit.repeat(count)).into_bytes()
    };
    let levels = bytes / 6;
    vec![
        repeated("", " ", ""),
        repeated("{\"id\":\"", "\\u0061", "\"}"),
        repeated("{\"x\":[", "0,", "0]}"),
        repeated("[", "{\"id\":1},", "{}]"),
        repeated("{\"events\":[", "{},", "{}]}"),
        repeated(
            "{\"notificationItems\":[",
            "{\"NotificationRequestItem\":{}},",
            "{}]}",
        ),
        repeated("{", "\"id\":1,", "\"id\":1}"),
        repeated("{", "\"a\":{},", "\"b\":1}"),
        format!("{}1{}", "{\"a\":".repeat(levels), "}".repeat(levels)).into_bytes(),
        format!("{{\"data\":{}1{}}}", "[".repeat(bytes / 2), "]".repeat(bytes / 2)).into_bytes(),
        repeated("", "a=1&", "a=1"),
        repeated("payload=", "%7b", ""),
        repeated("", "&", ""),
        repeated("", "=", ""),
    ]
}

#[test]
fn the_worst_body_of_every_provider_is_answered() {
    for provider in Provider::ALL {
        for body in worst(200_000) {
            is_answered(provider, &body);
        }
    }
}

fn is_answered(provider: Provider, body: &[u8]) {
    match deliver(provider, "msg_1", &[], body) {
        Ok(Ok(reading)) => assert!(reading.events.len() <= body.len()),
        Ok(Err(unreadable)) => assert!(Unreadable::REASONS.contains(&unreadable.reason())),
        Err(reason) => assert!(Refusal::REASONS.contains(&reason)),
    }
}

#[test]
fn the_worst_header_of_every_provider_is_answered() {
    let unit = [
        "t=1,", "v1=,", "v1,a ", ",", "=", " ", ";", "h1=0;", "ts=1;", "%", "a=b&", "v1a,",
    ];
    for provider in Provider::ALL {
        for header in provider.knowledge().scheme.headers() {
            for value in unit.map(|unit| unit.repeat(100_000 / unit.len())) {
                let body = Bytes::from_static(b"{}");
                let outcome = open(provider, URL, &[(header, value.as_bytes())], &body);
                let word = word(outcome);
                assert_ne!(word, "ok", "{} {header}", provider.name());
            }
        }
    }
}
