//! What shows two events of a provider to be about one change, although their ids differ: the digest of what changed.
//!
//! The digest is of the bytes as they came. Two events that a provider makes of one change carry the same bytes there;
//! if one day they do not, they count as two changes, which is the safe side.

use sha2::{Digest, Sha256};

use crate::{Provider, fields};

impl Provider {
    /// SHA-256 of what changed, as the event's body says it byte for byte; `None` if this provider, or this body, does
    /// not set it apart.
    pub fn content_sha256(self, body: &[u8]) -> Option<[u8; 32]> {
        let path = self.knowledge().content_path?;
        slice(body, path).map(|content| Sha256::digest(content).into())
    }
}

/// The value at the path, as it stands in the body.
fn slice<'a>(body: &'a [u8], path: &str) -> Option<&'a str> {
    let [found] = fields::raw(fields::object(body).ok()?, &[path]).ok()?;
    found
        .map(|content| content.get())
        .filter(|content| *content != "null")
}

#[cfg(test)]
mod tests {
    use super::slice;
    use crate::Provider;

    fn check(body: &str, path: &str, expected: Option<&str>) {
        assert_eq!(slice(body.as_bytes(), path), expected, "{path} of {body}");
    }

    #[test]
    fn the_content_is_what_stands_at_the_path_byte_for_byte() {
        check(
            r#"{"id":"a","data":{"object": {"n":1.0}}}"#,
            "data",
            Some(r#"{"object": {"n":1.0}}"#),
        );
        check(
            r#"{"data":{"object": {"n":1e400}}}"#,
            "data.object",
            Some(r#"{"n":1e400}"#),
        );
        check("\u{feff}{\"data\":[1]}", "data", Some("[1]"));
        check(r#"{"\u0064ata":"x"}"#, "data", Some("\"x\""));
    }

    #[test]
    fn where_nothing_is_set_apart_there_is_no_content() {
        for body in [
            "",
            "[]",
            "{",
            "3",
            r#"{"id":1}"#,
            r#"{"data":null}"#,
            r#"{"x":{"data":1}}"#,
        ] {
            check(body, "data", None);
        }
        check(r#"{"data":[{"object":1}]}"#, "data.object", None);
        assert_eq!(slice(b"{\"data\":\"\xff\"}", "data"), None);
    }

    #[test]
    fn two_events_of_one_change_have_one_digest_and_another_change_has_another() {
        let event = |id: &str, n: u32| {
            format!(
                r#"{{"id":"{id}","created":{n},"data":{{"object":{{"id":"in_1","n":{}}}}}}}"#,
                n / 10
            )
        };
        let digest = |id, n| Provider::Stripe.content_sha256(event(id, n).as_bytes());
        assert!(digest("evt_1", 10).is_some());
        assert_eq!(digest("evt_1", 10), digest("evt_2", 11));
        assert_ne!(digest("evt_1", 10), digest("evt_3", 20));
        assert_eq!(Provider::Github.content_sha256(br#"{"data":1}"#), None);
    }
}
