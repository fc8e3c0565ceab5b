//! Timestamp and signatures in one header.

use std::time::Duration;

use hookgate_signature::Tolerance;

use crate::{LIST, NEW, NOW, OLD, keys, keys_within, signature, slot};

/// The hex digest alone.
fn digest(secret: &str, at: i64) -> String {
    signature(&keys(LIST, &[secret]), at)
        .split_once("v1=")
        .unwrap()
        .1
        .to_owned()
}

fn check(header: &str, expected: Result<usize, &'static str>) {
    let outcome = slot(&keys(LIST, &[OLD, NEW]), &[("stripe-signature", header)]);
    assert_eq!(outcome, expected, "{header}");
}

#[test]
fn any_signature_may_match_any_secret_in_any_order() {
    let (old, new) = (digest(OLD, NOW), digest(NEW, NOW));
    let other = "0".repeat(64);
    check(&format!("t={NOW},v1={old},v1={new}"), Ok(0));
    check(&format!("t={NOW},v1={new},v1={old}"), Ok(0));
    check(&format!("t={NOW},v1={other},v1={new}"), Ok(1));
    check(&format!("v1={new},t={NOW}"), Ok(1));
    check(&format!("t={NOW},v0={other},v1={new}"), Ok(1));
    check(&format!("t={NOW},v1={new},v2=x,note,=,"), Ok(1));
}

#[test]
fn the_last_of_twenty_signatures_counts_and_a_twenty_first_does_not() {
    let others = |count| format!(",v1={}", "0".repeat(64)).repeat(count);
    let valid = digest(NEW, NOW);
    check(&format!("t={NOW}{},v1={valid}", others(19)), Ok(1));
    check(
        &format!("t={NOW}{},v1={valid}", others(20)),
        Err("malformed_signature"),
    );
    let unusable = ",v1=".repeat(20);
    check(
        &format!("t={NOW}{unusable},v1={valid}"),
        Err("malformed_signature"),
    );
}

#[test]
fn a_signature_has_64_lower_case_hex_digits() {
    let valid = digest(OLD, NOW);
    for length in 0..64 {
        check(
            &format!("t={NOW},v1={}", &valid[..length]),
            Err("malformed_signature"),
        );
    }
    let base64 = "dGhpcyBpcyBiYXNlNjQgYW5kIG5vdCBoZXhhZGVjaW1hbCE=";
    for wrong in [
        format!("{valid}0"),
        valid.to_uppercase(),
        "g".repeat(64),
        base64.to_owned(),
    ] {
        check(&format!("t={NOW},v1={wrong}"), Err("malformed_signature"));
    }
}

#[test]
fn the_right_digest_under_another_key_is_no_signature() {
    let valid = digest(OLD, NOW);
    for key in ["v0", "v2", "V1", " v1", "v1 ", "v11", ""] {
        check(&format!("t={NOW},{key}={valid}"), Err("malformed_signature"));
    }
}

#[test]
fn a_timestamp_is_one_plain_decimal_number() {
    let valid = digest(OLD, NOW);
    for t in [
        "",
        "abc",
        "+1790000000",
        "-1",
        "1.5",
        "1e9",
        "99999999999999999999",
        " 1790000000",
    ] {
        check(&format!("t={t},v1={valid}"), Err("malformed_signature"));
    }
    check(&format!("v1={valid}"), Err("malformed_signature"));
    check(&format!("t={NOW},t={NOW},v1={valid}"), Err("malformed_signature"));
    check(&format!("t={},v1={valid}", NOW + 1), Err("bad_signature"));
}

#[test]
fn a_missing_an_empty_and_a_repeated_header_are_told_apart() {
    let keys = keys(LIST, &[OLD]);
    let valid = signature(&keys, NOW);
    let name = "Stripe-Signature";
    assert_eq!(slot(&keys, &[]), Err("missing_signature"));
    assert_eq!(slot(&keys, &[(name, "")]), Err("missing_signature"));
    assert_eq!(slot(&keys, &[(name, ""), (name, &valid)]), Ok(0));
    assert_eq!(
        slot(&keys, &[(name, &valid), (name, &valid)]),
        Err("malformed_signature")
    );
    assert_eq!(
        slot(&keys, &[(name, &valid), ("STRIPE-SIGNATURE", "x")]),
        Err("malformed_signature")
    );
}

#[test]
fn an_expired_secret_is_no_longer_accepted() {
    let valid = signature(&keys(LIST, &[OLD]), NOW);
    assert_eq!(
        slot(&keys(LIST, &[NEW]), &[("Stripe-Signature", &valid)]),
        Err("bad_signature")
    );
}

#[test]
fn age_is_bounded_exactly_and_only_where_the_tolerance_says() {
    let within = Duration::from_secs(300);
    let outcome = |tolerance, age| {
        let keys = keys_within(LIST, &[OLD], tolerance);
        slot(&keys, &[("Stripe-Signature", &signature(&keys, NOW - age))])
    };
    for tolerance in [Tolerance::Past(within), Tolerance::Both(within)] {
        assert_eq!(outcome(tolerance, 300), Ok(0));
        assert_eq!(outcome(tolerance, 301), Err("stale_timestamp"));
        assert_eq!(outcome(tolerance, -300), Ok(0));
    }
    assert_eq!(outcome(Tolerance::Past(within), -1_000_000), Ok(0));
    assert_eq!(outcome(Tolerance::Both(within), -301), Err("future_timestamp"));
    assert_eq!(outcome(Tolerance::Off, 1_000_000), Ok(0));
}

#[test]
fn a_wrong_signature_is_named_before_its_age() {
    let old_and_wrong = signature(&keys(LIST, &[NEW]), NOW - 1000);
    assert_eq!(
        slot(&keys(LIST, &[OLD]), &[("Stripe-Signature", &old_and_wrong)]),
        Err("bad_signature")
    );
}
