//! How does it run?
//!
//! The gateway holds the loops and the edges: the public and the admin listener, the path of a delivery,
//! the worker, configuration, metrics, logs, and the commands of the `hookgate` binary. What a signature
//! is, what a provider says, who has an event and what must never be lost are questions for the crates it
//! stands on.

mod admin;
mod app;
mod assembly;
mod breaker;
pub mod cli;
mod clock;
mod command;
pub mod config;
mod handler;
mod intake;
mod logging;
mod metrics;
mod receiver;
mod rejection;
mod sink;
mod stores;
mod target;
mod worker;
