//! Picks a few fields out of a JSON body, in one pass and without building it.
//!
//! The receiver needs an id, a type and little more, from bodies of up to 25 MB that it did not write. So
//! the rest is only checked for being JSON: it may be of any shape, hold integers beyond 64 bits, lone
//! surrogates, or ten thousand levels of nesting, none of which costs an allocation, a stack frame or an
//! error. Numbers keep their digits and never pass through a float.
//!
//! Three rules are strict, so that what we read is what every later reader of the same bytes reads: the
//! body is UTF-8 (one byte order mark before it is skipped), it is one object with nothing behind it, and
//! a wanted field, or an object on the way to one, occurs at most once. Only on that way is the shape of
//! values less free: a number there has to fit a float, a text has to be Unicode.

use std::borrow::Cow;
use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;

use crate::Unreadable;
use crate::value::Value;

/// Reads the fields at `paths`, such as `data.object.id`, in their order.
pub(crate) fn read<'a, const N: usize>(
    body: &'a [u8],
    paths: &[&str; N],
) -> Result<[Value<'a>; N], Unreadable> {
    Ok(raw(text_of(body, Shape::Object)?, paths)?.map(Value::from_json))
}

/// The text of a body, without the byte order mark before it.
pub(crate) fn object(body: &[u8]) -> Result<&str, Unreadable> {
    text_of(body, Shape::Object)
}

/// As [`read`], but the values as they stand there. Of an object's text, or of a slice of it.
pub(crate) fn raw<'a, const N: usize>(
    text: &'a str,
    paths: &[&str; N],
) -> Result<[Option<&'a RawValue>; N], Unreadable> {
    const { assert!(1 <= N && N <= 32, "a set of paths has 32 bits") };
    let mut found = [None; N];
    let object = Object {
        paths,
        depth: 0,
        active: u32::MAX >> (32 - N),
        found: &mut found,
    };
    let mut json = serde_json::Deserializer::from_str(text);
    object
        .deserialize(&mut json)
        .and_then(|()| json.end())
        .map_err(|error| Unreadable::MalformedBody(error.to_string()))?;
    Ok(found)
}

/// The elements of a body that is an array of objects, each with its own bytes.
pub(crate) fn elements(body: &[u8]) -> Result<Vec<&str>, Unreadable> {
    array(text_of(body, Shape::Array)?)
}

/// The elements of the text of an array, each an object.
pub(crate) fn array(text: &str) -> Result<Vec<&str>, Unreadable> {
    text_of(text.as_bytes(), Shape::Array)?;
    let mut json = serde_json::Deserializer::from_str(text);
    let elements = json
        .deserialize_seq(Elements)
        .and_then(|elements| json.end().map(|()| elements))
        .map_err(|error| Unreadable::MalformedBody(error.to_string()))?;
    for element in &elements {
        text_of(element.as_bytes(), Shape::Object)?;
    }
    Ok(elements)
}

/// The objects among the fields of an object's text, with their names, as they stand there.
pub(crate) fn objects(text: &str) -> Result<Vec<(Cow<'_, str>, &str)>, Unreadable> {
    let mut json = serde_json::Deserializer::from_str(text);
    json.deserialize_map(Objects)
        .and_then(|objects| json.end().map(|()| objects))
        .map_err(|error| Unreadable::MalformedBody(error.to_string()))
}

/// Collects the fields of an object that are objects themselves.
struct Objects;

impl<'a> Visitor<'a> for Objects {
    type Value = Vec<(Cow<'a, str>, &'a str)>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'a>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut objects = Vec::new();
        while let Some(key) = map.next_key::<&'a RawValue>()? {
            let value = map.next_value::<&'a RawValue>()?.get();
            if let (Some(name), true) = (unescape(key.get()), value.starts_with('{')) {
                objects.push((name, value));
            }
        }
        Ok(objects)
    }
}

/// Elements that are read at all. Who receives has a lower limit of its own, and says so; this one only bounds what a
/// body of tiny elements can cost, and no event of any provider is that small.
pub(crate) const ELEMENTS_MAX: usize = 20_000;

/// Collects the elements of an array as they stand there.
struct Elements;

impl<'a> Visitor<'a> for Elements {
    type Value = Vec<&'a str>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an array")
    }

    fn visit_seq<A: SeqAccess<'a>>(self, mut seq: A) -> Result<Vec<&'a str>, A::Error> {
        let mut elements = Vec::new();
        while let Some(element) = seq.next_element::<&'a RawValue>()? {
            if elements.len() == ELEMENTS_MAX {
                return Err(A::Error::custom(
                    "it holds more events than one delivery may carry",
                ));
            }
            elements.push(element.get());
        }
        Ok(elements)
    }
}

/// Checks that the body is one JSON object, when none of its fields is wanted.
pub(crate) fn check(body: &[u8]) -> Result<(), Unreadable> {
    let text = text_of(body, Shape::Object)?;
    match serde_json::from_str::<IgnoredAny>(text) {
        Ok(IgnoredAny) => Ok(()),
        Err(error) => Err(Unreadable::MalformedBody(error.to_string())),
    }
}

/// What a text has to be.
#[derive(Clone, Copy)]
enum Shape {
    Object,
    Array,
}

/// The body as text without a byte order mark. How it opens is checked here and not left to serde, whose message
/// would quote the value it found instead.
fn text_of(body: &[u8], shape: Shape) -> Result<&str, Unreadable> {
    let malformed = |problem: &str| Unreadable::MalformedBody(problem.to_owned());
    let text = std::str::from_utf8(body).map_err(|_| malformed("it is not UTF-8"))?;
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    match (shape, text.trim_start_matches([' ', '\t', '\r', '\n']).as_bytes()) {
        (Shape::Object, [b'{', ..]) | (Shape::Array, [b'[', ..]) => Ok(text),
        (_, []) => Err(malformed("it is empty")),
        (Shape::Object, _) => Err(malformed("it is not a JSON object")),
        (Shape::Array, _) => Err(malformed("it is not a JSON array")),
    }
}

/// One object on the way to wanted fields. Depth is bounded by the longest path, never by the body.
struct Object<'p, 'a> {
    paths: &'p [&'p str],
    /// How many segments of the active paths lie behind us.
    depth: usize,
    /// The paths that lead through here, one bit each.
    active: u32,
    found: &'p mut [Option<&'a RawValue>],
}

impl Object<'_, '_> {
    /// The active paths that go on with this key.
    fn through(&self, key: &RawValue) -> u32 {
        let Some(key) = unescape(key.get()) else { return 0 };
        let goes_on = |path: &str| path.split('.').nth(self.depth) == Some(&key);
        (0..self.paths.len())
            .filter(|&index| self.active & (1 << index) != 0 && goes_on(self.paths[index]))
            .fold(0, |set, index| set | (1 << index))
    }

    /// The path that ends with this key. No wanted path is the beginning of another.
    fn end(&self, through: u32) -> Option<usize> {
        let index = through.trailing_zeros() as usize;
        let ends = self.paths[index].split('.').count() == self.depth + 1;
        ends.then_some(index)
    }
}

impl<'a> DeserializeSeed<'a> for Object<'_, 'a> {
    type Value = ();

    fn deserialize<D: Deserializer<'a>>(self, json: D) -> Result<(), D::Error> {
        json.deserialize_any(self)
    }
}

/// Any value but an object simply holds no wanted field.
impl<'a> Visitor<'a> for Object<'_, 'a> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any value")
    }

    fn visit_map<A: MapAccess<'a>>(self, mut map: A) -> Result<(), A::Error> {
        let mut seen = 0;
        while let Some(key) = map.next_key::<&'a RawValue>()? {
            let through = self.through(key);
            if through == 0 {
                map.next_value::<IgnoredAny>()?;
                continue;
            }
            if through & seen != 0 {
                return Err(A::Error::custom("a field that identifies the event occurs twice"));
            }
            seen |= through;
            match self.end(through) {
                Some(index) => self.found[index] = Some(map.next_value()?),
                None => map.next_value_seed(Object {
                    paths: self.paths,
                    depth: self.depth + 1,
                    active: through,
                    found: self.found,
                })?,
            }
        }
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'a>>(self, mut seq: A) -> Result<(), A::Error> {
        while seq.next_element::<IgnoredAny>()?.is_some() {}
        Ok(())
    }

    fn visit_bool<E>(self, _: bool) -> Result<(), E> {
        Ok(())
    }

    fn visit_i64<E>(self, _: i64) -> Result<(), E> {
        Ok(())
    }

    fn visit_u64<E>(self, _: u64) -> Result<(), E> {
        Ok(())
    }

    fn visit_f64<E>(self, _: f64) -> Result<(), E> {
        Ok(())
    }

    fn visit_str<E>(self, _: &str) -> Result<(), E> {
        Ok(())
    }

    fn visit_unit<E>(self) -> Result<(), E> {
        Ok(())
    }
}

/// The text of a JSON string with its quotes; `None` if its escapes are not Unicode.
pub(crate) fn unescape(quoted: &str) -> Option<Cow<'_, str>> {
    let inner = quoted.strip_prefix('"')?.strip_suffix('"')?;
    match inner.contains('\\') {
        false => Some(Cow::Borrowed(inner)),
        true => serde_json::from_str(quoted).ok().map(Cow::Owned),
    }
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::{Value, check, read};

    const PATHS: [&str; 4] = ["id", "data.id", "data.object.id", "type"];

    /// Objects over the names that the paths are made of, each name once.
    fn objects() -> impl Strategy<Value = serde_json::Value> {
        let leaf = prop_oneof![
            any::<i64>().prop_map(serde_json::Value::from),
            any::<bool>().prop_map(serde_json::Value::from),
            ".{0,8}".prop_map(serde_json::Value::from),
        ];
        let names = proptest::sample::select(vec!["id", "data", "object", "type", "x"]);
        let object = move |inner| {
            vec((names.clone(), inner), 0..6).prop_map(|fields| {
                fields
                    .into_iter()
                    .map(|(name, value)| (name.to_owned(), value))
                    .collect()
            })
        };
        let value = leaf.prop_recursive(4, 30, 6, object);
        proptest::collection::btree_map("id|data|object|type|x", value, 0..6)
            .prop_map(|fields| fields.into_iter().collect())
    }

    fn at(tree: &serde_json::Value, path: &str) -> String {
        let pointer = format!("/{}", path.replace('.', "/"));
        match tree.pointer(&pointer) {
            None | Some(serde_json::Value::Null) => "nothing".to_owned(),
            Some(serde_json::Value::Object(_) | serde_json::Value::Array(_)) => "compound".to_owned(),
            Some(serde_json::Value::String(text)) => text.clone(),
            Some(other) => other.to_string(),
        }
    }

    fn shown(value: &Value<'_>) -> String {
        match value {
            Value::Absent => "nothing".to_owned(),
            Value::Compound => "compound".to_owned(),
            Value::Text(text) => text.to_string(),
            Value::Number(digits) => (*digits).to_owned(),
            Value::Bool(yes) => yes.to_string(),
            Value::Broken(problem) => (*problem).to_owned(),
        }
    }

    proptest! {
        #[test]
        fn a_field_is_what_a_tree_of_the_same_body_holds(tree in objects(), pretty: bool) {
            let body = match pretty {
                true => serde_json::to_string_pretty(&tree),
                false => serde_json::to_string(&tree),
            };
            let body = body.unwrap();
            let found = read(body.as_bytes(), &PATHS).unwrap();
            for (path, value) in PATHS.iter().zip(&found) {
                prop_assert_eq!(shown(value), at(&tree, path), "{} of {}", path, body);
            }
        }

        #[test]
        fn only_what_is_json_is_read(body in "[{}\\[\\]\",:0-9a-e\\\\ ]{0,24}") {
            let json = serde_json::from_str::<serde_json::Map<String, serde_json::Value>>(&body);
            if json.is_ok() {
                prop_assert!(check(body.as_bytes()).is_ok());
            }
            if read(body.as_bytes(), &PATHS).is_ok() {
                prop_assert!(check(body.as_bytes()).is_ok());
            }
        }
    }
}
