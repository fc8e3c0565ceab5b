//! One sentence a diagnosis: what fails, and what would have made it pass. None holds a secret, a signature or text
//! of the body, and names of headers from a request are only repeated if they are plain.

use std::fmt::Write as _;
use std::time::Duration;

use hookgate_signature::Refusal;

use super::phrase::{body, secret, spelling};
use super::{Case, Cause, Diagnosis, Kept, Rename};
use crate::{Event, UrlUse};

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
        cause => of_time(cause, case, slot)
            .or_else(|| of_fits(cause, case, slot))
            .or_else(|| of_headers(cause, case, slot))
            .or_else(|| of_lost_headers(cause, case))
            .unwrap_or_else(|| of_nothing(diagnosis, case)),
    }
}

fn of_time(cause: &Cause, case: &Case<'_>, slot: usize) -> Option<String> {
    let provider = case.endpoint.provider.knowledge().title;
    Some(match cause {
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
        _ => return None,
    })
}

/// What a changed copy has proven.
fn of_fits(cause: &Cause, case: &Case<'_>, slot: usize) -> Option<String> {
    let provider = case.endpoint.provider.knowledge().title;
    Some(match cause {
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
        _ => return None,
    })
}

fn of_headers(cause: &Cause, case: &Case<'_>, slot: usize) -> Option<String> {
    let provider = case.endpoint.provider.knowledge().title;
    Some(match cause {
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
        _ => return None,
    })
}

/// What can be said although nothing fits.
fn of_lost_headers(cause: &Cause, case: &Case<'_>) -> Option<String> {
    let provider = case.endpoint.provider.knowledge().title;
    Some(match cause {
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
        Cause::NamedKey => format!(
            "Only labels are configured, and the certificate that the request names is not fetched here: add the public key of \
             {provider} to the secrets to have the signature judged"
        ),
        Cause::Dropped(header) => format!(
            "No secret fits, and the {header} header is missing, which {provider} may have signed: let every proxy pass it \
             on, then check the secret"
        ),
        _ => return None,
    })
}

fn of_nothing(diagnosis: &Diagnosis, case: &Case<'_>) -> String {
    let known = case.endpoint.provider.knowledge();
    let provider = known.title;
    let url = match known.url {
        UrlUse::Whole => {
            ", that public_url of the source is the URL registered there, character by character"
        }
        UrlUse::Query => ", that the query of the request is the one that was sent",
        UrlUse::Unused => "",
    };
    format!(
        "No secret fits, and no usual change of body, secret, header or URL would help: check that the secret is the one \
         of this endpoint at {provider}{url}, and that the body is, byte for byte, {} bytes with SHA-256 {}",
        diagnosis.body_bytes, diagnosis.body_sha256
    )
}

fn passes(
    events: &[Event],
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
                let event_type = event
                    .event_type
                    .as_ref()
                    .map(|text| format!(" ({})", text.as_str()));
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
