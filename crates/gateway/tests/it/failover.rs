//! The primary is lost, and a standby that lacks the latest events takes over under its name. Redis still holds done
//! marks of what the new history never had: they must not count, or those events would be lost behind a 200.

use hookgate_harness::{PostgresServer, Proxy, RedisServer, Upstream};

use crate::deployment::Deployment;
use crate::gateway::{Answer, Replica};
use crate::patience::until;
use crate::provider::{self, Signed};

const SOME: usize = 5;

/// A primary and its standby behind one name, and replicas that know only that.
struct Scene {
    primary: PostgresServer,
    standby: PostgresServer,
    name: Proxy,
    database: String,
    deployment: Deployment,
    target: Upstream,
    _redis: RedisServer,
}

impl Scene {
    async fn open(handler: &str) -> Self {
        let (redis, primary) = (RedisServer::start().await, PostgresServer::start().await);
        let (database, standby) = (primary.create_database().await, primary.standby().await);
        let (target, name) = (Upstream::start().await, Proxy::start(primary.addr()).await);
        let deployment = Deployment::with_database(&redis.url(), &database)
            .through("DATABASE_URL", &name)
            .delivering_to(&target)
            .set("HOOKGATE_HANDLER", handler);
        Self {
            primary,
            standby,
            name,
            database,
            deployment,
            target,
            _redis: redis,
        }
    }

    /// Events that took effect and are marked, as the primary and Redis know.
    async fn done(&self, replica: &Replica) -> Vec<Signed> {
        let events: Vec<_> = (0..SOME).map(|_| provider::fresh()).collect();
        for event in &events {
            assert!(replica.deliver(event).await.is_ok(false));
        }
        let unfinished = "SELECT count(*) FROM webhook_events WHERE state <> 'done'";
        until("all are done", async || {
            self.primary.psql(&self.database, unfinished) == "0"
        })
        .await;
        let before = replica.duplicates("stripe", "claim").await;
        for event in &events {
            assert!(replica.deliver(event).await.is_ok(true));
        }
        assert_eq!(replica.duplicates("stripe", "claim").await - before, SOME as f64);
        events
    }

    /// A look at the new primary.
    fn now_has(&self, event: &Signed) -> bool {
        let name = self
            .database
            .rsplit('/')
            .next()
            .expect("a URL names its database");
        let url = self.standby.url(name);
        let count = format!(
            "SELECT count(*) FROM webhook_events WHERE event_id = '{}'",
            event.event_id
        );
        self.standby.psql(&url, &count) == "1"
    }
}

fn says_later(answer: &Answer) -> bool {
    answer.says_later(503, "unavailable")
}

/// Sends an event until it is answered by somebody who can.
async fn resend(replica: &Replica, event: &Signed) -> Answer {
    loop {
        let answer = replica.deliver(event).await;
        if answer.status == 200 {
            return answer;
        }
        assert!(says_later(&answer), "{answer:?}");
    }
}

async fn marks_of_a_lost_primary_do_not_count(handler: &str) {
    let scene = Scene::open(handler).await;
    let replicas = [scene.deployment.replica().await, scene.deployment.replica().await];
    let kept = scene.done(&replicas[0]).await;
    scene.standby.catch_up_with(&scene.primary).await;
    scene.standby.cut_off().await;
    let lost = scene.done(&replicas[1]).await;

    scene.primary.kill().await;
    // Nobody asked the ledger anything; its witness knows that the server is gone.
    for replica in &replicas {
        until("marks are in doubt", async || {
            says_later(&replica.deliver(&lost[0]).await)
        })
        .await;
    }
    scene.standby.promote();
    for event in kept.iter().chain(&lost) {
        for replica in &replicas {
            let answer = replica.deliver(event).await;
            assert!(says_later(&answer), "no ledger, no promise: {answer:?}");
        }
    }
    scene.name.lead_to(scene.standby.addr());
    let restarted = scene.deployment.replica().await;
    let everybody = [&replicas[0], &replicas[1], &restarted];
    for (n, event) in lost.iter().enumerate() {
        let first = resend(everybody[n % 3], event).await;
        assert!(first.is_ok(false), "the new history lacks it: {first:?}");
        assert!(scene.now_has(event), "{handler}: a 200 means that it is kept");
        for replica in everybody {
            assert!(resend(replica, event).await.is_ok(true));
        }
    }
    for event in &kept {
        for replica in everybody {
            assert!(resend(replica, event).await.is_ok(true), "the new history has it");
        }
    }
    for event in &lost {
        until("it runs again", async || {
            scene.target.count_for(&event.target_id()) == 2
        })
        .await;
    }
    for event in &kept {
        assert_eq!(scene.target.count_for(&event.target_id()), 1);
    }
}

#[tokio::test]
async fn marks_of_a_lost_primary_do_not_count_for_an_inbox() {
    marks_of_a_lost_primary_do_not_count("inbox").await;
}

#[tokio::test]
async fn marks_of_a_lost_primary_do_not_count_for_a_forward() {
    marks_of_a_lost_primary_do_not_count("forward").await;
}

#[tokio::test]
async fn marks_do_not_count_while_the_name_leads_to_a_standby_nor_after_it_took_over_under_open_connections()
{
    let scene = Scene::open("inbox").await;
    let replica = scene.deployment.replica().await;
    let kept = scene.done(&replica).await;
    scene.standby.catch_up_with(&scene.primary).await;
    scene.standby.cut_off().await;
    let lost = scene.done(&replica).await;
    scene.name.lead_to(scene.standby.addr());
    scene.primary.kill().await;
    // A standby answers questions, and names no history.
    until("marks are in doubt", async || {
        says_later(&replica.deliver(&lost[0]).await)
    })
    .await;
    let early = scene.deployment.replica().await;
    for replica in [&replica, &early] {
        assert!(says_later(&replica.deliver(&lost[0]).await));
    }
    scene.standby.promote();
    for (event, replica) in lost.iter().zip([&replica, &early].into_iter().cycle()) {
        assert!(resend(replica, event).await.is_ok(false));
        assert!(scene.now_has(event));
    }
    for event in &kept {
        assert!(resend(&replica, event).await.is_ok(true));
    }
}
