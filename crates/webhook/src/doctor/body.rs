//! Other bodies that may have been signed: what editors, shells, proxies and frameworks do to one, undone.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use hookgate_signature::{Refusal, Scheme};
use percent_encoding::percent_decode;

use super::json::{Json, Style};
use super::trial::{Examination, Fit, Trial};
use super::{Cause, Charset};

const BOM: &[u8] = b"\xef\xbb\xbf";

/// What was signed, seen from what was received.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BodyChange {
    /// One line feed more at the end.
    LineFeedAdded,
    /// One carriage return and line feed more at the end.
    CarriageReturnAdded,
    /// Without the line break at the end.
    LineBreakRemoved,
    /// Line feeds in place of carriage returns and line feeds.
    LineFeeds,
    /// Line feeds, and none at the end.
    LineFeedsNoneAtEnd,
    /// Carriage returns and line feeds in place of line feeds.
    CarriageReturns,
    /// Without the byte order mark.
    BomRemoved,
    /// With a byte order mark.
    BomAdded,
    /// Without space at both ends.
    Trimmed,
    /// As long as the request said, and no longer.
    CutToLength,
    /// The text that the body quotes as a JSON text.
    Unquoted,
    /// The bytes that the body writes in base64.
    Base64Decoded,
    /// The JSON, written in another way.
    Json(Style),
    /// The JSON in another way, and a line feed.
    JsonLine(Style),
    /// The letters in another charset.
    Charset(Charset),
    /// Percent-escapes decoded.
    PercentDecoded,
    /// Percent-escapes and plus signs decoded.
    FormDecoded,
    /// The form written anew, spaces as `+`.
    FormRewritten,
    /// The form with `%20` for `+`.
    FormPercentSpaces,
    /// A form with the body in its field `payload`.
    PayloadWrapped,
    /// What the field `payload` of the form holds.
    PayloadTaken,
}

impl Examination<'_> {
    /// Small changes.
    pub(super) fn body(&self) -> Option<(Cause, Fit)> {
        let plain = self.plain_bodies();
        let mut plain = plain.into_iter();
        plain.find_map(|(change, body)| self.try_body(change, body))
    }

    /// The same content in another writing.
    pub(super) fn rewritten_body(&self, refusal: Refusal) -> Option<(Cause, Fit)> {
        if refusal != Refusal::BadSignature || !self.covers_body() {
            return None;
        }
        self.written_json()
            .or_else(|| self.other_charset())
            .or_else(|| self.other_form())
    }

    /// What hands do to files and proxies to lines.
    pub(super) fn plain_bodies(&self) -> Vec<(BodyChange, Vec<u8>)> {
        let body = &self.case.delivery.body[..];
        if !self.covers_body() {
            return Vec::new();
        }
        let unix: Vec<u8> = body.iter().copied().filter(|byte| *byte != b'\r').collect();
        let windows = unix
            .split(|&byte| byte == b'\n')
            .collect::<Vec<_>>()
            .join(&b"\r\n"[..]);
        let without = |end: &[u8]| body.strip_suffix(end);
        let cut = self.content_length().and_then(|length| body.get(..length));
        let others = [
            (
                BodyChange::LineBreakRemoved,
                without(b"\r\n").or(without(b"\n")).map(<[u8]>::to_vec),
            ),
            (BodyChange::LineFeedAdded, Some([body, b"\n"].concat())),
            (BodyChange::CarriageReturnAdded, Some([body, b"\r\n"].concat())),
            (BodyChange::LineFeeds, Some(unix.clone())),
            (
                BodyChange::LineFeedsNoneAtEnd,
                unix.strip_suffix(b"\n").map(<[u8]>::to_vec),
            ),
            (BodyChange::CarriageReturns, Some(windows)),
            (BodyChange::BomRemoved, body.strip_prefix(BOM).map(<[u8]>::to_vec)),
            (BodyChange::BomAdded, Some([BOM, body].concat())),
            (BodyChange::CutToLength, cut.map(<[u8]>::to_vec)),
            (BodyChange::Trimmed, Some(body.trim_ascii().to_vec())),
            (
                BodyChange::Unquoted,
                serde_json::from_slice::<String>(body)
                    .ok()
                    .map(String::into_bytes),
            ),
            (BodyChange::Base64Decoded, STANDARD.decode(body.trim_ascii()).ok()),
        ];
        let others = others
            .into_iter()
            .filter_map(|(change, other)| Some((change, other?)));
        others.filter(|(_, other)| *other != body).collect()
    }

    fn written_json(&self) -> Option<(Cause, Fit)> {
        let body = &self.case.delivery.body;
        let json = Json::read(body)?;
        let written = |style| json.write(style, body.len()).map(String::into_bytes);
        let alone = Style::all().find_map(|style| self.try_body(BodyChange::Json(style), written(style)?));
        alone.or_else(|| {
            // As encoders that end every value with a line.
            let mut styles = Style::all().filter(|style| !style.sorted);
            styles.find_map(|style| {
                let line = [&written(style)?[..], b"\n"].concat();
                self.try_body(BodyChange::JsonLine(style), line)
            })
        })
    }

    fn other_charset(&self) -> Option<(Cause, Fit)> {
        let body = &self.case.delivery.body;
        Charset::ALL
            .into_iter()
            .find_map(|charset| self.try_body(BodyChange::Charset(charset), charset.undo(body)?))
    }

    fn other_form(&self) -> Option<(Cause, Fit)> {
        let body = &self.case.delivery.body[..];
        let spaced = |body: &[u8]| -> Vec<u8> {
            body.iter()
                .map(|&byte| if byte == b'+' { b' ' } else { byte })
                .collect()
        };
        let pairs: Vec<_> = form_urlencoded::parse(body).collect();
        let rewritten = form_urlencoded::Serializer::new(String::new())
            .extend_pairs(&pairs)
            .finish();
        let wrapped = form_urlencoded::byte_serialize(body).collect::<String>();
        let taken = pairs.iter().find(|(name, _)| name == "payload");
        let others = [
            (
                BodyChange::PayloadWrapped,
                Some(format!("payload={wrapped}").into_bytes()),
            ),
            (
                BodyChange::PayloadTaken,
                taken.map(|(_, value)| value.as_bytes().to_vec()),
            ),
            (BodyChange::FormRewritten, Some(rewritten.clone().into_bytes())),
            (
                BodyChange::FormPercentSpaces,
                Some(rewritten.replace('+', "%20").into_bytes()),
            ),
            (BodyChange::PercentDecoded, Some(percent_decode(body).collect())),
            (
                BodyChange::FormDecoded,
                Some(percent_decode(&spaced(body)).collect()),
            ),
        ];
        others
            .into_iter()
            .find_map(|(change, other)| self.try_body(change, other?))
    }

    fn try_body(&self, change: BodyChange, body: Vec<u8>) -> Option<(Cause, Fit)> {
        if body == self.case.delivery.body {
            return None;
        }
        let trial = Trial {
            body: Bytes::from(body),
            ..Trial::of(self.case)
        };
        self.fits(&trial).map(|fit| (Cause::Body(change), fit))
    }

    /// A token says nothing about a body.
    fn covers_body(&self) -> bool {
        !matches!(self.case.endpoint.provider.knowledge().scheme, Scheme::Token(_))
    }

    /// The length that the request said.
    pub(super) fn content_length(&self) -> Option<usize> {
        self.case
            .delivery
            .headers
            .text("content-length")?
            .trim()
            .parse()
            .ok()
    }
}
