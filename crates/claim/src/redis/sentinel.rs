//! Who is the primary: whoever a Sentinel names and who says so itself.
//!
//! All Sentinels are asked at the same time, and each server they name is asked once. So neither a Sentinel that
//! hangs nor one that still names a primary that is gone holds up those that know better, which is the usual
//! state of things when a machine is lost that ran a server and a Sentinel.

use redis::aio::{ConnectionLike as _, MultiplexedConnection};
use redis::{ConnectionAddr, ConnectionInfo, RedisError, Value as Reply, cmd};
use tokio::task::JoinSet;

use super::answer::cause;
use super::connection::connect;

/// The Sentinels, and how to speak to the servers behind them.
pub(super) struct Sentinels {
    /// Each with its own log-in.
    pub(super) sentinels: Vec<ConnectionInfo>,
    /// The primary's name.
    pub(super) master: String,
    /// Log-in, db and kind of address of the servers; the address itself is the Sentinels' to say.
    pub(super) server: ConnectionInfo,
}

impl Sentinels {
    /// A connection to the present primary, or why there is none.
    pub(super) async fn primary(&self) -> Result<MultiplexedConnection, String> {
        let mut asked = JoinSet::new();
        for sentinel in &self.sentinels {
            asked.spawn(named(sentinel.clone(), self.master.clone()));
        }
        let (mut tried, mut trying) = (Vec::new(), JoinSet::new());
        let mut last = String::new();
        loop {
            tokio::select! {
                Some(named) = asked.join_next() => match named.unwrap_or_else(|_| Err(ABORTED.into())) {
                    Ok(place) if tried.contains(&place) => {}
                    Ok(place) => {
                        trying.spawn(confirmed(self.server_at(&place)));
                        tried.push(place);
                    }
                    // What a server says of itself tells more than what a Sentinel does not know.
                    Err(cause) if tried.is_empty() => last = cause,
                    Err(_) => {}
                },
                Some(confirmed) = trying.join_next() => match confirmed.unwrap_or_else(|_| Err(ABORTED.into())) {
                    Ok(connection) => return Ok(connection),
                    Err(cause) => last = cause,
                },
                else => return Err(last),
            }
        }
    }

    fn server_at(&self, (host, port): &(String, u16)) -> ConnectionInfo {
        let (host, port) = (host.clone(), *port);
        let place = match self.server.addr() {
            ConnectionAddr::TcpTls {
                insecure, tls_params, ..
            } => ConnectionAddr::TcpTls {
                host,
                port,
                insecure: *insecure,
                tls_params: tls_params.clone(),
            },
            _ => ConnectionAddr::Tcp(host, port),
        };
        self.server.clone().set_addr(place)
    }
}

/// A task that was not allowed to end.
const ABORTED: &str = "connecting was aborted";

/// Whom a Sentinel calls the primary.
async fn named(sentinel: ConnectionInfo, master: String) -> Result<(String, u16), String> {
    let of_sentinel = |cause: String| format!("a Sentinel: {cause}");
    let mut connection = connect(sentinel).await.map_err(of_sentinel)?;
    let mut ask = cmd("SENTINEL");
    ask.arg("GET-MASTER-ADDR-BY-NAME").arg(&master);
    let answer = connection.req_packed_command(&ask).await;
    let answer = answer.map_err(|error| of_sentinel(cause(&error)))?;
    match answer {
        Reply::ServerError(error) => Err(of_sentinel(cause(&RedisError::from(error)))),
        Reply::Array(items) => match items.as_slice() {
            [Reply::BulkString(host), Reply::BulkString(port)] => place(host, port),
            _ => None,
        }
        .ok_or_else(|| of_sentinel("an answer of an unexpected form".into())),
        _ => Err(of_sentinel("it knows no primary of this name".into())),
    }
}

fn place(host: &[u8], port: &[u8]) -> Option<(String, u16)> {
    let (host, port) = (str::from_utf8(host).ok()?, str::from_utf8(port).ok()?);
    Some((host.to_owned(), port.parse().ok()?))
}

/// A connection to this server, if it takes itself for a primary. For a moment after a failover Sentinels may name one
/// that does not.
async fn confirmed(server: ConnectionInfo) -> Result<MultiplexedConnection, String> {
    let mut connection = connect(server).await?;
    let mut ask = cmd("INFO");
    ask.arg("replication");
    let answer = connection.req_packed_command(&ask).await;
    let text = match answer.map_err(|error| cause(&error))? {
        Reply::ServerError(error) => return Err(cause(&RedisError::from(error))),
        Reply::BulkString(text) => String::from_utf8_lossy(&text).into_owned(),
        Reply::VerbatimString { text, .. } => text,
        _ => return Err("an answer of an unexpected form".into()),
    };
    match text.lines().any(|line| line == "role:master") {
        true => Ok(connection),
        false => Err("the Sentinels name a server that is no primary".into()),
    }
}
