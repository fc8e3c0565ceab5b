//! Where a worker hands events over. One arm per kind of consumer; success is the consumer's own
//! acknowledgement and nothing earlier.

use hookgate_ledger::Job;

use crate::target::{Outgoing, Target, TargetFailure};

/// A consumer of events.
pub enum Sink {
    /// A POST to the user's service.
    Http(Target),
}

impl Sink {
    /// Hands one event over.
    ///
    /// # Errors
    /// [`TargetFailure`] if the consumer did not acknowledge it.
    pub async fn deliver(&self, job: &Job) -> Result<(), TargetFailure> {
        match self {
            Self::Http(target) => {
                let outgoing = Outgoing {
                    key: &job.lease.key,
                    generation: job.lease.generation,
                    event_type: job.event_type.as_deref(),
                    attempt: Some(job.lease.attempt),
                    headers: &job.headers,
                    body: job.body.clone(),
                };
                target.post(&outgoing).await
            }
        }
    }
}
