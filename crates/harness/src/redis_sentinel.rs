//! Sentinels: one that alone decides, or three of which two have to agree.

use std::ffi::OsStr;
use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use tokio::time::{sleep, timeout};

use crate::home::Home;
use crate::ports::free_port;
use crate::redis::cli;
use crate::{PATIENCE, Process, RedisOptions, RedisServer};

/// A sentinel that watches one master.
pub struct RedisSentinel {
    port: u16,
    tls_port: Option<u16>,
    process: Process,
    _home: Home,
}

impl RedisSentinel {
    /// What the watched master is called.
    pub const MASTER_NAME: &'static str = "hookgate";

    /// Starts a sentinel over `master` that alone decides. It calls the master down after two seconds of silence
    /// and then promotes a replica.
    ///
    /// # Panics
    /// As [`RedisServer::start`].
    pub async fn start(master: &RedisServer) -> Self {
        Self::start_with(master, 1, None).await
    }

    /// Starts a sentinel that needs `quorum` sentinels to agree that the master is down; with TLS if a directory is
    /// given, as in [`RedisOptions`].
    async fn start_with(master: &RedisServer, quorum: usize, tls: Option<&Path>) -> Self {
        let home = Home::make("sentinel", "+monitor master", "KILL");
        let tls_port = tls.map(|_| free_port());
        let (port, process) = home
            .start(|port| {
                let mut configuration = configuration(port, master, quorum);
                if let (Some(directory), Some(port)) = (tls, tls_port) {
                    configuration += &tls_configuration(directory, port);
                }
                command(&configuration, &home)
            })
            .await;
        let sentinel = Self {
            port,
            tls_port,
            process,
            _home: home,
        };
        // What it tells and asks others every few seconds, it does several times a second here.
        let periods = ["publish-period", "200", "info-period", "200", "ask-period", "200"];
        let set = [["SENTINEL", "DEBUG"].as_slice(), &periods].concat();
        assert_eq!(sentinel.cli(&set), "OK", "{}", sentinel.process.log());
        sentinel
    }

    /// The port the sentinel listens on.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// The port for TLS.
    ///
    /// # Panics
    /// If it was not started with TLS.
    pub fn tls_port(&self) -> u16 {
        self.tls_port.expect("it was started with TLS")
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
        let before = self.master();
        let promotable = async {
            // A replica counts only after it was asked for its state.
            while self.cli(&["SENTINEL", "FAILOVER", Self::MASTER_NAME]) != "OK" {
                sleep(Duration::from_millis(50)).await;
            }
        };
        timeout(PATIENCE, promotable)
            .await
            .unwrap_or_else(|_| panic!("no failover:\n{}", self.process.log()));
        self.wait_for_another_than(&before).await;
    }

    /// Host and port of the present master, one a line.
    pub fn master(&self) -> String {
        self.cli(&["SENTINEL", "GET-MASTER-ADDR-BY-NAME", Self::MASTER_NAME])
    }

    /// Waits until the name points elsewhere than to what [`RedisSentinel::master`] has said.
    ///
    /// # Panics
    /// If it goes on pointing there.
    pub async fn wait_for_another_than(&self, before: &str) {
        let switched = async {
            while self.master() == before {
                sleep(Duration::from_millis(20)).await;
            }
        };
        timeout(PATIENCE, switched)
            .await
            .unwrap_or_else(|_| panic!("the master does not change:\n{}", self.process.log()));
    }

    /// Stops the process where it stands, as [`RedisServer::pause`].
    pub fn pause(&self) {
        self.process.signal("STOP");
    }

    /// Lets a paused process go on.
    pub fn resume(&self) {
        self.process.signal("CONT");
    }

    /// Kills the process and waits until it is gone.
    pub async fn kill(&self) {
        self.process.signal("KILL");
        self.process.wait_exit().await;
    }

    /// Runs one command with redis-cli, as [`RedisServer::cli`].
    pub fn cli<S: AsRef<OsStr>>(&self, command: &[S]) -> String {
        cli(self.port, command)
    }
}

/// A primary with two replicas, and three sentinels of which two have to agree.
pub struct RedisSentinels {
    servers: Vec<RedisServer>,
    sentinels: Vec<RedisSentinel>,
}

impl RedisSentinels {
    /// Starts all six, and waits until they know each other.
    ///
    /// # Panics
    /// As [`RedisServer::start`].
    pub async fn start() -> Self {
        Self::start_of(RedisOptions::default()).await
    }

    /// As [`RedisSentinels::start`], with these options for the servers; TLS holds for the sentinels as well.
    ///
    /// # Panics
    /// As [`RedisServer::start`].
    pub async fn start_of(options: RedisOptions<'_>) -> Self {
        let primary = RedisServer::start_of(options).await;
        let replica = || RedisServer::start_replica(&primary, options);
        let (first, second) = tokio::join!(replica(), replica());
        let sentinel = || RedisSentinel::start_with(&primary, 2, options.tls);
        let (one, two, three) = tokio::join!(sentinel(), sentinel(), sentinel());
        let started = Self {
            servers: vec![primary, first, second],
            sentinels: vec![one, two, three],
        };
        started.acquainted().await;
        started
    }

    /// The sentinels.
    pub fn sentinels(&self) -> &[RedisSentinel] {
        &self.sentinels
    }

    /// All servers; the first one was the primary at the start.
    pub fn servers(&self) -> &[RedisServer] {
        &self.servers
    }

    /// As [`RedisSentinels::servers`], to restart one.
    pub fn servers_mut(&mut self) -> &mut [RedisServer] {
        &mut self.servers
    }

    /// The URLs of all sentinels, separated by commas; the first names the master.
    pub fn urls(&self) -> String {
        let urls = self.sentinels.iter().map(RedisSentinel::url).collect::<Vec<_>>();
        let [first, others @ ..] = urls.as_slice() else {
            return String::new();
        };
        let first = format!("{first}?master={}", RedisSentinel::MASTER_NAME);
        [&[first], others].concat().join(",")
    }

    /// The server that all living sentinels call the primary, once they agree on one that lives.
    ///
    /// # Panics
    /// If they never do.
    pub async fn primary(&self) -> &RedisServer {
        let agreed = async {
            loop {
                if let Some(primary) = self.named_by_all() {
                    return primary;
                }
                sleep(Duration::from_millis(20)).await;
            }
        };
        let agreed = timeout(PATIENCE, agreed).await;
        agreed.unwrap_or_else(|_| panic!("the sentinels do not agree:\n{}", self.logs()))
    }

    /// Waits until both replicas follow the primary.
    ///
    /// # Panics
    /// If one does not.
    pub async fn in_sync(&self) {
        let follow = async {
            loop {
                let primary = self.primary().await;
                let others = self
                    .servers
                    .iter()
                    .filter(|server| server.port() != primary.port());
                let mut others = others.map(|server| server.cli(&["INFO", "replication"]));
                if others.all(|info| info.contains("role:slave") && info.contains("master_link_status:up")) {
                    return;
                }
                sleep(Duration::from_millis(20)).await;
            }
        };
        timeout(PATIENCE, follow)
            .await
            .unwrap_or_else(|_| panic!("a replica does not follow:\n{}", self.logs()));
    }

    /// Promotes a replica now, and returns when all sentinels name it.
    ///
    /// # Panics
    /// If that does not happen.
    pub async fn fail_over(&self) {
        let before = self.primary().await.port();
        self.living().fail_over().await;
        self.replaced(before).await;
    }

    /// Kills the primary, and returns when all sentinels name another one.
    ///
    /// # Panics
    /// If that does not happen.
    pub async fn lose_primary(&self) {
        let primary = self.primary().await;
        primary.kill().await;
        self.replaced(primary.port()).await;
    }

    /// Waits until all sentinels name a primary that does not listen on this port.
    ///
    /// # Panics
    /// If that does not happen.
    pub async fn replaced(&self, port: u16) {
        let replaced = async {
            while self.primary().await.port() == port {
                sleep(Duration::from_millis(20)).await;
            }
        };
        timeout(PATIENCE, replaced)
            .await
            .unwrap_or_else(|_| panic!("nobody was promoted:\n{}", self.logs()));
    }

    /// Whom each sentinel names, and all it has said.
    fn logs(&self) -> String {
        let told = self.sentinels.iter().map(|sentinel| {
            let log = sentinel.process.log();
            format!("{} names {}:\n{log}", sentinel.port(), sentinel.master())
        });
        told.collect::<Vec<_>>().join("\n")
    }

    fn living(&self) -> &RedisSentinel {
        let mut living = self
            .sentinels
            .iter()
            .filter(|sentinel| !sentinel.process.has_exited());
        living.next().expect("not all sentinels are dead")
    }

    fn named_by_all(&self) -> Option<&RedisServer> {
        let living = self
            .sentinels
            .iter()
            .filter(|sentinel| !sentinel.process.has_exited());
        let named: Vec<_> = living.map(RedisSentinel::master).collect();
        self.servers.iter().find(|server| {
            let port = server.peer_port().to_string();
            !server.is_dead() && named.iter().all(|name| name.lines().nth(1) == Some(&port))
        })
    }

    /// Waits until every sentinel knows both others and both replicas.
    async fn acquainted(&self) {
        let knows = |sentinel: &RedisSentinel| {
            let told = sentinel.cli(&["SENTINEL", "MASTER", RedisSentinel::MASTER_NAME]);
            let told = told.lines().collect::<Vec<_>>();
            let says = |name: &str| told.windows(2).any(|pair| pair == [name, "2"]);
            says("num-other-sentinels") && says("num-slaves")
        };
        let all = async {
            while !self.sentinels.iter().all(knows) {
                sleep(Duration::from_millis(50)).await;
            }
        };
        timeout(PATIENCE, all)
            .await
            .unwrap_or_else(|_| panic!("strangers:\n{}", self.logs()));
    }
}

fn configuration(port: u16, master: &RedisServer, quorum: usize) -> String {
    let (name, master_port) = (RedisSentinel::MASTER_NAME, master.peer_port());
    format!(
        "port {port}\nbind 127.0.0.1\nlogfile \"\"\n\
         sentinel monitor {name} 127.0.0.1 {master_port} {quorum}\n\
         sentinel down-after-milliseconds {name} 2000\n\
         sentinel failover-timeout {name} 2000\n"
    )
}

fn tls_configuration(directory: &Path, port: u16) -> String {
    let arguments = RedisOptions::tls_arguments(directory, port);
    let lines = arguments
        .chunks(2)
        .map(|pair| pair.join(" ").trim_start_matches('-').to_owned());
    lines.collect::<Vec<_>>().join("\n") + "\n"
}

/// Sentinel rewrites its configuration, so it cannot live on arguments alone.
fn command(configuration: &str, home: &Home) -> Command {
    fs::write(home.path().join("sentinel.conf"), configuration).expect("our temp directory can be written");
    let mut command = Command::new("redis-server");
    command
        .args(["sentinel.conf", "--sentinel"])
        .current_dir(home.path());
    command
}
