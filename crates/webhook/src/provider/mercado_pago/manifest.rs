//! What Mercado Pago signs: `id:<data.id>;request-id:<x-request-id>;ts:<ts>;`, made of the URL's query and of two
//! headers. A part that is absent is left out with its name; the last `;` belongs to the text.
//!
//! This reads what nobody has verified. It takes no more than the query's `data.id` and the two headers, and gives back
//! the texts that may be signed, the signatures and the time.
//!
//! Where official sources contradict each other both sides are accepted. An order's id comes in capitals: the
//! documentation has it lowered before signing, and real notifications are signed as they come. `ts` is called
//! milliseconds and shown as seconds: more than eleven digits are milliseconds.

use std::borrow::Cow;

use hookgate_signature::{
    Algorithm, CANDIDATES_MAX, Delivery, Encoding, Offered, Refusal, Repeated, Seal, Verified,
};
use percent_encoding::percent_decode_str;

use crate::value::Value;

pub(super) const SIGNATURE: &str = "x-signature";
pub(super) const REQUEST_ID: &str = "x-request-id";

/// As seconds these digits last until the year 5138.
const SECONDS_DIGITS_MAX: usize = 11;

/// What the header says.
struct Claimed<'a> {
    ts: &'a str,
    signatures: Vec<Offered>,
}

/// What is said to be signed.
pub(super) fn seals(delivery: &Delivery<'_>) -> Result<Vec<Seal>, Refusal> {
    let claimed = read(delivery.headers.required(SIGNATURE)?)?;
    let signed_at = seconds(claimed.ts).ok_or(malformed("its `ts` is not a decimal number"))?;
    let request_id = delivery.headers.sole(REQUEST_ID);
    let request_id = request_id.map_err(|Repeated| Refusal::MalformedSignature {
        header: REQUEST_ID,
        problem: "it occurs more than once; send it once",
    })?;
    let id = data_id(delivery.url.unwrap_or_default()).map_err(malformed)?;
    let text = |id: Option<&[u8]>| text(id, request_id, claimed.ts.as_bytes());
    let mut texts = vec![text(id.as_deref())];
    if let Some(id) = id.filter(|id| id.iter().any(u8::is_ascii_uppercase)) {
        texts.push(text(Some(&id.to_ascii_lowercase())));
    }
    Ok(vec![Seal {
        texts,
        signatures: claimed.signatures,
        signed_at: Some(signed_at),
    }])
}

/// The signed text.
pub(super) fn text(id: Option<&[u8]>, request_id: Option<&[u8]>, ts: &[u8]) -> Vec<u8> {
    let parts = [
        (&b"id:"[..], id),
        (b"request-id:", request_id),
        (b"ts:", Some(ts)),
    ];
    parts
        .into_iter()
        .filter_map(|(name, value)| Some([name, value?, b";"].concat()))
        .collect::<Vec<_>>()
        .concat()
}

/// The query's `data.id`, percent-decoded; an empty one is none. Two have no meaning: each reader would take its own.
/// Nor has one with a `;`, which could hold the parts after it and so pass for another object.
pub(super) fn data_id(url: &str) -> Result<Option<Cow<'_, [u8]>>, &'static str> {
    let query = url.split_once('?').map_or("", |(_, query)| query);
    let mut ids = query
        .split('&')
        .filter_map(|pair| pair.split_once('='))
        .filter(|(name, value)| percent_decode_str(name).eq(*b"data.id") && !value.is_empty())
        .map(|(_, value)| Cow::from(percent_decode_str(value)));
    match (ids.next(), ids.next()) {
        (Some(_), Some(_)) => Err("the URL holds `data.id` twice, and only one can be signed"),
        (Some(id), None) if id.contains(&b';') => Err("the URL's `data.id` holds a `;`, which no id does"),
        (id, None) | (None, id) => Ok(id),
    }
}

/// The object that the signature covers, if it covers one.
pub(super) fn object<'a>(verified: &Verified<'a>) -> Option<Value<'a>> {
    let id = data_id(verified.url()?).ok().flatten()?;
    Some(match String::from_utf8(id.into_owned()) {
        Ok(id) => Value::Text(Cow::Owned(id)),
        Err(_) => Value::Broken("it is not UTF-8"),
    })
}

/// `ts=…,v1=…`: spaces around names and values, the order and the names' case do not count; items without `=` and
/// unknown names, `v2` among them, are ignored.
fn read(header: &[u8]) -> Result<Claimed<'_>, Refusal> {
    let header = std::str::from_utf8(header).map_err(|_| malformed("it is not text"))?;
    let mut ts = None;
    let mut offered = 0;
    let mut signatures = Vec::new();
    for (name, value) in header.split(',').filter_map(|item| item.split_once('=')) {
        let (name, value) = (name.trim(), value.trim());
        if name.eq_ignore_ascii_case("ts") {
            if ts.replace(value).is_some() {
                return Err(malformed("it holds two timestamps"));
            }
        } else if name.eq_ignore_ascii_case("v1") {
            offered += 1;
            signatures.extend(Offered::read(
                Algorithm::HmacSha256,
                Encoding::Hex,
                value.as_bytes(),
            ));
        }
        if offered > CANDIDATES_MAX {
            return Err(malformed("it holds more than 20 signatures"));
        }
    }
    if signatures.is_empty() {
        return Err(malformed("it holds no `v1` of 64 lower-case hex digits"));
    }
    let ts = ts.ok_or(malformed("it holds no `ts`"))?;
    Ok(Claimed { ts, signatures })
}

fn seconds(ts: &str) -> Option<i64> {
    let number: i64 = match ts.bytes().all(|b| b.is_ascii_digit()) {
        true => ts.parse().ok()?,
        false => return None,
    };
    Some(match ts.len() {
        ..=SECONDS_DIGITS_MAX => number,
        _ => number / 1000,
    })
}

fn malformed(problem: &'static str) -> Refusal {
    Refusal::MalformedSignature {
        header: SIGNATURE,
        problem,
    }
}
