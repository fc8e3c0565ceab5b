//! One run's world: three replicas, two workers, each behind proxies of its own, a Redis, a database, a target with a
//! journal; and the list of what was done to them.

mod place;
mod slot;

use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use hookgate_harness::{Answer, Lottery, Process, Proxy, RedisServer, Upstream};
use tokio::time::Instant;

pub(crate) use place::{Place, Role, Running};
pub(crate) use slot::Slot;

use crate::evidence::{Disturbance, Harm};
use crate::settings::{REPLICAS, WORKERS};

/// A target in its normal mood: one request in fifty fails, so that retries mix with everything.
const FAILING_PERCENT: u64 = 2;

/// A run's world.
pub(crate) struct Scene {
    /// Its server, shared with the runs before and after.
    pub(crate) slot: Arc<Slot>,
    /// Its database there.
    pub(crate) database: String,
    /// Its own Redis.
    pub(crate) redis: tokio::sync::Mutex<RedisServer>,
    /// The user's service.
    pub(crate) target: Upstream,
    /// Replicas, then workers.
    pub(crate) places: Vec<Place>,
    began: Instant,
    mood: Answer,
    disturbances: Mutex<Vec<Disturbance>>,
    missed: Mutex<Vec<String>>,
}

impl Scene {
    /// Builds it and waits until every process listens.
    ///
    /// # Panics
    /// If something does not start; the message says what.
    pub(crate) async fn build(slot: Arc<Slot>, seed: u64) -> Self {
        let (database, redis, target) =
            tokio::join!(slot.database(), RedisServer::start(), Upstream::start());
        let postgres = slot.postgres.lock().await.addr();
        let mut places = Vec::new();
        for (role, count) in [(Role::Receive, REPLICAS), (Role::Work, WORKERS)] {
            for number in 0..count {
                let (to_redis, to_ledger) = tokio::join!(Proxy::start(redis.addr()), Proxy::start(postgres));
                places.push(Place::new(role, number, to_redis, to_ledger));
            }
        }
        let lottery = Lottery::new(
            seed,
            &[(FAILING_PERCENT, Answer::Status(500))],
            Answer::Slow(Duration::from_millis(3), 200),
        );
        let mood = Answer::Lottery(lottery);
        target.answer(mood.clone());
        let scene = Self {
            slot,
            database,
            redis: redis.into(),
            target,
            places,
            began: Instant::now(),
            mood,
            disturbances: Mutex::default(),
            missed: Mutex::default(),
        };
        let starts = scene.places.iter().map(|place| scene.start(place));
        futures_util::future::join_all(starts).await;
        scene
    }

    /// The replicas.
    pub(crate) fn replicas(&self) -> &[Place] {
        &self.places[..REPLICAS]
    }

    /// The workers.
    pub(crate) fn workers(&self) -> &[Place] {
        &self.places[REPLICAS..]
    }

    /// Time since the run began.
    pub(crate) fn now(&self) -> Duration {
        self.at(Instant::now())
    }

    /// A moment as time since the run began.
    pub(crate) fn at(&self, moment: Instant) -> Duration {
        moment.saturating_duration_since(self.began)
    }

    /// Puts a fresh process into a place.
    pub(crate) async fn start(&self, place: &Place) {
        self.start_with(place, |_| {}).await;
    }

    /// As [`Scene::start`], with something else in its environment.
    pub(crate) async fn start_with(&self, place: &Place, change: impl FnOnce(&mut Command)) {
        let name = place.next_name();
        let mut command = self.slot.gateway(place.role.as_str());
        command
            .env("REDIS_URL", format!("redis://{}", place.redis.addr()))
            .env(
                "DATABASE_URL",
                format!("postgres://postgres@{}/{}", place.ledger.addr(), self.database),
            )
            .env("HOOKGATE_TARGET_URL", slot::target_url(&self.target, &name));
        change(&mut command);
        let process = Process::spawn(command);
        let line = process
            .wait_for_line(|line| line.contains("probes and metrics on "))
            .await;
        place.fill(Arc::new(Running {
            name,
            process,
            public: address(&line, "listening on ").unwrap_or_default(),
            admin: address(&line, "probes and metrics on ").expect("the start names the admin address"),
            leaving: AtomicBool::new(false),
        }));
    }

    /// Kills whoever is in a place.
    pub(crate) async fn kill(&self, place: &Place) {
        let running = place.present();
        if running.process.has_exited() {
            return;
        }
        let from = self.now();
        running.leaving.store(true, Ordering::SeqCst);
        running.process.signal("KILL");
        running.process.wait_exit().await;
        self.note(Harm::Killed, Some(&running.name), from);
    }

    /// Writes down what was done from then until now.
    pub(crate) fn note(&self, harm: Harm, process: Option<&str>, from: Duration) {
        let disturbance = Disturbance {
            harm,
            process: process.map(str::to_owned),
            from,
            until: self.now(),
        };
        self.disturbances
            .lock()
            .expect("nobody panics over a list")
            .push(disturbance);
    }

    /// What was done so far.
    pub(crate) fn disturbances(&self) -> Vec<Disturbance> {
        self.disturbances
            .lock()
            .expect("nobody panics over a list")
            .clone()
    }

    /// A fault that waited in vain for the moment to strike.
    pub(crate) fn miss(&self, what: &str) {
        let mut missed = self.missed.lock().expect("nobody panics over a list");
        missed.push(what.to_owned());
    }

    /// All of them.
    pub(crate) fn missed(&self) -> Vec<String> {
        self.missed.lock().expect("nobody panics over a list").clone()
    }

    /// The target goes on as before.
    pub(crate) fn restore_target(&self) {
        self.target.answer(self.mood.clone());
    }
}

/// The address that follows these words in a line of the log.
fn address(line: &str, after: &str) -> Option<String> {
    let rest = line.split(after).nth(1)?;
    let end = rest.find(|c: char| !c.is_ascii_digit() && c != '.' && c != ':')?;
    Some(rest[..end].trim_end_matches(['.', ':']).to_owned())
}
