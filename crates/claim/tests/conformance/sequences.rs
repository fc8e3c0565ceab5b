//! Every store against the pure functions that say what a key's life is: whatever steps are taken in whatever order,
//! both find the same.

use std::sync::Arc;

use hookgate_claim::cell::{Attempt, Cell, InFlight, Value};
use hookgate_claim::{Claim, Claims, Epoch, Lease, Sight, Terms};
use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};

use crate::properties::{BRIEF, TERMS, expired, key};

/// Sequences on keys of their own.
const SEQUENCES: u64 = 24;

/// Steps of each: enough for several holders to come and go.
const STEPS: u32 = 30;

/// A step of one of the replicas, which hold every lease they ever won.
#[derive(Debug, Clone, Copy)]
enum Step {
    Claim(Terms),
    Look,
    Renew(usize),
    Finish(usize),
    Release(usize),
    MarkDone(Epoch),
}

/// What a step found, as far as both sides must agree.
#[derive(Debug, PartialEq, Eq)]
enum Found {
    First { taken_over: bool },
    Done,
    InFlight,
    Sight(Sight),
    Owned(bool),
    Marked,
}

pub(crate) async fn any_sequence_of_steps_goes_as_the_cell_says(claims: Arc<dyn Claims>) {
    for seed in 0..SEQUENCES {
        let mut dice = StdRng::seed_from_u64(seed);
        let (key, mut cell, mut leases) = (key(&format!("evt_sequence_{seed}")), Cell(None), Vec::new());
        for number in 0..STEPS {
            let step = draw(&mut dice, leases.len());
            let before = cell;
            let found = take(&*claims, &key, step, &mut leases).await;
            let expected = expect(&mut cell, claims.epoch(), step, &leases);
            assert_eq!(
                found, expected,
                "seed {seed}, step {number}, {step:?} on {before:?}"
            );
            if matches!(step, Step::Claim(BRIEF) | Step::Renew(_)) {
                let_pass(&*claims, &key, &mut cell).await;
            }
        }
    }
}

fn draw(dice: &mut StdRng, leases: usize) -> Step {
    let of = |dice: &mut StdRng| dice.random_range(0..leases);
    let voided = Epoch {
        configured: 9,
        timeline: 9,
    };
    match dice.random_range(0..10) {
        0..=1 => Step::Claim(BRIEF),
        2..=3 => Step::Claim(TERMS),
        5 if leases > 0 => Step::Renew(of(dice)),
        6 if leases > 0 => Step::Finish(of(dice)),
        7 | 8 if leases > 0 => Step::Release(of(dice)),
        9 => Step::MarkDone([Epoch::default(), voided][dice.random_range(0..2)]),
        _ => Step::Look,
    }
}

async fn take(
    claims: &dyn Claims,
    key: &hookgate_webhook::EventKey,
    step: Step,
    leases: &mut Vec<Lease>,
) -> Found {
    let owned = |ownership| Found::Owned(ownership == hookgate_claim::Ownership::Kept);
    match step {
        Step::Claim(terms) => match claims.claim(key, terms).await.unwrap() {
            Claim::First(lease) => {
                let taken_over = lease.taken_over;
                leases.push(lease);
                Found::First { taken_over }
            }
            Claim::Done => Found::Done,
            Claim::InFlight { .. } => Found::InFlight,
        },
        Step::Look => Found::Sight(claims.look(key).await.unwrap()),
        Step::Renew(n) => owned(claims.renew(&mut leases[n]).await.unwrap()),
        Step::Finish(n) => owned(claims.finish(&leases[n]).await.unwrap()),
        Step::Release(n) => owned(claims.release(&leases[n]).await.unwrap()),
        Step::MarkDone(epoch) => {
            claims.mark_done(key, TERMS.ttl, epoch).await.unwrap();
            Found::Marked
        }
    }
}

/// What the cell says of the same step. `leases` holds the one that a claim has just won, if it did.
fn expect(cell: &mut Cell, epoch: Epoch, step: Step, leases: &[Lease]) -> Found {
    let of = |n: usize| leases[n].claim();
    let owned = |ownership| Found::Owned(ownership == hookgate_claim::Ownership::Kept);
    match step {
        Step::Claim(terms) => {
            let unused = InFlight::with_token(&epoch, terms, 1);
            claim(cell, epoch, leases.last().map_or(&unused, Lease::claim), &unused)
        }
        Step::Look => Found::Sight(cell.sight(&epoch)),
        Step::Renew(n) => owned(cell.renew(of(n))),
        Step::Finish(n) => owned(cell.finish(of(n))),
        Step::Release(n) => owned(cell.release(of(n))),
        Step::MarkDone(epoch) => {
            cell.mark_done(epoch, 604_800_000);
            Found::Marked
        }
    }
}

/// A claim that was won stands under the last lease; one that was not is nobody's.
fn claim(cell: &mut Cell, epoch: Epoch, last: &InFlight, unused: &InFlight) -> Found {
    let ours = match cell.0 {
        Some(held) if held.value == Value::InFlight(*last) => unused,
        _ => last,
    };
    let Some(seen) = cell.set_if_free(ours) else {
        return Found::First { taken_over: false };
    };
    match seen.judge(ours, &epoch) {
        Attempt::Won => panic!("no claim meets itself here"),
        Attempt::Done => Found::Done,
        Attempt::InFlight { .. } => Found::InFlight,
        Attempt::Replace {
            taken_over,
            left_ms_max,
            ..
        } => {
            let _ = cell.replace(&seen.value, ours, left_ms_max);
            Found::First { taken_over }
        }
    }
}

/// Waits until a brief claim has run out, and lets the cell's life pass as well.
async fn let_pass(claims: &dyn Claims, key: &hookgate_webhook::EventKey, cell: &mut Cell) {
    let Some(held) = &mut cell.0 else { return };
    let mut passed = *held;
    passed.left_ms -= 10;
    if Cell(Some(passed)).sight(&claims.epoch()) == Sight::Free
        && claims.look(key).await.unwrap() != Sight::Done
    {
        expired(claims, key).await;
        *held = passed;
    }
}
