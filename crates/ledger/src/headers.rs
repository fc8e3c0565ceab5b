//! How headers are stored: as a JSON list of `[name, value]` pairs, each byte of a value as the character of
//! the same number (latin-1). Any byte survives, the order is kept, and a person can read it in a query.

use std::borrow::Cow;

use crate::StoredHeaders;

/// As stored.
pub(crate) fn write(headers: &StoredHeaders) -> String {
    let pairs: Vec<(&str, Cow<'_, str>)> = headers
        .iter()
        .map(|(name, value)| (&**name, text(value)))
        .collect();
    serde_json::to_string(&pairs).expect("pairs of strings always become JSON")
}

/// As they came. Empty if the row was pruned.
pub(crate) fn read(stored: &str) -> sqlx::Result<StoredHeaders> {
    if stored.is_empty() {
        return Ok(StoredHeaders::new());
    }
    let pairs: Vec<(Box<str>, String)> = serde_json::from_str(stored).map_err(undecodable)?;
    pairs
        .into_iter()
        .map(|(name, value)| Ok((name, bytes(&value)?)))
        .collect()
}

fn text(value: &[u8]) -> Cow<'_, str> {
    match std::str::from_utf8(value) {
        Ok(text) if text.is_ascii() => Cow::Borrowed(text),
        _ => Cow::Owned(value.iter().copied().map(char::from).collect()),
    }
}

fn bytes(text: &str) -> sqlx::Result<Vec<u8>> {
    text.chars()
        .map(|character| u8::try_from(character).map_err(undecodable))
        .collect()
}

fn undecodable(error: impl std::error::Error + Send + Sync + 'static) -> sqlx::Error {
    sqlx::Error::Decode(Box::new(error))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_byte_of_a_value_survives() {
        let all: Vec<u8> = (0..=255).collect();
        let headers: StoredHeaders = vec![
            ("x-signature".into(), b"t=1,v1=\"ab\\\"".to_vec()),
            ("x-all".into(), all),
            ("x-utf8".into(), "Grüße 🦀".as_bytes().to_vec()),
            ("x-empty".into(), Vec::new()),
            ("x-signature".into(), b"twice".to_vec()),
        ];
        assert_eq!(read(&write(&headers)).unwrap(), headers);
    }

    #[test]
    fn plain_headers_are_plain_to_read() {
        let headers: StoredHeaders = vec![("content-type".into(), b"application/json".to_vec())];
        assert_eq!(write(&headers), r#"[["content-type","application/json"]]"#);
    }

    #[test]
    fn a_character_that_was_no_byte_is_refused() {
        assert!(read(r#"[["a","€"]]"#).is_err());
        assert!(read("nonsense").is_err());
    }
}
