//! A real Postgres per test or per test process, with `fsync` on, as in production: a commit that was answered has
//! reached the disk, also when the server is killed the next moment.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::process::Command;
use std::sync::atomic::{AtomicU64, Ordering};

use tokio::sync::OnceCell;

use crate::home::Home;
use crate::postgres_install::Installation;
use crate::{Process, signals};

/// A Postgres server of this test. Dropping it stops it and removes its directory.
pub struct PostgresServer {
    port: u16,
    settings: Vec<String>,
    installation: Installation,
    process: Process,
    home: Home,
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
        // QUIT ends it at once and, unlike KILL, lets it give back its shared memory.
        let home = Home::make(
            "postgres",
            "database system is ready to accept connections",
            "QUIT",
        );
        initialise(&installation, &home);
        let settings: Vec<_> = settings.iter().map(|&setting| setting.to_owned()).collect();
        let (port, process) = home
            .start(|port| command(&installation, &home, port, &settings))
            .await;
        Self {
            port,
            settings,
            installation,
            process,
            home,
        }
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

    pub(crate) fn at_home(installation: Installation, home: Home, port: u16, process: Process) -> Self {
        Self {
            port,
            settings: Vec::new(),
            installation,
            process,
            home,
        }
    }

    pub(crate) fn installation(&self) -> &Installation {
        &self.installation
    }

    pub(crate) fn home(&self) -> &Home {
        &self.home
    }

    /// The present postmaster.
    pub fn pid(&self) -> u32 {
        self.process.pid()
    }

    /// The directory of the cluster's data.
    pub fn data_directory(&self) -> PathBuf {
        self.home.path().join("data")
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
        let command = command(&self.installation, &self.home, self.port, &self.settings);
        self.process = self.home.start_again(command).await;
    }
}

impl Drop for PostgresServer {
    fn drop(&mut self) {
        // A stopped session would keep the shutdown waiting.
        self.resume();
    }
}

fn initialise(installation: &Installation, home: &Home) {
    installation.give(home.path());
    let output = installation
        .server("initdb", home.path())
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

pub(crate) fn command(installation: &Installation, home: &Home, port: u16, settings: &[String]) -> Command {
    let sockets = format!("unix_socket_directories={}", home.path().display());
    let mut command = installation.server("postgres", home.path());
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
