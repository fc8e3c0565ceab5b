//! What is known of a cluster: its nodes, which of them serves which slots, and which are away.
//!
//! The map of slots is read from any node that has one, first of all when the first command needs it, later in the
//! background when a command was redirected or failed. A node that is away is looked at until it answers or the
//! cluster does without it.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use arc_swap::ArcSwap;
use redis::{ConnectionAddr, ConnectionInfo, Pipeline, Value as Reply};
use tokio::runtime::Handle;
use tokio::sync::watch;
use tokio::time::{sleep, timeout};

use super::node::Node;
use super::slots::{Address, Slots, parse};
use crate::redis::answer::{Answer, Failure};
use crate::redis::connection::Source;
use crate::redis::lanes::{Deadline, closed};

/// Pause after each reading of the map, so that a crowd of redirected commands does not read it all the time.
const REFRESH_PAUSE: Duration = Duration::from_millis(50);

/// Pause between two looks at a node that is away.
const WATCH_INTERVAL: Duration = Duration::from_millis(250);

/// Nodes, slots, and the tasks that keep both true.
pub(super) struct Topology {
    /// The nodes that the operator named; they differ in nothing but their address.
    seeds: Vec<ConnectionInfo>,
    connections: usize,
    limit: Duration,
    slots: ArcSwap<Slots>,
    /// All nodes with connections, also those that serve nothing.
    nodes: Mutex<HashMap<Address, Arc<Node>>>,
    /// Held while the first map is read, so that a crowd reads it once.
    reading: Arc<tokio::sync::Mutex<()>>,
    refreshing: AtomicBool,
    closed: watch::Sender<bool>,
    runtime: Option<Handle>,
}

impl Topology {
    pub(super) fn new(seeds: Vec<ConnectionInfo>, connections: usize, limit: Duration) -> Self {
        Self {
            seeds,
            connections,
            limit,
            slots: ArcSwap::default(),
            nodes: Mutex::default(),
            reading: Arc::default(),
            refreshing: AtomicBool::new(false),
            closed: watch::Sender::new(false),
            runtime: Handle::try_current().ok(),
        }
    }

    /// Who serves the slot, as far as is known. The first command of all reads the map.
    pub(super) async fn owner(self: &Arc<Self>, slot: u16, deadline: Deadline) -> Result<Arc<Node>, Failure> {
        if *self.closed.borrow() {
            return Err(closed());
        }
        if self.slots.load().is_empty() {
            let read = deadline.bound(self.read_first()).await;
            read.unwrap_or_else(|_| Err(deadline.unsent()))?;
        }
        let owner = self.slots.load().owner(slot).map(Arc::clone);
        owner.ok_or_else(|| {
            self.refresh_soon(None);
            Failure::InPart(Box::new(Failure::Unsent("no node serves the key's slot".into())))
        })
    }

    /// Reads the map in the background, first from the node that is likely to know.
    pub(super) fn refresh_soon(self: &Arc<Self>, first: Option<Arc<Node>>) {
        if self.refreshing.swap(true, Ordering::AcqRel) {
            return;
        }
        let topology = Arc::downgrade(self);
        self.runtime().spawn(async move {
            if let Some(topology) = topology.upgrade() {
                let _ = topology.read(first).await;
            }
            sleep(REFRESH_PAUSE).await;
            if let Some(topology) = topology.upgrade() {
                topology.refreshing.store(false, Ordering::Release);
            }
        });
    }

    /// Reads the first map, unless somebody has just done so. Goes on although the command that needs it has given
    /// up: the next one finds it read.
    async fn read_first(self: &Arc<Self>) -> Result<(), Failure> {
        let turn = Arc::clone(&self.reading).lock_owned().await;
        if !self.slots.load().is_empty() {
            return Ok(());
        }
        let topology = Arc::clone(self);
        let reading = self.runtime().spawn(async move {
            let _turn = turn;
            topology.read(None).await
        });
        let aborted = |_| Err(Failure::Unsent("reading the cluster's map was aborted".into()));
        reading.await.unwrap_or_else(aborted)
    }

    /// Asks one node after the other for the map until one has it, whoever is away last.
    async fn read(self: &Arc<Self>, first: Option<Arc<Node>>) -> Result<(), Failure> {
        let commands = slots_command();
        let mut last = Failure::Unsent("there is no node to ask".into());
        for node in self.worth_asking(first) {
            if *self.closed.borrow() {
                return Err(closed());
            }
            match node.send(&commands, Deadline::after(self.limit)).await {
                Ok(answer) => match self.learn(answer, &node) {
                    Ok(()) => return Ok(()),
                    Err(failure) => last = failure,
                },
                Err(failure) => last = failure,
            }
        }
        Err(last)
    }

    /// In what order nodes are asked for the map: who has failed comes last, and else nobody always first. One
    /// that is cut off from the others would tell its old map for ever.
    fn worth_asking(&self, first: Option<Arc<Node>>) -> Vec<Arc<Node>> {
        let seeds = self.seeds.iter().filter_map(|seed| self.node(&address_of(seed)?));
        let mut nodes: Vec<Arc<Node>> = first.into_iter().collect();
        let mut owners = self.owners();
        let turn = rand::random_range(0..owners.len().max(1));
        owners.rotate_left(turn);
        for node in owners.into_iter().chain(seeds) {
            if !nodes.iter().any(|other| Arc::ptr_eq(other, &node)) {
                nodes.push(node);
            }
        }
        nodes.sort_by_key(|node| node.has_failed());
        nodes
    }

    /// Takes what a node says about the slots for the map, and lets go of nodes that are in it no more.
    fn learn(&self, answer: Answer, answered: &Node) -> Result<(), Failure> {
        let ranges = match answer.replies.as_slice() {
            [reply @ Reply::Array(_)] => parse(reply, &answered.address),
            _ => return Err(answer.refusal()),
        };
        let ranges =
            ranges.ok_or_else(|| Failure::Refused("a node serves no slots and knows none".into()))?;
        let slots = Arc::new(Slots::new(ranges, |address| self.node(address)));
        self.slots.store(Arc::clone(&slots));
        let mut nodes = self.nodes();
        nodes.retain(|_, node| slots.owners().any(|owner| Arc::ptr_eq(owner, node)));
        Ok(())
    }

    /// Looks at a node that is away until it answers, the cluster does without it, or the store is closed.
    pub(super) fn watch(self: &Arc<Self>, node: &Arc<Node>) {
        let (topology, node, mut closed) = (
            Arc::downgrade(self),
            Arc::downgrade(node),
            self.closed.subscribe(),
        );
        self.runtime().spawn(async move {
            while timeout(WATCH_INTERVAL, closed.wait_for(|closed| *closed))
                .await
                .is_err()
            {
                if !Self::look_at(&topology, &node).await {
                    return;
                }
            }
        });
    }

    /// Whether the node has to be looked at again.
    async fn look_at(topology: &Weak<Self>, node: &Weak<Node>) -> bool {
        let (Some(topology), Some(node)) = (topology.upgrade(), node.upgrade()) else {
            return false;
        };
        let _ = topology.read(None).await;
        if !topology.owners().iter().any(|owner| Arc::ptr_eq(owner, &node)) {
            return false;
        }
        let _ = node.send(&slots_command(), Deadline::after(topology.limit)).await;
        node.is_away()
    }

    /// Lets all connections and tasks end and makes no more.
    pub(super) fn close(&self) {
        self.closed.send_replace(true);
        for node in self.nodes().values() {
            node.close();
        }
    }

    /// The node at this address, with connections of its own.
    pub(super) fn node(&self, address: &Address) -> Option<Arc<Node>> {
        let mut nodes = self.nodes();
        if let Some(node) = nodes.get(address) {
            return Some(Arc::clone(node));
        }
        let info = self.seeds.first()?.clone();
        let place = at(info.addr(), address)?;
        if *self.closed.borrow() {
            return None;
        }
        let source = Source::of_node(info.set_addr(place));
        let node = Arc::new(Node::new(address.clone(), source, self.connections));
        nodes.insert(address.clone(), Arc::clone(&node));
        Some(node)
    }

    /// All that serve slots, each once.
    pub(super) fn owners(&self) -> Vec<Arc<Node>> {
        let slots = self.slots.load();
        let mut owners: Vec<Arc<Node>> = Vec::new();
        for node in slots.owners() {
            if !owners.iter().any(|other| Arc::ptr_eq(other, node)) {
                owners.push(Arc::clone(node));
            }
        }
        owners
    }

    fn nodes(&self) -> MutexGuard<'_, HashMap<Address, Arc<Node>>> {
        self.nodes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn runtime(&self) -> Handle {
        self.runtime.clone().unwrap_or_else(Handle::current)
    }
}

fn address_of(seed: &ConnectionInfo) -> Option<Address> {
    match seed.addr() {
        ConnectionAddr::Tcp(host, port) | ConnectionAddr::TcpTls { host, port, .. } => Some(Address {
            host: host.clone(),
            port: *port,
        }),
        _ => None,
    }
}

/// The same kind of address at another place.
fn at(like: &ConnectionAddr, address: &Address) -> Option<ConnectionAddr> {
    let (host, port) = (address.host.clone(), address.port);
    match like {
        ConnectionAddr::Tcp(..) => Some(ConnectionAddr::Tcp(host, port)),
        ConnectionAddr::TcpTls {
            insecure, tls_params, ..
        } => Some(ConnectionAddr::TcpTls {
            host,
            port,
            insecure: *insecure,
            tls_params: tls_params.clone(),
        }),
        _ => None,
    }
}

fn slots_command() -> Pipeline {
    let mut commands = redis::pipe();
    commands.cmd("CLUSTER").arg("SLOTS");
    commands
}
