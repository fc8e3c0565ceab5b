//! Every algorithm signs and verifies, in every form that its key may have; a wrong form says what is accepted.

use base64::Engine;
use base64::engine::general_purpose::STANDARD as BASE64_TEXT;
use hookgate_signature::{Algorithm, Encoding, KeyForm, Keys, Scheme, SignedText, Tolerance};
use secrecy::SecretString;

use crate::{ED25519, NOW, OLD, P256, P256_PUBLIC, RSA, RSA_PUBLIC, TEXT, keys, slot};

const PAIRS: [(Algorithm, &str, &str); 3] = [
    (
        Algorithm::Ed25519,
        ED25519,
        // The public half of the seed of sevens.
        "ea4a6c63e29c520abef5507b132ec5f9954776aebebe7b92421eea691446d22c",
    ),
    (Algorithm::EcdsaP256Sha256, P256, P256_PUBLIC),
    (Algorithm::RsaPkcs1Sha256, RSA, RSA_PUBLIC),
];
const HMACS: [Algorithm; 3] = [Algorithm::HmacSha1, Algorithm::HmacSha256, Algorithm::HmacSha512];

fn scheme(algorithm: Algorithm, key: KeyForm, encoding: Encoding) -> Scheme {
    Scheme::SignedText(SignedText {
        algorithm,
        key,
        encoding,
        ..TEXT
    })
}

fn problem(algorithm: Algorithm, key: KeyForm, secret: &str) -> Option<&'static str> {
    let secrets = [SecretString::from(secret)];
    let keys = Keys::new(scheme(algorithm, key, Encoding::Hex), &secrets, Tolerance::Off);
    keys.err().map(|bad| bad.problem)
}

/// What the keys of `verifier` say of a delivery that `signer` signed.
fn judged(signer: &Keys, verifier: &Keys) -> Result<usize, &'static str> {
    let signed = signer.sign("", NOW, crate::BODY);
    let headers: Vec<_> = signed.iter().map(|(name, value)| (*name, &**value)).collect();
    slot(verifier, &headers)
}

#[test]
fn a_shared_secret_signs_and_verifies() {
    for algorithm in HMACS {
        for encoding in [Encoding::Hex, Encoding::Base64] {
            let scheme = scheme(algorithm, KeyForm::Text, encoding);
            let both = keys(scheme, &["another", OLD]);
            assert_eq!(judged(&keys(scheme, &[OLD]), &both), Ok(1), "{algorithm:?}");
            assert_eq!(judged(&keys(scheme, &["a third"]), &both), Err("bad_signature"));
        }
    }
}

#[test]
fn a_public_key_verifies_what_its_private_half_signed() {
    for (algorithm, private, public) in PAIRS {
        for encoding in [Encoding::Hex, Encoding::Base64] {
            let scheme = scheme(algorithm, KeyForm::KeyPair, encoding);
            let (private, public) = (keys(scheme, &[private]), keys(scheme, &[public]));
            assert_eq!(judged(&private, &public), Ok(0), "{algorithm:?}");
            assert_eq!(judged(&private, &private), Ok(0), "{algorithm:?}");
            assert!(private.can_sign() && !public.can_sign());
            assert_eq!(public.sign("", NOW, b"{}"), []);
        }
    }
}

#[test]
fn an_algorithms_signature_is_no_other_algorithms() {
    for signing in HMACS {
        for judging in HMACS.into_iter().filter(|other| *other != signing) {
            let signer = keys(scheme(signing, KeyForm::Text, Encoding::Hex), &[OLD]);
            let verifier = keys(scheme(judging, KeyForm::Text, Encoding::Hex), &[OLD]);
            assert_eq!(judged(&signer, &verifier), Err("malformed_signature"));
        }
    }
}

#[test]
fn a_text_is_decoded_as_the_form_says() {
    let algorithm = Algorithm::HmacSha256;
    let with = |form, secret: &str| keys(scheme(algorithm, form, Encoding::Hex), &[secret]);
    let text = with(KeyForm::Text, "sesame");
    for (form, secret) in [
        (KeyForm::Hex, "736573616d65"),
        (KeyForm::Hex, "736573616D65"),
        (KeyForm::Base64, "c2VzYW1l"),
    ] {
        assert_eq!(
            with(form, secret).sign("", NOW, b"{}"),
            text.sign("", NOW, b"{}"),
            "{secret}"
        );
    }
    for (form, secret, accepted) in [
        (KeyForm::Hex, "sesame", "hexadecimal"),
        (KeyForm::Hex, "736", "hexadecimal"),
        (KeyForm::Base64, "not base64", "base64"),
    ] {
        assert!(
            problem(algorithm, form, secret).unwrap().contains(accepted),
            "{secret}"
        );
    }
}

#[test]
fn a_wrong_key_says_what_is_accepted_and_never_itself() {
    let rsa_as_pem = "-----BEGIN RSA PUBLIC KEY-----\nAAAA\n-----END RSA PUBLIC KEY-----";
    for (algorithm, accepted) in [
        (Algorithm::Ed25519, "64 hex digits"),
        (Algorithm::EcdsaP256Sha256, "PEM"),
        (Algorithm::RsaPkcs1Sha256, "PEM"),
    ] {
        for wrong in [
            "canary",
            "00",
            "AAAA",
            rsa_as_pem,
            &"0".repeat(63),
            &"02".repeat(32),
        ] {
            let problem = problem(algorithm, KeyForm::KeyPair, wrong).unwrap();
            assert!(
                problem.contains(accepted) && !problem.contains("canary"),
                "{problem}"
            );
        }
        assert!(
            problem(algorithm, KeyForm::Text, "sesame")
                .unwrap()
                .contains("key pair")
        );
        assert!(
            problem(algorithm, KeyForm::KeyPair, " ")
                .unwrap()
                .contains("empty")
        );
    }
    for algorithm in HMACS {
        assert!(
            problem(algorithm, KeyForm::KeyPair, P256)
                .unwrap()
                .contains("shared secret")
        );
    }
}

#[test]
fn a_private_key_of_another_kind_is_no_key() {
    assert!(problem(Algorithm::EcdsaP256Sha256, KeyForm::KeyPair, RSA).is_some());
    assert!(problem(Algorithm::RsaPkcs1Sha256, KeyForm::KeyPair, P256).is_some());
}

#[test]
fn a_public_key_of_another_kind_accepts_nobody() {
    for (algorithm, private, foreign) in [
        (Algorithm::EcdsaP256Sha256, P256, RSA_PUBLIC),
        (Algorithm::RsaPkcs1Sha256, RSA, P256_PUBLIC),
    ] {
        let scheme = scheme(algorithm, KeyForm::KeyPair, Encoding::Base64);
        let secrets = [SecretString::from(foreign)];
        if let Ok(foreign) = Keys::new(scheme, &secrets, Tolerance::Off) {
            assert_eq!(judged(&keys(scheme, &[private]), &foreign), Err("bad_signature"));
        }
    }
}

#[test]
fn pem_may_be_broken_into_lines_and_end_with_one() {
    for (algorithm, private, public) in [PAIRS[1], PAIRS[2]] {
        let pem = |text: &str, end: &str| {
            let lines: Vec<_> = text
                .as_bytes()
                .chunks(64)
                .map(|line| std::str::from_utf8(line).unwrap())
                .collect();
            format!(
                "-----BEGIN PUBLIC KEY-----{end}{}{end}-----END PUBLIC KEY-----{end}",
                lines.join(end)
            )
        };
        let scheme = scheme(algorithm, KeyForm::KeyPair, Encoding::Base64);
        let signer = keys(scheme, &[private]);
        for end in ["\n", "\r\n"] {
            assert_eq!(judged(&signer, &keys(scheme, &[&pem(public, end)])), Ok(0));
            assert_eq!(judged(&keys(scheme, &[&pem(private, end)]), &signer), Ok(0));
        }
    }
}

#[test]
fn a_signature_has_its_one_spelling() {
    for (algorithm, private, _) in PAIRS {
        let keys = keys(scheme(algorithm, KeyForm::KeyPair, Encoding::Base64), &[private]);
        let signed = keys.sign("", NOW, crate::BODY);
        let (_, value) = &signed[1];
        let text = value.strip_prefix("v0=").unwrap();
        let bytes = BASE64_TEXT.decode(text).unwrap();
        let judge = |value: &str| slot(&keys, &[("X-Timestamp", &signed[0].1), ("X-Signature", value)]);
        assert_eq!(judge(value), Ok(0));
        for wrong in [
            "v0=".to_owned(),
            format!("v0= {text}"),
            format!("v0={text}="),
            text.to_owned(),
            "v0=a-_b".to_owned(),
        ] {
            assert_eq!(judge(&wrong), Err("malformed_signature"), "{algorithm:?}");
        }
        let longer = [&bytes[..], b"\0"].concat();
        let outcome = judge(&format!("v0={}", BASE64_TEXT.encode(longer)));
        assert!(outcome.is_err(), "{algorithm:?}");
    }
}
