//! The loops beside the path: retention, counts per minute, alerts, the rotation of secrets. A process runs those
//! that its role asks for and, but for the last, that there is a ledger for; none of them is needed to take or
//! deliver an event.

use std::sync::Arc;
use std::time::Duration;

use secrecy::ExposeSecret as _;
use tokio::sync::Notify;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::app::{Roles, StartError};
use crate::config::{Config, Consumer};
use crate::metrics::Metrics;
use crate::notifier::Notifier;
use crate::rotation::Rotation;
use crate::stores::Stores;
use crate::sweeper::Sweeper;
use crate::tally::Tally;
use crate::target::BadTarget;

/// Those that this process runs.
#[derive(Default)]
pub struct Keepers {
    sweeper: Option<Arc<Sweeper>>,
    tally: Option<Arc<Tally>>,
    notifier: Option<Arc<Notifier>>,
    rotation: Option<Rotation>,
}

impl Keepers {
    /// Prepares them; nothing is asked of the ledger yet.
    ///
    /// # Errors
    /// [`StartError::Target`] if the HTTP client of alerts cannot be built.
    pub fn new(
        config: &Config,
        roles: Roles,
        stores: &Stores,
        metrics: &Arc<Metrics>,
        deaths: Arc<Notify>,
    ) -> Result<Self, StartError> {
        let (Some(ledger), Some(upkeep)) = (&stores.ledger, &stores.upkeep) else {
            return Ok(Self::default());
        };
        let sweeper = || Sweeper::new(Arc::clone(upkeep), config.retention, Arc::clone(metrics));
        let tally = Tally::new(Arc::clone(upkeep), Arc::clone(ledger), Arc::clone(metrics));
        // Events die where they are run: by a worker, or by consumers that pull from whoever receives.
        let pulled = config
            .sources
            .iter()
            .any(|source| source.consumer == Consumer::Pull);
        let tells = roles.work || (roles.receive && pulled);
        let url = config.notify_url.as_ref().filter(|_| tells);
        let notifier = url.map(|url| {
            let url = url
                .expose_secret()
                .parse()
                .expect("the configuration accepts only URLs");
            Notifier::new(
                Arc::clone(upkeep),
                url,
                config.notify_quiet,
                deaths,
                Arc::clone(metrics),
            )
        });
        Ok(Self {
            sweeper: roles.sweep.then(sweeper).map(Arc::new),
            tally: Some(Arc::new(tally)),
            notifier: notifier.transpose().map_err(BadTarget::from)?.map(Arc::new),
            rotation: None,
        })
    }

    /// And this one, which needs no ledger.
    #[must_use]
    pub fn with(self, rotation: Rotation) -> Self {
        Self {
            rotation: Some(rotation),
            ..self
        }
    }

    /// Starts their loops, which end with `stop`.
    pub fn start(&mut self, loops: &mut JoinSet<()>, stop: &CancellationToken) {
        if let Some(sweeper) = &self.sweeper {
            loops.spawn(Arc::clone(sweeper).run(stop.clone()));
        }
        if let Some(tally) = &self.tally {
            loops.spawn(Arc::clone(tally).run(stop.clone()));
        }
        if let Some(notifier) = &self.notifier {
            loops.spawn(Arc::clone(notifier).run(stop.clone()));
        }
        if let Some(rotation) = self.rotation.take() {
            loops.spawn(rotation.run(stop.clone()));
        }
    }

    /// Writes down what is left to write, when everything else has ended; within this time.
    pub async fn flush(&self, within: Duration) {
        if let Some(tally) = &self.tally {
            tally.flush(within).await;
        }
    }
}
