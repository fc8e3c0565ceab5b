//! What happens to Postgres, or between it and a replica.

use std::sync::Arc;
use std::time::Duration;

use hookgate_harness::{Fault as Wire, Then, Trap};
use sqlx::{Executor as _, PgConnection};

use super::Strike;
use crate::evidence::{Harm, Key, Source};

pub(super) async fn restarted(strike: &mut Strike) {
    gone_for(strike, Duration::ZERO).await;
}

pub(super) async fn down(strike: &mut Strike) {
    let time = strike.ledger_outage();
    gone_for(strike, time).await;
}

/// Killed as by a power cut, and recovered from its log.
pub(super) async fn gone_for(strike: &Strike, time: Duration) {
    let from = strike.scene.now();
    strike.scene.slot.postgres.lock().await.kill().await;
    strike.last(time).await;
    strike.scene.slot.postgres.lock().await.restart().await;
    strike.scene.note(Harm::LedgerAway, None, from);
}

pub(super) async fn paused(strike: &mut Strike) {
    let (from, time) = (strike.scene.now(), strike.ledger_outage());
    strike.scene.slot.postgres.lock().await.pause();
    strike.last(time).await;
    strike.scene.slot.postgres.lock().await.resume();
    strike.scene.note(Harm::LedgerAway, None, from);
}

/// Rows that are there are locked, and the keys of two events to come are held by an insert that never commits.
pub(super) async fn row_lock(strike: &mut Strike) {
    const HELD: &str = "
        INSERT INTO webhook_events (source, event_id, provider, path, state, next_attempt_at, delivery_id, body_sha256, headers, body)
        VALUES ($1, $2, $1, 'inbox', 'queued', now(), '\\x00', decode(repeat('00', 32), 'hex'), '[]', '')";
    let (scene, time) = (Arc::clone(&strike.scene), strike.ledger_outage());
    let mut session = scene.slot.session(&scene.database).await;
    let from = scene.now();
    let baits = [Source::Inbox, Source::Forward].map(|source| strike.provider.bait(source));
    let locked = async {
        session.execute("BEGIN").await?;
        session
            .execute("SELECT FROM webhook_events WHERE state <> 'done' OR random() < 0.3 FOR UPDATE")
            .await?;
        for bait in &baits {
            let held = sqlx::query(HELD).bind(bait.source.name()).bind(&bait.id);
            held.execute(&mut session).await?;
        }
        Ok::<_, sqlx::Error>(())
    };
    if let Err(error) = locked.await {
        scene.miss(&format!("no rows were locked: {error}"));
    }
    for bait in &baits {
        strike
            .provider
            .throw(bait, strike.draw.below(scene.replicas().len()));
    }
    strike.last(time).await;
    // Without a COMMIT the server rolls back.
    drop(session);
    scene.note(Harm::LedgerAway, None, from);
}

/// Raised inside the server, for every statement that writes, in transactions of its own making: what a full disk
/// answers when a table has to grow.
pub(super) async fn disk_full(strike: &mut Strike) {
    const FULL: &str = "
        CREATE FUNCTION is_full() RETURNS trigger LANGUAGE plpgsql AS $$
        BEGIN
            RAISE EXCEPTION 'could not extend file: No space left on device' USING ERRCODE = '53100';
        END $$";
    const TABLES: [&str; 5] = [
        "webhook_events",
        "webhook_attempts",
        "leases",
        "targets",
        "stats_minute",
    ];
    let (scene, time) = (Arc::clone(&strike.scene), strike.ledger_outage());
    let mut session = scene.slot.session(&scene.database).await;
    let from = scene.now();
    let mut done = insist(&mut session, FULL).await;
    for table in TABLES {
        let refuse = format!(
            "CREATE TRIGGER is_full BEFORE INSERT OR UPDATE OR DELETE ON {table} EXECUTE FUNCTION is_full()"
        );
        done = done.and(insist(&mut session, &refuse).await);
    }
    strike.last(time).await;
    done = done.and(insist(&mut session, "DROP FUNCTION is_full() CASCADE").await);
    scene.note(Harm::LedgerAway, None, from);
    if let Err(error) = done {
        scene.miss(&format!("the disk was not full, or not emptied: {error}"));
    }
}

/// Changing tables under load may meet a deadlock, in which somebody has to give way.
async fn insist(session: &mut PgConnection, statement: &str) -> sqlx::Result<()> {
    for _ in 0..10 {
        if session
            .execute(sqlx::AssertSqlSafe(statement.to_owned()))
            .await
            .is_ok()
        {
            return Ok(());
        }
    }
    session
        .execute(sqlx::AssertSqlSafe(statement.to_owned()))
        .await
        .map(|_| ())
}

pub(super) async fn half_open(strike: &mut Strike) {
    let from = strike.scene.now();
    for place in &strike.scene.places {
        place.ledger.cut_silently();
    }
    let time = strike.draw.ms(800..1_500);
    strike.last(time).await;
    strike.scene.note(Harm::LedgerAway, None, from);
}

/// As a replica is killed after a commit, but that it lives on.
pub(super) async fn commit_reply_lost(strike: &mut Strike) {
    let scene = Arc::clone(&strike.scene);
    for nth in [1, 2, 1, 2] {
        let number = strike.replica();
        let place = &scene.replicas()[number];
        let source = if nth == 1 { Source::Inbox } else { Source::Forward };
        let from = scene.now();
        let set = |bait: &Key| vec![place.ledger.trap(Trap::reply_to(bait.id.as_bytes()).nth(nth))];
        let _held = strike.catch(&[source], number, set).await;
        if strike.draw.one_of(&[Then::Reset, Then::Silence]) == Then::Reset {
            place.ledger.set(Wire::Refuse);
            strike.last(Duration::from_millis(20)).await;
            place.ledger.set(Wire::None);
        } else {
            let silence = strike.draw.ms(200..600);
            strike.last(silence).await;
        }
        scene.note(Harm::LedgerAway, Some(&place.present().name), from);
    }
}

/// By refusals or by silence.
pub(super) async fn cut_off(strike: &mut Strike) {
    let (scene, number) = (Arc::clone(&strike.scene), strike.replica());
    let place = &scene.replicas()[number];
    let (from, time) = (scene.now(), strike.ledger_outage());
    place.ledger.set(strike.silence_or_refusal());
    strike.last(time).await;
    place.ledger.set(Wire::None);
    scene.note(Harm::LedgerAway, Some(&place.present().name), from);
}
