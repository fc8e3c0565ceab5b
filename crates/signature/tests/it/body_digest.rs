//! A digest of the body in one header, in hex and in base64.

use crate::{BASE64, HEX, NEW, NOW, OLD, keys, signature, slot};

const GITHUB: &str = "X-Hub-Signature-256";
const SHOPIFY: &str = "X-Shopify-Hmac-Sha256";

#[test]
fn either_secret_matches_and_says_which() {
    for (scheme, header) in [(HEX, GITHUB), (BASE64, SHOPIFY)] {
        let both = keys(scheme, &[OLD, NEW]);
        for (expected, secret) in [OLD, NEW].into_iter().enumerate() {
            let valid = signature(&keys(scheme, &[secret]), NOW);
            assert_eq!(slot(&both, &[(header, &valid)]), Ok(expected));
        }
        let foreign = signature(
            &keys(scheme, &["whsec_Zm9yZWlnbi1mb3JlaWduLWZvcmVpZ24tZg=="]),
            NOW,
        );
        assert_eq!(slot(&both, &[(header, &foreign)]), Err("bad_signature"));
    }
}

#[test]
fn hex_needs_its_prefix_and_64_lower_case_digits() {
    let keys = keys(HEX, &[OLD]);
    let valid = signature(&keys, NOW);
    let digest = valid.strip_prefix("sha256=").unwrap();
    let mut wrong: Vec<_> = (0..64)
        .map(|length| format!("sha256={}", &digest[..length]))
        .collect();
    wrong.extend([
        digest.to_owned(),
        format!("sha1={digest}"),
        format!("SHA256={digest}"),
        format!("sha256= {digest}"),
        format!("sha256={digest}0"),
        format!("{valid},{valid}"),
        format!("sha256={}", digest.to_uppercase()),
        format!("sha256={}", "g".repeat(64)),
    ]);
    for header in wrong {
        assert_eq!(
            slot(&keys, &[(GITHUB, &header)]),
            Err("malformed_signature"),
            "{header}"
        );
    }
}

#[test]
fn base64_needs_44_characters_in_their_one_spelling() {
    let keys = keys(BASE64, &[OLD]);
    let valid = signature(&keys, NOW);
    let unpadded = valid.trim_end_matches('=');
    let hex = "a".repeat(64);
    let url_safe = "_".repeat(43) + "=";
    let spaced = format!(" {valid}");
    for header in [unpadded, &hex, &url_safe, &spaced, "=", "v1,"] {
        assert_eq!(
            slot(&keys, &[(SHOPIFY, header)]),
            Err("malformed_signature"),
            "{header}"
        );
    }
}

#[test]
fn both_names_are_read_but_only_one_at_a_time() {
    let keys = keys(BASE64, &[OLD]);
    let valid = &*signature(&keys, NOW);
    let plain = "Shopify-Hmac-Sha256";
    assert_eq!(slot(&keys, &[(plain, valid)]), Ok(0));
    assert_eq!(slot(&keys, &[(SHOPIFY, ""), (plain, valid)]), Ok(0));
    assert_eq!(
        slot(&keys, &[(SHOPIFY, valid), (plain, valid)]),
        Err("malformed_signature")
    );
    assert_eq!(
        slot(&keys, &[(SHOPIFY, valid), (SHOPIFY, valid)]),
        Err("malformed_signature")
    );
    assert_eq!(
        slot(&keys, &[(SHOPIFY, ""), (plain, "")]),
        Err("missing_signature")
    );
}
