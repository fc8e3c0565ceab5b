//! Where connections come from: a pool for a server or for the primary that Sentinels name, a cluster client
//! for a cluster.
//!
//! Every pooled object stays out for as long as its connection is good, and commands share it by cloning the
//! multiplexed connection inside. So the pool bounds and names connections; its check at each checkout, a
//! round trip, is never paid.

use std::time::Duration;

use deadpool_redis::{PoolError, sentinel};
use redis::aio::{ConnectionLike as _, MultiplexedConnection};
use redis::cluster::ClusterClient;
use redis::cluster_async::ClusterConnection;
use redis::{Pipeline, RedisResult, Value as Reply};

use super::answer::cause;

/// Makes connections.
pub(super) enum Source {
    /// One name.
    Single(deadpool_redis::Pool),
    /// Whoever the Sentinels name; with the limit of each answer, which this pool cannot be told.
    Sentinel(sentinel::Pool, Duration),
    Cluster(Box<ClusterClient>),
}

impl Source {
    /// A fresh connection to wherever the name leads now, or why there is none.
    pub(super) async fn connect(&self) -> Result<Link, String> {
        match self {
            Self::Single(pool) => {
                let pooled = pool.get().await.map_err(pool_cause)?;
                let wire = Wire::Node(MultiplexedConnection::clone(&pooled));
                Ok(Link {
                    wire,
                    place: Place::InPool(Some(pooled)),
                })
            }
            Self::Sentinel(pool, limit) => {
                let pooled = pool.get().await.map_err(pool_cause)?;
                let mut connection = MultiplexedConnection::clone(&pooled);
                connection.set_response_timeout(*limit);
                Ok(Link {
                    wire: Wire::Node(connection),
                    place: Place::InSentinelPool(Some(pooled)),
                })
            }
            Self::Cluster(client) => {
                let connection = client
                    .get_async_connection()
                    .await
                    .map_err(|error| cause(&error))?;
                Ok(Link {
                    wire: Wire::Cluster(connection),
                    place: Place::Own,
                })
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

/// A connection that many commands use at once.
pub(super) struct Link {
    wire: Wire,
    place: Place,
}

enum Wire {
    Node(MultiplexedConnection),
    /// Holds one multiplexed connection to each node and follows moved slots by itself.
    Cluster(ClusterConnection),
}

/// The connection's place in its pool, taken until the last command on it has ended.
enum Place {
    InPool(Option<deadpool_redis::Connection>),
    InSentinelPool(Option<sentinel::Connection>),
    Own,
}

impl Link {
    /// Sends all commands in one write; an error of the server is a reply, not an error.
    pub(super) async fn send(&self, commands: &Pipeline) -> RedisResult<Vec<Reply>> {
        match &self.wire {
            Wire::Node(connection) => {
                connection
                    .clone()
                    .req_packed_commands(commands, 0, commands.len())
                    .await
            }
            Wire::Cluster(connection) => {
                connection
                    .clone()
                    .req_packed_commands(commands, 0, commands.len())
                    .await
            }
        }
    }
}

impl Drop for Link {
    /// A link is dropped when it was left, or at the end. Given back, its pool would keep it open and hand it
    /// out again: to a server that was demoted, or into a silent network.
    fn drop(&mut self) {
        match &mut self.place {
            Place::InPool(pooled) => drop(pooled.take().map(deadpool_redis::Connection::take)),
            Place::InSentinelPool(pooled) => drop(pooled.take().map(sentinel::Connection::take)),
            Place::Own => {}
        }
    }
}
