//! What many runs come to: by fault, for all pairs, and in all, with the times that answers may take.

use std::time::Duration;

use crate::fault::{Fault, Victim};
use crate::oracle::Figures;
use crate::outcome::Outcome;

/// Some runs together.
#[derive(Clone, Debug, Default)]
pub(crate) struct Total {
    /// How many.
    pub(crate) runs: usize,
    /// How many broke a rule.
    pub(crate) failed: usize,
    /// What they add up to.
    pub(crate) figures: Figures,
}

impl Total {
    /// Adds up.
    pub(crate) fn of<'a>(outcomes: impl Iterator<Item = &'a Outcome>) -> Self {
        let mut total = Self::default();
        for outcome in outcomes {
            total.runs += 1;
            total.failed += usize::from(!outcome.is_good());
            total.figures.add(&outcome.figures);
        }
        total
    }
}

/// The runs of one fault alone.
pub(crate) fn of_fault(outcomes: &[Outcome], fault: Fault) -> Total {
    Total::of(outcomes.iter().filter(|outcome| outcome.run.faults == [fault]))
}

/// The runs of two faults.
pub(crate) fn of_pairs(outcomes: &[Outcome]) -> Total {
    Total::of(outcomes.iter().filter(|outcome| outcome.run.faults.len() > 1))
}

/// The runs of one fault with such a victim.
pub(crate) fn of_victims(outcomes: &[Outcome], victims: &[Victim]) -> Total {
    let struck = |outcome: &&Outcome| match outcome.run.faults[..] {
        [fault] => victims.contains(&fault.victim()),
        _ => false,
    };
    Total::of(outcomes.iter().filter(struck))
}

/// Faults under which 99 of 100 answers took longer than they may, with both times.
pub(crate) fn too_slow(outcomes: &[Outcome]) -> Vec<(Fault, Duration, Duration)> {
    let slow = |fault: Fault| {
        let (p99, max) = (of_fault(outcomes, fault).figures.percentile(99), fault.p99_max());
        (p99 > max).then_some((fault, p99, max))
    };
    Fault::ALL.into_iter().filter_map(slow).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::oracle::judge;
    use crate::run::Run;

    fn outcome(faults: &[Fault], answer: Duration) -> Outcome {
        let run = Run {
            faults: faults.to_vec(),
            seed: 1,
        };
        let mut judgement = judge(&crate::oracle::tests::good());
        judgement.figures.latencies = vec![answer];
        Outcome::judged(run, judgement, Vec::new(), Duration::from_secs(1))
    }

    #[test]
    fn each_run_is_added_to_its_fault_its_victim_and_the_pairs() {
        let fast = Duration::from_millis(5);
        let outcomes = [
            outcome(&[Fault::RedisPaused], fast),
            outcome(&[Fault::RedisPaused], fast),
            outcome(&[Fault::LedgerDown], fast),
            outcome(&[Fault::LedgerDown, Fault::WorkerPaused], fast),
        ];
        assert_eq!(of_fault(&outcomes, Fault::RedisPaused).figures.events, 4);
        assert_eq!(of_victims(&outcomes, &[Victim::Ledger, Victim::Redis]).runs, 3);
        assert_eq!(of_pairs(&outcomes).runs, 1);
        assert_eq!(Total::of(outcomes.iter()).figures.latencies.len(), 4);
    }

    #[test]
    fn a_fault_whose_answers_take_too_long_is_named() {
        let outcomes = [
            outcome(&[Fault::RedisPaused], Duration::from_millis(1_001)),
            outcome(&[Fault::LedgerPaused], Duration::from_millis(2_199)),
        ];
        let named: Vec<_> = too_slow(&outcomes).into_iter().map(|(fault, ..)| fault).collect();
        assert_eq!(named, [Fault::RedisPaused]);
    }
}
