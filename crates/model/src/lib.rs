//! Is the protocol right?
//!
//! A small model of claim and ledger, checked in every order of steps and faults. One event, a few replicas and
//! deliveries, a few faults; within these bounds nothing is left out. It runs the transitions of the product itself:
//! the pure functions of `hookgate-claim`, `hookgate-ledger` and `hookgate-gateway`. What it tells again in its own
//! words is only in which order the path asks its questions.
//!
//! A model that cannot fail proves nothing. So [`naive`] receivers and [`mutations`] of each transition are checked
//! as well, and each must break the promise that it is said to break.

mod aftermath;
pub mod bounds;
pub mod check;
mod message;
pub mod mutations;
pub mod naive;
mod passing;
mod path;
pub mod promises;
pub mod protocol;
pub mod situations;
mod state;
mod step;
mod story;
mod symmetry;
mod worker;
