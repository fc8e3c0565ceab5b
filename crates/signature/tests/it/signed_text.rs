//! One signature over joined parts of the request.

use hookgate_signature::{
    Delivery, Keys, Part, Refusal, Scheme, SignedText, Timestamp, Tolerance, Unit, Unsigned,
};

use crate::{BODY, JOINED, NEW, NOW, OLD, TEXT, keys, keys_within, slot};

const EVERYTHING: Scheme = Scheme::SignedText(SignedText {
    timestamp: Some(Timestamp {
        header: "X-Timestamp",
        unit: Unit::Milliseconds,
    }),
    parts: &[
        Part::Demand("X-Algorithm", "best"),
        Part::Method,
        Part::Url,
        Part::Body,
        Part::Timestamp,
        Part::Text("|"),
        Part::Header("X-Id"),
        Part::BodyCrc32,
    ],
    ..TEXT
});

const OTHERS: [(&str, &str); 2] = [("X-Algorithm", "best"), ("X-Id", "7")];

/// What comes of a request that was signed as it should be and then changed.
fn changed(change: impl Fn(&mut Sent)) -> Result<(), Refusal> {
    let keys = keys_within(EVERYTHING, &[OLD], Tolerance::Off);
    let signed = keys.sign_request(&Unsigned {
        id: "",
        now: NOW,
        method: "POST",
        url: Some("https://x/in"),
        headers: &OTHERS,
        body: BODY,
    });
    let others = OTHERS.iter().map(|(name, value)| (*name, (*value).to_owned()));
    let mut sent = Sent {
        method: "POST",
        url: Some("https://x/in"),
        headers: others.chain(signed).collect(),
        body: BODY,
    };
    change(&mut sent);
    sent.judge(&keys)
}

struct Sent {
    method: &'static str,
    url: Option<&'static str>,
    headers: Vec<(&'static str, String)>,
    body: &'static [u8],
}

impl Sent {
    fn set(&mut self, header: &str, value: &str) {
        let found = self.headers.iter_mut().find(|(name, _)| *name == header);
        value.clone_into(&mut found.unwrap().1);
    }

    fn judge(&self, keys: &Keys) -> Result<(), Refusal> {
        let delivery = Delivery {
            method: self.method,
            url: self.url,
            headers: self
                .headers
                .iter()
                .map(|(name, value)| (*name, value.as_bytes()))
                .collect(),
            body: bytes::Bytes::from_static(self.body),
        };
        keys.verify(delivery, NOW).map(|_| ())
    }
}

#[test]
fn every_part_counts() {
    assert_eq!(changed(|_| ()), Ok(()));
    let bad = Err(Refusal::BadSignature);
    assert_eq!(changed(|sent| sent.method = "PUT"), bad);
    assert_eq!(changed(|sent| sent.url = Some("https://x/in/")), bad);
    assert_eq!(changed(|sent| sent.url = None), bad);
    assert_eq!(changed(|sent| sent.body = b"{}"), bad);
    assert_eq!(changed(|sent| sent.set("X-Id", "8")), bad);
    assert_eq!(changed(|sent| sent.set("X-Timestamp", "1790000000001")), bad);
}

#[test]
fn every_header_has_to_be_there_and_once() {
    for header in ["X-Algorithm", "X-Id", "X-Timestamp", "X-Signature"] {
        assert_eq!(
            changed(|sent| sent.headers.retain(|(name, _)| *name != header)),
            Err(Refusal::MissingSignature(header))
        );
        assert_eq!(
            changed(|sent| sent.set(header, "")),
            Err(Refusal::MissingSignature(header))
        );
        let twice = changed(|sent| sent.headers.push((header, "7".to_owned())));
        assert_eq!(twice.unwrap_err().reason(), "malformed_signature", "{header}");
    }
}

#[test]
fn what_is_demanded_has_to_be_said_exactly() {
    for other in ["Best", "best ", "worst"] {
        let refusal = changed(|sent| sent.set("X-Algorithm", other)).unwrap_err();
        assert_eq!(refusal.reason(), "malformed_signature");
        assert!(refusal.to_string().contains("X-Algorithm"));
    }
}

#[test]
fn a_request_without_what_is_signed_cannot_be_signed() {
    assert_eq!(keys(EVERYTHING, &[OLD]).sign("", NOW, BODY), []);
}

#[test]
fn the_first_matching_secret_is_named() {
    let both = keys(JOINED, &[OLD, NEW]);
    for (expected, secret) in [OLD, NEW].into_iter().enumerate() {
        let signed = keys(JOINED, &[secret]).sign("", NOW, BODY);
        let headers: Vec<_> = signed.iter().map(|(name, value)| (*name, &**value)).collect();
        assert_eq!(slot(&both, &headers), Ok(expected));
    }
}

#[test]
fn a_timestamp_is_digits_and_is_judged_after_the_signature() {
    let keys = keys(JOINED, &[OLD]);
    let signed = |at: i64| keys.sign("", at, BODY).pop().unwrap().1;
    let judge = |at: &str, signature: &str| slot(&keys, &[("X-Timestamp", at), ("X-Signature", signature)]);
    let old = NOW - 301;
    assert_eq!(judge(&old.to_string(), &signed(old)), Err("stale_timestamp"));
    assert_eq!(judge(&old.to_string(), &signed(NOW)), Err("bad_signature"));
    for wrong in ["+1", "-1", " 1", "1.5", "0x1", "soon", "99999999999999999999"] {
        assert_eq!(judge(wrong, &signed(NOW)), Err("malformed_signature"), "{wrong}");
    }
}

#[test]
fn milliseconds_are_told_from_seconds() {
    let scheme = Scheme::SignedText(SignedText {
        timestamp: Some(Timestamp {
            header: "X-Timestamp",
            unit: Unit::Milliseconds,
        }),
        ..TEXT
    });
    let keys = keys(scheme, &[OLD]);
    let at = |now: i64| {
        let signed = keys.sign("", now, BODY);
        let headers: Vec<_> = signed.iter().map(|(name, value)| (*name, &**value)).collect();
        slot(&keys, &headers)
    };
    assert_eq!((at(NOW), at(NOW - 300)), (Ok(0), Ok(0)));
    assert_eq!(at(NOW - 301), Err("stale_timestamp"));
}

#[test]
fn a_signature_needs_its_prefix_and_64_lower_case_digits() {
    let keys = keys(JOINED, &[OLD]);
    let signed = keys.sign("", NOW, BODY);
    let digest = signed[1].1.strip_prefix("v0=").unwrap();
    let judge = |value: &str| slot(&keys, &[("X-Timestamp", &signed[0].1), ("X-Signature", value)]);
    let mut wrong: Vec<_> = (0..64)
        .map(|length| format!("v0={}", &digest[..length]))
        .collect();
    wrong.extend([
        digest.to_owned(),
        format!("v1={digest}"),
        format!("v0={digest}0"),
        format!("v0={}", digest.to_uppercase()),
        format!("v0={digest},v0={digest}"),
    ]);
    for value in wrong {
        assert_eq!(judge(&value), Err("malformed_signature"), "{value}");
    }
}
