//! How does it run?
//!
//! The gateway holds the loops and the edges: the public and the admin listener, the path of a delivery,
//! the worker, configuration, metrics, logs, and the commands of the `hookgate` binary. What a signature
//! is, what a provider says, who has an event and what must never be lost are questions for the crates it
//! stands on.

pub mod address;
pub mod admin;
pub mod app;
pub mod assembly;
pub mod batch;
pub mod body;
pub mod breaker;
pub mod certificates;
pub mod cli;
pub mod clock;
pub mod command;
pub mod config;
pub mod handler;
pub mod identity;
pub mod intake;
pub mod keepers;
pub mod keyring;
mod listener;
pub mod logging;
pub mod metrics;
pub mod notifier;
pub mod receiver;
pub mod rejection;
pub mod rotation;
pub mod sink;
pub mod stores;
pub mod sweeper;
pub mod tally;
pub mod target;
mod unread;
pub mod verdict;
pub mod view;
pub mod worker;
