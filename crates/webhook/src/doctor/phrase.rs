//! What was changed, in words: the parts of a sentence, each with its remedy.

use super::{BodyChange, Charset, Escapes, Layout, SecretChange, Spelling, Style};

pub(super) fn body(change: BodyChange) -> String {
    const BYTES: &str = "keep the body byte for byte, on its way here and when it is saved";
    const PARSED: &str =
        "something on the way parses the body and writes it anew, let it pass the raw bytes on";
    let (which, remedy) = match change {
        BodyChange::LineFeedAdded => ("the body with a line feed at its end", BYTES),
        BodyChange::CarriageReturnAdded => {
            ("the body with a carriage return and line feed at its end", BYTES)
        }
        BodyChange::LineBreakRemoved => ("the body without the line break at its end", BYTES),
        BodyChange::LineFeeds => ("the body with line feeds in place of CRLF", BYTES),
        BodyChange::LineFeedsNoneAtEnd => (
            "the body with line feeds in place of CRLF and none at its end",
            BYTES,
        ),
        BodyChange::CarriageReturns => ("the body with CRLF in place of line feeds", BYTES),
        BodyChange::BomRemoved => ("the body without its byte order mark", BYTES),
        BodyChange::BomAdded => ("the body with a byte order mark", BYTES),
        BodyChange::Trimmed => ("the body without space at its ends", BYTES),
        BodyChange::CutToLength => ("the body up to the Content-Length of the request", BYTES),
        BodyChange::Unquoted => (
            "the text that the body holds as a JSON string",
            "save the body itself and not a quotation of it",
        ),
        BodyChange::Base64Decoded => (
            "the bytes that the body holds in base64",
            "decode it before it is passed on, as behind an API gateway with binary bodies",
        ),
        BodyChange::Json(of) => return format!("the body's JSON {}: {PARSED}", style(of)),
        BodyChange::JsonLine(of) => {
            return format!(
                "the body's JSON {} and a line feed at its end: {PARSED}",
                style(of)
            );
        }
        BodyChange::Charset(charset) => {
            return format!("the body {}: {BYTES}", in_charset(charset));
        }
        BodyChange::PercentDecoded => ("the body with its percent-escapes decoded", BYTES),
        BodyChange::FormDecoded => ("the body decoded as a form", BYTES),
        BodyChange::FormRewritten => ("the body written anew as a form", PARSED),
        BodyChange::FormPercentSpaces => ("the body written anew as a form with %20 for spaces", PARSED),
        BodyChange::PayloadWrapped => ("a form with the body in its field payload", PARSED),
        BodyChange::PayloadTaken => ("what the body's field payload holds", PARSED),
    };
    format!("{which}: {remedy}")
}

fn style(style: Style) -> String {
    let layout = match style.layout {
        Layout::Compact => "without spaces".to_owned(),
        Layout::Spaced => "with one space after each comma and colon".to_owned(),
        Layout::Indented(spaces) => format!("indented by {spaces} spaces"),
        Layout::Tabs => "indented by tabs".to_owned(),
    };
    let escapes = match style.escapes {
        Escapes::Kept => "",
        Escapes::Least => " and without needless escapes",
        Escapes::Ascii => " and with all beyond ASCII escaped",
        Escapes::AsciiAndSlash => " and with slashes and all beyond ASCII escaped",
        Escapes::Slash => " and with slashes escaped",
        Escapes::Html => " and with angle brackets and ampersands escaped",
    };
    let sorted = if style.sorted {
        " and its fields sorted"
    } else {
        ""
    };
    format!("{layout}{escapes}{sorted}")
}

fn in_charset(charset: Charset) -> &'static str {
    match charset {
        Charset::Latin1Read => "before something took its UTF-8 for Latin-1 and wrote that as UTF-8",
        Charset::Windows1252Read => {
            "before something took its UTF-8 for Windows-1252 and wrote that as UTF-8"
        }
        Charset::Latin1Written => "in UTF-8 and not in Latin-1",
        Charset::Windows1252Written => "in UTF-8 and not in Windows-1252",
        Charset::Utf16Written => "in UTF-8 and not in UTF-16",
        Charset::Utf16Read => "in UTF-16 and not in UTF-8",
    }
}

pub(super) fn secret(change: &SecretChange, slot: usize) -> String {
    let (which, remedy) = match change {
        SecretChange::Text => ("taken as text", "the sender has to decode it before it signs"),
        SecretChange::TextWithoutPrefix => (
            "taken as text without its whsec_",
            "the sender has to use it as it is configured",
        ),
        SecretChange::TextWithPrefix => ("with whsec_ before it", "configure it with the prefix"),
        SecretChange::Base64 => (
            "decoded from base64",
            "the sender has to take it as text, or the provider is not the one that is configured",
        ),
        SecretChange::Hex => (
            "decoded from hexadecimal",
            "the sender has to take it as text, or the provider is not the one that is configured",
        ),
        SecretChange::SpaceAfter => (
            "with a space or line break at its end",
            "take the space out where the sender keeps its secret",
        ),
        SecretChange::SpaceBefore => (
            "with a space before it",
            "take the space out where the sender keeps its secret",
        ),
        SecretChange::Quoted => (
            "with quotation marks around it",
            "take them out where the sender keeps its secret",
        ),
        SecretChange::Unquoted => ("without its quotation marks", "configure it without them"),
        SecretChange::BearerAdded => (
            "with Bearer before it",
            "configure it with Bearer and a space before it",
        ),
        SecretChange::BearerRemoved => ("without its Bearer", "configure it without Bearer"),
        SecretChange::OfSource(name) => {
            return format!(
                "secret {slot} of source {name}: use that source's URL, or configure the secret of this endpoint here"
            );
        }
        SecretChange::Dev => {
            return "the published secret of hookgate dev: configure the provider's secret, or sign with the one that is \
                    configured"
                .to_owned();
        }
    };
    format!("secret {slot} {which}: {remedy}")
}

pub(super) fn spelling(spelling: Spelling) -> &'static str {
    match spelling {
        Spelling::Capitals => "it is written in capital digits: write it in lower case",
        Spelling::Hex => "it is written in hexadecimal: write it in base64",
        Spelling::Base64 => "it is written in base64: write it in hexadecimal",
        Spelling::UrlBase64 => {
            "its base64 has the letters of URLs or no padding: write it in standard base64 with padding"
        }
        Spelling::Prefix => {
            "what stands before it is not what the provider writes there: send the header as the provider does"
        }
        Spelling::Decorated => "there are spaces or quotation marks in it: take them out",
        Spelling::Merged => "it comes with another value in one header: send it once",
    }
}
