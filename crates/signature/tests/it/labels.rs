//! Labels that are signed and never sent, and keys that a sender names.

use base64::Engine;
use base64::engine::general_purpose::STANDARD as BASE64_TEXT;
use hookgate_signature::{Algorithm, Encoding, KeyForm, Keys, Part, Scheme, SignedText, Tolerance};
use secrecy::SecretString;

use crate::{BODY, JOINED, NOW, OLD, P256_PUBLIC, RSA, RSA_PUBLIC, TEXT, keys, slot};

const LABELLED: Scheme = Scheme::SignedText(SignedText {
    prefix: "",
    encoding: Encoding::Base64,
    algorithm: Algorithm::RsaPkcs1Sha256,
    key: KeyForm::LabelOrKeyPair,
    timestamp: None,
    parts: &[Part::Label, Part::Text("|"), Part::BodyCrc32],
    ..TEXT
});

fn judged(signer: &[&str], verifier: &Keys) -> Result<usize, &'static str> {
    let signed = keys(LABELLED, signer).sign("", NOW, BODY);
    let headers: Vec<_> = signed.iter().map(|(name, value)| (*name, &**value)).collect();
    slot(verifier, &headers)
}

#[test]
fn each_label_is_tried_with_each_key() {
    let both = keys(LABELLED, &["one", RSA_PUBLIC, "two"]);
    assert_eq!(judged(&["one", RSA], &both), Ok(0));
    assert_eq!(judged(&["two", RSA], &both), Ok(2));
    assert_eq!(judged(&["three", RSA], &both), Err("bad_signature"));
    assert!(!both.can_sign() && !both.needs_a_named_key());
    assert!(keys(LABELLED, &["one", RSA]).can_sign());
}

#[test]
fn a_label_or_a_key_alone_accepts_nobody() {
    assert_eq!(
        judged(&["one", RSA], &keys(LABELLED, &["one"])),
        Err("bad_signature")
    );
    assert_eq!(
        judged(&["one", RSA], &keys(LABELLED, &[RSA_PUBLIC])),
        Err("bad_signature")
    );
}

#[test]
fn a_named_key_stands_beside_the_labels_and_in_no_other_keys_place() {
    let spki = |text: &str| BASE64_TEXT.decode(text).unwrap();
    let labels = keys(LABELLED, &["one", "two"]);
    assert!(labels.needs_a_named_key());
    let named = labels.naming(&spki(RSA_PUBLIC)).unwrap();
    assert!(!named.needs_a_named_key());
    assert_eq!(judged(&["two", RSA], &named), Ok(1));
    assert_eq!(judged(&["three", RSA], &named), Err("bad_signature"));
    assert_eq!(
        judged(&["one", RSA], &labels),
        Err("bad_signature"),
        "naming changes no keys"
    );
    let configured = keys(LABELLED, &["one", RSA_PUBLIC]);
    if let Ok(other) = configured.naming(&spki(P256_PUBLIC)) {
        assert_eq!(judged(&["one", RSA], &other), Err("bad_signature"));
    }
}

#[test]
fn only_a_key_can_be_named_and_only_where_labels_are_known() {
    let labels = keys(LABELLED, &["one"]);
    for wrong in [&b""[..], b"no key", &[0x30, 0x82, 0xff, 0xff]] {
        assert!(labels.naming(wrong).is_err());
    }
    let spki = BASE64_TEXT.decode(RSA_PUBLIC).unwrap();
    assert!(keys(JOINED, &[OLD]).naming(&spki).is_err());
    assert!(keys(crate::TOKEN, &[OLD]).naming(&spki).is_err());
}

#[test]
fn a_mangled_key_is_no_label() {
    let refused = |text: &str| {
        let secrets = [SecretString::from(text)];
        Keys::new(LABELLED, &secrets, Tolerance::Off)
            .err()
            .map(|bad| bad.problem)
    };
    assert_eq!(refused(&"x".repeat(63)), None);
    // A line of PEM has 64 characters, and its marks are no label either.
    let line = "x".repeat(64);
    for mangled in [
        &*line,
        &RSA_PUBLIC[1..],
        &RSA[..RSA.len() / 2],
        "-----BEGIN PUBLIC KEY-----",
        "two words",
    ] {
        assert!(refused(mangled).unwrap().contains("RSA key"));
    }
    assert!(refused("").unwrap().contains("empty"));
    assert!(refused("label ").unwrap().contains("space"));
}
