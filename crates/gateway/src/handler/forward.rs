//! The user's service takes it now. With a ledger, every copy that no done mark answered passes `begin`
//! before the POST, also the one that won the claim: the row fences it. Without a ledger the claim is all
//! there is.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use hookgate_claim::Terms;
use hookgate_ledger::{Begun, Lease, NewEvent, OnFailure, Settled, Stored};
use tokio::time::Instant;

use super::keeping::{keep_aside, note_alike};
use super::{DecidedBy, Handled, Hold, Right, Unfinished, Waited, Waiters, Witness, note_other_body};
use crate::config::WithoutStore;
use crate::identity::Aside;
use crate::metrics::{Metrics, observe};
use crate::stores::Stores;
use crate::target::{Outgoing, Target, TargetFailure};

/// Posts events to a target before the answer.
pub struct Forward {
    /// Where they go.
    pub target: Target,
    /// Who may decide.
    pub stores: Stores,
    /// Copies that wait for one in flight.
    pub waiters: Arc<Waiters>,
    /// How long they wait.
    pub wait: Duration,
    /// Life of a claim, and of the ledger's lease.
    pub terms: Terms,
    /// Without a ledger and without Redis.
    pub without_store: WithoutStore,
    /// Who runs a failed event next.
    pub on_failure: OnFailure,
    /// What the ledger still has to be told; with a ledger.
    pub unfinished: Option<Arc<Unfinished>>,
    /// Where calls are counted.
    pub metrics: Arc<Metrics>,
}

impl Forward {
    pub(super) async fn handle(&self, event: &NewEvent, hold: &mut Hold) -> Handled {
        let deadline = Instant::now() + self.wait;
        let mut waited = false;
        loop {
            if (waited || !matches!(hold, Hold::Others))
                && let Some(handled) = self.run_or_learn(event, hold, deadline).await
            {
                return handled;
            }
            if waited {
                return Handled::InFlight;
            }
            match self.waiters.wait(&event.key, Witness::of(hold), deadline).await {
                Waited::Done(decided_by) => return Handled::Duplicate(decided_by),
                Waited::Free => {
                    if let Some(handled) = self.claim_again(event, hold).await {
                        return handled;
                    }
                }
                Waited::TimedOut => waited = true,
                Waited::Refused => return Handled::InFlight,
            }
        }
    }

    /// Keeps an event that is somebody else's; the target does not see it.
    pub(super) async fn set_aside(&self, event: &NewEvent, aside: Aside) -> Handled {
        keep_aside(self.stores.ledger.as_ref(), &self.metrics, event, aside).await
    }

    /// Runs the event if it is ours to run. `None`: somebody else runs it, or the ledger was too busy to say and there
    /// is time left to ask again.
    async fn run_or_learn(&self, event: &NewEvent, hold: &mut Hold, deadline: Instant) -> Option<Handled> {
        let Some(ledger) = &self.stores.ledger else {
            return self.run_by_claim(event, hold).await;
        };
        let begun = ledger.begin(event, self.terms.lease).await;
        if let Ok(Begun::Run { alike, .. }) = &begun {
            note_alike(&self.metrics, event, *alike, false);
        }
        match &begun {
            Ok(Begun::Run {
                lease, first: None, ..
            }) => return Some(self.run(event, hold, lease).await),
            Ok(Begun::Run {
                lease,
                first: Some(first),
                ..
            }) => {
                note_other_body(&self.metrics, &event.key);
                return Some(self.run(&as_first(event, first), hold, lease).await);
            }
            Ok(Begun::Settled { same_body: false, .. }) => note_other_body(&self.metrics, &event.key),
            Ok(Begun::Twin(alike)) => note_alike(&self.metrics, event, *alike, true),
            Ok(Begun::Settled { .. } | Begun::Running) => {}
            Err(error) => tracing::debug!(event.key = %event.key, %error, "{} was not begun", event.key),
        }
        // One question may have taken all the time that there was to wait.
        let last = Instant::now() >= deadline;
        Handled::not_begun(&begun, last, ledger.is_up())
    }

    /// Without a ledger: only the claim's holder may run, unless the operator allowed otherwise.
    async fn run_by_claim(&self, event: &NewEvent, hold: &mut Hold) -> Option<Handled> {
        match hold.right(self.without_store) {
            Right::Run => {}
            Right::Wait => return None,
            Right::Refuse => return Some(Handled::Unavailable),
            Right::Unguarded => {
                tracing::warn!(event.key = %event.key, "{} runs without idempotency", event.key);
            }
        }
        match self.post(event, hold, None).await {
            Ok(()) => Some(Handled::Accepted),
            Err(_) => Some(Handled::Failed),
        }
    }

    async fn claim_again(&self, event: &NewEvent, hold: &mut Hold) -> Option<Handled> {
        let claims = self.stores.claims.as_ref()?;
        if matches!(hold, Hold::Ours(_)) {
            return None;
        }
        let claimed = claims.claim(&event.key, self.terms).await;
        if claimed.is_err() {
            self.metrics
                .claim_fallbacks
                .with_label_values(&[event.key.source.as_str()])
                .inc();
        }
        match Hold::after(claimed) {
            Some(held) => *hold = held,
            None => return Some(Handled::Duplicate(DecidedBy::Claim)),
        }
        None
    }

    async fn run(&self, event: &NewEvent, hold: &mut Hold, lease: &Lease) -> Handled {
        match self.post(event, hold, Some(lease)).await {
            Ok(()) => self.finish(lease).await,
            Err(failure) => self.release(lease, &failure).await,
        }
    }

    /// The target took it; the ledger must learn that, or a later copy runs again once the lease has ended.
    async fn finish(&self, lease: &Lease) -> Handled {
        let ledger = self
            .stores
            .ledger
            .as_ref()
            .expect("a ledger lease comes from a ledger");
        let finished = ledger.finish(lease).await;
        match &finished {
            Ok(Settled::Lost) => {
                tracing::warn!(event.key = %lease.key, "{} outlived its lease; the target may be called twice", lease.key);
            }
            Ok(_) => {}
            Err(error) => {
                tracing::warn!(event.key = %lease.key, %error, "{} was taken by its target, and the ledger cannot be told yet", lease.key);
                if let Some(unfinished) = &self.unfinished {
                    unfinished.remember(lease.clone());
                }
            }
        }
        Handled::finished(&finished)
    }

    /// The target did not take it: the provider's next try owns it, or, where none will come, our workers.
    async fn release(&self, lease: &Lease, failure: &TargetFailure) -> Handled {
        let ledger = self
            .stores
            .ledger
            .as_ref()
            .expect("a ledger lease comes from a ledger");
        let released = ledger.release(lease, &failure.to_string(), self.on_failure).await;
        Handled::released(&released, self.on_failure)
    }

    /// Calls the target, renewing claim and row while the call lives.
    async fn post(
        &self,
        event: &NewEvent,
        hold: &mut Hold,
        lease: Option<&Lease>,
    ) -> Result<(), TargetFailure> {
        let outgoing = Outgoing {
            key: &event.key,
            generation: lease.map_or(0, |lease| lease.generation),
            event_type: event.event_type.as_ref().map(|event_type| event_type.as_str()),
            attempt: lease.map(|lease| lease.attempt),
            headers: &event.headers,
            body: event.body.clone(),
        };
        let started = Instant::now();
        let result = tokio::select! {
            result = self.target.post(&outgoing) => result,
            never = self.keep_alive(hold, lease) => match never {},
        };
        let source = event.key.source.as_str();
        observe(
            &self.metrics.handler_seconds.with_label_values(&[source]),
            started.elapsed(),
        );
        self.metrics
            .attempts
            .with_label_values(&[source, if result.is_ok() { "done" } else { "retry" }])
            .inc();
        if let Err(failure) = &result {
            tracing::warn!(event.key = %event.key, "{}: {failure}", event.key);
        }
        result
    }

    /// Renews what we hold three times a lease, so that one lost renewal loses nothing. A claim that is lost
    /// is somebody else's from then on: it is counted once, and closing will not ask for it again.
    async fn keep_alive(&self, hold: &mut Hold, lease: Option<&Lease>) -> Infallible {
        loop {
            tokio::time::sleep(self.terms.lease / 3).await;
            // The claim first: a replica stopped between the two must not keep a claim younger than its row, or a
            // successor would take the row and not the claim, and the loss would never be counted.
            if let (Hold::Ours(claim), Some(claims)) = (&mut *hold, &self.stores.claims)
                && !claims.renew(claim).await
            {
                *hold = Hold::Others;
            }
            if let (Some(lease), Some(ledger)) = (lease, &self.stores.ledger) {
                // Lost or unknown, settling will find out.
                let _ = ledger.heartbeat(lease, self.terms.lease).await;
            }
        }
    }
}

/// The event as it came first.
fn as_first(event: &NewEvent, first: &Stored) -> NewEvent {
    NewEvent {
        event_type: first.event_type.clone(),
        headers: first.headers.clone(),
        body: first.body.clone(),
        ..event.clone()
    }
}
