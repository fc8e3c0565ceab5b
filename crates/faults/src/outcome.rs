//! How a run ended, as one line and for the report.

use std::fmt;
use std::time::Duration;

use crate::oracle::{Breach, Figures, Judgement};
use crate::run::Run;

/// A run and what came of it.
#[derive(Clone, Debug)]
pub(crate) struct Outcome {
    /// Which.
    pub(crate) run: Run,
    /// What the oracle counted.
    pub(crate) figures: Figures,
    /// What it found.
    pub(crate) breaches: Vec<Breach>,
    /// Of two faults, one that did not get to strike.
    pub(crate) missed: Vec<String>,
    /// From building the world to the last process's end.
    pub(crate) took: Duration,
}

impl Outcome {
    /// A run that was judged.
    pub(crate) fn judged(run: Run, judgement: Judgement, missed: Vec<String>, took: Duration) -> Self {
        Self {
            run,
            figures: judgement.figures,
            breaches: judgement.breaches,
            missed,
            took,
        }
    }

    /// A run that came to nothing.
    pub(crate) fn broken(run: Run, why: String, took: Duration) -> Self {
        let breach = Breach {
            rule: "the run can be made",
            what: why,
        };
        Self {
            run,
            figures: Figures::default(),
            breaches: vec![breach],
            missed: Vec::new(),
            took,
        }
    }

    /// Whether every rule was kept.
    pub(crate) fn is_good(&self) -> bool {
        self.breaches.is_empty()
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Figures {
            events,
            answered,
            sends,
            duplicates,
            unanswered,
            taken_again,
            ..
        } = &self.figures;
        let verdict = if self.is_good() { "ok" } else { "FAILED" };
        write!(
            f,
            "{verdict} {} seed {}: events {events}, answered 200 {answered}, deliveries {sends}, duplicates {duplicates}, \
             unanswered {unanswered}, second calls {}",
            self.run.name(),
            self.run.seed,
            self.figures.second_calls_in_all(),
        )?;
        for (reason, count) in &self.figures.second_calls {
            write!(f, " {reason} {count}")?;
        }
        let ms = |time: Duration| time.as_millis();
        write!(
            f,
            ", taken again {taken_again}, unrecorded {}, p99 {} ms, max {} ms, {:.1} s",
            self.figures.unrecorded,
            ms(self.figures.percentile(99)),
            ms(self.figures.percentile(100)),
            self.took.as_secs_f64(),
        )?;
        for missed in &self.missed {
            write!(f, "; missed: {missed}")?;
        }
        for Breach { rule, what } in &self.breaches {
            write!(f, "\n    BREACH {rule}: {what}")?;
        }
        Ok(())
    }
}
