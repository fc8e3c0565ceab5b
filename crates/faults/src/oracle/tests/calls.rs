//! Runs with a call too many, for each reason and for none.

use std::collections::BTreeMap;

use super::{attempt, broken, call, called_again, forward, good, harm, inbox, judge, ms};
use crate::evidence::{Evidence, Harm};
use crate::oracle::Reason;

#[test]
fn a_second_call_without_a_reason_is_a_breach() {
    const RULE: [&str; 1] = ["every second call has a reason"];
    for event in [inbox(), forward()] {
        for first in [Some(200), None] {
            let lost = || Some(attempt("lost", "the run did not end"));
            assert_eq!(
                broken(|evidence| called_again(evidence, &event, first, lost())),
                RULE
            );
            let elsewhere = broken(|evidence| {
                called_again(evidence, &event, first, lost());
                evidence
                    .disturbances
                    .push(harm(Harm::Killed, Some("receive-1.0"), 6, 7));
                evidence
                    .disturbances
                    .push(harm(Harm::Stopped, Some("work-1.0"), 6, 7));
                evidence.disturbances.push(harm(Harm::RedisAway, None, 0, 2_000));
            });
            assert_eq!(elsewhere, RULE, "what others suffered, or Redis, is no reason");
            let before = broken(|evidence| {
                called_again(evidence, &event, first, lost());
                evidence.disturbances.push(harm(Harm::Killed, None, 0, 1));
            });
            assert_eq!(before, RULE, "what was over before is no reason");
        }
    }
}

#[test]
fn each_reason_for_a_second_call_is_found_and_counted() {
    let lost = || Some(attempt("lost", "the run did not end"));
    for (first, run, suffered, reason) in [
        (
            Some(500),
            Some(attempt("retry", "the target answered 500")),
            None,
            Reason::Refused,
        ),
        (None, lost(), Some(Harm::Killed), Reason::Killed),
        (Some(200), None, Some(Harm::Killed), Reason::Killed),
        (Some(200), lost(), Some(Harm::Stopped), Reason::Stopped),
        (Some(200), lost(), Some(Harm::LedgerAway), Reason::LedgerAway),
        (None, lost(), Some(Harm::Terminated), Reason::BrokenOff),
        (
            None,
            Some(attempt("retry", "the target gave no answer within 2000 ms")),
            None,
            Reason::TimedOut,
        ),
    ] {
        let mut evidence = good();
        called_again(&mut evidence, &inbox(), first, run);
        evidence
            .disturbances
            .extend(suffered.map(|suffered| harm(suffered, Some("work-0.0"), 6, 300)));
        let judgement = judge(&evidence);
        assert_eq!(judgement.breaches, [], "{reason}");
        assert_eq!(judgement.figures.second_calls, BTreeMap::from([(reason, 1)]));
        let taken_again = usize::from(first == Some(200));
        assert_eq!(judgement.figures.taken_again, taken_again, "{reason}");
    }
}

#[test]
fn a_call_that_the_ledger_did_not_allow_is_a_breach() {
    let rules = broken(|evidence| evidence.rows.get_mut(&inbox()).unwrap().attempts = 0);
    assert_eq!(rules, ["every call is a run of the ledger"]);
    let rules = broken(|evidence| {
        evidence.calls.insert(0, call(&inbox(), 1, 12, Some(500)));
        evidence.calls_before_echoes = 3;
        evidence.attempts.insert((inbox(), 1), attempt("done", ""));
    });
    assert!(rules.contains(&"one run is one call"), "{rules:?}");
}

#[test]
fn two_calls_at_one_time_are_a_breach_unless_the_first_could_not_know() {
    let overlapping = |evidence: &mut Evidence| {
        called_again(
            evidence,
            &inbox(),
            Some(500),
            Some(attempt("retry", "the target answered 500")),
        );
        let first = evidence
            .calls
            .iter_mut()
            .find(|call| call.key == inbox() && call.attempt == 1);
        first.unwrap().ended = Some(ms(801));
    };
    assert_eq!(broken(overlapping), ["calls of one event do not overlap"]);
    let stopped = broken(|evidence| {
        overlapping(evidence);
        let first = evidence
            .calls
            .iter_mut()
            .find(|call| call.key == inbox() && call.attempt == 1);
        first.unwrap().answered = Some(200);
        evidence.attempts.insert((inbox(), 1), attempt("lost", ""));
        evidence
            .disturbances
            .push(harm(Harm::Stopped, Some("work-0.0"), 6, 1_200));
    });
    assert_eq!(stopped, [""; 0]);
}

#[test]
fn a_busy_machine_is_a_reason_where_it_is_to_be_expected_and_the_log_says_so() {
    let busy = |tolerant: bool, logged: bool| {
        broken(|evidence| {
            called_again(
                evidence,
                &inbox(),
                Some(200),
                Some(attempt("lost", "the run did not end")),
            );
            evidence.tolerant = tolerant;
            if logged {
                evidence.unsettled.insert(("work-0.0".to_owned(), inbox()));
            }
        })
    };
    assert_eq!(busy(true, true), [""; 0]);
    for (tolerant, logged) in [(true, false), (false, true)] {
        assert_eq!(busy(tolerant, logged), ["every second call has a reason"]);
    }
}
