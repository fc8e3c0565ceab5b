//! A real Redis Cluster: three primaries with a replica each, which notice a lost node within a second.
//! A slot can be migrated step by step, so that a test stands in the middle of it.

use std::time::Duration;

use tokio::time::{sleep, timeout};

use crate::{PATIENCE, RedisOptions, RedisServer};

/// Silence after which a node is called lost: a failover takes about twice as long.
const NODE_TIMEOUT_MS: &str = "1000";

/// Primaries, and as many replicas.
const PRIMARIES: usize = 3;

/// How many keys one command moves.
const KEYS_AT_ONCE: &str = "500";

const SLOTS: usize = 16_384;

/// Six nodes. Dropping it kills them.
pub struct RedisCluster {
    nodes: Vec<RedisServer>,
}

impl RedisCluster {
    /// Starts a cluster, and waits until every slot is served and every replica has its data.
    ///
    /// # Panics
    /// As [`RedisServer::start`], and if the nodes do not come together.
    pub async fn start() -> Self {
        Self::start_of(RedisOptions::default()).await
    }

    /// As [`RedisCluster::start`], with these options for every node.
    ///
    /// # Panics
    /// As [`RedisCluster::start`].
    pub async fn start_of(options: RedisOptions<'_>) -> Self {
        let mut arguments = vec![
            "--cluster-node-timeout",
            NODE_TIMEOUT_MS,
            // A lost primary takes its own slots with it and no others.
            "--cluster-require-full-coverage",
            "no",
        ];
        if options.tls.is_some() {
            arguments.extend(["--tls-cluster", "yes"]);
        }
        arguments.extend(options.arguments);
        let options = RedisOptions {
            arguments: &arguments,
            ..options
        };
        let node = || RedisServer::start_cluster_node(options);
        let (a, b, c, d, e, f) = tokio::join!(node(), node(), node(), node(), node(), node());
        let cluster = Self {
            nodes: vec![a, b, c, d, e, f],
        };
        cluster.form().await;
        cluster
    }

    /// The URLs of all nodes, separated by commas.
    pub fn urls(&self) -> String {
        let urls = self.nodes.iter().map(RedisServer::url);
        urls.collect::<Vec<_>>().join(",")
    }

    /// All nodes; the first three were primaries at the start.
    pub fn nodes(&self) -> &[RedisServer] {
        &self.nodes
    }

    /// As [`RedisCluster::nodes`], to restart one.
    pub fn nodes_mut(&mut self) -> &mut [RedisServer] {
        &mut self.nodes
    }

    /// The slot of a key.
    pub fn slot_of(&self, key: &str) -> u16 {
        let slot = self.living().cli(&["CLUSTER", "KEYSLOT", key]);
        slot.parse().expect("a slot is a number")
    }

    /// The primary that serves this key, as the cluster sees it.
    ///
    /// # Panics
    /// If nobody does.
    pub fn owner(&self, key: &str) -> &RedisServer {
        let slot = self.slot_of(key);
        let owner = self.nodes.iter().find(|node| !node.is_dead() && node.owns(slot));
        owner.unwrap_or_else(|| panic!("nobody serves slot {slot}"))
    }

    /// A primary that does not serve this key.
    ///
    /// # Panics
    /// If there is none.
    pub fn another_primary(&self, key: &str) -> &RedisServer {
        let slot = self.slot_of(key);
        let fits = |node: &&RedisServer| !node.is_dead() && node.is_primary() && !node.owns(slot);
        self.nodes.iter().find(fits).expect("there are three primaries")
    }

    /// A replica of this primary.
    ///
    /// # Panics
    /// If there is none.
    pub fn replica_of(&self, primary: &RedisServer) -> &RedisServer {
        let id = primary.node_id();
        let replicates = |node: &&RedisServer| {
            let about = node.myself();
            !node.is_dead() && about.contains("slave") && about.contains(&id)
        };
        self.nodes.iter().find(replicates).expect("it has a replica")
    }

    /// Keys that this primary serves, as many as wanted, each `<prefix><number>`.
    pub fn keys_of(&self, primary: &RedisServer, prefix: &str, count: usize) -> Vec<String> {
        let keys = (0..).map(|number| format!("{prefix}{number}"));
        let fits = keys.filter(|key| primary.owns(self.slot_of(key)));
        fits.take(count).collect()
    }

    /// Promotes the replica of this primary without losing anything, and waits until all nodes know.
    ///
    /// # Panics
    /// If that does not happen.
    pub async fn fail_over(&self, primary: &RedisServer) {
        let replica = self.replica_of(primary);
        assert_eq!(replica.cli(&["CLUSTER", "FAILOVER"]), "OK");
        self.promoted(replica).await;
    }

    /// Waits until this node is a primary for all that live.
    ///
    /// # Panics
    /// If that does not happen.
    pub async fn promoted(&self, node: &RedisServer) {
        let id = node.node_id();
        let seen_by = |other: &RedisServer| {
            let nodes = other.cli(&["CLUSTER", "NODES"]);
            nodes
                .lines()
                .any(|line| line.starts_with(&id) && line.contains("master") && line.contains("connected "))
        };
        self.wait("a replica is promoted", || {
            self.nodes.iter().filter(|node| !node.is_dead()).all(seen_by)
        })
        .await;
    }

    /// Begins to move the slot of `key` to a node: from now on keys that are not there any more are asked for over
    /// there. Nothing has moved yet.
    ///
    /// # Panics
    /// If the nodes refuse.
    pub fn migrate<'cluster>(&'cluster self, key: &str, to: &'cluster RedisServer) -> Migration<'cluster> {
        let (slot, from) = (self.slot_of(key).to_string(), self.owner(key));
        let (from_id, to_id) = (from.node_id(), to.node_id());
        assert_eq!(
            to.cli(&["CLUSTER", "SETSLOT", &slot, "IMPORTING", &from_id]),
            "OK"
        );
        assert_eq!(
            from.cli(&["CLUSTER", "SETSLOT", &slot, "MIGRATING", &to_id]),
            "OK"
        );
        Migration {
            cluster: self,
            slot,
            from,
            to,
        }
    }

    async fn form(&self) {
        for (index, node) in self.nodes.iter().enumerate() {
            assert_eq!(
                node.cli(&["CLUSTER", "SET-CONFIG-EPOCH", &(index + 1).to_string()]),
                "OK"
            );
        }
        for (index, node) in self.nodes.iter().take(PRIMARIES).enumerate() {
            let first = index * SLOTS / PRIMARIES;
            let last = (index + 1) * SLOTS / PRIMARIES - 1;
            let range = [first.to_string(), last.to_string()];
            assert_eq!(
                node.cli(&["CLUSTER", "ADDSLOTSRANGE", &range[0], &range[1]]),
                "OK"
            );
        }
        // Everybody meets everybody, so that nobody waits for gossip.
        for (index, node) in self.nodes.iter().enumerate() {
            for other in &self.nodes[index + 1..] {
                let (port, bus_port) = (other.peer_port().to_string(), other.bus_port());
                assert_eq!(
                    node.cli(&["CLUSTER", "MEET", "127.0.0.1", &port, &bus_port]),
                    "OK"
                );
            }
        }
        let acquainted = |node: &RedisServer| {
            let nodes = node.cli(&["CLUSTER", "NODES"]);
            nodes.lines().count() == self.nodes.len() && !nodes.contains("handshake")
        };
        self.wait("nodes know each other", || self.nodes.iter().all(acquainted))
            .await;
        for (index, replica) in self.nodes.iter().skip(PRIMARIES).enumerate() {
            let primary = self.nodes[index].node_id();
            assert_eq!(replica.cli(&["CLUSTER", "REPLICATE", &primary]), "OK");
        }
        self.wait("every slot is served", || {
            self.nodes.iter().all(RedisServer::is_served)
        })
        .await;
        self.wait("every replica has its data", || {
            let replicas = self.nodes.iter().skip(PRIMARIES);
            replicas
                .map(|node| node.cli(&["INFO", "replication"]))
                .all(|info| info.contains("master_link_status:up"))
        })
        .await;
    }

    fn living(&self) -> &RedisServer {
        let living = self.nodes.iter().find(|node| !node.is_dead());
        living.expect("not all nodes are dead")
    }

    async fn wait(&self, what: &str, holds: impl Fn() -> bool) {
        let held = async {
            while !holds() {
                sleep(Duration::from_millis(25)).await;
            }
        };
        if timeout(PATIENCE, held).await.is_err() {
            panic!(
                "waited in vain: {what}\n{}\n{}",
                self.living().cli(&["CLUSTER", "NODES"]),
                self.living().log()
            );
        }
    }
}

impl RedisServer {
    /// The line of `CLUSTER NODES` in which the node speaks of itself.
    fn myself(&self) -> String {
        let nodes = self.cli(&["CLUSTER", "NODES"]);
        let myself = nodes.lines().find(|line| line.contains("myself"));
        myself.unwrap_or_default().to_owned()
    }

    fn node_id(&self) -> String {
        self.cli(&["CLUSTER", "MYID"])
    }

    /// Whether the node calls itself a primary of its cluster.
    pub fn is_primary(&self) -> bool {
        self.myself().contains("master")
    }

    fn owns(&self, slot: u16) -> bool {
        let myself = self.myself();
        let slots = myself.split(' ').skip(8).filter(|word| !word.starts_with('['));
        let mut ranges = slots.map(|word| word.split_once('-').unwrap_or((word, word)));
        myself.contains("master")
            && ranges.any(|(first, last)| {
                let within = |text: &str| text.parse::<u16>().expect("a slot is a number");
                (within(first)..=within(last)).contains(&slot)
            })
    }

    fn is_served(&self) -> bool {
        let info = self.cli(&["CLUSTER", "INFO"]);
        info.contains("cluster_state:ok") && info.contains("cluster_slots_ok:16384")
    }

    fn bus_port(&self) -> String {
        self.argument("--cluster-port").expect("a node has a bus port")
    }
}

/// A slot on its way from one node to another.
pub struct Migration<'cluster> {
    cluster: &'cluster RedisCluster,
    slot: String,
    from: &'cluster RedisServer,
    to: &'cluster RedisServer,
}

impl Migration<'_> {
    /// The node that the slot leaves.
    pub fn from(&self) -> &RedisServer {
        self.from
    }

    /// The node that gets it.
    pub fn to(&self) -> &RedisServer {
        self.to
    }

    /// Moves one key.
    ///
    /// # Panics
    /// If it is not there, or cannot be moved.
    pub fn move_key(&self, key: &str) {
        self.move_keys(&[key]);
    }

    /// Moves all keys that are left.
    ///
    /// # Panics
    /// If one cannot be moved.
    pub fn move_all(&self) {
        loop {
            let keys = self
                .from
                .cli(&["CLUSTER", "GETKEYSINSLOT", &self.slot, KEYS_AT_ONCE]);
            let keys: Vec<_> = keys.lines().filter(|key| !key.is_empty()).collect();
            if keys.is_empty() {
                return;
            }
            self.move_keys(&keys);
        }
    }

    fn move_keys(&self, keys: &[&str]) {
        let port = self.to.peer_port().to_string();
        let terms = ["MIGRATE", "127.0.0.1", &port, "", "0", "5000", "KEYS"];
        assert_eq!(self.from.cli(&[&terms, keys].concat()), "OK");
    }

    /// Moves what is left and gives the slot to its new node, which tells all others.
    ///
    /// # Panics
    /// If the nodes refuse.
    pub fn finish(self) {
        self.move_all();
        let id = self.to.node_id();
        let others = self
            .cluster
            .nodes
            .iter()
            .filter(|node| !node.is_dead() && node.is_primary());
        assert_eq!(
            self.to.cli(&["CLUSTER", "SETSLOT", &self.slot, "NODE", &id]),
            "OK"
        );
        for node in others {
            assert_eq!(node.cli(&["CLUSTER", "SETSLOT", &self.slot, "NODE", &id]), "OK");
        }
    }
}
