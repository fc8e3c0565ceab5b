//! The gate's life, told step by step. Time is given, not waited for.

use super::*;

const MISS: Seen = Seen::Missing { asked: None };

fn gate(concurrency: usize, rate: Option<f64>) -> (Arc<Gate>, Instant) {
    let now = Instant::now();
    let gate = Gate::new("crm", Bounds { concurrency, rate }, Arc::default(), now);
    assert_eq!(gate.room(now), 0, "nobody has heard yet whether it is paused");
    assert!(gate.set_paused(false));
    (gate, now)
}

fn after(now: Instant, seconds: f64) -> Instant {
    now + Duration::from_secs_f64(seconds)
}

/// Shuts the gate.
fn shut(gate: &Gate, now: Instant) {
    for _ in 1..MISSES_MAX {
        assert_eq!(gate.learn(MISS, now), None);
    }
    assert_eq!(gate.learn(MISS, now), Some(Turn::Down));
}

#[test]
fn no_more_than_its_bound_are_on_their_way() {
    let (gate, now) = gate(8, None);
    let mut passes: Vec<Pass> = (0..8).map(|_| gate.enter()).collect();
    assert_eq!(gate.room(now), 0);
    passes.pop();
    assert_eq!(gate.room(now), 0, "one place is not worth a statement");
    passes.pop();
    assert_eq!(gate.room(now), 2);
    passes.clear();
    assert_eq!(gate.room(now), 8);
}

#[tokio::test]
async fn a_place_that_becomes_free_is_told() {
    let freed = Arc::<Notify>::default();
    let bounds = Bounds {
        concurrency: 1,
        rate: None,
    };
    let gate = Gate::new("crm", bounds, Arc::clone(&freed), Instant::now());
    drop(gate.enter());
    freed.notified().await;
}

#[test]
fn a_target_that_is_not_there_is_asked_ever_less_and_by_one_event_at_a_time() {
    let (gate, now) = gate(8, None);
    shut(&gate, now);
    assert_eq!(gate.room(after(now, 0.9)), 0);
    assert_eq!(gate.opens_at(now), Some(after(now, 1.0)));
    let mut probed_at = after(now, 1.0);
    for pause in [2.0, 4.0, 8.0, 16.0, 30.0, 30.0] {
        assert_eq!(gate.room(probed_at), 1, "before {pause}");
        let probe = gate.enter();
        assert_eq!(gate.room(probed_at), 0, "one probe at a time");
        assert_eq!(gate.learn(MISS, probed_at), None, "that is no news");
        drop(probe);
        assert_eq!(gate.room(after(probed_at, pause - 0.1)), 0);
        probed_at = after(probed_at, pause);
    }
    assert_eq!(gate.away_for(after(now, 50.0)), Duration::from_secs(50));
}

#[test]
fn misses_of_those_on_their_way_do_not_prolong_the_pause() {
    let (gate, now) = gate(8, None);
    shut(&gate, now);
    assert_eq!(gate.learn(MISS, after(now, 0.5)), None);
    assert_eq!(gate.room(after(now, 1.0)), 1);
}

#[test]
fn a_target_that_comes_back_is_met_by_a_ramp() {
    let (gate, now) = gate(8, None);
    assert_eq!(
        gate.learn(Seen::There, now),
        Some(Turn::Up),
        "seen for the first time"
    );
    shut(&gate, now);
    let now = after(now, 1.0);
    assert_eq!(gate.learn(Seen::There, now), Some(Turn::Up));
    let mut rooms = vec![gate.room(now)];
    for _ in 0..8 {
        assert_eq!(gate.learn(Seen::There, now), None);
        rooms.push(gate.room(now));
    }
    assert_eq!(rooms, [2, 3, 4, 5, 6, 7, 8, 8, 8]);
    assert!(!gate.is_away());
}

#[test]
fn one_answer_between_misses_keeps_it_open() {
    let (gate, now) = gate(8, None);
    for _ in 0..10 {
        for _ in 1..MISSES_MAX {
            let _ = gate.learn(MISS, now);
        }
        let _ = gate.learn(Seen::There, now);
    }
    assert_eq!(gate.room(now), 8);
}

#[test]
fn a_busy_target_gets_half_and_the_time_that_it_asks_for() {
    let (gate, now) = gate(8, None);
    let _ = gate.learn(Seen::Busy { asked: None }, now);
    assert_eq!(gate.room(now), 4);
    let asked = Some(Duration::from_secs(3));
    let _ = gate.learn(Seen::Busy { asked }, now);
    let _ = gate.learn(Seen::Busy { asked: None }, now);
    assert_eq!((gate.room(now), gate.opens_at(now)), (0, Some(after(now, 3.0))));
    assert_eq!(gate.room(after(now, 3.0)), 1);
    let asked = Some(Duration::from_secs(86_400));
    let _ = gate.learn(Seen::Busy { asked }, now);
    assert_eq!(
        gate.room(after(now, 60.0)),
        1,
        "an event may wait for a day, not its target's whole queue"
    );
}

#[test]
fn a_rate_is_kept_and_saves_up_no_storm() {
    let (gate, now) = gate(8, Some(2.0));
    assert_eq!(gate.room(now), 2);
    let passes = [gate.enter(), gate.enter()];
    drop(passes);
    assert_eq!((gate.room(now), gate.opens_at(now)), (0, Some(after(now, 0.5))));
    assert_eq!(gate.room(after(now, 0.5)), 1);
    assert_eq!(gate.room(after(now, 3600.0)), 2, "a second's worth and no more");
}

#[test]
fn a_paused_target_gets_nothing_until_it_is_resumed() {
    let (gate, now) = gate(8, None);
    assert!(gate.set_paused(true));
    assert!(!gate.set_paused(true), "no news");
    assert_eq!(gate.room(now), 0);
    assert!(gate.set_paused(false));
    assert_eq!(gate.room(now), 8);
}

#[test]
fn others_may_know_longer_that_it_is_away() {
    let (gate, now) = gate(8, None);
    gate.known_away_for(Duration::from_secs(9), now);
    assert_eq!(gate.away_for(now), Duration::ZERO, "it is not");
    shut(&gate, now);
    gate.known_away_for(Duration::from_secs(5), now);
    assert_eq!(gate.away_for(now), Duration::from_secs(5));
    gate.known_away_for(Duration::from_secs(1), now);
    assert_eq!(gate.away_for(now), Duration::from_secs(5));
}
