//! Real things for the tests of hookgate to stand on: stores that can be killed, paused and restarted, a network
//! that breaks on command, a target that misbehaves on command, and the gateway as a child process.
//!
//! Nothing here is a mock. Each server runs on a free port of 127.0.0.1 in a directory of its own, and none outlives
//! the test process, however that ends: a watchdog outside of it sees to that.
//! Waiting is always for the thing itself (a log line, an exit, a request), bounded by [`PATIENCE`], and a wait that
//! fails panics with what the server had said until then.

mod home;
mod http;
mod journal;
mod lottery;
mod pgbouncer;
mod ports;
mod postgres;
mod postgres_install;
mod postgres_roles;
mod process;
mod proxy;
mod redis;
mod redis_cluster;
mod redis_roles;
mod redis_sentinel;
mod signals;
mod upstream;
mod watchdog;

pub use journal::Request;
pub use lottery::Lottery;
pub use pgbouncer::{PgBouncer, PoolMode};
pub use postgres::PostgresServer;
pub use process::Process;
pub use proxy::{Fault, Proxy, Then, Trap, Trapped};
pub use redis::{Monitor, RedisOptions, RedisServer};
pub use redis_cluster::{Migration, RedisCluster};
pub use redis_sentinel::{RedisSentinel, RedisSentinels};
pub use upstream::{Answer, Capacity, Gate, Upstream};

/// How long anything is waited for before a test is called failed: long enough for a busy two-core machine.
pub const PATIENCE: std::time::Duration = std::time::Duration::from_secs(30);
