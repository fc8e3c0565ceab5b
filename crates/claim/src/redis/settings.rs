//! What the operator says about Redis, checked once; a wrong URL is told without its password.

use std::time::Duration;

use redis::{ConnectionAddr, ConnectionInfo, IntoConnectionInfo as _};
use secrecy::{ExposeSecret as _, SecretString};

use super::cluster::Cluster;
use super::connection::{Source, config};
use super::sentinel::Sentinels;
use super::server::Server;

/// Connections unless told otherwise. Commands on one connection share its writes and reads, so more of them add
/// system calls and not speed; the second is there for when the first breaks or waits for a lost packet.
const CONNECTIONS: usize = 2;

/// The primary's name unless the URL says another; Sentinel's own example.
const SENTINEL_MASTER: &str = "mymaster";

/// How to reach Redis.
#[derive(Debug, Clone)]
pub struct RedisSettings {
    /// What the URLs lead to.
    pub mode: RedisMode,
    /// `redis://[user:password@]host[:port][/db]`, `rediss://` for TLS; more than one only for Sentinel and
    /// cluster. With Sentinel the hosts are the Sentinels; user, password and db are those of the servers
    /// behind them. The first of these URLs may name the primary, `?master=<name>` (default `mymaster`), and
    /// the log-in of the Sentinels themselves, `&sentinel_user=<user>&sentinel_password=<password>`.
    pub urls: Vec<SecretString>,
    /// Limit of every command, connecting included; 100 ms by default.
    pub timeout: Duration,
    /// Connections that all commands share (on a cluster: per node). A few are enough; at least one.
    pub connections: usize,
}

/// The kinds of Redis.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum RedisMode {
    /// One server, or one name for the present primary.
    #[default]
    Single,
    /// Sentinels that know the present primary.
    Sentinel,
    /// Redis Cluster.
    Cluster,
}

/// A URL that is not of the accepted form. Shows no part of it, since passwords stand in it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "Redis URL {position} of {count} is not accepted ({reason}); the form is \
     redis://[user:password@]host[:port][/db], rediss:// for TLS, and several URLs separated by commas with \
     sentinel or cluster; a comma, @, / or : within a password is written %2C, %40, %2F, %3A"
)]
pub struct BadRedisUrl {
    /// Which of the URLs, from 1.
    pub position: usize,
    /// How many there are.
    pub count: usize,
    /// What is wrong with it.
    pub reason: &'static str,
}

impl RedisSettings {
    /// Settings with the usual number of connections.
    pub fn new(mode: RedisMode, urls: Vec<SecretString>, timeout: Duration) -> Self {
        Self {
            mode,
            urls,
            timeout,
            connections: CONNECTIONS,
        }
    }

    pub(super) fn into_server(self) -> Result<Server, BadRedisUrl> {
        let nodes = self.nodes()?;
        if nodes
            .iter()
            .any(|node| matches!(node.addr(), ConnectionAddr::TcpTls { .. }))
        {
            choose_tls_provider();
        }
        let (connections, limit) = (self.connections, self.timeout);
        Ok(match self.mode {
            RedisMode::Single => Server::at(self.single(nodes)?, connections, limit),
            RedisMode::Sentinel => Server::at(self.sentinel(nodes), connections, limit),
            RedisMode::Cluster => Server::cluster(Cluster::new(nodes, connections, limit), limit),
        })
    }

    fn nodes(&self) -> Result<Vec<ConnectionInfo>, BadRedisUrl> {
        match (self.mode, self.urls.len()) {
            (_, 0) => return Err(self.bad(0, "there is none")),
            (RedisMode::Single, 2..) => return Err(self.bad(1, "several need the mode sentinel or cluster")),
            _ => {}
        }
        let nodes = self.urls.iter().enumerate();
        let nodes: Vec<_> = nodes
            .map(|(index, url)| self.node(index, url))
            .collect::<Result<_, _>>()?;
        let apart = nodes.iter().position(|node| !agree(node, &nodes[0]));
        match apart.filter(|_| self.mode == RedisMode::Cluster) {
            None => Ok(nodes),
            Some(index) => Err(self.bad(index, "it differs from the first one in user, password or TLS")),
        }
    }

    fn node(&self, index: usize, url: &SecretString) -> Result<ConnectionInfo, BadRedisUrl> {
        let node = url.expose_secret().into_connection_info();
        let node = node.map_err(|_| self.bad(index, "it does not parse"))?;
        match node.addr() {
            ConnectionAddr::Unix(_) if self.mode != RedisMode::Single => {
                Err(self.bad(index, "a Unix socket needs the mode single"))
            }
            ConnectionAddr::TcpTls { insecure: true, .. } => {
                Err(self.bad(index, "TLS without a check of the certificate is not offered"))
            }
            _ if self.mode == RedisMode::Cluster && node.redis_settings().db() != 0 => {
                Err(self.bad(index, "a cluster has only the database 0"))
            }
            _ => Ok(node),
        }
    }

    fn bad(&self, index: usize, reason: &'static str) -> BadRedisUrl {
        BadRedisUrl {
            position: index + 1,
            count: self.urls.len(),
            reason,
        }
    }

    fn single(&self, mut nodes: Vec<ConnectionInfo>) -> Result<Source, BadRedisUrl> {
        let refused = || self.bad(0, "it cannot be used");
        let manager = deadpool_redis::Manager::new_with_config(nodes.remove(0), config());
        let manager = manager.map_err(|_| refused())?;
        // A connection that was left counts until its last command has ended, so its successor needs room.
        let pool = deadpool_redis::Pool::builder(manager).max_size(self.connections.max(1) * 2);
        Ok(Source::Single(pool.build().map_err(|_| refused())?))
    }

    fn sentinel(&self, nodes: Vec<ConnectionInfo>) -> Source {
        let login = SentinelLogin::of(&self.urls[0]);
        let server = nodes[0].clone();
        Source::Sentinel(Box::new(Sentinels {
            sentinels: nodes.into_iter().map(|node| login.onto(node)).collect(),
            master: login.master,
            server,
        }))
    }
}

/// Whether two URLs differ in nothing but the address.
fn agree(one: &ConnectionInfo, other: &ConnectionInfo) -> bool {
    let tls = |node: &ConnectionInfo| matches!(node.addr(), ConnectionAddr::TcpTls { .. });
    let (a, b) = (one.redis_settings(), other.redis_settings());
    (a.username(), a.password(), a.db()) == (b.username(), b.password(), b.db()) && tls(one) == tls(other)
}

/// What the first URL's query says about the Sentinels themselves.
struct SentinelLogin {
    master: String,
    user: Option<String>,
    password: Option<String>,
}

impl SentinelLogin {
    fn of(url: &SecretString) -> Self {
        let url = redis::parse_redis_url(url.expose_secret());
        let query = |name: &str| {
            let mut pairs = url.as_ref()?.query_pairs();
            pairs
                .find(|(key, _)| key == name)
                .map(|(_, value)| value.into_owned())
        };
        Self {
            master: query("master").unwrap_or_else(|| SENTINEL_MASTER.to_owned()),
            user: query("sentinel_user"),
            password: query("sentinel_password"),
        }
    }

    /// The Sentinel at this address: without db, and without the servers' log-in, which it would refuse.
    fn onto(&self, node: ConnectionInfo) -> ConnectionInfo {
        let mut login = redis::RedisConnectionInfo::default();
        if let Some(user) = &self.user {
            login = login.set_username(user);
        }
        if let Some(password) = &self.password {
            login = login.set_password(password);
        }
        node.set_redis_settings(login)
    }
}

/// rustls is built here with one provider, but wants it named once per process. If the program chose one
/// already, that stays.
fn choose_tls_provider() {
    if rustls::crypto::CryptoProvider::get_default().is_none() {
        let _ = rustls::crypto::ring::default_provider().install_default();
    }
}
