//! A real redis-server per test or per test process: without persistence, so that a restart means what operators
//! fear, an empty Redis.

use std::ffi::OsStr;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;
use std::process::Command;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use tokio::sync::OnceCell;

use crate::Process;
use crate::home::Home;
use crate::ports::free_port;

/// A redis-server of this test. Dropping it kills it and removes its directory.
pub struct RedisServer {
    port: u16,
    tls_port: Option<u16>,
    arguments: Vec<String>,
    process: Process,
    home: Home,
}

/// What a server is told beside its port.
#[derive(Clone, Copy, Default)]
pub struct RedisOptions<'a> {
    /// Command line arguments, such as `["--maxmemory", "2mb"]`.
    pub arguments: &'a [&'a str],
    /// A directory with `authority.pem`, `server.pem` and `server.key`: the server listens on a second port, there
    /// with TLS, and speaks so with other servers.
    pub tls: Option<&'a Path>,
}

impl RedisOptions<'_> {
    /// The arguments for TLS on this port.
    pub(crate) fn tls_arguments(directory: &Path, port: u16) -> Vec<String> {
        let file = |name: &str| directory.join(name).display().to_string();
        [
            ["--tls-port".to_owned(), port.to_string()],
            ["--tls-cert-file".to_owned(), file("server.pem")],
            ["--tls-key-file".to_owned(), file("server.key")],
            ["--tls-ca-cert-file".to_owned(), file("authority.pem")],
            ["--tls-auth-clients".to_owned(), "no".to_owned()],
            ["--tls-replication".to_owned(), "yes".to_owned()],
        ]
        .concat()
    }
}

impl RedisServer {
    /// Starts a server with default settings and waits until it accepts connections.
    ///
    /// # Panics
    /// If redis-server is missing or does not start; the message holds its log.
    pub async fn start() -> Self {
        Self::start_with(&[]).await
    }

    /// Starts a server with further command line arguments, such as `["--maxmemory", "2mb"]`.
    ///
    /// # Panics
    /// As [`RedisServer::start`].
    pub async fn start_with(arguments: &[&str]) -> Self {
        let options = RedisOptions {
            arguments,
            ..RedisOptions::default()
        };
        Self::start_as(options, Vec::new).await
    }

    /// Starts a server with these options.
    ///
    /// # Panics
    /// As [`RedisServer::start`].
    pub async fn start_of(options: RedisOptions<'_>) -> Self {
        Self::start_as(options, Vec::new).await
    }

    /// As [`RedisServer::start_of`], with arguments that are chosen anew if the server does not start: other ports.
    pub(crate) async fn start_as(options: RedisOptions<'_>, chosen: impl Fn() -> Vec<String>) -> Self {
        let home = Home::make("redis", "Ready to accept connections", "KILL");
        // A mutex, so that a server can be started in a task of its own.
        let last = Mutex::new((None, Vec::new()));
        let (port, process) = home
            .start(|port| {
                let tls_port = options.tls.map(|_| free_port());
                let given = options.arguments.iter().map(|&argument| argument.to_owned());
                let mut arguments: Vec<_> = given.chain(chosen()).collect();
                if let (Some(directory), Some(port)) = (options.tls, tls_port) {
                    arguments.extend(RedisOptions::tls_arguments(directory, port));
                }
                let command = command(port, &home, &arguments);
                *last.lock().expect("nobody panics over the arguments") = (tls_port, arguments);
                command
            })
            .await;
        let (tls_port, arguments) = last.into_inner().expect("nobody panics over the arguments");
        Self {
            port,
            tls_port,
            arguments,
            process,
            home,
        }
    }

    /// One server for all tests of this test process that do not harm it. Use key prefixes of your own.
    pub async fn shared() -> &'static Self {
        static SHARED: OnceCell<RedisServer> = OnceCell::const_new();
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

    /// `redis://127.0.0.1:<port>`.
    pub fn url(&self) -> String {
        format!("redis://127.0.0.1:{}", self.port)
    }

    /// The port for TLS.
    ///
    /// # Panics
    /// If it was not started with TLS.
    pub fn tls_port(&self) -> u16 {
        self.tls_port.expect("it was started with TLS")
    }

    /// The port for other servers: with TLS, if there is one.
    pub(crate) fn peer_port(&self) -> u16 {
        self.tls_port.unwrap_or(self.port)
    }

    /// The present process.
    pub fn pid(&self) -> u32 {
        self.process.pid()
    }

    /// Stops the process where it stands: the kernel still accepts connections and bytes, and nothing answers.
    pub fn pause(&self) {
        self.process.signal("STOP");
    }

    /// Lets a paused process go on. It then executes what has piled up.
    pub fn resume(&self) {
        self.process.signal("CONT");
    }

    /// Kills the process and waits until it is gone: connections are reset, new ones refused.
    pub async fn kill(&self) {
        self.process.signal("KILL");
        self.process.wait_exit().await;
    }

    /// Starts again on the same port, after killing what still runs. All data are gone.
    ///
    /// # Panics
    /// If the server does not start; the message holds its log.
    pub async fn restart(&mut self) {
        self.kill().await;
        let command = command(self.port, &self.home, &self.arguments);
        self.process = self.home.start_again(command).await;
    }

    /// The value of a command line argument.
    pub(crate) fn argument(&self, name: &str) -> Option<String> {
        let mut words = self.arguments.iter();
        words.find(|word| *word == name)?;
        words.next().cloned()
    }

    /// Whether the process has ended.
    pub fn is_dead(&self) -> bool {
        self.process.has_exited()
    }

    /// All the server has said.
    pub(crate) fn log(&self) -> String {
        self.process.log()
    }

    /// Waits until the server's log has a line that contains `text`.
    pub(crate) async fn wait_for_log(&self, text: &str) {
        self.process.wait_for_line(|line| line.contains(text)).await;
    }

    /// Runs one command with redis-cli and returns its raw answer without the last line break, for instance
    /// `cli(&["TTL", "k"])` → `"604800"`; a nil answer is the empty string.
    pub fn cli<S: AsRef<OsStr>>(&self, command: &[S]) -> String {
        cli(self.port, command)
    }

    /// Records every command that the server executes from now on.
    pub async fn monitor(&self) -> Monitor<'_> {
        let mut command = Command::new("redis-cli");
        command.args(["-p", &self.port.to_string(), "monitor"]);
        let process = Process::spawn(command);
        process.wait_for_line(|line| line == "OK").await;
        Monitor {
            server: self,
            process,
        }
    }
}

/// The commands a server executed since [`RedisServer::monitor`].
pub struct Monitor<'server> {
    server: &'server RedisServer,
    process: Process,
}

impl Monitor<'_> {
    /// All commands executed until now, one MONITOR line each, as `1700000000.1 [0 127.0.0.1:5] "GET" "k"`. Commands
    /// run by a script are among them, with `lua` in place of the address.
    pub async fn commands(&self) -> Vec<String> {
        static MARKS: AtomicU64 = AtomicU64::new(0);
        let mark = format!("monitor-mark-{}", MARKS.fetch_add(1, Ordering::Relaxed));
        self.server.cli(&["ECHO", &mark]);
        self.process.wait_for_line(|line| line.contains(&mark)).await;
        let lines = self.process.lines().into_iter().skip(1);
        lines
            .take_while(|line| !line.contains(&mark))
            .filter(|line| !is_own(line))
            .collect()
    }
}

/// What this harness itself sends while recording: earlier marks, and redis-cli's greeting.
fn is_own(line: &str) -> bool {
    line.contains("monitor-mark-") || line.ends_with(r#""COMMAND" "DOCS""#)
}

fn command(port: u16, home: &Home, arguments: &[String]) -> Command {
    let mut command = Command::new("redis-server");
    command
        .args([
            "--port",
            &port.to_string(),
            "--bind",
            "127.0.0.1",
            "--daemonize",
            "no",
            "--logfile",
            "",
        ])
        .args([
            "--save",
            "",
            "--appendonly",
            "no",
            "--repl-diskless-sync-delay",
            "0",
        ])
        .args(arguments)
        .current_dir(home.path());
    command
}

pub(crate) fn cli<S: AsRef<OsStr>>(port: u16, command: &[S]) -> String {
    let output = Command::new("redis-cli")
        .args(["-p", &port.to_string()])
        .args(command)
        .output()
        .expect("redis-cli is installed; `cargo xtask setup` installs it");
    String::from_utf8_lossy(&output.stdout)
        .trim_end_matches('\n')
        .to_owned()
}
