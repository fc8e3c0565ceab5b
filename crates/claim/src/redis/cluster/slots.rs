//! Which node serves which key, as far as is known here: the slot of a key, and a map of slots that may be stale.

use std::sync::Arc;

use redis::Value as Reply;

use super::node::Node;

/// How many slots a cluster has.
const SLOTS: u16 = 16_384;

/// Where a node listens.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Address {
    pub(super) host: String,
    pub(super) port: u16,
}

impl Address {
    /// From `host:port` as a redirection names it. A host that is left out is that of whoever answered.
    pub(super) fn parse(text: &str, answered: &Address) -> Option<Self> {
        let (host, port) = text.rsplit_once(':')?;
        Self::of(host, port.parse().ok()?, answered)
    }

    fn of(host: &str, port: u16, answered: &Address) -> Option<Self> {
        let host = match host {
            "?" => return None,
            "" => &answered.host,
            host => host,
        };
        Some(Self {
            host: host.to_owned(),
            port,
        })
    }
}

/// The slot of a key: of what stands between its first braces, if there is something.
pub(super) fn slot_of(key: &[u8]) -> u16 {
    crc16(tag(key).unwrap_or(key)) % SLOTS
}

fn tag(key: &[u8]) -> Option<&[u8]> {
    let (_, rest) = key.split_at_checked(key.iter().position(|&byte| byte == b'{')? + 1)?;
    let tag = &rest[..rest.iter().position(|&byte| byte == b'}')?];
    (!tag.is_empty()).then_some(tag)
}

/// CRC-16/XMODEM, which the cluster's specification names.
fn crc16(bytes: &[u8]) -> u16 {
    const POLYNOMIAL: u16 = 0x1021;
    bytes.iter().fold(0, |crc, &byte| {
        (0..8).fold(crc ^ (u16::from(byte) << 8), |crc, _| match crc & 0x8000 {
            0 => crc << 1,
            _ => (crc << 1) ^ POLYNOMIAL,
        })
    })
}

/// A run of slots and the primary that serves them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Range {
    first: u16,
    last: u16,
    pub(super) owner: Address,
}

/// Reads the answer to `CLUSTER SLOTS`. `None` if nothing in it can be used: a node that has just been reset serves
/// nothing and knows nobody.
pub(super) fn parse(reply: &Reply, answered: &Address) -> Option<Vec<Range>> {
    let Reply::Array(items) = reply else { return None };
    let ranges: Vec<_> = items.iter().filter_map(|item| range(item, answered)).collect();
    (!ranges.is_empty()).then_some(ranges)
}

fn range(item: &Reply, answered: &Address) -> Option<Range> {
    let Reply::Array(item) = item else { return None };
    let [Reply::Int(first), Reply::Int(last), Reply::Array(owner), ..] = item.as_slice() else {
        return None;
    };
    let [host, Reply::Int(port), ..] = owner.as_slice() else {
        return None;
    };
    let host = match host {
        Reply::BulkString(host) => str::from_utf8(host).ok()?,
        Reply::SimpleString(host) => host,
        Reply::Nil => "",
        _ => return None,
    };
    Some(Range {
        first: u16::try_from(*first).ok()?,
        last: u16::try_from(*last).ok()?,
        owner: Address::of(host, u16::try_from(*port).ok()?, answered)?,
    })
}

/// The map: ranges with their nodes.
#[derive(Default)]
pub(super) struct Slots {
    ranges: Vec<(Range, Arc<Node>)>,
}

impl Slots {
    pub(super) fn new(ranges: Vec<Range>, node: impl Fn(&Address) -> Option<Arc<Node>>) -> Self {
        let ranges = ranges.into_iter();
        let with_nodes = ranges.filter_map(|range| Some((node(&range.owner)?, range)));
        Self {
            ranges: with_nodes.map(|(node, range)| (range, node)).collect(),
        }
    }

    /// Whether nothing is known.
    pub(super) fn is_empty(&self) -> bool {
        self.ranges.is_empty()
    }

    /// Who serves the slot.
    pub(super) fn owner(&self, slot: u16) -> Option<&Arc<Node>> {
        let mut ranges = self.ranges.iter();
        let found = ranges.find(|(range, _)| (range.first..=range.last).contains(&slot));
        found.map(|(_, node)| node)
    }

    /// Every node that serves something; one that serves several ranges more than once.
    pub(super) fn owners(&self) -> impl Iterator<Item = &Arc<Node>> {
        self.ranges.iter().map(|(_, node)| node)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn here() -> Address {
        Address {
            host: "here".into(),
            port: 1,
        }
    }

    #[test]
    fn keys_fall_into_the_slots_of_the_specification() {
        for (key, slot) in [
            ("", 0),
            ("123456789", 0x31c3),
            ("webhook:stripe:evt_1", 4_896),
            ("foo{hash_tag}", 2_515),
            ("bar{hash_tag}", 2_515),
            ("{foo}{bar}", 12_182),
            ("x{a}{b}", 15_495),
            // Nothing between the first braces, or no end to it: the whole key counts.
            ("a{}{foo}", 700),
            ("a{foo", 113),
        ] {
            assert_eq!(slot_of(key.as_bytes()), slot, "{key}");
        }
    }

    #[test]
    fn a_redirection_names_a_place_or_the_same_host() {
        let parsed = |text: &str| Address::parse(text, &here()).map(|to| (to.host, to.port));
        assert_eq!(parsed("10.0.0.1:6379"), Some(("10.0.0.1".into(), 6379)));
        assert_eq!(parsed("::1:6379"), Some(("::1".into(), 6379)));
        assert_eq!(parsed(":6379"), Some(("here".into(), 6379)));
        for nowhere in ["", "?:6379", "host", "host:", "host:99999"] {
            assert_eq!(parsed(nowhere), None, "{nowhere}");
        }
    }

    #[test]
    fn a_map_is_read_as_far_as_it_makes_sense() {
        let text = |text: &str| Reply::BulkString(text.into());
        let node = |host: Reply, port| Reply::Array(vec![host, Reply::Int(port), text("id")]);
        let range = |first, last, owner| Reply::Array(vec![Reply::Int(first), Reply::Int(last), owner]);
        let reply = Reply::Array(vec![
            range(0, 10, node(text("a"), 7000)),
            range(11, 20, node(Reply::Nil, 7001)),
            range(21, 30, node(text("?"), 7002)),
            range(-1, 99_999, node(text("b"), 7003)),
            Reply::Int(3),
        ]);
        let ranges = parse(&reply, &here()).unwrap();
        let owners: Vec<_> = ranges
            .iter()
            .map(|range| (range.first, &*range.owner.host))
            .collect();
        assert_eq!(owners, [(0, "a"), (11, "here")]);
        assert_eq!(parse(&Reply::Array(Vec::new()), &here()), None);
        assert_eq!(parse(&Reply::Nil, &here()), None);
    }
}
