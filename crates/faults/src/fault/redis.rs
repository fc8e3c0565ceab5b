//! What happens to Redis, or between it and a replica. Every answer that a real Redis can be brought to give is given by
//! the real one; LOADING alone, which lasts too short, comes from the proxies.

use std::sync::Arc;
use std::time::Duration;

use hookgate_harness::{Fault as Wire, Then};

use super::Strike;
use crate::evidence::Harm;
use crate::scene::Scene;

pub(super) async fn paused(strike: &mut Strike) {
    let (from, time) = (strike.scene.now(), strike.outage());
    strike.scene.redis.lock().await.pause();
    strike.last(time).await;
    strike.scene.redis.lock().await.resume();
    strike.scene.note(Harm::RedisAway, None, from);
}

pub(super) async fn flushed(strike: &mut Strike) {
    for _ in 0..5 {
        strike.cli(&["FLUSHALL"]).await;
        let pause = strike.draw.ms(50..500);
        strike.last(pause).await;
    }
}

pub(super) async fn restarted_empty(strike: &mut Strike) {
    let from = strike.scene.now();
    strike.scene.redis.lock().await.restart().await;
    strike.scene.note(Harm::RedisAway, None, from);
}

/// Dead for a time, and then empty.
pub(super) async fn gone_for(strike: &Strike, time: Duration) {
    let from = strike.scene.now();
    strike.scene.redis.lock().await.kill().await;
    strike.last(time).await;
    strike.scene.redis.lock().await.restart().await;
    strike.scene.note(Harm::RedisAway, None, from);
}

pub(super) async fn out_of_memory(strike: &mut Strike) {
    let refuse: [&[&str]; 2] = [
        &["CONFIG", "SET", "maxmemory-policy", "noeviction"],
        &["CONFIG", "SET", "maxmemory", "1"],
    ];
    broken_by(strike, &refuse, &["CONFIG", "SET", "maxmemory", "0"]).await;
}

/// A little more than it uses, and junk that needs the room.
pub(super) async fn evicting(strike: &mut Strike) {
    const JUNK: &str =
        "for i = 1, 400 do redis.call('SET', 'junk:' .. math.random(100000), string.rep('x', 1000)) end";
    strike
        .cli(&["CONFIG", "SET", "maxmemory-policy", "allkeys-random"])
        .await;
    let memory = strike.cli(&["INFO", "memory"]).await;
    let used = memory
        .lines()
        .find_map(|line| line.trim().strip_prefix("used_memory:")?.parse::<u64>().ok());
    let bound = used.unwrap_or_default() + 200_000;
    strike
        .cli(&["CONFIG", "SET", "maxmemory", &bound.to_string()])
        .await;
    for _ in 0..12 {
        strike.cli(&["EVAL", JUNK, "0"]).await;
        strike.last(Duration::from_millis(150)).await;
    }
    let stats = strike.cli(&["INFO", "stats"]).await;
    if stats.lines().any(|line| line.trim() == "evicted_keys:0") {
        strike.scene.miss("Redis evicted nothing");
    }
    strike.cli(&["CONFIG", "SET", "maxmemory", "0"]).await;
}

/// Nobody is at that address, so it stays a replica without a primary, with its data.
pub(super) async fn read_only(strike: &mut Strike) {
    broken_by(
        strike,
        &[&["REPLICAOF", "127.0.0.1", "1"]],
        &["REPLICAOF", "NO", "ONE"],
    )
    .await;
}

pub(super) async fn wrong_acl(strike: &mut Strike) {
    let forbid: [&[&str]; 2] = [
        &["ACL", "SETUSER", "default", "-@write"],
        &["ACL", "SETUSER", "default", "-@scripting"],
    ];
    broken_by(strike, &forbid, &["ACL", "SETUSER", "default", "+@all"]).await;
}

/// Connections that are open keep their rights, so they are closed.
pub(super) async fn no_auth(strike: &mut Strike) {
    const PASSWORD: &str = "unknown-to-all";
    let lock: [&[&str]; 2] = [
        &["CONFIG", "SET", "requirepass", PASSWORD],
        &["-a", PASSWORD, "CLIENT", "KILL", "TYPE", "normal"],
    ];
    broken_by(
        strike,
        &lock,
        &["-a", PASSWORD, "CONFIG", "SET", "requirepass", ""],
    )
    .await;
}

/// Broken by commands for a time, and healed by another one.
async fn broken_by(strike: &mut Strike, harm: &[&[&str]], heal: &[&str]) {
    let (from, time) = (strike.scene.now(), strike.outage());
    for command in harm {
        strike.cli(command).await;
    }
    strike.last(time).await;
    strike.cli(heal).await;
    strike.scene.note(Harm::RedisAway, None, from);
}

/// A claim is two commands in one write; each must have its reply.
pub(super) async fn loading(strike: &mut Strike) {
    const LOADING: &str = "-LOADING Redis is loading the dataset in memory\r\n";
    let (from, time) = (strike.scene.now(), strike.outage());
    set_all(
        &strike.scene,
        &Wire::ReplyToAllWith(LOADING.repeat(2).into_bytes()),
    );
    strike.last(time).await;
    // What was answered once too often must not be taken for the answer to what comes next.
    set_all(&strike.scene, &Wire::Refuse);
    strike.last(Duration::from_millis(50)).await;
    set_all(&strike.scene, &Wire::None);
    strike.scene.note(Harm::RedisAway, None, from);
}

pub(super) async fn slow(strike: &mut Strike) {
    let from = strike.scene.now();
    for _ in 0..8 {
        let scene = Arc::clone(&strike.scene);
        for place in scene.replicas() {
            place
                .redis
                .set(Wire::DelayReplies(strike.draw.ms_of_any_size(50.0..5_000.0)));
        }
        strike.last(Duration::from_millis(300)).await;
    }
    set_all(&strike.scene, &Wire::None);
    strike.scene.note(Harm::RedisAway, None, from);
}

pub(super) async fn half_open(strike: &mut Strike) {
    for _ in 0..3 {
        let from = strike.scene.now();
        for place in strike.scene.replicas() {
            place.redis.cut_silently();
        }
        let pause = strike.draw.ms(400..800);
        strike.last(pause).await;
        strike.scene.note(Harm::RedisAway, None, from);
    }
}

/// A `SET` with `NX` is a claim; every other one is a mark or a probe.
pub(super) async fn claim_reply_lost(strike: &mut Strike) {
    let scene = Arc::clone(&strike.scene);
    let from = scene.now();
    let mut lost = 0;
    for _ in 0..8 {
        let place = &scene.replicas()[strike.replica()];
        let then = strike.draw.one_of(&[Then::Reset, Then::Silence]);
        place.redis.set_for(b"\r\nNX\r\n", Wire::DropNextReply { then });
        let pause = strike.draw.ms(100..400);
        strike.last(pause).await;
        lost += usize::from(place.redis.fault() == Wire::None);
        place.redis.set(Wire::None);
    }
    scene.note(Harm::RedisAway, None, from);
    if lost == 0 {
        scene.miss("no reply to a claim was lost");
    }
}

/// By refusals or by silence.
pub(super) async fn cut_off(strike: &mut Strike) {
    let (scene, number) = (Arc::clone(&strike.scene), strike.replica());
    let place = &scene.replicas()[number];
    let (from, time) = (scene.now(), strike.outage());
    place.redis.set(strike.silence_or_refusal());
    strike.last(time).await;
    place.redis.set(Wire::None);
    scene.note(Harm::RedisAway, Some(&place.present().name), from);
}

fn set_all(scene: &Scene, wire: &Wire) {
    for place in scene.replicas() {
        place.redis.set(wire.clone());
    }
}

impl Strike {
    /// One command to Redis itself, past the proxies.
    async fn cli(&self, command: &[&str]) -> String {
        self.scene.redis.lock().await.cli(command)
    }
}
