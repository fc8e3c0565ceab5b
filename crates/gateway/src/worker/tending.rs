//! What a worker does beside delivering: it frees events whose owner died, buries what was held for too long, and
//! hears which targets a person has paused.

use std::sync::Arc;
use std::time::Duration;

use hookgate_webhook::SourceName;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::Worker;

/// How soon a pause takes effect.
const INTERVAL: Duration = Duration::from_secs(1);

/// Rounds between two searches for events whose worker died.
const ROUNDS_PER_RESCUE: u32 = 5;

/// Rounds between two looks for events that were held for 72 h.
const ROUNDS_PER_BURIAL: u32 = 60;

impl Worker {
    /// Tends until `stop`.
    pub(super) async fn tend(self: Arc<Self>, stop: CancellationToken) {
        let mut introduced = false;
        for round in 0_u32.. {
            introduced = introduced || self.introduce().await;
            self.hear_pauses().await;
            self.tell_outages().await;
            if round % ROUNDS_PER_RESCUE == 0 {
                self.rescue().await;
            }
            if round % ROUNDS_PER_BURIAL == 0 {
                self.bury().await;
            }
            let rest = tokio::time::sleep(INTERVAL);
            if stop.run_until_cancelled(rest).await.is_none() {
                return;
            }
        }
    }

    /// Tells everybody by which names our targets can be paused. False if nobody heard it.
    async fn introduce(&self) -> bool {
        let names: Vec<String> = self.gates.iter().map(|gate| gate.name().to_owned()).collect();
        self.ledger.introduce_targets(&names).await.is_ok()
    }

    /// A ledger that is away keeps the last known pauses.
    async fn hear_pauses(&self) {
        let Ok(paused) = self.ledger.paused_targets().await else {
            return;
        };
        for gate in &self.gates {
            let name = gate.name();
            let is_paused = paused.iter().any(|paused| paused == name);
            let gauge = self.metrics.target_paused.with_label_values(&[name]);
            // That a target is not paused is no news to a worker that has just started.
            if gate.set_paused(is_paused) && (is_paused || gauge.get() == 1) {
                tracing::warn!(
                    target.name = name,
                    paused = is_paused,
                    "target {name}: paused = {is_paused}"
                );
            }
            gauge.set(i64::from(is_paused));
        }
    }

    /// Tells everybody which targets are away, and which are not, as long as that is so: whoever said otherwise may
    /// be gone. What cannot be told now is told in the next round.
    async fn tell_outages(&self) {
        for gate in &self.gates {
            if gate.is_away() {
                if let Ok(away_for) = self.ledger.target_down(gate.name()).await {
                    gate.known_away_for(away_for, Instant::now());
                }
            } else if gate.take_answered() {
                let _ = self.ledger.target_up(gate.name()).await;
            }
        }
    }

    async fn rescue(&self) {
        match self.ledger.rescue(&self.tries_max).await {
            Err(_) => {}
            Ok(rescued) if rescued.freed == 0 => {}
            Ok(rescued) => {
                let (freed, dead) = (rescued.freed, rescued.dead);
                tracing::warn!(
                    freed,
                    dead,
                    "{freed} events whose owner died were freed; {dead} had used up their tries"
                );
                if dead > 0 {
                    self.deaths.notify_one();
                }
            }
        }
    }

    async fn bury(&self) {
        for gate in self.gates.iter().filter(|gate| gate.is_away()) {
            let routes = self
                .routes
                .values()
                .filter(|route| Arc::ptr_eq(&route.gate, gate));
            let sources: Vec<SourceName> = routes.map(|route| route.source.clone()).collect();
            let name = gate.name();
            match self.ledger.bury_held(name, &sources).await {
                Ok(0) | Err(_) => {}
                Ok(buried) => {
                    tracing::error!(
                        buried,
                        target.name = name,
                        "{buried} events were held for 72 h and are dead letters: target {name} is not there"
                    );
                    self.deaths.notify_one();
                }
            }
        }
    }
}
