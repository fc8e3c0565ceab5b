//! Which runs there are: each fault with its seeds, and random pairs of faults that strike two different victims.

use crate::draw::Draw;
use crate::fault::{Fault, Victim};
use crate::run::Run;

/// Pairs of a full plan.
const PAIRS: u64 = 30;

/// Every fault with all its seeds, and all pairs.
pub(crate) fn full() -> Vec<Run> {
    let single = Fault::ALL
        .into_iter()
        .flat_map(|fault| (1..=fault.seeds()).map(move |seed| of_one(fault, seed)));
    single.chain((1..=PAIRS).map(pair)).collect()
}

/// Every fault once, and one pair.
pub(crate) fn short() -> Vec<Run> {
    let single = Fault::ALL.into_iter().map(|fault| of_one(fault, 1));
    single.chain([pair(1)]).collect()
}

/// A run of this name, such as `redis-paused` or `redis-paused+worker-paused`, with these seeds.
///
/// # Errors
/// The name of a fault that there is not.
pub(crate) fn named(name: &str, seeds: impl Iterator<Item = u64>) -> Result<Vec<Run>, String> {
    let known = |name: &str| Fault::named(name).ok_or_else(|| name.to_owned());
    let faults = name.split('+').map(known).collect::<Result<Vec<_>, _>>()?;
    let run = |seed| Run {
        faults: faults.clone(),
        seed,
    };
    Ok(seeds.map(run).collect())
}

fn of_one(fault: Fault, seed: u64) -> Run {
    Run {
        faults: vec![fault],
        seed,
    }
}

/// Two faults with two victims; what strikes both stores, or nobody, is no half of a pair.
fn pair(seed: u64) -> Run {
    let mut draw = Draw::new(seed, "pairs");
    let half = |fault: &Fault| !matches!(fault.victim(), Victim::Nobody | Victim::BothStores);
    let halves: Vec<_> = Fault::ALL.into_iter().filter(half).collect();
    let first = draw.one_of(&halves);
    let touches_all = |fault: Fault| fault == Fault::RollingRestart;
    let others: Vec<_> = halves
        .into_iter()
        .filter(|other| other.victim() != first.victim())
        // It replaces workers, too.
        .filter(|other| !touches_all(*other) || first.victim() != Victim::Worker)
        .filter(|other| !touches_all(first) || other.victim() != Victim::Worker)
        .collect();
    let second = draw.one_of(&others);
    Run {
        faults: vec![first, second],
        seed,
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn a_full_plan_has_all_faults_all_seeds_and_thirty_pairs_of_different_victims() {
        let plan = full();
        let seeds: u64 = Fault::ALL.into_iter().map(Fault::seeds).sum();
        assert_eq!(plan.len() as u64, seeds + PAIRS);
        let different: HashSet<_> = plan.iter().collect();
        assert_eq!(different.len(), plan.len());
        for pair in plan.iter().filter(|run| run.faults.len() == 2) {
            let [first, second] = pair.faults[..] else {
                panic!("a pair has two")
            };
            assert_ne!(first.victim(), second.victim(), "{}", pair.name());
        }
        assert_eq!(full(), plan, "the plan is the same every time");
    }

    #[test]
    fn a_short_plan_has_every_fault_once() {
        let faults: HashSet<_> = short().into_iter().filter(|run| run.faults.len() == 1).collect();
        assert_eq!(faults.len(), Fault::ALL.len());
    }

    #[test]
    fn a_run_is_found_by_the_name_that_it_prints() {
        for run in full() {
            assert_eq!(named(&run.name(), [run.seed].into_iter()), Ok(vec![run]));
        }
        assert_eq!(
            named("none+nonsense", [1].into_iter()),
            Err("nonsense".to_owned())
        );
    }
}
