//! Senders that are not built in: `provider = "hmac"` and `provider = "token"`, described in the source's own tables.
//!
//! ```toml
//! [sources.acme]
//! provider = "hmac"
//! secret_file = "/run/secrets/acme"
//!
//! [sources.acme.signature]
//! header = "X-Acme-Signature"      # where the signature stands
//! prefix = "sha256="               # what stands before it; default none
//! algorithm = "hmac-sha256"        # also hmac-sha1, hmac-sha512, ed25519, ecdsa-p256-sha256, rsa-pkcs1-sha256
//! encoding = "hex"                 # or base64
//! key = "text"                     # how the secret is a key: text, hex, base64
//! signed = "{timestamp}.{body}"    # what is signed; default {body}
//! timestamp_header = "X-Acme-Time" # where the signed time stands
//! timestamp_unit = "s"             # or ms
//!
//! [sources.acme.event]
//! id = "header:X-Acme-Id"          # or "body:data.id"; without it a digest of body and type is the id
//! type = "body:type"               # the same for object, time, account and mode
//! ```
//!
//! No message quotes a value: one that stands in the wrong place may be a secret.

mod keys;

use std::time::Duration;

use hookgate_signature::{
    Algorithm, BodyDigest, Encoding, KeyForm, Part, Scheme, SignedText, Timestamp, TimestampedList, Token,
    Tolerance, Unit, Written, read_template,
};
use hookgate_webhook::{Description, Kind, Provider};

use keys::Keys;

/// Unless a source says otherwise, a signed time may be this far away, in both directions.
const TOLERANCE: Duration = Duration::from_secs(300);

/// Unless a source says otherwise, its sender waits this long.
const ANSWER_BUDGET: Duration = Duration::from_secs(10);

/// The kinds of senders that a source can describe, by the name of their provider.
pub(super) fn kind(provider: &str) -> Option<Kind> {
    match provider {
        "hmac" => Some(Kind::Hmac),
        "token" => Some(Kind::Token),
        _ => None,
    }
}

/// The tables of a source that describe its sender.
#[derive(Debug, Default)]
pub(super) struct Tables<'a> {
    /// `[sources.NAME.signature]`.
    pub signature: Option<&'a toml::Value>,
    /// `[sources.NAME.event]`.
    pub event: Option<&'a toml::Value>,
    /// `[sources.NAME.sender]`.
    pub sender: Option<&'a toml::Value>,
}

impl Tables<'_> {
    /// The first that is there, by its name.
    pub(super) fn any(&self) -> Option<&'static str> {
        [
            ("signature", self.signature),
            ("event", self.event),
            ("sender", self.sender),
        ]
        .into_iter()
        .find_map(|(name, table)| table.map(|_| name))
    }
}

/// The sender that these tables describe.
///
/// # Errors
/// A sentence that names the key at fault and the form that is accepted.
pub(super) fn provider(kind: Kind, tables: &Tables<'_>) -> Result<Provider, String> {
    let signature = Keys::of("signature", tables.signature, SIGNATURE_KEYS)?;
    let event = Keys::of("event", tables.event, EVENT_KEYS)?;
    let sender = Keys::of("sender", tables.sender, SENDER_KEYS)?;
    let scheme = match kind {
        Kind::Hmac => scheme(&signature)?,
        Kind::Token => {
            signature.only(&["header"], "token compares one header and knows nothing else")?;
            Scheme::Token(Token {
                header: signature.required_header("header")?,
            })
        }
    };
    let signs_time = match scheme {
        Scheme::TimestampedList(_) => true,
        Scheme::SignedText(scheme) => scheme.timestamp.is_some(),
        _ => false,
    };
    Ok(Provider::custom(Description {
        kind,
        scheme,
        tolerance: if signs_time {
            Tolerance::Both(TOLERANCE)
        } else {
            Tolerance::Off
        },
        id: event.place("id")?,
        event_type: event.place("type")?,
        object: event.place("object")?,
        time: event.place("time")?,
        account: event.place("account")?,
        mode: event.place("mode")?,
        answer_budget: sender.duration("answer_budget")?.unwrap_or(ANSWER_BUDGET),
        retries: sender.switch("retries")?.unwrap_or(true),
        client_error_is_final: sender.switch("client_error_is_final")?.unwrap_or(false),
        refusal_status: sender
            .choice("refusal_status", &[("400", 400), ("401", 401)])?
            .unwrap_or(400),
    }))
}

const SIGNATURE_KEYS: &[&str] = &[
    "header",
    "prefix",
    "algorithm",
    "encoding",
    "key",
    "signed",
    "timestamp_header",
    "timestamp_unit",
    "item",
    "timestamp_item",
    "separator",
];
const EVENT_KEYS: &[&str] = &["id", "type", "object", "time", "account", "mode"];
const SENDER_KEYS: &[&str] = &[
    "answer_budget",
    "retries",
    "client_error_is_final",
    "refusal_status",
];

const ALGORITHMS: &[(&str, Algorithm)] = &[
    ("hmac-sha256", Algorithm::HmacSha256),
    ("hmac-sha1", Algorithm::HmacSha1),
    ("hmac-sha512", Algorithm::HmacSha512),
    ("ed25519", Algorithm::Ed25519),
    ("ecdsa-p256-sha256", Algorithm::EcdsaP256Sha256),
    ("rsa-pkcs1-sha256", Algorithm::RsaPkcs1Sha256),
];

fn scheme(signature: &Keys<'_>) -> Result<Scheme, String> {
    let header = signature.required_header("header")?;
    let template = signature.text("signed")?.unwrap_or("{body}");
    let written = read_template(template).map_err(|bad| signature.at("signed", &bad.to_string()))?;
    if let Some(item) = signature.text("item")? {
        return list(signature, header, item, &written);
    }
    signature.without(&["timestamp_item", "separator"], "goes with item")?;
    let prefix = signature.kept("prefix")?.unwrap_or("");
    let encoding = signature
        .choice(
            "encoding",
            &[("hex", Encoding::Hex), ("base64", Encoding::Base64)],
        )?
        .unwrap_or(Encoding::Hex);
    let algorithm = signature
        .choice("algorithm", ALGORITHMS)?
        .unwrap_or(Algorithm::HmacSha256);
    let parts: Vec<Part> = written.into_iter().map(part).collect();
    let timestamp = timestamp(signature, &parts)?;
    let key = key_form(signature, algorithm, &parts)?;
    if !parts
        .iter()
        .any(|part| *part != Part::Timestamp && !matches!(part, Part::Text(_)))
    {
        return Err(signature.at(
            "signed",
            "it names nothing of the request: a signature over fixed text protects nothing",
        ));
    }
    let usual = (algorithm, key) == (Algorithm::HmacSha256, KeyForm::Text) && timestamp.is_none();
    Ok(match &*parts {
        [Part::Body] if usual => Scheme::BodyDigest(BodyDigest {
            headers: vec![header].leak(),
            prefix,
            encoding,
        }),
        _ => Scheme::SignedText(SignedText {
            header,
            prefix,
            encoding,
            algorithm,
            key,
            timestamp,
            parts: parts.leak(),
        }),
    })
}

fn part(written: Written) -> Part {
    match written {
        Written::Text(text) => Part::Text(text.leak()),
        Written::Header(name) => Part::Header(name.leak()),
        Written::Part(part) => part,
    }
}

fn timestamp(signature: &Keys<'_>, parts: &[Part]) -> Result<Option<Timestamp>, String> {
    let header = signature.header("timestamp_header")?;
    let unit = signature.choice(
        "timestamp_unit",
        &[("s", Unit::Seconds), ("ms", Unit::Milliseconds)],
    )?;
    match (header, parts.contains(&Part::Timestamp)) {
        (Some(header), true) => Ok(Some(Timestamp {
            header,
            unit: unit.unwrap_or(Unit::Seconds),
        })),
        (Some(_), false) => Err(signature.at(
            "timestamp_header",
            "{timestamp} is not part of signed, and a time that is not signed can be changed by anybody",
        )),
        (None, true) => Err(signature.at(
            "signed",
            "{timestamp} needs timestamp_header, the header that it stands in",
        )),
        (None, false) => Ok(None),
    }
}

fn key_form(signature: &Keys<'_>, algorithm: Algorithm, parts: &[Part]) -> Result<KeyForm, String> {
    let forms = [
        ("text", KeyForm::Text),
        ("hex", KeyForm::Hex),
        ("base64", KeyForm::Base64),
    ];
    let wanted = signature.choice("key", &forms)?;
    let label = parts.contains(&Part::Label);
    match algorithm {
        Algorithm::HmacSha1 | Algorithm::HmacSha256 | Algorithm::HmacSha512 if label => Err(signature.at(
            "signed",
            "{label} goes with a public-key algorithm; write the text itself",
        )),
        Algorithm::HmacSha1 | Algorithm::HmacSha256 | Algorithm::HmacSha512 => {
            Ok(wanted.unwrap_or(KeyForm::Text))
        }
        Algorithm::Ed25519 | Algorithm::EcdsaP256Sha256 | Algorithm::RsaPkcs1Sha256 => {
            match (wanted, label) {
                (Some(_), _) => Err(signature.at("key", "a public key has its own form; leave it out")),
                (None, true) => Ok(KeyForm::LabelOrKeyPair),
                (None, false) => Ok(KeyForm::KeyPair),
            }
        }
    }
}

/// `t=…,v1=…`: time and signatures in one header.
fn list(
    signature: &Keys<'_>,
    header: &'static str,
    item: &str,
    written: &[Written],
) -> Result<Scheme, String> {
    let one_form =
        "with item the signature is an hmac-sha256 in hex with the secret's text as its key; leave it out";
    signature.without(
        &[
            "prefix",
            "algorithm",
            "encoding",
            "key",
            "timestamp_header",
            "timestamp_unit",
        ],
        one_form,
    )?;
    let byte = |text: &str| match text.as_bytes() {
        [byte] => Some(*byte),
        _ => None,
    };
    let joiner = match written {
        [
            Written::Part(Part::Timestamp),
            Written::Text(joiner),
            Written::Part(Part::Body),
        ] => byte(joiner),
        _ => None,
    };
    let separator = signature.text("separator")?.unwrap_or(",");
    Ok(Scheme::TimestampedList(TimestampedList {
        header,
        timestamp: signature.kept("timestamp_item")?.unwrap_or("t"),
        signature: item.to_owned().leak(),
        separator: byte(separator).ok_or_else(|| signature.at("separator", "expected one character"))?,
        joiner: joiner.ok_or_else(|| {
            signature.at(
                "signed",
                "with item it is {timestamp}, one character and {body}, e.g. {timestamp}.{body}",
            )
        })?,
    }))
}
