//! Bodies that something changed on their way, or when they were saved.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use hookgate_webhook::Provider;
use hookgate_webhook::doctor::{BodyChange, Cause, Charset, Escapes, Layout, Style};

use super::{COMPACT, JSON, STRIPE, Saved, broken, of_body, signed};

fn json(layout: Layout, escapes: Escapes) -> Cause {
    Cause::Body(BodyChange::Json(Style {
        layout,
        escapes,
        sorted: false,
    }))
}

pub(super) fn cases() -> Vec<(&'static str, Saved, Cause)> {
    let stripe = signed(Provider::Stripe);
    let of = |signed: &[u8], received: Vec<u8>| {
        broken(of_body(Provider::Stripe, STRIPE, signed), |saved| {
            saved.body = received
        })
    };
    let crlf = String::from_utf8(JSON.to_vec()).unwrap().replace('\n', "\r\n");
    let mojibake: String = JSON.iter().map(|&byte| char::from(byte)).collect();
    let utf16: Vec<u8> = std::str::from_utf8(JSON)
        .unwrap()
        .encode_utf16()
        .flat_map(u16::to_le_bytes)
        .collect();
    let escaped = br#"{"id":"evt_1","type":"a","name":"Zo\u00eb \u20ac\/<x>"}"#;
    let python = br#"{"id": "evt_1", "type": "a", "name": "Zo\u00eb \u20ac/<x>"}"#;
    let form: String = form_urlencoded::byte_serialize(COMPACT).collect();
    vec![
        (
            "an editor added a line break",
            broken(stripe.clone(), |saved| saved.body.push(b'\n')),
            Cause::Body(BodyChange::LineBreakRemoved),
        ),
        (
            "the last line break was lost",
            of(&[JSON, b"\n"].concat(), JSON.to_vec()),
            Cause::Body(BodyChange::LineFeedAdded),
        ),
        (
            "line ends became CRLF",
            of(JSON, crlf.clone().into_bytes()),
            Cause::Body(BodyChange::LineFeeds),
        ),
        (
            "CRLF became line feeds",
            of(crlf.as_bytes(), JSON.to_vec()),
            Cause::Body(BodyChange::CarriageReturns),
        ),
        (
            "an editor added a byte order mark",
            of(JSON, [b"\xef\xbb\xbf", JSON].concat()),
            Cause::Body(BodyChange::BomRemoved),
        ),
        (
            "a framework parsed and compacted the JSON",
            of(JSON, COMPACT.to_vec()),
            json(Layout::Indented(2), Escapes::Kept),
        ),
        (
            "a viewer made the JSON pretty",
            of(COMPACT, JSON.to_vec()),
            json(Layout::Compact, Escapes::Kept),
        ),
        (
            "PHP's escapes were undone",
            of(escaped, COMPACT.to_vec()),
            json(Layout::Compact, Escapes::AsciiAndSlash),
        ),
        (
            "Python's spaces and escapes were undone",
            of(python, COMPACT.to_vec()),
            json(Layout::Spaced, Escapes::Ascii),
        ),
        (
            "UTF-8 was taken for Latin-1",
            of(JSON, mojibake.into_bytes()),
            Cause::Body(BodyChange::Charset(Charset::Latin1Read)),
        ),
        (
            "a shell saved it as UTF-16",
            of(JSON, [&[0xff, 0xfe], &utf16[..]].concat()),
            Cause::Body(BodyChange::Charset(Charset::Utf16Written)),
        ),
        (
            "a log quoted the body",
            of(
                COMPACT,
                serde_json::to_vec(std::str::from_utf8(COMPACT).unwrap()).unwrap(),
            ),
            Cause::Body(BodyChange::Unquoted),
        ),
        (
            "an API gateway passed it on in base64",
            of(COMPACT, STANDARD.encode(COMPACT).into_bytes()),
            Cause::Body(BodyChange::Base64Decoded),
        ),
        (
            "a framework took the JSON out of a form",
            broken(
                of_body(Provider::Github, "s", format!("payload={form}").as_bytes()),
                |saved| saved.body = COMPACT.to_vec(),
            ),
            Cause::Body(BodyChange::PayloadWrapped),
        ),
        (
            "the body was cut off",
            broken(stripe.clone(), |saved| {
                saved.set("Content-Length", &saved.body.len().to_string());
                saved.body.truncate(100);
            }),
            Cause::ContentLength {
                said: stripe.body.len(),
                is: 100,
            },
        ),
        (
            "the body is larger than the source takes",
            broken(stripe, |saved| saved.body = vec![b' '; (1 << 20) + 1]),
            Cause::BodyTooLarge {
                is: (1 << 20) + 1,
                limit: 1 << 20,
            },
        ),
    ]
}
