//! One node of a cluster, and whether it is worth asking.
//!
//! A node that fails a few times in a row is away: whoever needs it is told at once, and a task in the background
//! finds out when it answers again. So a lost primary costs a few requests their limit, and no other keys anything.

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use redis::Pipeline;

use super::slots::Address;
use crate::redis::answer::{Answer, Failure};
use crate::redis::connection::Source;
use crate::redis::lanes::{Deadline, Lanes};

/// Failures in a row after which a node is away: one may be an accident of the network, three are a state.
const FAILURES_MAX: u32 = 3;

/// A node and the connections to it.
pub(in crate::redis) struct Node {
    pub(super) address: Address,
    lanes: Lanes,
    failures: AtomicU32,
    away: AtomicBool,
    /// Its last answer refused a command for reasons of its own.
    refuses: AtomicBool,
}

impl Node {
    pub(super) fn new(address: Address, source: Source, connections: usize) -> Self {
        Self {
            address,
            lanes: Lanes::new(source, connections),
            failures: AtomicU32::new(0),
            away: AtomicBool::new(false),
            refuses: AtomicBool::new(false),
        }
    }

    /// Whether it serves what it is asked, as far as is known.
    pub(super) fn is_well(&self) -> bool {
        !self.is_away() && !self.refuses.load(Ordering::Acquire)
    }

    pub(super) fn is_away(&self) -> bool {
        self.away.load(Ordering::Acquire)
    }

    /// Whether its last answer is missing.
    pub(super) fn has_failed(&self) -> bool {
        self.failures.load(Ordering::Acquire) > 0
    }

    /// Sends, also to a node that is away, and learns from the outcome whether it is.
    pub(super) async fn send(&self, commands: &Pipeline, deadline: Deadline) -> Result<Answer, Failure> {
        let answer = self.lanes.send(commands, deadline).await;
        match &answer {
            Ok(answer) => {
                self.failures.store(0, Ordering::Release);
                self.away.store(false, Ordering::Release);
                self.refuses.store(answer.is_refusal(), Ordering::Release);
            }
            Err(_) => {
                self.failures.fetch_add(1, Ordering::AcqRel);
            }
        }
        answer
    }

    /// True for the one caller who finds that it has failed often enough: it starts the watch.
    pub(super) fn is_found_away(&self) -> bool {
        let failures = self.failures.load(Ordering::Acquire);
        failures >= FAILURES_MAX && !self.away.swap(true, Ordering::AcqRel)
    }

    pub(super) fn close(&self) {
        self.lanes.close();
    }
}
