//! The right to settle an event that was pulled, as opaque text. What makes it one is the owner that the
//! ledger drew at random: whoever changes a lease has none.

use hookgate_ledger::{DeliveryId, Job, Lease};

use crate::view::sealed;

const PURPOSE: u8 = b'l';

/// A pulled event in the hands of its consumer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Pulled {
    /// The right to settle it.
    pub(super) lease: Lease,
    /// Tries used up, with this one.
    pub(super) tries: u32,
}

/// The lease of a job as text.
pub(super) fn write(job: &Job) -> String {
    let Lease {
        key,
        owner,
        attempt,
        generation,
    } = &job.lease;
    let mut numbers = owner.0.to_be_bytes().to_vec();
    for number in [*attempt, *generation, job.tries] {
        numbers.extend(number.to_be_bytes());
    }
    sealed::seal(PURPOSE, &numbers, key)
}

/// The lease that a text is; `None` if it is none.
pub(super) fn read(text: &str) -> Option<Pulled> {
    let (numbers, key) = sealed::open::<28>(PURPOSE, text)?;
    let (owner, rest) = numbers.split_first_chunk()?;
    let [attempt, generation, tries] = rest.as_chunks().0 else {
        return None;
    };
    Some(Pulled {
        lease: Lease {
            key,
            owner: DeliveryId(u128::from_be_bytes(*owner)),
            attempt: u32::from_be_bytes(*attempt),
            generation: u32::from_be_bytes(*generation),
        },
        tries: u32::from_be_bytes(*tries),
    })
}

#[cfg(test)]
mod tests {
    use hookgate_webhook::{EventId, EventKey, SourceName};

    use super::*;

    #[test]
    fn a_lease_comes_back_exactly() {
        let lease = Lease {
            key: EventKey {
                source: SourceName::parse("stripe").unwrap(),
                id: EventId::parse("a/b 😀").unwrap(),
            },
            owner: DeliveryId(u128::MAX - 7),
            attempt: 3,
            generation: u32::MAX,
        };
        let job = Job {
            lease: lease.clone(),
            provider: "stripe".to_owned(),
            event_type: None,
            tries: 2,
            headers: Vec::new(),
            body: bytes::Bytes::new(),
        };
        assert_eq!(read(&write(&job)), Some(Pulled { lease, tries: 2 }));
        assert_eq!(read(""), None);
    }
}
