//! The same signature, spelt in another way: which bytes a header's value may mean, and how its provider would have
//! written them.

use base64::Engine;
use base64::engine::general_purpose::{STANDARD, STANDARD_NO_PAD, URL_SAFE, URL_SAFE_NO_PAD};
use hookgate_signature::{Encoding, Scheme};

use super::hex;

/// How a signature is spelt that its provider spells otherwise.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Spelling {
    /// In capital hexadecimal digits.
    Capitals,
    /// In hexadecimal, where base64 is expected.
    Hex,
    /// In base64, where hexadecimal is expected.
    Base64,
    /// In base64 with the letters of URLs, or without padding.
    UrlBase64,
    /// With another prefix or key, or without it.
    Prefix,
    /// With spaces or quotation marks.
    Decorated,
    /// Twice in one header.
    Merged,
}

/// A piece of a header's value that may be a signature.
pub(super) struct Piece<'a> {
    pub(super) text: &'a str,
    pub(super) bytes: Vec<u8>,
    spelling: Spelling,
}

/// Lengths of the signatures that are read here: HMAC with SHA-1, SHA-256 and SHA-512, and Ed25519.
const LENGTHS: [usize; 3] = [20, 32, 64];

/// The most pieces that are looked at.
const PIECES_MAX: usize = 8;

/// The pieces of a value.
pub(super) fn pieces(value: &str) -> impl Iterator<Item = Piece<'_>> {
    let items = value.split([',', ';', ' ', '\t', '"', '\'']);
    let items = items.flat_map(|item| {
        let after_key = item.split_once('=').map(|(_, rest)| rest);
        [
            Some(item),
            after_key.filter(|rest| !rest.trim_matches('=').is_empty()),
        ]
    });
    items.flatten().filter_map(piece).take(PIECES_MAX)
}

fn piece(text: &str) -> Option<Piece<'_>> {
    let fits = |bytes: &Vec<u8>| LENGTHS.contains(&bytes.len());
    if let Some(bytes) = unhex(text.as_bytes()).filter(fits) {
        let capitals = text.bytes().any(|byte| byte.is_ascii_uppercase());
        let spelling = if capitals {
            Spelling::Capitals
        } else {
            Spelling::Hex
        };
        return Some(Piece {
            text,
            bytes,
            spelling,
        });
    }
    let standard = STANDARD.decode(text).ok().filter(fits);
    let others = [STANDARD_NO_PAD, URL_SAFE, URL_SAFE_NO_PAD];
    let other = || {
        others
            .iter()
            .find_map(|engine| engine.decode(text).ok().filter(fits))
    };
    let (bytes, spelling) = match standard {
        Some(bytes) => (bytes, Spelling::Base64),
        None => (other()?, Spelling::UrlBase64),
    };
    Some(Piece {
        text,
        bytes,
        spelling,
    })
}

/// Other values for the header of the scheme, each with what was wrong with the one that is there.
pub(super) fn respelt(scheme: &Scheme, value: &str) -> Vec<(Spelling, String)> {
    let mut others = vec![(
        Spelling::Decorated,
        value.trim_matches(['"', '\'', ' ']).to_owned(),
    )];
    if !matches!(scheme, Scheme::StandardWebhooks(_)) {
        others.push((Spelling::Decorated, value.replace([' ', '"', '\''], "")));
    }
    let merged = value.contains(',');
    for piece in pieces(value) {
        for &encoding in encodings(scheme) {
            let written = written(encoding, &piece.bytes);
            let spelling = match (piece.spelling, encoding) {
                (Spelling::Hex, Encoding::Hex) | (Spelling::Base64, Encoding::Base64) => Spelling::Prefix,
                (Spelling::Capitals, Encoding::Base64) => Spelling::Hex,
                (Spelling::UrlBase64, Encoding::Hex) => Spelling::Base64,
                (spelling, _) => spelling,
            };
            others.push((spelling, value.replacen(piece.text, &written, 1)));
            if let Some(whole) = whole(scheme, value, &written) {
                let twice = merged && spelling == Spelling::Prefix && one_signature(scheme);
                others.push((if twice { Spelling::Merged } else { spelling }, whole));
            }
        }
    }
    others.retain(|(_, other)| other != value);
    others
}

/// The whole value, as the provider writes it.
fn whole(scheme: &Scheme, value: &str, written: &str) -> Option<String> {
    match scheme {
        Scheme::BodyDigest(scheme) => Some(format!("{}{written}", scheme.prefix)),
        Scheme::SignedText(scheme) => Some(format!("{}{written}", scheme.prefix)),
        Scheme::StandardWebhooks(_) => Some(format!("v1,{written}")),
        Scheme::TimestampedList(scheme) => {
            let mut numbers = value.split(|char: char| !char.is_ascii_alphanumeric());
            let time = numbers.find(|text| {
                (9..=13).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_digit())
            })?;
            let (t, v, separator) = (scheme.timestamp, scheme.signature, char::from(scheme.separator));
            Some(format!("{t}={time}{separator}{v}={written}"))
        }
        Scheme::Detached(_) | Scheme::Token(_) => None,
    }
}

fn one_signature(scheme: &Scheme) -> bool {
    matches!(scheme, Scheme::BodyDigest(_) | Scheme::SignedText(_))
}

fn encodings(scheme: &Scheme) -> &'static [Encoding] {
    const HEX: &[Encoding] = &[Encoding::Hex];
    const BASE64: &[Encoding] = &[Encoding::Base64];
    match (scheme, encoding(scheme)) {
        (Scheme::Token(_), _) => &[],
        (_, Some(Encoding::Hex)) => HEX,
        (_, Some(Encoding::Base64)) => BASE64,
        (_, None) => &[Encoding::Hex, Encoding::Base64],
    }
}

/// How signatures of the scheme are written, where one way is known.
pub(super) fn encoding(scheme: &Scheme) -> Option<Encoding> {
    match scheme {
        Scheme::TimestampedList(_) => Some(Encoding::Hex),
        Scheme::StandardWebhooks(_) => Some(Encoding::Base64),
        Scheme::BodyDigest(scheme) => Some(scheme.encoding),
        Scheme::SignedText(scheme) => Some(scheme.encoding),
        Scheme::Detached(_) | Scheme::Token(_) => None,
    }
}

fn written(encoding: Encoding, bytes: &[u8]) -> String {
    match encoding {
        Encoding::Hex => hex(bytes),
        Encoding::Base64 => STANDARD.encode(bytes),
    }
}

/// Hexadecimal in either case.
pub(super) fn unhex(text: &[u8]) -> Option<Vec<u8>> {
    let (pairs, []) = text.as_chunks::<2>() else {
        return None;
    };
    let digit = |byte: u8| char::from(byte).to_digit(16);
    let byte = |[high, low]: &[u8; 2]| u8::try_from(digit(*high)? * 16 + digit(*low)?).ok();
    pairs.iter().map(byte).collect()
}
