//! Reads JSON in which each name is given once. Of a name that is given twice most readers take the last value
//! without a word, and what a caller meant would be a guess.

use std::cell::Cell;
use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Value};

use super::problem::{Kind, Problem};

/// Reads one JSON value.
///
/// # Errors
/// A [`Problem`] that says where the text is no JSON, or which field is given twice.
pub(super) fn read(bytes: &[u8]) -> Result<Value, Problem> {
    let twice = Cell::new(None);
    let mut reader = serde_json::Deserializer::from_slice(bytes);
    let once = Once {
        path: String::new(),
        twice: &twice,
    };
    let value = once.deserialize(&mut reader);
    value
        .and_then(|value| reader.end().map(|()| value))
        .map_err(|error| match twice.take() {
            Some(path) => Problem::value(path, "to be given once"),
            None => no_json(&error),
        })
}

fn no_json(error: &serde_json::Error) -> Problem {
    let (line, column) = (error.line(), error.column());
    let detail = format!("the body is no JSON from line {line}, column {column} on");
    Problem::new(Kind::BadJson, detail)
}

/// The value at a path.
struct Once<'a> {
    path: String,
    /// The path that is given twice, once one is found.
    twice: &'a Cell<Option<String>>,
}

impl Once<'_> {
    fn field(&self, name: &str) -> Self {
        let path = match self.path.as_str() {
            "" => name.to_owned(),
            path => format!("{path}.{name}"),
        };
        Self { path, ..*self }
    }

    fn element(&self, place: usize) -> Self {
        let path = format!("{}[{place}]", self.path);
        Self { path, ..*self }
    }
}

impl<'de> DeserializeSeed<'de> for Once<'_> {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Once<'_> {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_f64<E>(self, value: f64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut elements: A) -> Result<Value, A::Error> {
        let mut list = Vec::new();
        while let Some(value) = elements.next_element_seed(self.element(list.len()))? {
            list.push(value);
        }
        Ok(list.into())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut fields: A) -> Result<Value, A::Error> {
        let mut object = Map::new();
        while let Some(name) = fields.next_key::<String>()? {
            let field = self.field(&name);
            if object.contains_key(&name) {
                self.twice.set(Some(field.path));
                return Err(A::Error::custom("a name is given twice"));
            }
            object.insert(name, fields.next_value_seed(field)?);
        }
        Ok(object.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_comes_back_as_it_is() {
        let text =
            r#"{"a":[null,true,-7,18446744073709551615,0.5,"x\u00e9\n",[],{}],"b":{"a":1,"b":{"a":2}}}"#;
        let expected: Value = serde_json::from_str(text).unwrap();
        assert_eq!(read(text.as_bytes()).unwrap(), expected);
    }

    #[test]
    fn a_name_that_is_given_twice_is_named_with_its_path() {
        for (text, path) in [
            (r#"{"who":"a","why":"b","who":"a"}"#, "who"),
            (r#"{"filter":{"source":null,"source":null}}"#, "filter.source"),
            (r#"{"items":[{"a":1},{"a":1,"\u0061":2}]}"#, "items[1].a"),
        ] {
            let said = read(text.as_bytes()).unwrap_err().to_string();
            assert_eq!(said, format!("{path} is not accepted: expected to be given once"));
        }
    }

    #[test]
    fn what_is_no_json_is_refused_with_its_place() {
        let deep = "[".repeat(10_000);
        for text in ["", "{", "{} {}", "{\"a\":1,}", "nul", &deep] {
            let said = read(text.as_bytes()).unwrap_err().to_string();
            assert!(said.starts_with("the body is no JSON from line 1"), "{said}");
        }
    }
}
