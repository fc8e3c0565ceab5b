//! Where connections come from: a pool for a server or for the primary that Sentinels name, a cluster client
//! for a cluster.
//!
//! Every pooled object stays out for as long as its connection is good, and commands share it by cloning the
//! multiplexed connection inside. So the pool bounds and names connections; its check at each checkout, a
//! round trip, is never paid.

use std::time::Duration;

use deadpool_redis::{PoolError, sentinel};
use redis::aio::ConnectionLike as _;
use redis::cluster::ClusterClient;
use redis::cluster_async::ClusterConnection;
use redis::{Pipeline, RedisResult, Value as Reply};

use super::answer::cause;
use super::settings::{BadRedisUrl, RedisSettings};

/// Makes connections.
pub(super) enum Source {
    Single(deadpool_redis::Pool),
    Sentinel(sentinel::Pool, Duration),
    Cluster(Box<ClusterClient>),
}

/// A connection that many commands use at once.
pub(super) enum Link {
    Single(deadpool_redis::Connection),
    Sentinel(sentinel::Connection, Duration),
    /// Holds one multiplexed connection to each node and follows moved slots by itself.
    Cluster(ClusterConnection),
}

impl Source {
    pub(super) fn new(settings: RedisSettings) -> Result<Self, BadRedisUrl> {
        settings.into_source()
    }

    /// A fresh connection to wherever the name leads now, or why there is none.
    pub(super) async fn connect(&self) -> Result<Link, String> {
        match self {
            Self::Single(pool) => Ok(Link::Single(pool.get().await.map_err(pool_cause)?)),
            Self::Sentinel(pool, limit) => Ok(Link::Sentinel(pool.get().await.map_err(pool_cause)?, *limit)),
            Self::Cluster(client) => {
                let connection = client
                    .get_async_connection()
                    .await
                    .map_err(|error| cause(&error))?;
                Ok(Link::Cluster(connection))
            }
        }
    }
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

impl Link {
    /// Sends all commands in one write; an error of the server is a reply, not an error.
    pub(super) async fn send(&self, commands: &Pipeline) -> RedisResult<Vec<Reply>> {
        let count = commands.len();
        match self {
            Self::Single(pooled) => {
                let mut connection = redis::aio::MultiplexedConnection::clone(pooled);
                connection.req_packed_commands(commands, 0, count).await
            }
            Self::Sentinel(pooled, limit) => {
                let mut connection = redis::aio::MultiplexedConnection::clone(pooled);
                // The pool for Sentinels takes no settings; without this its connections answer within 500 ms or fail.
                connection.set_response_timeout(*limit);
                connection.req_packed_commands(commands, 0, count).await
            }
            Self::Cluster(connection) => connection.clone().req_packed_commands(commands, 0, count).await,
        }
    }
}
