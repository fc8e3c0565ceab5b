//! Signatures from outside: what the schemes accept, what they refuse, and as what.

#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

mod algorithms;
mod body_digest;
mod challenge;
mod detached;
mod labels;
mod properties;
mod secrets;
mod signed_text;
mod standard_webhooks;
mod timestamped_list;
mod token;

use std::time::Duration;

use bytes::Bytes;
use hookgate_signature::{
    Algorithm, BodyDigest, Delivery, Encoding, Headers, KeyForm, Keys, Part, Refusal, Scheme, SignedText,
    StandardWebhooks, Timestamp, TimestampedList, Token, Tolerance, Unit, Verified,
};
use secrecy::SecretString;

const NOW: i64 = 1_790_000_000;
const BODY: &[u8] = b"{\"id\":\"evt_1\"}\r\n";

const LIST: Scheme = Scheme::TimestampedList(TimestampedList {
    header: "Stripe-Signature",
    timestamp: "t",
    signature: "v1",
    separator: b',',
    joiner: b'.',
});
const HEX: Scheme = Scheme::BodyDigest(BodyDigest {
    headers: &["X-Hub-Signature-256"],
    prefix: "sha256=",
    encoding: Encoding::Hex,
});
const BASE64: Scheme = Scheme::BodyDigest(BodyDigest {
    headers: &["X-Shopify-Hmac-Sha256", "Shopify-Hmac-Sha256"],
    prefix: "",
    encoding: Encoding::Base64,
});
const STANDARD: Scheme = Scheme::StandardWebhooks(StandardWebhooks::UNBRANDED);

const TOKEN: Scheme = Scheme::Token(Token {
    header: "X-Gitlab-Token",
});
const TEXT: SignedText = SignedText {
    header: "X-Signature",
    prefix: "v0=",
    encoding: Encoding::Hex,
    algorithm: Algorithm::HmacSha256,
    key: KeyForm::Text,
    timestamp: Some(Timestamp {
        header: "X-Timestamp",
        unit: Unit::Seconds,
    }),
    parts: &[Part::Text("v0:"), Part::Timestamp, Part::Text(":"), Part::Body],
};
const JOINED: Scheme = Scheme::SignedText(TEXT);

/// Throw-away private keys: the base64 of their PKCS #8.
const P256: &str = include_str!("../keys/p256.b64").trim_ascii_end();
const RSA: &str = include_str!("../keys/rsa.b64").trim_ascii_end();
/// Their public halves, as X.509 writes them, in base64.
const P256_PUBLIC: &str = include_str!("../keys/p256.pub.b64").trim_ascii_end();
const RSA_PUBLIC: &str = include_str!("../keys/rsa.pub.b64").trim_ascii_end();
/// A seed of Ed25519, as Standard Webhooks writes it.
const ED25519: &str = "whsk_BwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwc=";

/// Two secrets that every scheme accepts.
const OLD: &str = "whsec_b2xkLW9sZC1vbGQtb2xkLW9sZC1vbGQtbw==";
const NEW: &str = "whsec_bmV3LW5ldy1uZXctbmV3LW5ldy1uZXctbg==";

fn keys(scheme: Scheme, secrets: &[&str]) -> Keys {
    keys_within(scheme, secrets, Tolerance::Past(Duration::from_secs(300)))
}

fn keys_within(scheme: Scheme, secrets: &[&str], tolerance: Tolerance) -> Keys {
    let secrets: Vec<_> = secrets.iter().copied().map(SecretString::from).collect();
    Keys::new(scheme, &secrets, tolerance).unwrap()
}

fn delivery<'a>(headers: &[(&'a str, &'a [u8])], body: &[u8]) -> Delivery<'a> {
    Delivery {
        method: "POST",
        url: None,
        headers: Headers::from_iter(headers.iter().copied()),
        body: Bytes::copy_from_slice(body),
    }
}

/// Sends `BODY` under these headers at `NOW`: the slot of the secret that matched, or the reason why not.
fn slot(keys: &Keys, headers: &[(&str, &str)]) -> Result<usize, &'static str> {
    let headers: Vec<_> = headers.iter().map(|(n, v)| (*n, v.as_bytes())).collect();
    keys.verify(delivery(&headers, BODY), NOW)
        .map(|verified: Verified<'_>| verified.slot())
        .map_err(|refusal: Refusal| refusal.reason())
}

/// The value of the header that carries the signature.
fn signature(keys: &Keys, at: i64) -> String {
    keys.sign("msg_1", at, BODY).pop().unwrap().1
}
