//! Redis Cluster: each command goes to the node that serves its key, and follows where that node sends it.
//!
//! ```text
//! map ──▶ node ── answers
//!           ├── MOVED ──▶ the slot's new node; the map is read anew in the background
//!           └── ASK ────▶ the node that the slot is moving to, `ASKING` before each command
//! ```
//!
//! All of it, the first reading of the map included, stays within the command's limit, and nothing waits for a node
//! that it does not need: a primary that hangs or dies takes only its own keys with it. A command is sent again
//! after a redirection, which says that it had no effect, and after a dropped connection, which does not; the answer
//! then says so. Clients of the library resend without telling, and send `ASKING` once for several commands, which
//! fails each claim in a slot that is moving.

mod asking;
mod node;
mod slots;
mod topology;

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;
use redis::{ConnectionInfo, Pipeline};

use self::asking::{asking_each, without_asking};
use self::node::Node;
use self::slots::{Address, slot_of};
use self::topology::Topology;
use super::answer::{Answer, Failure, Redirection};
use super::lanes::Deadline;

/// How often a command is sent on at most: its slot has moved, moves on, and has arrived meanwhile.
const HOPS_MAX: usize = 4;

/// The cluster as this process sees it.
pub(super) struct Cluster {
    topology: Arc<Topology>,
    limit: Duration,
}

impl Cluster {
    pub(super) fn new(seeds: Vec<ConnectionInfo>, connections: usize, limit: Duration) -> Self {
        Self {
            topology: Arc::new(Topology::new(seeds, connections, limit)),
            limit,
        }
    }

    /// Sends all commands, which are about `key`, in one write to whoever serves it.
    pub(super) async fn send(&self, key: &str, commands: &Pipeline) -> Result<Answer, Failure> {
        let deadline = Deadline::after(self.limit);
        let mut node = self.topology.owner(slot_of(key.as_bytes()), deadline).await?;
        let (mut asking, mut resent) = (false, false);
        for _ in 0..=HOPS_MAX {
            let sent = self.send_to(&node, commands, asking, deadline).await;
            let answer = sent.map_err(|failure| if resent { failure.after_another() } else { failure })?;
            resent |= answer.resent;
            let next = answer.redirection().and_then(|to| self.follow(to, &node));
            let Some((to, ask)) = next else {
                let in_part = answer.is_refusal() && self.has_others_than(&node);
                return Ok(Answer {
                    resent,
                    in_part,
                    ..answer
                });
            };
            resent |= answer.is_applied_in_part();
            (node, asking) = (to, ask);
        }
        let failure = Failure::Refused("the cluster sends the command on without end".into());
        Err(if resent { failure.after_another() } else { failure })
    }

    /// What each node answers to a command without a key.
    pub(super) async fn send_to_all(&self, commands: &Pipeline) -> Vec<Result<Answer, Failure>> {
        let deadline = Deadline::after(self.limit);
        if let Err(failure) = self.topology.owner(0, deadline).await {
            return vec![Err(failure)];
        }
        let nodes = self.topology.owners();
        // All at once: one that hangs must not use up the time of the others.
        join_all(nodes.iter().map(|node| node.send(commands, deadline))).await
    }

    /// Lets all connections and tasks end and makes no more.
    pub(super) fn close(&self) {
        self.topology.close();
    }

    /// Sends to one node, unless it is known to be away.
    async fn send_to(
        &self,
        node: &Arc<Node>,
        commands: &Pipeline,
        asking: bool,
        deadline: Deadline,
    ) -> Result<Answer, Failure> {
        if node.is_away() {
            return Err(self.in_part(node, Failure::Unsent("a node is away".into())));
        }
        let sent = match asking {
            false => node.send(commands, deadline).await,
            true => node
                .send(&asking_each(commands), deadline)
                .await
                .map(without_asking),
        };
        match sent {
            Ok(answer) => {
                if answer.is_of_a_cluster_down() {
                    self.topology.refresh_soon(None);
                }
                Ok(answer)
            }
            Err(failure) => {
                if node.is_found_away() {
                    self.topology.watch(node);
                }
                self.topology.refresh_soon(None);
                Err(self.in_part(node, failure))
            }
        }
    }

    /// The node that a command is sent on to, and whether it has to ask there.
    fn follow(&self, to: Redirection<'_>, answered: &Node) -> Option<(Arc<Node>, bool)> {
        match to {
            Redirection::Moved(place) => {
                let node = self.topology.node(&Address::parse(place, &answered.address)?)?;
                self.topology.refresh_soon(Some(Arc::clone(&node)));
                Some((node, false))
            }
            Redirection::Ask(place) => Some((
                self.topology.node(&Address::parse(place, &answered.address)?)?,
                true,
            )),
        }
    }

    /// A failure of one node is the whole cluster's only if no other is left.
    fn in_part(&self, failed: &Arc<Node>, failure: Failure) -> Failure {
        match self.has_others_than(failed) {
            true => Failure::InPart(Box::new(failure)),
            false => failure,
        }
    }

    /// Whether any other node serves what it is asked.
    fn has_others_than(&self, failed: &Arc<Node>) -> bool {
        let others = self.topology.owners();
        let mut others = others.iter().filter(|node| !Arc::ptr_eq(node, failed));
        others.any(|node| node.is_well())
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        self.close();
    }
}
