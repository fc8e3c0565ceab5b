//! What happens to a worker: it dies at an exact step of an event's way, or stands still. Which of the two has the
//! event is found out by who springs the trap.

use std::sync::Arc;

use hookgate_harness::Trap;

use super::Strike;
use crate::evidence::{Key, Source};

/// A look names its sources, as a list of texts on the wire: the type, two of them, counted from one. Settlements and
/// heartbeats name one event.
pub(super) async fn killed_asking(strike: &mut Strike) {
    const TWO_TEXTS: [u8; 12] = [0, 0, 0, 25, 0, 0, 0, 2, 0, 0, 0, 1];
    killed_at_ledger(strike, |_| Trap::command(&TWO_TEXTS)).await;
}

/// The answer to a look holds the events.
pub(super) async fn killed_leased(strike: &mut Strike) {
    killed_at_ledger(strike, Trap::reply_with).await;
}

/// The first statement about an event, if its call is short, is its settlement.
pub(super) async fn killed_before_settling(strike: &mut Strike) {
    killed_at_ledger(strike, Trap::command).await;
}

pub(super) async fn killed_after_settling(strike: &mut Strike) {
    killed_at_ledger(strike, Trap::reply_to).await;
}

async fn killed_at_ledger(strike: &mut Strike, trap: impl Fn(&[u8]) -> Trap) {
    let (scene, number) = (Arc::clone(&strike.scene), strike.replica());
    let set = |bait: &Key| {
        let workers = scene.workers().iter();
        workers
            .map(|place| place.ledger.trap(trap(bait.id.as_bytes())))
            .collect()
    };
    let (held, which) = strike.catch(&[Source::Inbox], number, set).await;
    let place = &scene.workers()[which];
    scene.kill(place).await;
    // The other one may be held by its own trap.
    drop(held);
    strike.kill_and_replace(place).await;
}

pub(super) async fn killed_in_call(strike: &mut Strike) {
    let number = strike.replica();
    strike.kill_at_target(Source::Inbox, number).await;
}

pub(super) async fn paused(strike: &mut Strike) {
    let (scene, number) = (
        Arc::clone(&strike.scene),
        strike.draw.below(strike.scene.workers().len()),
    );
    strike.pause(&scene.workers()[number]).await;
}
