//! Twilio's webhooks: messages, calls and what else posts a form.
//!
//! Sources: twilio 6.3.1 for Node (`webhooks`) and twilio 9.13.0 for Python (`request_validator`). What they do not
//! tell is commonly known about Twilio and called unconfirmed.
//!
//! What is signed is the URL and the decoded form, names and values in a row with nothing between them. So the bytes
//! of a body are not pinned down: `+` and `%20` are the same to the signature, and so is a letter moved from the end
//! of a name to the start of its value. A JSON body is pinned down, by its digest in the URL.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::time::Duration;

use bytes::Bytes;
use hookgate_signature::{
    Algorithm, Delivery, Detached, Encoding, KeyForm, Keys, Offered, Refusal, Scheme, Seal, Tolerance,
    Verified,
};
use sha2::{Digest, Sha256};

use crate::knowledge::{Knowledge, Places, Success, UrlUse};
use crate::provider::{Definition, Sending, Signed};
use crate::sample::{Sample, Template, uuid};
use crate::value::Value;
use crate::{Event, Reading, Unreadable, fields, form};

const SIGNATURE: &str = "X-Twilio-Signature";
const SETTINGS: &str = "X-Twilio-Webhooks-Signature-Settings";
const TOKEN: &str = "I-Twilio-Idempotency-Token";

/// Parameter of the URL that holds the digest of a body that is no form.
const BODY_DIGEST: &str = "bodySHA256";

/// Twilio sends some dozens of fields; each one more costs a stranger less than us.
const PAIRS_MAX: usize = 1_000;

pub(super) const DEFINITION: Definition = Definition {
    knowledge: Knowledge {
        name: "twilio",
        title: "Twilio",
        // SHA-1 by the account's auth token; SHA-256 where a request says that it is signed by a shared key. The
        // configured secret is the key of either.
        scheme: Scheme::Detached(Detached {
            header: SIGNATURE,
            algorithms: &[Algorithm::HmacSha1, Algorithm::HmacSha256],
            key: KeyForm::Text,
            signs: "URL, the decoded fields of the form in order of their names; for JSON the URL, with `bodySHA256` in it",
        }),
        tolerance: Tolerance::Off,
        url: UrlUse::Whole,
        places: Places {
            id: "header `I-Twilio-Idempotency-Token`",
            event_type: "",
            object: "form `MessageSid`",
            time: "",
            account: "form `AccountSid`",
            mode: "",
        },
        // Unconfirmed.
        answer_budget: Duration::from_secs(15),
        answer_budget_is_published: false,
        success: Success::Ok,
        // Off unless the URL asks for it, beyond one failed connection (unconfirmed). Event Streams try for four hours.
        automatic_retries: None,
        manual_resend: None,
        retries_in_words: "none by default beyond a failed connection (unconfirmed); Event Streams for up to 4 h",
        gives_up: "",
        client_error_is_final: false,
        refusal_status: 400,
        body_bytes_max: None,
        id_is_signed: false,
        content_path: None,
        batches: false,
        handshake: "",
        forwarded_headers: &[SIGNATURE, SETTINGS, TOKEN],
        dev_secrets: &["hookgate_dev_twilio"],
        sources: &["twilio 6.3.1 for Node", "twilio 9.13.0 for Python"],
    },
    read,
    seals: Some(seals),
    signed_at: None,
    sign: Some(sign),
    samples: SAMPLES,
    sample,
};

/// What is said to be signed. Twilio signs the URL with the port or without it, so either may match.
fn seals(delivery: &Delivery<'_>) -> Result<Vec<Seal>, Refusal> {
    let signature = delivery.headers.required(SIGNATURE)?;
    let algorithm = algorithm(delivery)?;
    let offered = Offered::read(algorithm, Encoding::Base64, signature);
    let url = delivery.url.unwrap_or_default();
    let tail = match body_digest(url) {
        Some(digest) if !is_digest_of(&digest, &delivery.body) => return Err(Refusal::BadSignature),
        Some(_) => String::new(),
        None => joined(&delivery.body)?,
    };
    let texts = [Some(Cow::Borrowed(url)), other_port(url).map(Cow::Owned)];
    Ok(vec![Seal {
        texts: texts
            .into_iter()
            .flatten()
            .map(|url| format!("{url}{tail}").into_bytes())
            .collect(),
        signatures: vec![offered.ok_or(Refusal::MalformedSignature {
            header: SIGNATURE,
            problem: "it is not the base64 of a digest of its algorithm",
        })?],
        signed_at: None,
    }])
}

/// SHA-1, unless the request names another. The header is not signed, so it only chooses among the algorithms that
/// are known, and never the key: that is the one which is configured.
fn algorithm(delivery: &Delivery<'_>) -> Result<Algorithm, Refusal> {
    let malformed = |problem| Refusal::MalformedSignature {
        header: SETTINGS,
        problem,
    };
    let settings = match delivery.headers.required(SETTINGS) {
        Ok(settings) => settings,
        Err(Refusal::MissingSignature(_)) => return Ok(Algorithm::HmacSha1),
        Err(refusal) => return Err(refusal),
    };
    let mut named = settings
        .split(|&b| b == b',')
        .filter_map(|item| item.trim_ascii().strip_prefix(b"algorithm="));
    match (named.next(), named.next()) {
        (Some(b"HMAC_SHA256"), None) => Ok(Algorithm::HmacSha256),
        (Some(b"HMAC_SHA1"), None) => Ok(Algorithm::HmacSha1),
        _ => Err(malformed(
            "it does not name one of HMAC_SHA256 and HMAC_SHA1, once",
        )),
    }
}

/// The fields in the order of their names, of equal fields one. Empty values count.
fn joined(body: &[u8]) -> Result<String, Refusal> {
    let pairs: BTreeSet<_> = form::pairs(body).take(PAIRS_MAX + 1).collect();
    if form::pairs(body).nth(PAIRS_MAX).is_some() {
        return Err(Refusal::MalformedSignature {
            header: SIGNATURE,
            problem: "the form that it covers has more than 1000 fields",
        });
    }
    Ok(pairs
        .iter()
        .flat_map(|(name, value)| [&**name, &**value])
        .collect())
}

fn body_digest(url: &str) -> Option<Cow<'_, str>> {
    let (_, query) = url.split_once('?')?;
    form::pairs(query.as_bytes())
        .find(|(name, _)| name == BODY_DIGEST)
        .map(|(_, digest)| digest)
}

/// No secret is in it, so it takes no constant time.
fn is_digest_of(hex: &str, body: &[u8]) -> bool {
    let digest: String = Sha256::digest(body)
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect();
    hex.eq_ignore_ascii_case(&digest)
}

/// The URL without its port if it names one, else with the standard one of its scheme.
fn other_port(url: &str) -> Option<String> {
    let (scheme, rest) = url.split_once("://")?;
    let (host, tail) = rest.split_at(rest.find(['/', '?', '#']).unwrap_or(rest.len()));
    let named = host
        .rsplit_once(':')
        .filter(|(_, port)| port.bytes().all(|b| b.is_ascii_digit()));
    match (named, scheme) {
        (Some((host, _)), _) => Some(format!("{scheme}://{host}{tail}")),
        (None, "https") => Some(format!("https://{host}:443{tail}")),
        (None, "http") => Some(format!("http://{host}:80{tail}")),
        (None, _) => None,
    }
}

/// The token is the same on every try and not signed. Products that send none are told apart by their bytes. Which
/// body it is, the signed URL tells.
fn read(verified: &Verified<'_>) -> Result<Reading, Unreadable> {
    let body = verified.body();
    let event = match Value::from_header(verified.headers(), TOKEN) {
        Value::Absent => Event::without_id(&Value::Absent, body.clone()),
        token => Event::new(
            token.event_id("the I-Twilio-Idempotency-Token header is missing")?,
            body.clone(),
        ),
    };
    if verified.url().and_then(body_digest).is_some() {
        fields::check(body)?;
        return Ok(event.into());
    }
    if !body.contains(&b'=') {
        return Err(Unreadable::MalformedBody("it is not a form".to_owned()));
    }
    let event = event
        .with_object(&form::sole(body, "MessageSid")?)
        .with_account(&form::sole(body, "AccountSid")?);
    Ok(event.into())
}

fn sign(keys: &Keys, sample: &Sample, sending: &Sending<'_>) -> Signed {
    let mut headers = sample.headers.clone();
    if let Ok(tail) = joined(&sample.body) {
        let signature = keys.sign_text(Encoding::Base64, format!("{}{tail}", sending.url).as_bytes());
        headers.extend(signature.map(|signature| (SIGNATURE, signature)));
    }
    Signed {
        url: sending.url.to_owned(),
        headers,
        body: Bytes::clone(&sample.body),
    }
}

/// Named after what they tell, since Twilio has no types.
const SAMPLES: &[Template] = &[
    Template {
        event_type: "message.delivered",
        body: include_str!("../../samples/twilio/message.delivered.txt"),
    },
    Template {
        event_type: "message.received",
        body: include_str!("../../samples/twilio/message.received.txt"),
    },
    Template {
        event_type: "call.completed",
        body: include_str!("../../samples/twilio/call.completed.txt"),
    },
];

fn sample(template: &Template, serial: u128, _: i64) -> Sample {
    let id = uuid(serial);
    Sample {
        event_type: template.event_type,
        headers: vec![
            (
                "Content-Type",
                "application/x-www-form-urlencoded; charset=UTF-8".to_owned(),
            ),
            ("User-Agent", "TwilioProxy/1.1".to_owned()),
            (TOKEN, id.clone()),
        ],
        body: template.fill(&[("serial", &format!("{serial:032x}"))]),
        id,
    }
}
