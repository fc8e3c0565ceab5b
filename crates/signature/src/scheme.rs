//! The shapes that webhook signatures come in. A provider names one and fills in its details; the
//! arithmetic stands here once.

/// A signature scheme.
#[derive(Debug, Clone, Copy)]
pub enum Scheme {
    /// `t=…,v1=…[,v1=…]`: timestamp and signatures in one header.
    TimestampedList(TimestampedList),
    /// One digest over the body in one header.
    BodyDigest(BodyDigest),
    /// Standard Webhooks: id, timestamp and a list of versioned signatures in three headers.
    StandardWebhooks(StandardWebhooks),
}

/// `t=…,v1=…[,v1=…]` in one header; signed is the timestamp's text, a joiner, the body.
#[derive(Debug, Clone, Copy)]
pub struct TimestampedList {
    /// Header name.
    pub header: &'static str,
    /// Key of the timestamp item, e.g. `t`.
    pub timestamp: &'static str,
    /// Key of the signature items, e.g. `v1`. Other keys are ignored.
    pub signature: &'static str,
    /// Byte between items, e.g. `,`.
    pub separator: u8,
    /// Byte between timestamp and body in the signed text, e.g. `.`.
    pub joiner: u8,
}

/// One HMAC-SHA256 digest of the body.
#[derive(Debug, Clone, Copy)]
pub struct BodyDigest {
    /// Accepted header names, first the current one.
    pub headers: &'static [&'static str],
    /// Text before the digest, e.g. `sha256=`.
    pub prefix: &'static str,
    /// How the digest is written.
    pub encoding: Encoding,
}

/// How a digest is written in a header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Encoding {
    /// Lower-case hexadecimal.
    Hex,
    /// Standard base64 with padding.
    Base64,
}

/// Standard Webhooks 1.0.0: `<prefix>-id`, `<prefix>-timestamp`, `<prefix>-signature`.
#[derive(Debug, Clone, Copy)]
pub struct StandardWebhooks {
    /// Header of the message id.
    pub id: &'static str,
    /// Header of the timestamp, unix seconds.
    pub timestamp: &'static str,
    /// Header of the signatures.
    pub signature: &'static str,
}
