//! Workers that are killed at every point of an event's way: before the target hears of it, while it works, after it
//! has answered, on the way to the dead letters, and at the last try. The others go on without anybody's help.

use futures_util::future::join_all;
use hookgate_harness::{Answer, Fault, Gate, Proxy, Request, Upstream};
use hookgate_ledger::State;

use crate::account::Account;
use crate::deployment::{Deployment, Stores};
use crate::gateway::Replica;
use crate::patience::until;
use crate::provider::{self, Signed};

/// The victim's: longer than a busy machine keeps it from renewing it while it lives.
const LEASE: &str = "3s";

/// A worker that has an event, and another one that has none.
struct Scene {
    deployment: Deployment,
    target: Upstream,
    victim: Replica,
    _other: Replica,
    event: Signed,
}

impl Scene {
    /// The event is on its way to a target, by way of `proxy` if there is one.
    async fn set(stores: Stores, answer: Answer, tries: &str, proxied: bool) -> (Self, Proxy) {
        let target = Upstream::start().await;
        target.answer(answer);
        let proxy = Proxy::start(target.addr()).await;
        let deployment = Deployment::on(stores).await.delivering_to(&target);
        let deployment = deployment
            .set("HOOKGATE_WORKER_LEASE", LEASE)
            .set("HOOKGATE_RETRY_MAX_ATTEMPTS", tries)
            .set("HOOKGATE_RETRY_BASE", "20ms");
        let deployment = if proxied {
            proxy.set(Fault::Blackhole);
            deployment.set("HOOKGATE_TARGET_URL", &format!("http://{}", proxy.addr()))
        } else {
            deployment
        };
        let (victim, event) = (deployment.replica().await, provider::fresh());
        assert!(victim.deliver(&event).await.is_ok(false));
        until("it has the event", async || {
            deployment.state(&event).await == Some((State::Running, 1))
        })
        .await;
        let deployment = deployment
            .delivering_to(&target)
            .set("HOOKGATE_WORKER_LEASE", "30s");
        let other = deployment.start("work").await;
        let scene = Self {
            deployment,
            target,
            victim,
            _other: other,
            event,
        };
        (scene, proxy)
    }

    async fn kill(&self) {
        self.victim.process().signal("KILL");
        assert_eq!(self.victim.process().wait_exit().await, None, "a signal ended it");
        assert_eq!(
            self.deployment.state(&self.event).await,
            Some((State::Running, 1))
        );
    }

    /// Waits until the event is at rest, and looks at what the target and the ledger say together.
    async fn ends(&self, expected: &Expected) {
        let entry = self.deployment.wait_for_state(&self.event, expected.state).await;
        let account = Account::of(&self.deployment, &self.target).await;
        let seen = (entry.attempts, account.calls, account.doubled);
        let wanted = (expected.attempts, expected.calls, expected.doubled);
        assert_eq!(seen, wanted, "{expected:?}: {account}");
        assert_eq!(account.lost, 1, "{expected:?}: the crash is counted: {account}");
        let error = entry.last_error.unwrap_or_default();
        assert!(error.contains(expected.error), "{expected:?}: {error}");
    }
}

/// What becomes of the event.
#[derive(Debug)]
struct Expected {
    state: State,
    attempts: u32,
    calls: usize,
    doubled: usize,
    error: &'static str,
}

impl Expected {
    /// Delivered by the other worker.
    fn done(calls: usize, doubled: usize) -> Self {
        Self {
            state: State::Done,
            attempts: 2,
            calls,
            doubled,
            error: "",
        }
    }

    fn dead(attempts: u32, calls: usize, error: &'static str) -> Self {
        Self {
            state: State::Dead,
            attempts,
            calls,
            doubled: 0,
            error,
        }
    }
}

#[tokio::test]
async fn an_event_whose_worker_is_killed_comes_to_rest_wherever_it_was_on_postgres() {
    killed_everywhere(Stores::PostgresAlone).await;
}

#[tokio::test]
async fn an_event_whose_worker_is_killed_comes_to_rest_wherever_it_was_on_sqlite() {
    killed_everywhere(Stores::Embedded).await;
}

/// Kills one after the other, and then waits for the ends of all leases at once.
async fn killed_everywhere(stores: Stores) {
    let scenes = [
        (before_the_target_heard_of_it(stores).await, Expected::done(1, 0)),
        (while_the_target_worked(stores, "5").await, Expected::done(2, 0)),
        (
            before_writing_the_answer_down(stores, 200).await,
            Expected::done(2, 1),
        ),
        (
            before_writing_the_answer_down(stores, 410).await,
            Expected::dead(2, 2, "410"),
        ),
        (
            while_the_target_worked(stores, "1").await,
            Expected::dead(1, 1, "did not end"),
        ),
    ];
    join_all(scenes.iter().map(|(scene, expected)| scene.ends(expected))).await;
}

async fn before_the_target_heard_of_it(stores: Stores) -> Scene {
    let (scene, proxy) = Scene::set(stores, Answer::Status(200), "5", true).await;
    until("the call is on its way", async || proxy.connections() > 0).await;
    scene.kill().await;
    scene
}

async fn while_the_target_worked(stores: Stores, tries: &str) -> Scene {
    let (scene, _proxy) = Scene::set(stores, Answer::Hang, tries, false).await;
    scene.target.wait_for(1).await;
    scene.kill().await;
    scene.target.answer(Answer::Status(200));
    scene
}

/// The target has answered, and its answer is never written down: a success, or a reason to give the event up.
async fn before_writing_the_answer_down(stores: Stores, status: u16) -> Scene {
    let gate = Gate::closed();
    let answer = Answer::Gate(gate.clone(), status);
    let (scene, _proxy) = Scene::set(stores, answer, "5", false).await;
    scene.target.wait_for(1).await;
    let standstill = scene.deployment.hold().await;
    gate.open();
    let answered = |calls: &[Request]| calls[0].answered.is_some();
    scene.target.wait_until(answered).await;
    scene.kill().await;
    // Postgres goes on with what a dead client has asked for, so the lock is kept until it has given up.
    if scene.deployment.file().is_none() {
        let settling = "SELECT count(*) FROM pg_stat_activity
                        WHERE datname = current_database() AND state = 'active' AND query LIKE '%ended AS%'
                          AND pid <> pg_backend_pid()";
        until("nobody settles", async || {
            scene.deployment.sql(settling).await == "0"
        })
        .await;
    }
    drop(standstill);
    scene
}
