//! The other forms Redis is run in: a replica, a sentinel that watches a master, and a cluster of one node.

use std::ffi::OsStr;
use std::fs;
use std::process::Command;
use std::time::Duration;

use tokio::time::{sleep, timeout};

use crate::home::Home;
use crate::ports::free_port;
use crate::redis::cli;
use crate::{PATIENCE, Process, RedisServer};

impl RedisServer {
    /// A replica of `master`, once its first synchronisation is over.
    ///
    /// # Panics
    /// As [`RedisServer::start`], and if the two never come together.
    pub async fn start_replica_of(master: &RedisServer) -> Self {
        let replica = Self::start_with(&["--replicaof", "127.0.0.1", &master.port().to_string()]).await;
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
        let bus_port = free_port().to_string();
        let node = Self::start_with(&["--cluster-enabled", "yes", "--cluster-port", &bus_port]).await;
        assert_eq!(node.cli(&["CLUSTER", "ADDSLOTSRANGE", "0", "16383"]), "OK");
        node.wait_for_log("Cluster state changed: ok").await;
        node
    }
}

/// A sentinel that watches one master and alone decides on a failover.
pub struct RedisSentinel {
    port: u16,
    process: Process,
    _home: Home,
}

impl RedisSentinel {
    /// What the watched master is called.
    pub const MASTER_NAME: &'static str = "hookgate";

    /// Starts a sentinel over `master`. It calls the master down after half a second of silence and then promotes a
    /// replica.
    ///
    /// # Panics
    /// As [`RedisServer::start`].
    pub async fn start(master: &RedisServer) -> Self {
        let home = Home::make("sentinel", "+monitor master", "KILL");
        let (port, process) = home.start(|port| command(port, master, &home)).await;
        Self {
            port,
            process,
            _home: home,
        }
    }

    /// The port the sentinel listens on.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// The sentinel's own `redis://127.0.0.1:<port>`.
    pub fn url(&self) -> String {
        format!("redis://127.0.0.1:{}", self.port)
    }

    /// Promotes a replica now, and waits until the name points to it.
    ///
    /// # Panics
    /// If there is no replica that could be promoted.
    pub async fn fail_over(&self) {
        let promotable = async {
            // A replica counts only after it was asked for its state, which happens once a second.
            while self.cli(&["SENTINEL", "FAILOVER", Self::MASTER_NAME]) != "OK" {
                sleep(Duration::from_millis(100)).await;
            }
        };
        timeout(PATIENCE, promotable)
            .await
            .unwrap_or_else(|_| panic!("no failover:\n{}", self.process.log()));
        self.process
            .wait_for_line(|line| line.contains("+switch-master"))
            .await;
    }

    /// Runs one command with redis-cli, as [`RedisServer::cli`].
    pub fn cli<S: AsRef<OsStr>>(&self, command: &[S]) -> String {
        cli(self.port, command)
    }
}

/// Sentinel rewrites its configuration, so it cannot live on arguments alone.
fn command(port: u16, master: &RedisServer, home: &Home) -> Command {
    let (name, master_port) = (RedisSentinel::MASTER_NAME, master.port());
    let configuration = format!(
        "port {port}\nbind 127.0.0.1\nlogfile \"\"\n\
         sentinel monitor {name} 127.0.0.1 {master_port} 1\n\
         sentinel down-after-milliseconds {name} 500\n\
         sentinel failover-timeout {name} 5000\n"
    );
    fs::write(home.path().join("sentinel.conf"), configuration).expect("our temp directory can be written");
    let mut command = Command::new("redis-server");
    command
        .args(["sentinel.conf", "--sentinel"])
        .current_dir(home.path());
    command
}
