//! Signatures whose text somebody else has read.

use hookgate_signature::{Algorithm, Detached, Encoding, KeyForm, Keys, Offered, Scheme, Seal};

use crate::{NEW, NOW, OLD, delivery, keys};

const SCHEME: Scheme = Scheme::Detached(Detached {
    header: "item.signature",
    algorithms: &[Algorithm::HmacSha1, Algorithm::HmacSha256],
    key: KeyForm::Text,
    signs: "something",
});

/// What somebody with this secret signed.
fn seal(secret: &str, signed: &str, texts: &[&str]) -> Seal {
    let signature = keys(SCHEME, &[secret])
        .sign_text(Encoding::Base64, signed.as_bytes())
        .unwrap();
    let offered = Offered::read(Algorithm::HmacSha1, Encoding::Base64, signature.as_bytes());
    Seal {
        texts: texts.iter().map(|text| text.as_bytes().to_vec()).collect(),
        signatures: vec![offered.unwrap()],
        signed_at: None,
    }
}

fn judged(keys: &Keys, seals: Vec<Seal>) -> Result<usize, &'static str> {
    let verified = keys.verify_seals(delivery(&[], b"{}"), seals, NOW);
    verified
        .map(|verified| verified.slot())
        .map_err(|refusal| refusal.reason())
}

#[test]
fn every_seal_has_to_hold() {
    let both = keys(SCHEME, &[OLD, NEW]);
    let good = |secret| seal(secret, "a", &["a"]);
    let bad = || seal(OLD, "a", &["b"]);
    assert_eq!(judged(&both, vec![good(OLD)]), Ok(0));
    assert_eq!(
        judged(&both, vec![good(NEW), good(OLD)]),
        Ok(1),
        "the first seal names the secret"
    );
    assert_eq!(judged(&both, vec![bad(), good(OLD)]), Err("bad_signature"));
    assert_eq!(judged(&both, vec![good(OLD), bad()]), Err("bad_signature"));
    assert_eq!(
        judged(&both, vec![seal("a third", "a", &["a"])]),
        Err("bad_signature")
    );
}

#[test]
fn no_seal_is_no_signature() {
    let keys = keys(SCHEME, &[OLD]);
    assert_eq!(judged(&keys, vec![]), Err("missing_signature"));
    let unread = keys.verify(delivery(&[], b"{}"), NOW).unwrap_err();
    assert_eq!(unread.reason(), "missing_signature");
}

#[test]
fn any_of_the_texts_may_be_the_signed_one() {
    let keys = keys(SCHEME, &[OLD]);
    assert_eq!(judged(&keys, vec![seal(OLD, "b", &["a", "b"])]), Ok(0));
    assert_eq!(
        judged(&keys, vec![seal(OLD, "c", &["a", "b"])]),
        Err("bad_signature")
    );
    assert_eq!(judged(&keys, vec![seal(OLD, "a", &[])]), Err("bad_signature"));
    let nothing_offered = Seal {
        signatures: vec![],
        ..seal(OLD, "a", &["a"])
    };
    assert_eq!(judged(&keys, vec![nothing_offered]), Err("bad_signature"));
}

#[test]
fn a_signed_time_is_judged() {
    let keys = keys(SCHEME, &[OLD]);
    for (age, expected) in [(300, Ok(0)), (301, Err("stale_timestamp"))] {
        let seal = Seal {
            signed_at: Some(NOW - age),
            ..seal(OLD, "a", &["a"])
        };
        assert_eq!(judged(&keys, vec![seal]), expected);
    }
}

#[test]
fn one_secret_is_the_key_of_each_algorithm() {
    let sha256 = Scheme::Detached(Detached {
        header: "item.signature",
        algorithms: &[Algorithm::HmacSha256],
        key: KeyForm::Text,
        signs: "something",
    });
    let signature = keys(sha256, &[OLD]).sign_text(Encoding::Hex, b"a").unwrap();
    let offered = Offered::read(Algorithm::HmacSha256, Encoding::Hex, signature.as_bytes()).unwrap();
    let seal = Seal {
        texts: vec![b"a".to_vec()],
        signatures: vec![offered],
        signed_at: None,
    };
    assert_eq!(judged(&keys(SCHEME, &[NEW, OLD]), vec![seal]), Ok(1));
}

#[test]
fn what_cannot_be_a_signature_is_not_offered() {
    for text in ["", "a", "====", &"a".repeat(64), &"A".repeat(40)] {
        assert!(
            Offered::read(Algorithm::HmacSha1, Encoding::Hex, text.as_bytes()).is_none(),
            "{text}"
        );
    }
    assert!(Offered::read(Algorithm::HmacSha1, Encoding::Hex, "a".repeat(40).as_bytes()).is_some());
}
