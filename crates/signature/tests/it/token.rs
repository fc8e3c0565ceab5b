//! A static text in a header.

use crate::{NEW, OLD, TOKEN, keys, slot};

const HEADER: &str = "X-Gitlab-Token";

#[test]
fn the_whole_value_counts() {
    let both = keys(TOKEN, &[OLD, NEW]);
    assert_eq!(slot(&both, &[(HEADER, OLD)]), Ok(0));
    assert_eq!(slot(&both, &[("x-gitlab-token", NEW)]), Ok(1));
    let (short, long, upper) = (&OLD[..OLD.len() - 1], format!("{OLD}x"), OLD.to_uppercase());
    for wrong in [
        "x",
        short,
        &long,
        &upper,
        &format!("Bearer {OLD}"),
        &format!(" {OLD}"),
    ] {
        assert_eq!(slot(&both, &[(HEADER, wrong)]), Err("bad_signature"), "{wrong}");
    }
}

#[test]
fn a_token_is_there_and_once() {
    let keys = keys(TOKEN, &[OLD]);
    assert_eq!(slot(&keys, &[]), Err("missing_signature"));
    assert_eq!(slot(&keys, &[(HEADER, "")]), Err("missing_signature"));
    assert_eq!(
        slot(&keys, &[(HEADER, OLD), (HEADER, OLD)]),
        Err("malformed_signature")
    );
}

#[test]
fn a_token_covers_nothing_but_itself() {
    let keys = keys(TOKEN, &[OLD]);
    let sent = keys.sign("msg_1", 0, b"one body");
    assert_eq!(sent, keys.sign("msg_2", 1, b"another"));
    assert_eq!(sent, [(HEADER, OLD.to_owned())]);
}
