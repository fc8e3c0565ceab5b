//! A real PgBouncer before a Postgres of the harness, as operators put one before theirs: clients come to it, and get
//! a session of the server for as long as the mode says.

use std::net::{Ipv4Addr, SocketAddr};
use std::process::Command;

use crate::Process;
use crate::home::Home;
use crate::postgres_install::Installation;

/// For how long a client keeps the session of the server that it was lent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PoolMode {
    /// Until it goes.
    Session,
    /// Until its transaction ends.
    Transaction,
}

/// A pooler of this test. Dropping it stops it and removes its directory.
pub struct PgBouncer {
    port: u16,
    _process: Process,
    _home: Home,
}

impl PgBouncer {
    /// Starts one before a server, or before a proxy that stands before it, with no more settings than it needs, and
    /// waits until it accepts connections.
    ///
    /// # Panics
    /// If PgBouncer is missing or does not start; the message holds its log.
    pub async fn start(server: SocketAddr, mode: PoolMode) -> Self {
        let home = Home::make("pgbouncer", "process up: PgBouncer", "KILL");
        let installation = Installation::find();
        installation.give(home.path());
        let (port, process) = home
            .start(|port| {
                std::fs::write(home.path().join("pgbouncer.ini"), settings(server, mode, port))
                    .expect("a directory of our own can be written");
                let mut command = installation.as_server(program(), home.path());
                command.arg("pgbouncer.ini");
                command
            })
            .await;
        Self {
            port,
            _process: process,
            _home: home,
        }
    }

    /// The URL through it of the database with this URL; the user is `postgres`, without password.
    pub fn url(&self, database_url: &str) -> String {
        let name = database_url.rsplit('/').next().unwrap_or(database_url);
        format!("postgres://postgres@{}/{name}", self.addr())
    }

    /// The address it listens on.
    pub fn addr(&self) -> SocketAddr {
        (Ipv4Addr::LOCALHOST, self.port).into()
    }
}

fn settings(server: SocketAddr, mode: PoolMode, port: u16) -> String {
    let mode = match mode {
        PoolMode::Session => "session",
        PoolMode::Transaction => "transaction",
    };
    format!(
        "[databases]\n\
         * = host={} port={} user=postgres\n\
         [pgbouncer]\n\
         listen_addr = 127.0.0.1\n\
         listen_port = {port}\n\
         unix_socket_dir =\n\
         auth_type = any\n\
         pool_mode = {mode}\n\
         server_login_retry = 1\n\
         server_idle_timeout = 5\n\
         max_client_conn = 400\n",
        server.ip(),
        server.port(),
    )
}

/// Debian keeps it out of an ordinary user's PATH.
fn program() -> Command {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let found = std::env::split_paths(&path)
        .chain(["/usr/sbin".into(), "/usr/local/sbin".into()])
        .map(|directory| directory.join("pgbouncer"))
        .find(|program| program.is_file())
        .expect("PgBouncer is not installed: run `cargo xtask setup`");
    Command::new(found)
}
