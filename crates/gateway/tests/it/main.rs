//! The gateway from outside: the real binary, real Redis, real Postgres, real sockets; HTTP answers, rows,
//! keys, metrics and log lines are what is looked at.

mod gateway;
mod path;
mod provider;
