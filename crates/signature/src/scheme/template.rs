//! The signed text as people write it in a configuration: `{timestamp}.{body}`.

use crate::scheme::Part;

/// A template that cannot be read. Says which place is at fault and which there are.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BadTemplate {
    /// A brace without its other half.
    #[error("a brace is not closed; a brace that is meant as text is written twice")]
    Unbalanced,
    /// A place of another name.
    #[error(
        "{{{0}}} is not known; places are {{body}}, {{body_crc32}}, {{timestamp}}, {{url}}, {{method}}, {{label}} and {{header:NAME}}"
    )]
    UnknownPlace(String),
}

/// Fixed text or a place, in a form that owns its text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Written {
    /// Fixed text.
    Text(String),
    /// A header's value.
    Header(String),
    /// A place that needs no name.
    Part(Part),
}

/// Reads a template.
///
/// # Errors
/// [`BadTemplate`], whose text says what would be accepted.
pub fn read_template(template: &str) -> Result<Vec<Written>, BadTemplate> {
    let mut parts = Vec::new();
    let mut text = String::new();
    let mut rest = template;
    while let Some(at) = rest.find(['{', '}']) {
        let (before, from) = rest.split_at(at);
        text.push_str(before);
        if let Some(after) = from.strip_prefix("{{").or_else(|| from.strip_prefix("}}")) {
            text.push_str(&from[..1]);
            rest = after;
            continue;
        }
        let inside = from.strip_prefix('{').ok_or(BadTemplate::Unbalanced)?;
        let (name, after) = inside.split_once('}').ok_or(BadTemplate::Unbalanced)?;
        if !text.is_empty() {
            parts.push(Written::Text(std::mem::take(&mut text)));
        }
        parts.push(place(name)?);
        rest = after;
    }
    text.push_str(rest);
    if !text.is_empty() {
        parts.push(Written::Text(text));
    }
    Ok(parts)
}

fn place(name: &str) -> Result<Written, BadTemplate> {
    Ok(match name {
        "body" => Written::Part(Part::Body),
        "body_crc32" => Written::Part(Part::BodyCrc32),
        "timestamp" => Written::Part(Part::Timestamp),
        "url" => Written::Part(Part::Url),
        "method" => Written::Part(Part::Method),
        "label" => Written::Part(Part::Label),
        _ => match name.strip_prefix("header:") {
            Some(header) if !header.is_empty() => Written::Header(header.to_owned()),
            _ => return Err(BadTemplate::UnknownPlace(name.to_owned())),
        },
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{BadTemplate, Part, Written, read_template};

    #[test]
    fn places_and_text_are_told_apart() {
        let read = read_template("v0:{timestamp}:{header:X-Id}{{}}{body}").unwrap();
        assert_eq!(
            read,
            [
                Written::Text("v0:".to_owned()),
                Written::Part(Part::Timestamp),
                Written::Text(":".to_owned()),
                Written::Header("X-Id".to_owned()),
                Written::Text("{}".to_owned()),
                Written::Part(Part::Body),
            ]
        );
    }

    #[test]
    fn what_cannot_be_read_says_what_could() {
        for unbalanced in ["{body", "body}", "{", "}", "{body}}"] {
            assert_eq!(
                read_template(unbalanced),
                Err(BadTemplate::Unbalanced),
                "{unbalanced}"
            );
        }
        let unknown = read_template("{Body}").unwrap_err().to_string();
        assert!(
            unknown.starts_with("{Body} is not known; places are {body},"),
            "{unknown}"
        );
        assert!(read_template("{header:}").is_err());
    }

    proptest! {
        #[test]
        fn no_template_panics(template: String) {
            let _ = read_template(&template);
        }

        #[test]
        fn text_alone_stays_text(text in "[^{}]{1,20}") {
            prop_assert_eq!(read_template(&text), Ok(vec![Written::Text(text)]));
        }
    }
}
