//! A real Postgres per test or per test process, with `fsync` on, as in production: a commit that was answered has
//! reached the disk, also when the server is killed the next moment.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tempfile::TempDir;
use tokio::sync::OnceCell;

use crate::ports::free_port;
use crate::postgres_install::Installation;
use crate::watchdog::Watchdog;
use crate::{Process, START_ATTEMPTS, signals};

/// What the server prints when it is open.
const READY: &str = "database system is ready to accept connections";

/// A Postgres server of this test. Dropping it stops it and removes its directory.
pub struct PostgresServer {
    port: u16,
    settings: Vec<String>,
    installation: Installation,
    process: Process,
    watchdog: Arc<Watchdog>,
    directory: TempDir,
}

impl PostgresServer {
    /// Makes a new cluster, starts it and waits until it accepts connections. This takes a second or two; see
    /// [`PostgresServer::shared`].
    ///
    /// # Panics
    /// If Postgres is missing or does not start; the message holds its log.
    pub async fn start() -> Self {
        Self::start_with(&[]).await
    }

    /// As [`PostgresServer::start`] with further settings, such as `["fsync=off"]`.
    ///
    /// # Panics
    /// As [`PostgresServer::start`].
    pub async fn start_with(settings: &[&str]) -> Self {
        let installation = Installation::find();
        let directory = tempfile::Builder::new()
            .prefix("hookgate-pg-")
            .tempdir()
            .expect("a temp directory");
        let watchdog = Arc::new(Watchdog::start(Some(directory.path())));
        let settings = settings
            .iter()
            .map(|&setting| setting.to_owned())
            .collect::<Vec<_>>();
        initialise(&installation, &directory);
        let mut log = String::new();
        for _ in 0..START_ATTEMPTS {
            let port = free_port();
            let command = command(&installation, &directory, port, &settings);
            let process = Process::spawn_under(Arc::clone(&watchdog), command, "QUIT");
            if process.find_line(|line| line.contains(READY)).await.is_some() {
                return Self {
                    port,
                    settings,
                    installation,
                    process,
                    watchdog,
                    directory,
                };
            }
            log = process.log();
        }
        panic!("Postgres does not start:\n{log}");
    }

    /// One server for all tests of this test process that do not harm it. Make a database of your own with
    /// [`PostgresServer::create_database`].
    pub async fn shared() -> &'static Self {
        static SHARED: OnceCell<PostgresServer> = OnceCell::const_new();
        SHARED.get_or_init(Self::start).await
    }

    /// The port it listens on, kept through restarts.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// The address it listens on, for a [`Proxy`](crate::Proxy) before it.
    pub fn addr(&self) -> SocketAddr {
        (Ipv4Addr::LOCALHOST, self.port).into()
    }

    /// The URL of a database; the user is the superuser `postgres`, without password.
    pub fn url(&self, database: &str) -> String {
        format!("postgres://postgres@127.0.0.1:{}/{database}", self.port)
    }

    /// Creates an empty database that nobody else uses, and returns its URL.
    pub async fn create_database(&self) -> String {
        static DATABASES: AtomicU64 = AtomicU64::new(0);
        let name = format!("test_{}", DATABASES.fetch_add(1, Ordering::Relaxed));
        self.psql(&self.url("postgres"), &format!("CREATE DATABASE {name}"));
        self.url(&name)
    }

    /// Runs SQL and returns the rows without header, one a line, columns parted by `|`.
    ///
    /// # Panics
    /// If the SQL fails; the message holds the error.
    pub fn psql(&self, database_url: &str, sql: &str) -> String {
        let output = self
            .installation
            .client("psql")
            .args([
                "--no-psqlrc",
                "--quiet",
                "--tuples-only",
                "--no-align",
                "--set=ON_ERROR_STOP=1",
            ])
            .args(["--dbname", database_url, "--command", sql])
            .output()
            .expect("psql can be run");
        assert!(
            output.status.success(),
            "{sql}: {}",
            String::from_utf8_lossy(&output.stderr)
        );
        String::from_utf8_lossy(&output.stdout)
            .trim_end_matches('\n')
            .to_owned()
    }

    /// The present postmaster.
    pub fn pid(&self) -> u32 {
        self.process.pid()
    }

    /// The directory of the cluster's data.
    pub fn data_directory(&self) -> PathBuf {
        self.directory.path().join("data")
    }

    /// Stops the postmaster and all its sessions where they stand: the kernel still accepts connections and bytes,
    /// and nothing answers.
    pub fn pause(&self) {
        self.process.signal("STOP");
        signals::send("STOP", &signals::family(self.pid()));
    }

    /// Lets a paused server go on.
    pub fn resume(&self) {
        if !self.process.has_exited() {
            signals::send("CONT", &signals::family(self.pid()));
        }
    }

    /// Kills all its processes at once, as a power cut would, and waits until they are gone.
    pub async fn kill(&self) {
        if !self.process.has_exited() {
            self.process.signal("STOP");
            signals::send("KILL", &signals::family(self.pid()));
        }
        self.process.wait_exit().await;
    }

    /// Starts again on the same port and data, after killing what still runs, and waits until the recovery is over.
    ///
    /// # Panics
    /// If the server does not start; the message holds its log.
    pub async fn restart(&mut self) {
        self.kill().await;
        let command = command(&self.installation, &self.directory, self.port, &self.settings);
        self.process = Process::spawn_under(Arc::clone(&self.watchdog), command, "QUIT");
        self.process.wait_for_line(|line| line.contains(READY)).await;
    }
}

impl Drop for PostgresServer {
    fn drop(&mut self) {
        // A stopped session would keep the shutdown waiting.
        self.resume();
    }
}

fn initialise(installation: &Installation, directory: &TempDir) {
    installation.give(directory.path());
    let output = installation
        .server("initdb", directory.path())
        .args([
            "--pgdata",
            "data",
            "--username=postgres",
            "--auth=trust",
            "--encoding=UTF8",
            "--locale=C",
        ])
        // Only the making of the cluster goes without fsync: it is thrown away if the machine fails meanwhile.
        .arg("--no-sync")
        .output()
        .expect("initdb can be run");
    assert!(
        output.status.success(),
        "initdb failed: {}",
        String::from_utf8_lossy(&output.stderr)
    );
}

fn command(installation: &Installation, directory: &TempDir, port: u16, settings: &[String]) -> Command {
    let sockets = format!("unix_socket_directories={}", directory.path().display());
    let mut command = installation.server("postgres", directory.path());
    command.args(["-D", "data", "-p", &port.to_string()]);
    let own = [
        "listen_addresses=127.0.0.1",
        "max_connections=200",
        "logging_collector=off",
        &sockets,
    ];
    for setting in own.into_iter().chain(settings.iter().map(String::as_str)) {
        command.args(["-c", setting]);
    }
    command
}
