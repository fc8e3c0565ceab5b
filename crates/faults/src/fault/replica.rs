//! What happens to a replica that receives: it dies at an exact step, stands still, or is replaced.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use hookgate_harness::Trap;

use super::Strike;
use crate::evidence::{Harm, Key, Source};
use crate::scene::{Place, Scene};

const BOTH: [Source; 2] = [Source::Inbox, Source::Forward];

pub(super) async fn killed_before_claim(strike: &mut Strike) {
    killed_at_redis(strike, Trap::command).await;
}

pub(super) async fn killed_after_claim(strike: &mut Strike) {
    killed_at_redis(strike, Trap::reply_to).await;
}

/// The first command about an event is its claim.
async fn killed_at_redis(strike: &mut Strike, trap: impl Fn(&[u8]) -> Trap) {
    let (scene, number) = (Arc::clone(&strike.scene), strike.replica());
    let place = &scene.replicas()[number];
    let set = |bait: &Key| vec![place.redis.trap(trap(bait.id.as_bytes()))];
    let _held = strike.catch(&BOTH, number, set).await;
    strike.kill_and_replace(place).await;
}

/// An inbox handles by appending, a forward by calling the target.
pub(super) async fn killed_in_handler(strike: &mut Strike) {
    let (scene, number) = (Arc::clone(&strike.scene), strike.replica());
    let place = &scene.replicas()[number];
    match strike.draw.one_of(&BOTH) {
        Source::Inbox => {
            let set = |bait: &Key| vec![place.ledger.trap(Trap::command(bait.id.as_bytes()))];
            let _held = strike.catch(&[Source::Inbox], number, set).await;
            strike.kill_and_replace(place).await;
        }
        Source::Forward => strike.kill_at_target(Source::Forward, number).await,
    }
}

/// The one statement of an append is its commit; a forward begins first, and its second statement is the finish.
pub(super) async fn killed_after_commit(strike: &mut Strike) {
    let (scene, number) = (Arc::clone(&strike.scene), strike.replica());
    let place = &scene.replicas()[number];
    let set = |bait: &Key| {
        let nth = match bait.source {
            Source::Inbox => 1,
            Source::Forward => 2,
        };
        vec![place.ledger.trap(Trap::reply_to(bait.id.as_bytes()).nth(nth))]
    };
    let _held = strike.catch(&BOTH, number, set).await;
    strike.kill_and_replace(place).await;
}

pub(super) async fn paused(strike: &mut Strike) {
    let (scene, number) = (Arc::clone(&strike.scene), strike.replica());
    strike.pause(&scene.replicas()[number]).await;
}

/// Everybody, one after the other: the new process is ready before the old one is told to end.
pub(super) async fn rolling_restart(strike: &mut Strike) {
    let scene = Arc::clone(&strike.scene);
    for place in &scene.places {
        let old = place.present();
        scene.start(place).await;
        let from = scene.now();
        old.leaving.store(true, Ordering::SeqCst);
        old.process.signal("TERM");
        let code = old.process.wait_exit().await;
        scene.note(Harm::Terminated, Some(&old.name), from);
        if code != Some(0) {
            scene.miss(&format!("{} ended with {code:?} after SIGTERM", old.name));
        }
        strike.last(Duration::from_millis(100)).await;
    }
}

/// Takes the place of a process without its leave.
pub(super) async fn replace(scene: &Scene, place: &Place, change: impl FnOnce(&mut std::process::Command)) {
    scene.kill(place).await;
    scene.start_with(place, change).await;
}
