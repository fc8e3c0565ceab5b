//! The harness tested on itself: a test that stands on it may blame hookgate only if these hold.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on should panic")]

mod postgres;
mod process;
mod proxy;
mod redis;
mod redis_groups;
mod survivors;
mod upstream;
