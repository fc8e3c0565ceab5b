//! Forms: `name=value&…`, a space as `+` and the rest in percent escapes.

use std::borrow::Cow;

use crate::Unreadable;
use crate::value::Value;

/// Its fields in order, with bytes that are no UTF-8 replaced.
pub(crate) fn pairs(form: &[u8]) -> impl Iterator<Item = (Cow<'_, str>, Cow<'_, str>)> {
    form_urlencoded::parse(form)
}

/// The one value under a name. Which of two would count, every reader decides in its own way.
pub(crate) fn sole<'a>(form: &'a [u8], name: &str) -> Result<Value<'a>, Unreadable> {
    let mut values = pairs(form).filter(|(key, _)| key == name);
    match (values.next(), values.next()) {
        (None, _) => Ok(Value::Absent),
        (Some((_, value)), None) => Ok(Value::Text(value)),
        _ => Err(Unreadable::MalformedBody(
            "a field that identifies the event occurs twice".to_owned(),
        )),
    }
}
