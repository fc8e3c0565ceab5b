//! A scheme in the words of the documentation: where the signature stands, what it is, what it covers, what the key is.

use crate::scheme::{Part, Scheme, SignedText, Unit};
use crate::{Algorithm, Encoding, KeyForm};

/// A scheme in words; Markdown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Described {
    /// The header or headers, with the form of their value.
    pub header: String,
    /// What is signed; empty for a token.
    pub signed: String,
    /// How: the algorithm and how its result is written.
    pub signature: String,
    /// What the secret has to be.
    pub key: &'static str,
}

impl Scheme {
    /// Describes the scheme.
    pub fn describe(&self) -> Described {
        let hmac = |encoding: Encoding| format!("{}, {}", Algorithm::HmacSha256.title(), encoding.title());
        match self {
            Self::TimestampedList(scheme) => {
                let (t, v, separator) = (scheme.timestamp, scheme.signature, char::from(scheme.separator));
                Described {
                    header: format!("`{}: {t}=…{separator}{v}=…`", scheme.header),
                    signed: format!("`{t}`, `{}`, body", char::from(scheme.joiner)),
                    signature: hmac(Encoding::Hex),
                    key: KeyForm::Text.describe(),
                }
            }
            Self::BodyDigest(scheme) => Described {
                header: format!("`{}: {}…`", scheme.headers.join("`, `"), scheme.prefix),
                signed: "body".to_owned(),
                signature: hmac(scheme.encoding),
                key: KeyForm::Text.describe(),
            },
            Self::StandardWebhooks(scheme) => Described {
                header: format!(
                    "`{}: v1,… v1a,…`, `{}`, `{}`",
                    scheme.signature, scheme.id, scheme.timestamp
                ),
                signed: "id, `.`, timestamp, `.`, body".to_owned(),
                signature: "HMAC-SHA256 (`v1`) or Ed25519 (`v1a`), base64".to_owned(),
                key: KeyForm::StandardWebhooks.describe(),
            },
            Self::SignedText(scheme) => scheme.describe(),
            Self::Detached(scheme) => Described {
                header: format!("`{}`", scheme.header),
                signed: scheme.signs.to_owned(),
                signature: titles(scheme.algorithms),
                key: scheme.key.describe(),
            },
            Self::Token(scheme) => Described {
                header: format!("`{}: <token>`", scheme.header),
                signed: String::new(),
                signature: "static text, compared".to_owned(),
                key: "the whole value of the header",
            },
        }
    }
}

fn titles(algorithms: &[Algorithm]) -> String {
    let titles: Vec<_> = algorithms.iter().map(|algorithm| algorithm.title()).collect();
    titles.join(" or ")
}

impl SignedText {
    fn describe(&self) -> Described {
        let part = |part: &Part| {
            let written = match part {
                Part::Text(text) => format!("`{text}`"),
                Part::Timestamp => match self.timestamp.map(|timestamp| (timestamp.header, timestamp.unit)) {
                    Some((header, Unit::Seconds)) => format!("`{header}`"),
                    Some((header, Unit::Milliseconds)) => format!("`{header}` (ms)"),
                    None => "timestamp".to_owned(),
                },
                Part::Body => "body".to_owned(),
                Part::BodyCrc32 => "CRC-32 of the body in decimal".to_owned(),
                Part::Url => "URL".to_owned(),
                Part::Method => "method".to_owned(),
                Part::Header(name) => format!("`{name}`"),
                Part::Label => "label".to_owned(),
                // Asked for and not signed.
                Part::Demand(..) => return None,
            };
            Some(written)
        };
        Described {
            header: format!("`{}: {}…`", self.header, self.prefix),
            signed: self.parts.iter().filter_map(part).collect::<Vec<_>>().join(", "),
            signature: format!("{}, {}", self.algorithm.title(), self.encoding.title()),
            key: self.key.describe(),
        }
    }
}

impl KeyForm {
    fn describe(self) -> &'static str {
        match self {
            Self::Text => "the secret's text",
            Self::Hex => "the bytes that the secret writes in hex",
            Self::Base64 => "the bytes that the secret writes in base64",
            Self::StandardWebhooks => "the bytes in base64 after `whsec_`; a public key after `whpk_`",
            Self::KeyPair => "the sender's public key: PEM, base64 of its DER, or hex for Ed25519",
            Self::LabelOrKeyPair => {
                "a label that the sender knows, and its public key unless its certificate names it"
            }
        }
    }
}
