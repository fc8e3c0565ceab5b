//! Smaller forms Redis is run in: a replica of a server, and a cluster of one node.

use crate::ports::free_port;
use crate::{RedisOptions, RedisServer};

impl RedisServer {
    /// A replica of `master`, once its first synchronisation is over.
    ///
    /// # Panics
    /// As [`RedisServer::start`], and if the two never come together.
    pub async fn start_replica_of(master: &RedisServer) -> Self {
        Self::start_replica(master, RedisOptions::default()).await
    }

    /// A replica of `master` with these options.
    ///
    /// # Panics
    /// As [`RedisServer::start_replica_of`].
    pub async fn start_replica(master: &RedisServer, options: RedisOptions<'_>) -> Self {
        let of = ["--replicaof", "127.0.0.1", &master.peer_port().to_string()].map(str::to_owned);
        let replica = Self::start_as(options, || of.to_vec()).await;
        replica
            .wait_for_log("MASTER <-> REPLICA sync: Finished with success")
            .await;
        replica
    }

    /// A cluster whose single node serves all slots.
    ///
    /// # Panics
    /// As [`RedisServer::start`].
    pub async fn start_cluster() -> Self {
        let node = Self::start_cluster_node(RedisOptions::default()).await;
        assert_eq!(node.cli(&["CLUSTER", "ADDSLOTSRANGE", "0", "16383"]), "OK");
        node.wait_for_log("Cluster state changed: ok").await;
        node
    }

    /// A node of a cluster, still alone and without slots.
    pub(crate) async fn start_cluster_node(options: RedisOptions<'_>) -> Self {
        let chosen = || {
            [
                "--cluster-enabled",
                "yes",
                "--cluster-port",
                &free_port().to_string(),
            ]
            .map(str::to_owned)
        };
        Self::start_as(options, || chosen().to_vec()).await
    }
}
