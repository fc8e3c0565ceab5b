//! Does the thing hold?
//!
//! Real replicas, workers and stores under every fault, and an oracle that compares what they tell: what the provider
//! heard, what the target saw, what the rows say, what the replicas counted. It knows the gateway from outside only: as
//! a process with settings, addresses, metrics and a table.

#![allow(clippy::print_stdout, reason = "a command line tool speaks by printing")]

mod collect;
pub mod command;
mod draw;
mod evidence;
mod fault;
mod oracle;
mod outcome;
mod plan;
mod provider;
mod report;
mod rows;
mod run;
mod scene;
mod settings;
mod suite;
mod totals;
