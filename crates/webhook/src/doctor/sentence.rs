//! One sentence a diagnosis: what fails, and what would have made it pass. None holds a secret, a signature or text
//! of the body, and names of headers from a request are only repeated if they are plain.

use std::fmt::Write as _;
use std::time::Duration;

use hookgate_signature::Refusal;

use super::{
    BodyChange, Case, Cause, Charset, Diagnosis, Escapes, Kept, Known, Layout, Rename, SecretChange,
    Spelling, Style,
};

/// The most events that are named.
const EVENTS_MAX: usize = 10;

/// Longest name of a header that is repeated.
const NAME_BYTES_MAX: usize = 64;

pub(super) fn of(diagnosis: &Diagnosis, case: &Case<'_>) -> String {
    let slot = diagnosis.slot.unwrap_or_default();
    let mut sentence = said(diagnosis, case, slot);
    if let Some(refusal) = diagnosis.also {
        let _ = match refusal {
            Refusal::StaleTimestamp { age, tolerance } => write!(
                sentence,
                "; apart from that it was signed {} before this moment, where {} are allowed",
                span(age),
                span(tolerance)
            ),
            Refusal::FutureTimestamp { ahead, tolerance } => write!(
                sentence,
                "; apart from that it is dated {} after this moment, where {} are allowed",
                span(ahead),
                span(tolerance)
            ),
            other => write!(
                sentence,
                "; apart from that its time cannot be judged ({})",
                other.reason()
            ),
        };
    }
    sentence + "."
}

fn said(diagnosis: &Diagnosis, case: &Case<'_>, slot: usize) -> String {
    let provider = case.endpoint.provider.knowledge().title;
    match &diagnosis.cause {
        Cause::Passes {
            events,
            handshake,
            seconds_left,
        } => passes(
            events,
            *handshake,
            *seconds_left,
            case.endpoint.secrets.len(),
            slot,
        ),
        Cause::Unreadable(unreadable) => format!(
            "The signature fits secret {slot}, but no event can be read from what {provider} signed: {unreadable}"
        ),
        Cause::BodyTooLarge { is, limit } => format!(
            "The body has {is} bytes and the source takes {limit}, so it is answered 413 before anybody looks at its \
             signature: raise max_body_bytes of the source"
        ),
        Cause::TooOld { age, tolerance } => format!(
            "The signature fits secret {slot}, but it was made {} before this moment, where {} are allowed: judge a saved \
             delivery at the time when it came, set this machine's clock, or have the event sent again",
            span(*age),
            span(*tolerance)
        ),
        Cause::TooNew { ahead, tolerance } => format!(
            "The signature fits secret {slot}, but it is dated {} after this moment, where {} are allowed: set the clock of \
             this machine or of the sender",
            span(*ahead),
            span(*tolerance)
        ),
        Cause::Milliseconds => format!(
            "The signature fits secret {slot}, but its timestamp counts milliseconds where {provider} counts seconds: let \
             the sender divide by 1000"
        ),
        Cause::Seconds => format!(
            "The signature fits secret {slot}, but its timestamp counts seconds where {provider} counts milliseconds: let \
             the sender multiply by 1000"
        ),
        Cause::Body(change) => format!("The signature fits secret {slot} and {}", body(*change)),
        Cause::Secret(change) => format!("The signature fits {}", secret(change, slot)),
        Cause::SecretAndBody(change, other) => {
            format!(
                "The signature fits {}; besides, it fits {}",
                secret(change, slot),
                body(*other)
            )
        }
        Cause::OtherSource(name) => {
            format!("The delivery is a good one for source {name}: let its sender use the URL of that source")
        }
        Cause::OtherProvider(other) => format!(
            "The signature fits secret {slot} as {} signs, and not as {provider} does: set the source's provider to {}",
            other.knowledge().title,
            other.name()
        ),
        Cause::Url(change) => format!(
            "The signature fits secret {slot} and the URL {} (another {}): set public_url of the source to the URL that is \
             registered with {provider}",
            plain(&change.fits, 200),
            change.differs.join(", another ")
        ),
        cause => of_headers(cause, diagnosis, case, slot),
    }
}

fn of_headers(cause: &Cause, diagnosis: &Diagnosis, case: &Case<'_>, slot: usize) -> String {
    let provider = case.endpoint.provider.knowledge().title;
    match cause {
        Cause::Repeated { header, fits } => {
            let which = match fits {
                Some(Kept::First) => format!(", and the first alone fits secret {slot}"),
                Some(Kept::Last) => format!(", and the last alone fits secret {slot}"),
                None => String::new(),
            };
            format!("The {header} header comes more than once{which}: send it once")
        }
        Cause::Renamed { header, rename } => {
            let how = match rename {
                Rename::Underscores => "with underscores in the names of the headers".to_owned(),
                Rename::Brand(found) | Rename::Found(found) => {
                    format!("in the header {}", plain(found, NAME_BYTES_MAX))
                }
            };
            format!("The signature fits secret {slot}, but it comes {how}: send it as {header}")
        }
        Cause::Spelling {
            header,
            spelling: how,
        } => {
            format!(
                "The signature in {header} fits secret {slot}, but {}",
                spelling(*how)
            )
        }
        Cause::Hash { hash, header, fits } => {
            let fits = match fits {
                true => format!("it fits secret {slot}"),
                false => "it fits no secret either".to_owned(),
            };
            format!(
                "There is only a signature with {hash}, and {fits}: {provider} has to sign with SHA-256 in {header}"
            )
        }
        Cause::Version {
            header,
            wanted,
            found,
        } => format!(
            "The {header} header holds a signature {found} and none called {wanted}, and only {wanted} counts: pass the \
             header on as it came, with all its parts"
        ),
        Cause::Length { header, is, wanted } => format!(
            "The signature in {header} has {is} characters in place of {wanted}: pass the whole header on, nothing cut off \
             or added"
        ),
        Cause::Malformed { header, problem } => {
            format!("The {header} header cannot be read, because {problem}: pass on what {provider} sent")
        }
        Cause::Empty(header) => {
            format!("The {header} header is there and empty: pass on the value that {provider} sent")
        }
        Cause::Missing(header) => format!(
            "The {header} header is missing: let every proxy pass it on, and see that {provider} signs what it sends to this \
             URL"
        ),
        Cause::LooksLike {
            header,
            provider: other,
        } => format!(
            "The {header} header is missing and that of {} is there: send this to a source of {}, or set the source's \
             provider to {}",
            other.knowledge().title,
            other.knowledge().title,
            other.name()
        ),
        Cause::ContentLength { said, is } => format!(
            "No secret fits, and the body has {is} bytes where the request said {said}: save the whole body, byte for byte"
        ),
        Cause::Dropped(header) => format!(
            "No secret fits, and the {header} header is missing, which {provider} may have signed: let every proxy pass it \
             on, then check the secret"
        ),
        _ => format!(
            "No secret fits, and none of {} changes of body, secret, header or URL would help: check that the secret is the \
             one of this endpoint at {provider}, and that the body is, byte for byte, {} bytes with SHA-256 {}",
            diagnosis.tried, diagnosis.body_bytes, diagnosis.body_sha256
        ),
    }
}

fn passes(
    events: &[Known],
    handshake: bool,
    seconds_left: Option<i64>,
    secrets: usize,
    slot: usize,
) -> String {
    let mut sentence = format!("The signature is good: secret {slot} of {secrets} fits");
    if secrets > 1 {
        sentence.push_str(", no other is used");
    }
    match handshake {
        true => sentence.push_str("; it is a handshake and no event"),
        false => {
            let named = events.iter().take(EVENTS_MAX).map(|event| {
                let event_type = event.event_type.as_deref().map(|text| format!(" ({text})"));
                format!("event {}{}", event.id, event_type.unwrap_or_default())
            });
            let named = named.collect::<Vec<_>>().join(", ");
            let more = events.len().saturating_sub(EVENTS_MAX);
            let _ = match (events.len(), more) {
                (0, _) => write!(sentence, "; it holds no event"),
                (_, 0) => write!(sentence, "; {named}"),
                (_, more) => write!(sentence, "; {named} and {more} more"),
            };
        }
    }
    if let Some(left) = seconds_left {
        let _ = write!(sentence, "; it stays good for {left} s");
    }
    sentence
}

fn body(change: BodyChange) -> String {
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

fn secret(change: &SecretChange, slot: usize) -> String {
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

fn spelling(spelling: Spelling) -> &'static str {
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

/// Text of a request, if it is harmless.
fn plain(text: &str, bytes_max: usize) -> String {
    let graphic = text.bytes().all(|byte| byte.is_ascii_graphic());
    match graphic && text.len() <= bytes_max {
        true => text.to_owned(),
        false => "(not shown)".to_owned(),
    }
}

/// A duration, exact, and as people say it if it is long.
fn span(duration: Duration) -> String {
    let seconds = duration.as_secs();
    match seconds {
        0..7_200 => format!("{seconds} s"),
        7_200..172_800 => format!("{seconds} s ({} h)", seconds / 3600),
        _ => format!("{seconds} s ({} days)", seconds / 86_400),
    }
}
