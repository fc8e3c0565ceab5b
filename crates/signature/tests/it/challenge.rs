//! Answers to challenges: signed by the key that verified the delivery, and by no scheme that could sign one itself.

use bytes::Bytes;
use hookgate_signature::{Challenge, Delivery, Part, Scheme, SignedText, Tolerance};

use crate::{BODY, HEX, LIST, NEW, NOW, OLD, STANDARD, TEXT, keys_within};

/// What is answered to `abc` that a delivery asks for, signed by the second of two keys.
fn proof(scheme: Scheme) -> Option<String> {
    let both = keys_within(scheme, &[NEW, OLD], Tolerance::Off);
    let signed = keys_within(scheme, &[OLD], Tolerance::Off).sign("msg_1", NOW, BODY);
    let delivery = Delivery {
        method: "POST",
        url: None,
        headers: signed
            .iter()
            .map(|(name, value)| (*name, value.as_bytes()))
            .collect(),
        body: Bytes::from_static(BODY),
    };
    let verified = both.verify(delivery, NOW).unwrap();
    assert_eq!(
        (verified.slot(), verified.proof()),
        (1, None),
        "nobody has asked yet"
    );
    let challenge = Challenge::parse("abc").unwrap();
    both.answer(verified, &challenge).proof().map(str::to_owned)
}

#[test]
fn the_key_that_verified_the_delivery_signs_the_answer() {
    // Nothing but the text: what the one key signs of `abc` alone, told by a scheme that signs the body as it is.
    let plain = Scheme::SignedText(SignedText {
        prefix: "",
        timestamp: None,
        parts: &[Part::Body],
        ..TEXT
    });
    let expected = keys_within(plain, &[OLD], Tolerance::Off).sign("", NOW, b"abc");
    assert_eq!(proof(Scheme::SignedText(TEXT)).unwrap(), expected[0].1);
}

#[test]
fn a_scheme_that_could_sign_a_challenge_as_a_delivery_answers_none() {
    const BODY_ALONE: Scheme = Scheme::SignedText(SignedText {
        timestamp: None,
        parts: &[Part::Body],
        ..TEXT
    });
    const LETTERS_AROUND: Scheme = Scheme::SignedText(SignedText {
        parts: &[Part::Text("v0-"), Part::Timestamp, Part::Text("_"), Part::Body],
        ..TEXT
    });
    for scheme in [BODY_ALONE, LETTERS_AROUND, HEX, LIST, STANDARD] {
        assert_eq!(proof(scheme), None, "{scheme:?}");
    }
}
