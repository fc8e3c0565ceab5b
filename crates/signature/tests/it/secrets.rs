//! What is accepted as a secret, and that none is ever shown.

use base64::Engine;
use base64::engine::general_purpose::STANDARD as BASE64_TEXT;
use hookgate_signature::{Keys, Scheme, Tolerance};
use secrecy::SecretString;

use crate::{BASE64, HEX, LIST, NOW, OLD, STANDARD, delivery, keys};

/// The slot and the problem of the first secret that is refused.
fn refused(scheme: Scheme, secrets: &[&str]) -> Option<(usize, &'static str)> {
    let secrets: Vec<_> = secrets.iter().copied().map(SecretString::from).collect();
    let bad = Keys::new(scheme, &secrets, Tolerance::Off).err()?;
    Some((bad.slot, bad.problem))
}

#[test]
fn nobody_is_accepted_for_want_of_a_secret() {
    for scheme in [LIST, HEX, BASE64, STANDARD] {
        assert!(refused(scheme, &[]).is_some());
        for blank in ["", " ", "\n", "\t \r\n"] {
            assert_eq!(
                refused(scheme, &[OLD, blank]).map(|(slot, _)| slot),
                Some(1),
                "{blank:?}"
            );
        }
    }
}

#[test]
fn space_around_a_secret_is_pointed_out_and_not_trimmed() {
    for scheme in [LIST, HEX, BASE64, STANDARD] {
        for secret in [format!("{OLD}\n"), format!(" {OLD}"), format!("{OLD}\r\n")] {
            let (_, problem) = refused(scheme, &[&secret]).unwrap();
            assert!(problem.contains("space or a line break"), "{problem}");
        }
    }
}

#[test]
fn a_standard_webhooks_key_has_24_to_64_bytes() {
    for (length, fits) in [
        (0, false),
        (16, false),
        (23, false),
        (24, true),
        (64, true),
        (65, false),
    ] {
        let secret = format!("whsec_{}", BASE64_TEXT.encode(vec![7; length]));
        assert_eq!(refused(STANDARD, &[&secret]).is_none(), fits, "{length} bytes");
    }
    assert!(refused(STANDARD, &["whsec_not base64 at all, but long enough"]).is_some());
}

#[test]
fn a_secret_may_lack_its_prefix_and_its_padding() {
    let bare = OLD.strip_prefix("whsec_").unwrap();
    for spelling in [bare, OLD.trim_end_matches('='), bare.trim_end_matches('=')] {
        assert_eq!(
            keys(STANDARD, &[spelling]).sign("msg_1", NOW, b"{}"),
            keys(STANDARD, &[OLD]).sign("msg_1", NOW, b"{}")
        );
    }
}

#[test]
fn a_public_key_is_a_point_of_full_order() {
    let encoded = |bytes: &[u8]| format!("whpk_{}", BASE64_TEXT.encode(bytes));
    let mut small_order = [0; 32];
    small_order[0] = 1;
    let not_on_the_curve = [2; 32];
    for bytes in [&small_order[..], &not_on_the_curve, &[7; 31], &[7; 64], &[]] {
        let (_, problem) = refused(STANDARD, &[&encoded(bytes)]).unwrap();
        assert!(problem.contains("whpk_"));
    }
}

#[test]
fn a_private_key_is_a_seed_or_a_matching_pair() {
    let encoded = |bytes: &[u8]| format!("whsk_{}", BASE64_TEXT.encode(bytes));
    let pair = ed25519_dalek::SigningKey::from_bytes(&[7; 32]).to_keypair_bytes();
    assert_eq!(
        keys(STANDARD, &[&encoded(&[7; 32])]).sign("a", NOW, b"{}"),
        keys(STANDARD, &[&encoded(&pair)]).sign("a", NOW, b"{}")
    );
    for bytes in [&[7; 31][..], &[7; 33], &[7; 64]] {
        assert!(refused(STANDARD, &[&encoded(bytes)]).is_some());
    }
}

#[test]
fn nothing_secret_is_printed() {
    let keys = keys(LIST, &[OLD, OLD]);
    let printed = format!("{keys:?}");
    assert!(printed.contains("secrets: 2") && !printed.contains("whsec_"));

    let signed = keys.sign("", NOW, b"a body");
    let headers = [(signed[0].0, signed[0].1.as_bytes())];
    let verified = keys.verify(delivery(&headers, b"a body"), NOW).unwrap();
    let printed = format!("{verified:?}");
    assert!(printed.contains("body_bytes: 6") && printed.contains("Stripe-Signature"));
    assert!(!printed.contains("v1=") && !printed.contains(&format!("{:?}", b"a body")));

    let (_, problem) = refused(STANDARD, &["canary"]).unwrap();
    assert!(!problem.contains("canary"));
}
