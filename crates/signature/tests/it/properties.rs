//! What holds of every scheme, whatever the bytes.

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::Index;

use hookgate_signature::{Algorithm, Encoding, KeyForm, Refusal, Scheme, SignedText};

use crate::{BASE64, ED25519, HEX, JOINED, LIST, NOW, OLD, P256, RSA, STANDARD, TEXT, TOKEN, delivery, keys};

/// A scheme over joined parts with another algorithm.
const fn joined(algorithm: Algorithm, key: KeyForm, encoding: Encoding) -> Scheme {
    Scheme::SignedText(SignedText {
        algorithm,
        key,
        encoding,
        ..TEXT
    })
}

fn schemes() -> impl Strategy<Value = (Scheme, &'static str)> {
    prop_oneof![
        Just((LIST, OLD)),
        Just((HEX, OLD)),
        Just((BASE64, OLD)),
        Just((STANDARD, OLD)),
        Just((STANDARD, ED25519)),
        Just((TOKEN, OLD)),
        Just((JOINED, OLD)),
        Just((joined(Algorithm::HmacSha1, KeyForm::Text, Encoding::Base64), OLD)),
        Just((joined(Algorithm::HmacSha512, KeyForm::Text, Encoding::Hex), OLD)),
        Just((
            joined(Algorithm::Ed25519, KeyForm::KeyPair, Encoding::Hex),
            ED25519
        )),
        Just((
            joined(Algorithm::EcdsaP256Sha256, KeyForm::KeyPair, Encoding::Base64),
            P256
        )),
        Just((
            joined(Algorithm::RsaPkcs1Sha256, KeyForm::KeyPair, Encoding::Base64),
            RSA
        )),
    ]
}

/// Bytes that look enough like a signature header to reach every branch of its grammar.
fn header_bytes() -> impl Strategy<Value = Vec<u8>> {
    let pieces = prop_oneof![
        Just(b"t=".to_vec()),
        Just(b"v1=".to_vec()),
        Just(b"v1,".to_vec()),
        Just(b"v1a,".to_vec()),
        Just(b"sha256=".to_vec()),
        Just(b"v0=".to_vec()),
        Just(vec![b'a'; 128]),
        Just(b",".to_vec()),
        Just(b" ".to_vec()),
        Just(NOW.to_string().into_bytes()),
        Just(vec![b'a'; 64]),
        Just(b"qrvMqrvMqrvMqrvMqrvMqrvMqrvMqrvMqrvMqrvMqrs=".to_vec()),
        vec(any::<u8>(), 0..80),
    ];
    prop_oneof![
        vec(any::<u8>(), 0..200),
        vec(pieces, 0..12).prop_map(|parts| parts.concat())
    ]
}

proptest! {
    #[test]
    fn what_is_signed_verifies((scheme, secret) in schemes(), id in "[!-~]{1,40}", body: Vec<u8>, now in 0..1i64 << 40) {
        let signed = keys(scheme, &[secret]).sign(&id, now, &body);
        let headers: Vec<_> = signed.iter().map(|(name, value)| (*name, value.as_bytes())).collect();
        let verified = keys(scheme, &[secret, secret]).verify(delivery(&headers, &body), now).unwrap();
        prop_assert_eq!(verified.slot(), 0);
        prop_assert_eq!(&verified.body()[..], &body);
    }

    #[test]
    fn any_flipped_byte_of_body_or_headers_is_refused(
        (scheme, secret) in schemes(),
        body in vec(any::<u8>(), 1..200),
        at: Index,
        flip in 1..=255u8,
    ) {
        let keys = keys(scheme, &[secret]);
        let mut signed: Vec<_> =
            keys.sign("msg_1", NOW, &body).into_iter().map(|(name, value)| (name, value.into_bytes())).collect();
        // A token covers nothing but itself.
        let mut body = if matches!(scheme, Scheme::Token(_)) { vec![] } else { body };
        let values = signed.iter_mut().flat_map(|(_, value)| value);
        let mut bytes: Vec<_> = body.iter_mut().chain(values).collect();
        let at = at.index(bytes.len());
        *bytes[at] ^= flip;
        let headers: Vec<_> = signed.iter().map(|(name, value)| (*name, &value[..])).collect();
        prop_assert!(keys.verify(delivery(&headers, &body), NOW).is_err());
    }

    #[test]
    fn no_header_makes_a_scheme_panic_or_accept(
        (scheme, secret) in schemes(),
        values in vec(header_bytes(), 3),
        now: i64,
    ) {
        let names = [
            "Stripe-Signature", "X-Hub-Signature-256", "X-Shopify-Hmac-Sha256",
            "webhook-id", "webhook-timestamp", "webhook-signature", "X-Signature", "X-Timestamp", "X-Gitlab-Token",
        ];
        let headers: Vec<_> = names.into_iter().zip(values.iter().cycle().map(|value| &value[..])).collect();
        let refusal = keys(scheme, &[secret]).verify(delivery(&headers, b"{}"), now).unwrap_err();
        let genuine = matches!(refusal, Refusal::StaleTimestamp { .. } | Refusal::FutureTimestamp { .. });
        prop_assert!(!genuine, "only a matching signature has an age");
        prop_assert!(Refusal::REASONS.contains(&refusal.reason()));
    }
}
