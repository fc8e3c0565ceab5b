//! The oracle is shown runs that never happened: one in which all is well, and one for each thing that can be wrong.
//! A rule that would let its own breach pass is worth nothing.

mod calls;

use std::collections::BTreeMap;
use std::time::Duration;

use super::*;
use crate::evidence::{Attempt, Counters, Disturbance, Harm, Reply, Row, Send, Source};
use crate::fault::Fault;

fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

pub(crate) fn key(source: Source, id: &str) -> Key {
    Key {
        source,
        id: id.to_owned(),
    }
}

fn inbox() -> Key {
    key(Source::Inbox, "evt_1")
}

fn forward() -> Key {
    key(Source::Forward, "wh_1")
}

fn send(key: &Key, status: u16, duplicate: Option<bool>, at: u64) -> Send {
    Send {
        key: key.clone(),
        process: "receive-0.0".to_owned(),
        at: ms(at),
        until: ms(at + 10),
        reply: Reply::Answer {
            status,
            duplicate,
            unix_us: 1_000_000 + i64::try_from(at * 1000).unwrap() + 10_000,
        },
    }
}

fn call(key: &Key, attempt: u32, began: u64, answered: Option<u16>) -> Call {
    let caller = match key.source {
        Source::Inbox => "work-0.0",
        Source::Forward => "receive-0.0",
    };
    Call {
        key: key.clone(),
        attempt,
        caller: caller.to_owned(),
        began: ms(began),
        ended: Some(ms(began + 3)),
        answered,
    }
}

fn row(state: &str, attempts: u32) -> Row {
    Row {
        state: state.to_owned(),
        attempts,
        generation: 0,
        received_us: 1_000_000,
    }
}

fn attempt(outcome: &str, error: &str) -> Attempt {
    Attempt {
        outcome: outcome.to_owned(),
        error: error.to_owned(),
    }
}

fn harm(harm: Harm, process: Option<&str>, from: u64, until: u64) -> Disturbance {
    Disturbance {
        harm,
        process: process.map(str::to_owned),
        from: ms(from),
        until: ms(until),
    }
}

/// One event of each source, delivered once, and once more as a copy when all was over.
pub(crate) fn good() -> Evidence {
    let counted = |source: &str, outcome: &str| {
        (
            format!("hookgate_deliveries_total{{outcome=\"{outcome}\",source=\"{source}\"}}"),
            1.0,
        )
    };
    let skipped = |source: &str| {
        (
            format!("hookgate_duplicates_skipped_total{{decided_by=\"claim\",source=\"{source}\"}}"),
            1.0,
        )
    };
    let series = ["stripe", "shopify"].into_iter().flat_map(|source| {
        [
            counted(source, "accepted"),
            counted(source, "duplicate"),
            skipped(source),
        ]
    });
    Evidence {
        faults: vec![Fault::RedisFlushed],
        events: vec![inbox(), forward()],
        sends: vec![
            send(&inbox(), 200, Some(false), 0),
            send(&forward(), 200, Some(false), 0),
        ],
        echoes: vec![
            send(&inbox(), 200, Some(true), 5_000),
            send(&forward(), 200, Some(true), 5_000),
        ],
        calls: vec![
            call(&inbox(), 1, 20, Some(200)),
            call(&forward(), 1, 5, Some(200)),
        ],
        calls_before_echoes: 2,
        rows: BTreeMap::from([(inbox(), row("done", 1)), (forward(), row("done", 1))]),
        attempts: BTreeMap::from([
            ((inbox(), 1), attempt("done", "")),
            ((forward(), 1), attempt("done", "")),
        ]),
        counters: vec![Counters {
            process: "receive-0.0".to_owned(),
            series: series.collect(),
        }],
        ..Evidence::default()
    }
}

/// The names of the rules that this breaks.
fn broken(change: impl FnOnce(&mut Evidence)) -> Vec<&'static str> {
    let mut evidence = good();
    change(&mut evidence);
    let mut rules: Vec<_> = judge(&evidence)
        .breaches
        .iter()
        .map(|breach| breach.rule)
        .collect();
    rules.dedup();
    rules
}

/// Has a second call of an event, after a first one that its target answered so, and tells what came of that run.
fn called_again(evidence: &mut Evidence, key: &Key, first: Option<u16>, run: Option<Attempt>) {
    evidence.calls.retain(|call| call.key != *key);
    evidence.calls.push(call(key, 1, 5, first));
    evidence.calls.push(call(key, 2, 800, Some(200)));
    // Called before its answer.
    for send in evidence
        .sends
        .iter_mut()
        .filter(|send| send.key == *key && key.source == Source::Forward)
    {
        send.until = ms(820);
    }
    evidence.calls_before_echoes = evidence.calls.len();
    evidence.rows.insert(key.clone(), row("done", 2));
    evidence.attempts.remove(&(key.clone(), 1));
    evidence.attempts.extend(run.map(|run| ((key.clone(), 1), run)));
    evidence.attempts.insert((key.clone(), 2), attempt("done", ""));
}

#[test]
fn a_run_in_which_all_is_well_breaks_no_rule() {
    let judgement = judge(&good());
    assert_eq!(judgement.breaches, []);
    let figures = judgement.figures;
    assert_eq!(
        (figures.events, figures.answered, figures.lost, figures.doubled),
        (2, 2, 0, 0)
    );
    assert_eq!((figures.calls, figures.second_calls_in_all()), (2, 0));
}

#[test]
fn an_event_that_was_answered_200_and_is_not_there_is_lost() {
    for event in [inbox(), forward()] {
        let mut evidence = good();
        evidence.rows.remove(&event);
        evidence.attempts.remove(&(event.clone(), 1));
        assert_eq!(judge(&evidence).figures.lost, 1, "{event} without a row");
        let mut evidence = good();
        evidence.calls.retain(|call| call.key != event);
        assert_eq!(judge(&evidence).figures.lost, 1, "{event} that no target took");
    }
}

#[test]
fn an_event_that_was_answered_200_and_is_not_done_is_a_breach() {
    for state in ["queued", "dead", "failed", "running"] {
        let rules = broken(|evidence| {
            evidence.rows.insert(inbox(), row(state, 1));
            evidence.attempts.remove(&(inbox(), 1));
        });
        assert_eq!(rules, ["what was answered 200 is done"], "{state}");
    }
}

#[test]
fn a_forward_that_only_the_row_does_not_know_is_excused_by_a_ledger_that_was_away() {
    let unrecorded = |evidence: &mut Evidence| {
        evidence.rows.insert(forward(), row("failed", 1));
        evidence
            .attempts
            .insert((forward(), 1), attempt("lost", "the run did not end"));
    };
    assert_eq!(broken(unrecorded), ["what was answered 200 is done"]);
    let mut evidence = good();
    unrecorded(&mut evidence);
    evidence.disturbances.push(harm(Harm::LedgerAway, None, 0, 2_000));
    let judgement = judge(&evidence);
    assert_eq!(judgement.breaches, []);
    assert_eq!(judgement.figures.unrecorded, 1);
}

#[test]
fn an_event_that_was_never_answered_200_is_a_breach() {
    let rules = broken(|evidence| {
        evidence.sends[0].reply = Reply::Nothing;
        evidence.echoes.remove(0);
    });
    assert!(rules.contains(&"every event is answered 200"), "{rules:?}");
}

#[test]
fn a_200_before_its_reason_is_a_breach() {
    let rules = broken(|evidence| evidence.rows.get_mut(&inbox()).unwrap().received_us = 1_300_000);
    assert_eq!(rules, ["no 200 comes before its reason"]);
    let rules = broken(|evidence| evidence.calls[1].ended = Some(ms(11)));
    assert_eq!(rules, ["no 200 comes before its reason"]);
}

#[test]
fn a_row_of_nobody_s_event_is_a_breach() {
    let rules = broken(|evidence| {
        evidence
            .rows
            .insert(key(Source::Inbox, "evt_2"), row("failed", 0));
    });
    assert_eq!(rules, ["no row is nobody's"]);
}

#[test]
fn an_event_that_took_effect_twice_at_the_ledger_is_doubled() {
    let twice =
        |evidence: &mut Evidence| called_again(evidence, &inbox(), Some(200), Some(attempt("done", "")));
    let mut evidence = good();
    twice(&mut evidence);
    assert_eq!(judge(&evidence).figures.doubled, 1);
    let rules = broken(|evidence| evidence.rows.get_mut(&inbox()).unwrap().generation = 1);
    assert_eq!(rules, ["nothing takes effect twice at the ledger"]);
}

#[test]
fn an_event_that_was_accepted_twice_is_doubled() {
    for event in [inbox(), forward()] {
        let rules = broken(|evidence| {
            evidence.sends.push(Send {
                process: "receive-1.0".to_owned(),
                ..send(&event, 200, Some(false), 100)
            });
        });
        assert_eq!(rules, ["nothing takes effect twice at the ledger"], "{event}");
    }
}

#[test]
fn what_is_done_without_a_call_and_a_state_without_its_run_are_breaches() {
    let rules = broken(|evidence| {
        evidence.attempts.remove(&(inbox(), 1));
    });
    assert_eq!(rules, ["state and runs agree"]);
    let rules = broken(|evidence| {
        called_again(
            evidence,
            &inbox(),
            Some(500),
            Some(attempt("retry", "the target answered 500")),
        );
        evidence.calls.swap(1, 2);
        evidence.calls.last_mut().unwrap().answered = Some(500);
        evidence.calls[1].answered = Some(200);
        evidence.calls[1].attempt = 1;
        evidence.calls[2].attempt = 2;
        evidence.attempts.insert((inbox(), 1), attempt("retry", ""));
    });
    assert!(rules.contains(&"what is done was taken"), "{rules:?}");
}

#[test]
fn counters_that_disagree_with_the_answers_are_a_breach() {
    let changed = |series: &str, to: f64| {
        broken(|evidence| {
            evidence.counters[0].series.insert(series.to_owned(), to);
        })
    };
    let accepted = "hookgate_deliveries_total{outcome=\"accepted\",source=\"stripe\"}";
    assert_eq!(
        changed(accepted, 0.0),
        ["counters and answers agree"],
        "an answer that was not counted"
    );
    assert_eq!(
        changed(accepted, 2.0),
        ["counters and answers agree"],
        "a count without an answer"
    );
    let skipped = "hookgate_duplicates_skipped_total{decided_by=\"ledger\",source=\"shopify\"}";
    assert_eq!(changed(skipped, 1.0), ["counters and answers agree"]);
    let unheard = broken(|evidence| {
        evidence.counters[0].series.insert(accepted.to_owned(), 2.0);
        evidence.sends.push(Send {
            reply: Reply::Nothing,
            ..send(&inbox(), 200, None, 0)
        });
    });
    assert_eq!(unheard, [""; 0], "an answer that got lost was counted");
}

#[test]
fn a_fault_that_left_no_traces_is_a_breach() {
    for fault in [Fault::RedisPaused, Fault::LedgerDown, Fault::ReplicaClockAhead] {
        let rules = broken(|evidence| evidence.faults = vec![fault]);
        assert_eq!(rules, ["the fault leaves its traces"], "{fault:?}");
    }
    assert_eq!(
        broken(|evidence| evidence.missed.push("in vain".to_owned())),
        ["the fault strikes"]
    );
}

#[test]
fn copies_of_what_is_done_must_be_duplicates_and_call_nobody() {
    let late = broken(|evidence| evidence.echoes.push(send(&inbox(), 503, None, 5_000)));
    assert_eq!(
        late,
        ["counters and answers agree"],
        "it may hear of it a moment later, if that is counted"
    );
    for reply in [Reply::Nothing, send(&inbox(), 409, None, 0).reply] {
        let rules = broken(|evidence| evidence.echoes[0].reply = reply.clone());
        assert!(
            rules.contains(&"a copy of what is done is a duplicate"),
            "{rules:?}"
        );
    }
    let rules = broken(|evidence| evidence.calls_before_echoes = 1);
    assert_eq!(rules, ["a copy of what is done calls nobody"]);
}

#[test]
fn what_never_came_to_rest_and_what_was_found_are_breaches() {
    let rules = broken(|evidence| evidence.unfinished.push("stripe:evt_1 is queued".to_owned()));
    assert_eq!(rules, ["everything comes to rest"]);
    let rules = broken(|evidence| evidence.findings.push("a panic".to_owned()));
    assert_eq!(rules, ["logs, probes and endings are clean"]);
}

#[test]
fn what_a_stopped_process_had_in_hand_is_no_answer_time_of_the_others() {
    let mut evidence = good();
    evidence.sends[0].until = ms(3_000);
    evidence
        .disturbances
        .push(harm(Harm::Stopped, Some("receive-0.0"), 8, 2_990));
    evidence.sends[1].at = ms(3_100);
    evidence.sends[1].until = ms(3_110);
    let figures = judge(&evidence).figures;
    assert_eq!(figures.in_stopped_hands, 1);
    assert_eq!(figures.latencies, [ms(10)]);
}
