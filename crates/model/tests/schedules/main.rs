//! Random schedules over the real stores, in simulated time: deliveries of one event, a worker, a target, and whatever
//! can go wrong between them, one step at a time and in an order that a seed draws.
//!
//! The model beside this checks every order of a small world; here the claims and the ledger are the real ones, and the
//! histories are longer. What stands between them, network, processes and target, is played. Time passes by moving every
//! moment in the stores back, so that leases of minutes end at once and a slow machine changes nothing.
//!
//! A schedule that breaks a promise prints its seed and its story. `HOOKGATE_SEED=<seed>` plays just that one again, and
//! `HOOKGATE_SCHEDULES=<number>` plays more of them.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on should say where")]

mod claims;
mod delivery;
mod desk;
mod network;
mod schedule;
mod target;
mod worker;
mod world;

use std::env;
use std::fmt::Debug;
use std::str::FromStr;

use self::schedule::Schedule;
use self::world::Stores;

/// Of each pair of stores.
const SCHEDULES: u64 = 150;

#[tokio::test]
async fn with_memory_and_sqlite_every_schedule_keeps_its_promises() {
    play(&Stores::embedded().await).await;
}

#[tokio::test]
async fn with_redis_and_postgres_every_schedule_keeps_its_promises() {
    play(&Stores::shared().await).await;
}

#[expect(clippy::print_stdout, reason = "what was met is told to whoever asks for it")]
async fn play(stores: &Stores) {
    let asked_seed = asked("HOOKGATE_SEED");
    let first = asked_seed.unwrap_or_else(|| rand::random::<u64>() >> 16);
    let number = match asked_seed {
        Some(_) => 1,
        None => asked("HOOKGATE_SCHEDULES").unwrap_or(SCHEDULES),
    };
    let mut met = Met::default();
    for seed in first..first + number {
        let outcome = Schedule::new(seed, stores).play().await;
        match outcome {
            Ok(of_this) => met.add(of_this),
            Err(broken) => panic!("HOOKGATE_SEED={seed}: {broken}"),
        }
    }
    println!("seeds {first} to {}: {met:?}", first + number - 1);
    if number >= SCHEDULES {
        met.insist();
    }
}

/// How often something interesting happened: schedules in which nothing can happen would keep every promise.
#[derive(Debug, Default, Clone, Copy)]
pub(crate) struct Met {
    accepted: u32,
    duplicates_by_claim: u32,
    duplicates_by_ledger: u32,
    fallbacks: u32,
    taken_over: u32,
    late_owners: u32,
    crashes: u32,
    second_calls: u32,
    late_arrivals: u32,
    told_later: u32,
    promotions: u32,
}

impl Met {
    fn numbers(&mut self) -> [(&'static str, &mut u32); 11] {
        [
            ("accepted", &mut self.accepted),
            ("duplicates by claim", &mut self.duplicates_by_claim),
            ("duplicates by ledger", &mut self.duplicates_by_ledger),
            ("fallbacks", &mut self.fallbacks),
            ("takeovers", &mut self.taken_over),
            ("late owners", &mut self.late_owners),
            ("crashes", &mut self.crashes),
            ("second calls", &mut self.second_calls),
            ("late arrivals", &mut self.late_arrivals),
            ("finishes told later", &mut self.told_later),
            ("promotions", &mut self.promotions),
        ]
    }

    fn add(&mut self, mut other: Self) {
        for ((_, sum), (_, number)) in self.numbers().into_iter().zip(other.numbers()) {
            *sum += *number;
        }
    }

    fn insist(&mut self) {
        for (what, number) in self.numbers() {
            assert!(*number > 0, "no schedule met any of the {what}");
        }
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "whoever plays a schedule again names it"
)]
fn asked<N: FromStr<Err: Debug>>(name: &str) -> Option<N> {
    env::var(name).ok().map(|number| number.parse().unwrap())
}
