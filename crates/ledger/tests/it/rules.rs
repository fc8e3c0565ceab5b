//! Both dialects against the rules of a row's life: random histories of one event are played to a real ledger and
//! to the pure rules, and after every step the answers and the rows must agree.
//!
//! Time is simulated: to let it pass, every moment in the row is moved back. So leases of many minutes end at once,
//! and what a slow machine adds is far below what two moments lie apart.
//!
//! A failure prints the shortest history that fails and the seed; `HOOKGATE_SEED=<seed>` plays that again, and
//! `HOOKGATE_HISTORIES=<number>` plays more of them.

mod history;
mod looks;
mod scene;

use std::env;
use std::fmt::Debug;
use std::str::FromStr;

use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};
use tokio::runtime::Runtime;

use self::history::histories;
use self::scene::Scene;
use crate::database::Database;

/// Enough to meet every pair of steps many times over; a few seconds of a real database.
const HISTORIES: u32 = 100;

#[test]
fn on_postgres_every_history_goes_by_the_rules() {
    every_history_goes_by_the_rules(async || Database::postgres().await);
}

#[test]
fn on_sqlite_every_history_goes_by_the_rules() {
    every_history_goes_by_the_rules(async || Database::sqlite());
}

fn every_history_goes_by_the_rules(database: impl AsyncFn() -> Database) {
    let runtime = Runtime::new().unwrap();
    let scene = runtime.block_on(async { Scene::on(database().await).await });
    let seed: u64 = asked("HOOKGATE_SEED").unwrap_or_else(rand::random);
    let cases = asked("HOOKGATE_HISTORIES").unwrap_or(HISTORIES);
    let config = Config {
        cases,
        failure_persistence: None,
        ..Config::default()
    };
    let mut bytes = [0; 32];
    bytes[..8].copy_from_slice(&seed.to_be_bytes());
    let rng = TestRng::from_seed(RngAlgorithm::ChaCha, &bytes);
    let played = TestRunner::new_with_rng(config, rng)
        .run(&histories(), |history| runtime.block_on(scene.play(&history)));
    if let Err(failure) = played {
        panic!("HOOKGATE_SEED={seed}: {failure}");
    }
}

#[expect(clippy::disallowed_methods, reason = "whoever plays a history again names it")]
fn asked<N: FromStr<Err: Debug>>(name: &str) -> Option<N> {
    env::var(name).ok().map(|number| number.parse().unwrap())
}
