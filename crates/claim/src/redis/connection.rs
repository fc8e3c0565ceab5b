//! Where connections come from: a pool for a server, or a fresh one to the primary that Sentinels name or to a node
//! of a cluster.
//!
//! Every pooled object stays out for as long as its connection is good, and commands share it by cloning the
//! multiplexed connection inside. So the pool bounds and names connections; its check at each checkout, a
//! round trip, is never paid. Where the address is found out anew for each connection there is nothing to pool.

use deadpool_redis::PoolError;
use redis::aio::{ConnectionLike as _, MultiplexedConnection};
use redis::{AsyncConnectionConfig, Client, ConnectionInfo, Pipeline, RedisResult, Value as Reply};

use super::answer::cause;
use super::sentinel::Sentinels;

/// Commands that may wait to be written to one connection; a larger burst waits at the door.
const UNWRITTEN_MAX: usize = 1_024;

/// Makes connections.
pub(super) enum Source {
    /// One name.
    Single(deadpool_redis::Pool),
    /// Whoever the Sentinels name.
    Sentinel(Box<Sentinels>),
    /// A node of a cluster.
    Node(Box<ConnectionInfo>),
}

impl Source {
    /// A fresh connection to wherever the name leads now, or why there is none.
    pub(super) async fn connect(&self) -> Result<Link, String> {
        let own = |connection| Link {
            connection,
            pooled: None,
        };
        match self {
            Self::Single(pool) => {
                let pooled = pool.get().await.map_err(pool_cause)?;
                Ok(Link {
                    connection: MultiplexedConnection::clone(&pooled),
                    pooled: Some(pooled),
                })
            }
            Self::Sentinel(sentinels) => Ok(own(sentinels.primary().await?)),
            Self::Node(info) => Ok(own(connect(ConnectionInfo::clone(info)).await?)),
        }
    }

    pub(super) fn of_node(info: ConnectionInfo) -> Self {
        Self::Node(Box::new(info))
    }
}

/// Without limits of its own: whoever waits for a connection has one over everything.
pub(super) fn config() -> AsyncConnectionConfig {
    AsyncConnectionConfig::new()
        .set_response_timeout(None)
        .set_connection_timeout(None)
        .set_pipeline_buffer_size(UNWRITTEN_MAX)
}

/// A connection to this server, or why there is none.
pub(super) async fn connect(info: ConnectionInfo) -> Result<MultiplexedConnection, String> {
    let client = Client::open(info).map_err(|error| cause(&error))?;
    let connected = client
        .get_multiplexed_async_connection_with_config(&config())
        .await;
    connected.map_err(|error| cause(&error))
}

fn pool_cause(error: PoolError) -> String {
    match error {
        PoolError::Backend(error) => cause(&error),
        PoolError::Timeout(_) => "no connection is free".into(),
        PoolError::Closed | PoolError::NoRuntimeSpecified | PoolError::PostCreateHook(_) => {
            "the connection pool is closed".into()
        }
    }
}

/// A connection that many commands use at once.
pub(super) struct Link {
    connection: MultiplexedConnection,
    /// Its place in its pool, taken until the last command on it has ended.
    pooled: Option<deadpool_redis::Connection>,
}

impl Link {
    /// Sends all commands in one write; an error of the server is a reply, not an error.
    pub(super) async fn send(&self, commands: &Pipeline) -> RedisResult<Vec<Reply>> {
        let mut connection = self.connection.clone();
        connection.req_packed_commands(commands, 0, commands.len()).await
    }
}

impl Drop for Link {
    /// A link is dropped when it was left, or at the end. Given back, its pool would keep it open and hand it
    /// out again: to a server that was demoted, or into a silent network.
    fn drop(&mut self) {
        drop(self.pooled.take().map(deadpool_redis::Connection::take));
    }
}
