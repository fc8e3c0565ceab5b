//! What operators do with a Postgres: a standby that takes over, a dump that is restored.

use std::process::Command;

use tokio::time::{Duration, Instant, sleep};

use crate::PATIENCE;
use crate::home::Home;
use crate::postgres::{PostgresServer, command};
use crate::postgres_install::Installation;

/// Pause between two looks at how far a standby is.
const INTERVAL: Duration = Duration::from_millis(20);

impl PostgresServer {
    /// Starts a standby of this server, which follows it as it writes and answers what only looks.
    ///
    /// # Panics
    /// If it does not start; the message holds its log.
    pub async fn standby(&self) -> Self {
        let installation = Installation::find();
        // Also the line that a promoted one prints when it is started again.
        let home = Home::make("standby", "database system is ready to accept", "QUIT");
        installation.give(home.path());
        let mut copy = installation.server("pg_basebackup", home.path());
        copy.args([
            "--pgdata",
            "data",
            "--write-recovery-conf",
            "--checkpoint=fast",
            "--no-sync",
        ]);
        copy.args(["--dbname", &self.url("postgres")]);
        run(copy);
        let (port, process) = home.start(|port| command(&installation, &home, port, &[])).await;
        Self::at_home(installation, home, port, process)
    }

    /// Waits until this standby has all that the server has written until now.
    ///
    /// # Panics
    /// If it has not within [`PATIENCE`].
    pub async fn catch_up_with(&self, server: &Self) {
        let written = server.psql(&server.url("postgres"), "SELECT pg_current_wal_flush_lsn()");
        self.wait_for(&format!("SELECT pg_last_wal_replay_lsn() >= '{written}'"))
            .await;
    }

    /// Lets this standby follow no longer: what is written from now on it will never have.
    ///
    /// # Panics
    /// If it still follows after [`PATIENCE`].
    pub async fn cut_off(&self) {
        let url = self.url("postgres");
        self.psql(&url, "ALTER SYSTEM SET primary_conninfo = ''");
        self.psql(&url, "SELECT pg_reload_conf()");
        self.wait_for("SELECT count(*) = 0 FROM pg_stat_wal_receiver")
            .await;
    }

    /// Makes this standby the server, with a history of its own from here on.
    ///
    /// # Panics
    /// If it does not become one.
    pub fn promote(&self) {
        let promoted = self.psql(&self.url("postgres"), "SELECT pg_promote(true, 60)");
        assert_eq!(promoted, "t", "the standby was not promoted");
    }

    /// Dumps a database as `pg_dump --format=custom` does, into a file of this name beside the cluster.
    ///
    /// # Panics
    /// If it fails; the message holds why.
    pub fn dump(&self, database_url: &str, name: &str) {
        let mut dump = self.installation().client("pg_dump");
        dump.args(["--format=custom", "--dbname", database_url, "--file"]);
        dump.arg(self.home().path().join(name));
        run(dump);
    }

    /// Restores such a dump into an empty database.
    ///
    /// # Panics
    /// As [`PostgresServer::dump`].
    pub fn restore(&self, database_url: &str, name: &str) {
        let mut restore = self.installation().client("pg_restore");
        restore.args(["--exit-on-error", "--dbname", database_url]);
        restore.arg(self.home().path().join(name));
        run(restore);
    }

    async fn wait_for(&self, question: &str) {
        let deadline = Instant::now() + PATIENCE;
        while self.psql(&self.url("postgres"), question) != "t" {
            assert!(Instant::now() < deadline, "waited in vain: {question}");
            sleep(INTERVAL).await;
        }
    }
}

fn run(mut command: Command) {
    let output = command.output().expect("the programs of Postgres can be run");
    let why = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?}: {why}");
}
