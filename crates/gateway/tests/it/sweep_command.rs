//! Retention from outside: the command, the role, and one sweep at a time.

use hookgate_harness::{PostgresServer, Process};

use crate::command_line::{Ran, run};
use crate::deployment::{Deployment, Stores};
use crate::embedded;
use crate::gateway::{Replica, command};
use crate::patience::until;
use crate::provider::{self, SECRET};

const LAST_SUCCESS: &str = "hookgate_sweep_last_success_timestamp_seconds";
const PRUNED: &str = "hookgate_swept_rows_total{action=\"pruned\"}";

/// Lets everything that is finished have been finished a month ago.
const AGE: &str = "UPDATE webhook_events SET processed_at = processed_at - interval '31 days'";

/// Rows of an old inbox.
const OLD_ROWS: &str = "
    INSERT INTO webhook_events (source, event_id, provider, path, state, received_at, processed_at,
                                delivery_id, body_sha256, headers, body)
    SELECT 'stripe', 'old_' || n, 'stripe', 'inbox', 'done', now() - interval '31 days', now() - interval '31 days',
           '', decode(repeat('00', 32), 'hex'), '[]', decode(repeat('ab', 500), 'hex')
    FROM generate_series(1, 40000) AS n";

const FULL: &str = "SELECT count(*) FROM webhook_events WHERE pruned_at IS NULL";

async fn sweep(database: &str) -> Ran {
    run(&["sweep", "--once"], &[("DATABASE_URL", database)]).await
}

#[tokio::test]
async fn an_emptied_event_is_still_a_duplicate_when_it_comes_again() {
    let postgres = PostgresServer::shared().await;
    let deployment = Deployment::on(Stores::PostgresAlone).await;
    let database = deployment.setting("DATABASE_URL").to_owned();
    let replica = deployment.replica().await;
    until("its own first sweep is over", async || {
        replica.metric(LAST_SUCCESS).await > 0.0
    })
    .await;
    let (old, young) = (provider::fresh(), provider::fresh());
    assert!(replica.deliver(&old).await.is_ok(false));
    postgres.psql(&database, AGE);
    assert!(replica.deliver(&young).await.is_ok(false));
    let ran = sweep(&database).await;
    assert_eq!(
        (ran.code, ran.text().as_str()),
        (Some(0), "1 bodies emptied, 0 rows deleted")
    );
    let ran = sweep(&database).await;
    assert_eq!(
        (ran.code, ran.text().as_str()),
        (Some(0), "0 bodies emptied, 0 rows deleted")
    );
    assert_eq!(postgres.psql(&database, FULL), "1");
    for event in [&old, &young] {
        assert!(replica.deliver(event).await.is_ok(true));
    }
}

#[tokio::test]
async fn one_sweeps_at_a_time_and_the_other_says_so() {
    let postgres = PostgresServer::shared().await;
    let database = postgres.create_database().await;
    assert_eq!(
        run(&["migrate"], &[("DATABASE_URL", &database)]).await.code,
        Some(0)
    );
    postgres.psql(&database, OLD_ROWS);
    let hold = "INSERT INTO leases (name, owner, lease_until) VALUES ('sweep', 'x', now() + interval '1 h')";
    postgres.psql(&database, hold);
    let ran = sweep(&database).await;
    assert_eq!(ran.code, Some(0), "{ran:#?}");
    assert!(ran.text().contains("another process is sweeping"), "{ran:#?}");
    assert_eq!(postgres.psql(&database, FULL), "40000");
}

#[tokio::test]
async fn a_sweep_that_was_killed_is_finished_by_the_next() {
    let postgres = PostgresServer::shared().await;
    let database = postgres.create_database().await;
    assert_eq!(
        run(&["migrate"], &[("DATABASE_URL", &database)]).await.code,
        Some(0)
    );
    postgres.psql(&database, OLD_ROWS);
    let mut sweep_once = command(&["sweep", "--once"]);
    sweep_once.env("DATABASE_URL", &database);
    let killed = Process::spawn(sweep_once);
    until("it has begun", async || postgres.psql(&database, FULL) != "40000").await;
    killed.signal("KILL");
    assert_eq!(killed.wait_exit().await, None, "a signal ended it, in the middle");
    let left: u64 = postgres.psql(&database, FULL).parse().expect("a number");
    assert!((1..40_000).contains(&left), "{left}");

    // Its lease ends by itself within a minute; here at once.
    postgres.psql(&database, "UPDATE leases SET lease_until = now()");
    let ran = sweep(&database).await;
    assert_eq!(ran.code, Some(0), "{ran:#?}");
    assert_eq!(postgres.psql(&database, FULL), "0");
    let rows = "SELECT count(*) FROM webhook_events WHERE octet_length(body) = 0 AND state = 'done'";
    assert_eq!(postgres.psql(&database, rows), "40000");
}

#[tokio::test]
async fn a_sweep_told_to_stop_gives_its_lease_back_and_says_that_there_is_more() {
    let postgres = PostgresServer::shared().await;
    let database = postgres.create_database().await;
    assert_eq!(
        run(&["migrate"], &[("DATABASE_URL", &database)]).await.code,
        Some(0)
    );
    postgres.psql(&database, OLD_ROWS);
    let mut sweep_once = command(&["sweep", "--once"]);
    sweep_once.env("DATABASE_URL", &database);
    let stopped = Process::spawn(sweep_once);
    until("it has begun", async || postgres.psql(&database, FULL) != "40000").await;
    stopped.signal("TERM");
    assert_eq!(stopped.wait_exit().await, Some(1));
    assert!(
        stopped.lines().join("\n").contains("goes on from there"),
        "{:#?}",
        stopped.lines()
    );
    let free = "SELECT count(*) FROM leases WHERE name = 'sweep' AND lease_until <= now()";
    assert_eq!(postgres.psql(&database, free), "1");
}

#[tokio::test]
async fn the_role_sweeps_at_once_and_stays() {
    let postgres = PostgresServer::shared().await;
    let database = postgres.create_database().await;
    let settings = [
        ("DATABASE_URL", database.as_str()),
        ("REDIS_URL", "none"),
        ("STRIPE_WEBHOOK_SECRET", SECRET),
    ];
    // A gateway with all roles would sweep at its start, too, and perhaps at the same moment.
    let receiver = Replica::start("receive", &settings).await;
    assert!(receiver.deliver(&provider::fresh()).await.is_ok(false));
    postgres.psql(&database, AGE);
    let sweeper = Replica::start("sweep", &settings).await;
    assert_eq!(sweeper.public(), "", "a sweeper has no public listener");
    until("it has swept", async || sweeper.metric(LAST_SUCCESS).await > 0.0).await;
    assert_eq!(sweeper.metric(PRUNED).await, 1.0);
    assert_eq!(sweeper.admin("/readyz").await.0, 200);
    assert_eq!(sweeper.stop().await, Some(0));
    assert_eq!(postgres.psql(&database, FULL), "0");
}

#[tokio::test]
async fn a_gateway_with_all_roles_sweeps_too() {
    for stores in [Stores::PostgresAlone, Stores::Embedded] {
        let deployment = Deployment::on(stores).await;
        let replica = deployment.replica().await;
        until("it has swept", async || replica.metric(LAST_SUCCESS).await > 0.0).await;
    }
}

#[tokio::test]
async fn a_file_is_swept_by_the_same_command() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let file = directory.path().join("hookgate.db");
    let database = embedded::url(&file);
    assert_eq!(
        run(&["migrate"], &[("DATABASE_URL", &database)]).await.code,
        Some(0)
    );
    let ran = sweep(&database).await;
    assert_eq!(
        (ran.code, ran.text().as_str()),
        (Some(0), "0 bodies emptied, 0 rows deleted")
    );
}

#[tokio::test]
async fn a_sweep_says_in_one_sentence_why_it_cannot() {
    let none = run(&["sweep", "--once"], &[("DATABASE_URL", "none")]).await;
    assert_eq!(none.code, Some(64), "{none:#?}");
    assert!(none.sentence().contains("DATABASE_URL"), "{none:#?}");
    let settings = [
        ("HOOKGATE_RETENTION_BODY", "40d"),
        ("HOOKGATE_RETENTION_EVENT", "30d"),
    ];
    let wrong = run(&["sweep", "--once"], &settings).await;
    assert_eq!(wrong.code, Some(64), "{wrong:#?}");
    assert!(
        wrong.sentence().contains("HOOKGATE_RETENTION_EVENT"),
        "{wrong:#?}"
    );
    let postgres = PostgresServer::shared().await;
    let bare = sweep(&postgres.create_database().await).await;
    assert_eq!(bare.code, Some(1), "{bare:#?}");
    assert!(bare.sentence().contains("hookgate migrate"), "{bare:#?}");
}
