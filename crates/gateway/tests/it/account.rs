//! Whether a target's journal and the ledger tell the same story: every call is a run that is written down, every
//! run that came to an end was a call, nothing was called by two at a time, and nothing twice without a reason.

use std::collections::BTreeMap;
use std::fmt;

use hookgate_harness::{PATIENCE, Request, Upstream};
use tokio::time::{Instant, sleep};

use crate::deployment::Deployment;

/// What happened to the events of one deployment.
#[derive(Debug, Default)]
pub struct Account {
    pub events: usize,
    pub done: usize,
    pub dead: usize,
    pub calls: usize,
    /// Calls after a run that the target itself failed.
    pub after_failures: usize,
    /// Calls after a run whose process was killed or lost its lease.
    pub after_kills: usize,
    /// Calls after a run that got no answer in time.
    pub after_timeouts: usize,
    /// Runs whose process died before or while it called.
    pub lost: usize,
    /// Lost runs of which the target never heard.
    pub unheard: usize,
    /// Events that the target took twice: it had said so to a process that was killed, or too late.
    pub doubled: usize,
    /// Calls of one event at one time, after a run that was lost or too late.
    pub overlaps: usize,
}

/// One event as both sides saw it.
#[derive(Debug, Default)]
struct Story {
    state: String,
    attempts: usize,
    runs: BTreeMap<usize, Run>,
}

#[derive(Debug)]
struct Run {
    outcome: String,
    error: String,
    call: Option<Request>,
}

impl Run {
    fn is_lost(&self) -> bool {
        self.outcome == "lost"
    }

    fn is_late(&self) -> bool {
        self.error.contains("no answer within")
    }

    /// Whether it may have been a call, or not.
    fn is_doubtful(&self) -> bool {
        self.is_lost() || self.error.contains("interrupted") || self.error.contains("cannot be reached")
    }

    fn took_effect(&self) -> bool {
        self.call.as_ref().is_some_and(|call| call.answered == Some(200))
    }

    /// Whether its process could not know what the target said, or had no say any more.
    fn explains_another(&self) -> bool {
        self.is_doubtful() || self.is_late()
    }
}

impl Account {
    /// Compares the journal with the ledger, event by event.
    ///
    /// # Panics
    /// With the event's story if the two do not agree, or something happened twice without a reason.
    pub async fn of(deployment: &Deployment, target: &Upstream) -> Self {
        let mut stories = stories(deployment).await;
        for call in target.requests() {
            let story = call
                .id()
                .and_then(|id| stories.get_mut(id.strip_prefix("stripe:")?));
            let attempt = call.header("hookgate-attempt").and_then(|text| text.parse().ok());
            let run = story.and_then(|story| story.runs.get_mut(&attempt?));
            let run = run.unwrap_or_else(|| panic!("no run is written down for {call:?}"));
            assert!(run.call.is_none(), "one run called twice: {run:?} and {call:?}");
            run.call = Some(call);
        }
        let mut account = Self::default();
        for (id, story) in &stories {
            let agrees = story.agrees();
            assert!(agrees.is_ok(), "{id}: {agrees:?}: {story:#?}");
            account.add(story);
        }
        account
    }

    /// Runs that were lost while the target had heard of them. Others nobody ever had: a worker that leases events
    /// and does not learn of it in time calls nobody, and they are free again when their leases end.
    pub fn cut_off(&self) -> usize {
        self.lost - self.unheard
    }

    fn add(&mut self, story: &Story) {
        self.events += 1;
        self.done += usize::from(story.state == "done");
        self.dead += usize::from(story.state == "dead");
        let (mut before, mut called) = (None, false);
        for run in story.runs.values() {
            self.lost += usize::from(run.is_lost());
            self.unheard += usize::from(run.is_lost() && run.call.is_none());
            self.calls += usize::from(run.call.is_some());
            if called && run.call.is_some() {
                *self.reason(before.expect("a second run has one before it")) += 1;
            }
            called |= run.call.is_some();
            before = Some(run);
        }
        let effects = story.runs.values().filter(|run| run.took_effect()).count();
        self.doubled += effects.saturating_sub(1);
        self.overlaps += story.overlaps().count();
    }

    fn reason(&mut self, before: &Run) -> &mut usize {
        match (before.is_lost(), before.is_late()) {
            (true, _) => &mut self.after_kills,
            (_, true) => &mut self.after_timeouts,
            _ => &mut self.after_failures,
        }
    }
}

impl Story {
    fn agrees(&self) -> Result<(), &'static str> {
        let numbered = self.runs.keys().copied().eq(1..=self.attempts);
        let said = |run: &Run| run.call.is_some() || run.is_doubtful();
        let done: Vec<_> = self.runs.values().filter(|run| run.outcome == "done").collect();
        let known = |run: &Run| !run.took_effect() || run.outcome == "done" || run.explains_another();
        for (holds, rule) in [
            (numbered, "attempts and runs add up"),
            (self.runs.values().all(said), "every run was a call"),
            (self.runs.values().all(known), "what took effect is done"),
            (done.len() == usize::from(self.state == "done"), "it is done once"),
            (
                done.iter().all(|run| run.took_effect()),
                "what is done took effect",
            ),
            (self.overlaps().all(Run::explains_another), "calls do not overlap"),
        ] {
            if !holds {
                return Err(rule);
            }
        }
        Ok(())
    }

    /// Runs that the target still had in hand when a later one came.
    fn overlaps(&self) -> impl Iterator<Item = &Run> {
        self.runs
            .iter()
            .filter(|(number, run)| {
                let mut later = self.runs.range(*number + 1..);
                later.any(|(_, other)| match (&run.call, &other.call) {
                    (Some(one), Some(other)) => one.overlaps(other),
                    _ => false,
                })
            })
            .map(|(_, run)| run)
    }
}

async fn stories(deployment: &Deployment) -> BTreeMap<String, Story> {
    let events = "SELECT event_id || '|' || state || '|' || attempts FROM webhook_events";
    let runs = "SELECT event_id || '|' || attempt || '|' || outcome || '|' || COALESCE(error, '')
                FROM webhook_attempts WHERE generation = 0";
    let mut stories = BTreeMap::<String, Story>::new();
    for line in deployment.sql(events).await.lines() {
        let columns: Vec<_> = line.split('|').collect();
        let story = stories.entry(columns[0].to_owned()).or_default();
        columns[1].clone_into(&mut story.state);
        story.attempts = columns[2].parse().expect("attempts are a number");
    }
    for line in deployment.sql(runs).await.lines() {
        let columns: Vec<_> = line.splitn(4, '|').collect();
        let run = Run {
            outcome: columns[2].to_owned(),
            error: columns[3].to_owned(),
            call: None,
        };
        let story = stories.get_mut(columns[0]).expect("a run is an event's");
        story
            .runs
            .insert(columns[1].parse().expect("a run has a number"), run);
    }
    stories
}

/// Waits until this many events have come to rest, for as long as there is progress.
///
/// # Panics
/// If nothing came to rest for [`PATIENCE`], with what is left.
pub async fn all_at_rest(deployment: &Deployment, count: usize) {
    let (mut known, mut deadline) = (0, Instant::now() + PATIENCE);
    while known < count {
        let rest = "SELECT CAST(count(*) AS text) FROM webhook_events WHERE state IN ('done', 'dead')";
        let now = deployment.sql(rest).await.parse().expect("a count is a number");
        if now > known {
            (known, deadline) = (now, Instant::now() + PATIENCE);
        }
        if Instant::now() > deadline {
            let left = "SELECT event_id || ' ' || state || ' ' || attempts FROM webhook_events
                        WHERE state NOT IN ('done', 'dead')";
            panic!("waited in vain for {}", deployment.sql(left).await);
        }
        sleep(std::time::Duration::from_millis(50)).await;
    }
}

impl fmt::Display for Account {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            events,
            done,
            dead,
            calls,
            ..
        } = self;
        write!(
            f,
            "events {events}, done {done}, dead {dead}, calls {calls}, second calls after a failure {}, explained \
             by kills {}, by timeouts {}; runs lost {} ({} before their call); effects doubled {}, overlaps {}",
            self.after_failures,
            self.after_kills,
            self.after_timeouts,
            self.lost,
            self.unheard,
            self.doubled,
            self.overlaps,
        )
    }
}
