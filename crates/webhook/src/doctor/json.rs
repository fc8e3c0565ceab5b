//! JSON as other libraries would have written it. A body that was parsed and written anew has the same meaning and
//! other bytes; the usual writers differ in few ways, so their spelling can be tried.
//!
//! Numbers and the order of fields stay as they are, unless fields are to be sorted: what a parser has lost nobody
//! can bring back.

use std::fmt::Write as _;

use serde::de::IgnoredAny;

/// As deep as the readers of events go.
const DEPTH_MAX: usize = 128;

/// Indentation must not make a gigabyte out of brackets.
const GROWTH_MAX: usize = 8;

/// A way to write JSON.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Style {
    /// Space between the parts.
    pub layout: Layout,
    /// Which characters are escaped.
    pub escapes: Escapes,
    /// Whether fields are in the order of their names.
    pub sorted: bool,
}

/// Space between the parts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Layout {
    /// None.
    Compact,
    /// One after each `,` and `:`, as Python writes.
    Spaced,
    /// A line for each, indented by so many spaces.
    Indented(usize),
    /// A line for each, indented by tabs.
    Tabs,
}

/// Which characters of a text are escaped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Escapes {
    /// As they are.
    Kept,
    /// None but those that have to be.
    Least,
    /// All beyond ASCII, as Python writes.
    Ascii,
    /// All beyond ASCII and the slash, as PHP writes.
    AsciiAndSlash,
    /// The slash alone.
    Slash,
    /// `<`, `>` and `&`, as Go writes.
    Html,
}

impl Style {
    /// Every way that is tried, the usual ones first.
    pub(super) fn all() -> impl Iterator<Item = Self> {
        use Escapes::{Ascii, AsciiAndSlash, Html, Kept, Least, Slash};
        let layouts = [
            Layout::Compact,
            Layout::Spaced,
            Layout::Indented(2),
            Layout::Indented(4),
            Layout::Tabs,
        ];
        let of = move |escapes: &'static [Escapes], sorted| {
            escapes.iter().flat_map(move |&escapes| {
                layouts.map(|layout| Self {
                    layout,
                    escapes,
                    sorted,
                })
            })
        };
        of(&[Kept, Least, Ascii, AsciiAndSlash, Slash, Html], false).chain(of(&[Kept, Ascii], true))
    }
}

/// Parsed, with every text and number as it was written.
pub(super) enum Json<'a> {
    Scalar(&'a str),
    List(Vec<Json<'a>>),
    Fields(Vec<(&'a str, Json<'a>)>),
}

impl<'a> Json<'a> {
    /// Reads an object or a list; `None` if this is no JSON, or deeper than anybody nests.
    pub(super) fn read(body: &'a [u8]) -> Option<Self> {
        serde_json::from_slice::<IgnoredAny>(body).ok()?;
        let mut reader = Reader {
            rest: std::str::from_utf8(body).ok()?,
        };
        match reader.value(0)? {
            Self::Scalar(_) => None,
            json => Some(json),
        }
    }

    /// Writes it; `None` if that grows beyond measure.
    pub(super) fn write(&self, style: Style, read_bytes: usize) -> Option<String> {
        let mut writer = Writer {
            out: String::with_capacity(read_bytes),
            bytes_max: read_bytes.saturating_mul(GROWTH_MAX).saturating_add(1024),
            style,
        };
        writer.value(self, 0)?;
        Some(writer.out)
    }
}

/// Goes through JSON that is known to be well-formed.
struct Reader<'a> {
    rest: &'a str,
}

impl<'a> Reader<'a> {
    fn value(&mut self, depth: usize) -> Option<Json<'a>> {
        if depth > DEPTH_MAX {
            return None;
        }
        self.space();
        match self.rest.as_bytes().first()? {
            b'{' => self
                .items(b'}', |reader| {
                    let name = reader.text()?;
                    reader.skip(b':')?;
                    Some((name, reader.value(depth + 1)?))
                })
                .map(Json::Fields),
            b'[' => self.items(b']', |reader| reader.value(depth + 1)).map(Json::List),
            b'"' => self.text().map(Json::Scalar),
            _ => self.until(|byte| matches!(byte, b',' | b'}' | b']') || byte.is_ascii_whitespace()),
        }
    }

    fn items<T>(&mut self, end: u8, mut item: impl FnMut(&mut Self) -> Option<T>) -> Option<Vec<T>> {
        self.rest = &self.rest[1..];
        let mut items = Vec::new();
        loop {
            self.space();
            match *self.rest.as_bytes().first()? {
                byte if byte == end => break,
                b',' => self.rest = &self.rest[1..],
                _ => items.push(item(self)?),
            }
        }
        self.rest = &self.rest[1..];
        Some(items)
    }

    /// A text with its quotes.
    fn text(&mut self) -> Option<&'a str> {
        self.space();
        let mut escaped = true;
        let end = self.rest.bytes().position(|byte| {
            let ends = byte == b'"' && !escaped;
            escaped = byte == b'\\' && !escaped;
            ends
        })?;
        let (text, rest) = self.rest.split_at(end + 1);
        self.rest = rest;
        Some(text)
    }

    fn until(&mut self, ends: impl Fn(u8) -> bool) -> Option<Json<'a>> {
        let end = self.rest.bytes().position(ends).unwrap_or(self.rest.len());
        let (scalar, rest) = self.rest.split_at(end);
        self.rest = rest;
        Some(Json::Scalar(scalar))
    }

    fn skip(&mut self, byte: u8) -> Option<()> {
        self.space();
        self.rest = self.rest.strip_prefix(char::from(byte))?;
        Some(())
    }

    fn space(&mut self) {
        self.rest = self.rest.trim_start_matches([' ', '\t', '\r', '\n']);
    }
}

struct Writer {
    out: String,
    bytes_max: usize,
    style: Style,
}

impl Writer {
    fn value(&mut self, json: &Json<'_>, depth: usize) -> Option<()> {
        if self.out.len() > self.bytes_max {
            return None;
        }
        match json {
            Json::Scalar(text) => self.scalar(text),
            Json::List(items) => self.items(['[', ']'], items, depth, |writer, item| {
                writer.value(item, depth + 1)
            })?,
            Json::Fields(fields) => {
                let mut order: Vec<_> = fields.iter().collect();
                if self.style.sorted {
                    order.sort_by_key(|(name, _)| name.trim_matches('"'));
                }
                self.items(['{', '}'], &order, depth, |writer, (name, value)| {
                    writer.scalar(name);
                    writer.out.push_str(match writer.style.layout {
                        Layout::Compact => ":",
                        Layout::Spaced | Layout::Indented(_) | Layout::Tabs => ": ",
                    });
                    writer.value(value, depth + 1)
                })?;
            }
        }
        Some(())
    }

    fn items<T>(
        &mut self,
        [open, close]: [char; 2],
        items: &[T],
        depth: usize,
        mut item: impl FnMut(&mut Self, &T) -> Option<()>,
    ) -> Option<()> {
        self.out.push(open);
        for (index, each) in items.iter().enumerate() {
            match (index, self.style.layout) {
                (0, _) => {}
                (_, Layout::Spaced) => self.out.push_str(", "),
                (_, Layout::Compact | Layout::Indented(_) | Layout::Tabs) => self.out.push(','),
            }
            self.line(depth + 1);
            item(self, each)?;
        }
        if !items.is_empty() {
            self.line(depth);
        }
        self.out.push(close);
        Some(())
    }

    fn line(&mut self, depth: usize) {
        let (indent, times) = match self.style.layout {
            Layout::Compact | Layout::Spaced => return,
            Layout::Indented(spaces) => (' ', spaces * depth),
            Layout::Tabs => ('\t', depth),
        };
        self.out.push('\n');
        self.out.extend(std::iter::repeat_n(indent, times));
    }

    fn scalar(&mut self, text: &str) {
        let inner = text.strip_prefix('"').and_then(|text| text.strip_suffix('"'));
        match (inner, self.style.escapes) {
            (None, _) | (_, Escapes::Kept) => self.out.push_str(text),
            (Some(inner), escapes) => {
                self.out.push('"');
                respell(inner, escapes, &mut self.out);
                self.out.push('"');
            }
        }
    }
}

/// Writes the inside of a text with other escapes.
fn respell(text: &str, escapes: Escapes, out: &mut String) {
    let quoted = format!("\"{text}\"");
    match serde_json::from_str::<String>(&quoted) {
        Ok(plain) => plain.chars().for_each(|char| escape(char, escapes, out)),
        // Half of a surrogate pair has no other spelling.
        Err(_) => out.push_str(text),
    }
}

fn escape(char: char, escapes: Escapes, out: &mut String) {
    let ascii = matches!(escapes, Escapes::Ascii | Escapes::AsciiAndSlash);
    let slash = matches!(escapes, Escapes::Slash | Escapes::AsciiAndSlash);
    let html = escapes == Escapes::Html;
    match char {
        '"' => out.push_str("\\\""),
        '\\' => out.push_str("\\\\"),
        '\u{8}' => out.push_str("\\b"),
        '\u{c}' => out.push_str("\\f"),
        '\n' => out.push_str("\\n"),
        '\r' => out.push_str("\\r"),
        '\t' => out.push_str("\\t"),
        '/' if slash => out.push_str("\\/"),
        char if char < ' ' || ascii && char > '~' || html && "<>&\u{2028}\u{2029}".contains(char) => {
            for unit in char.encode_utf16(&mut [0; 2]) {
                let _ = write!(out, "\\u{unit:04x}");
            }
        }
        char => out.push(char),
    }
}
