//! The path: one delivery from its raw bytes to an outcome. Each step is one crate.
//!
//! From claim to close the events of a delivery run in a task of their own: a client that hangs up cancels nothing, a panic
//! releases the claim, and shutdown waits for these tasks.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use futures_util::FutureExt as _;
use futures_util::stream::{self, StreamExt as _};
use hookgate_claim::{Claim, Epoch, Terms, Unavailable};
use hookgate_ledger::{DeliveryId, NewEvent};
use hookgate_signature::{Delivery, Refusal, Verified};
use hookgate_webhook::{Answer, Event, EventKey, Provider, Reading, SourceName};
use tokio_util::task::TaskTracker;

use crate::address::Address;
use crate::batch;
use crate::certificates::{Certificates, NoKey};
use crate::clock::Clock;
use crate::config::Identity;
use crate::handler::{Closing, DecidedBy, Handled, Handler, Hold};
use crate::identity::{self, Aside};
use crate::keyring::{Keyring, ValidKeys};
use crate::metrics::Metrics;
use crate::rejection::Refused;
use crate::stores::{GuardedClaims, Stores};

/// Headers worth keeping for every provider, besides its own.
const KEPT_HEADERS: [&str; 3] = ["content-type", "traceparent", "tracestate"];

/// One configured endpoint, ready to receive.
pub struct Source {
    /// Its name.
    pub name: SourceName,
    /// Who sends to it.
    pub provider: Provider,
    /// The keys that are valid now.
    pub keyring: Keyring,
    /// Its URL, for schemes that sign it.
    pub address: Address,
    /// What happens to its events.
    pub handler: Handler,
    /// Life of its claims.
    pub terms: Terms,
    /// Largest accepted body.
    pub body_bytes_max: usize,
    /// Which events are its own, and which are the same.
    pub identity: Identity,
}

/// Receives deliveries.
pub struct Receiver {
    /// Both stores.
    pub stores: Stores,
    /// What time it is where signatures are judged.
    pub clock: Clock,
    /// Where everything is counted.
    pub metrics: Arc<Metrics>,
    /// Keys that deliveries name.
    pub certificates: Certificates,
    /// Events between claim and close.
    pub tasks: TaskTracker,
    /// The runtime that these tasks live on; it outlives every connection.
    pub runtime: tokio::runtime::Handle,
}

/// What became of a delivery.
#[derive(Debug)]
#[must_use]
pub enum Receipt {
    /// Its events were seen through; here they are in its order. None, if the provider sent a batch of none.
    Events(Vec<Received>),
    /// It was a handshake, and this is what the provider wants to hear. Nothing was claimed or stored.
    Handshake(Answer),
}

/// One event and how it ended.
#[derive(Debug)]
pub struct Received {
    /// Identity.
    pub key: EventKey,
    /// How it ended.
    pub handled: Handled,
    /// Why it was set aside, if it is for somebody else.
    pub aside: Option<Aside>,
}

impl Received {
    /// The provider's id.
    pub fn id(&self) -> &str {
        self.key.id.as_str()
    }
}

impl Receiver {
    /// Verifies with the keys that were valid when the delivery began, reads, and sees each of its events
    /// through.
    ///
    /// # Errors
    /// [`Refused`] if the delivery is not authentic or cannot be read; nothing was stored then.
    pub async fn receive(
        self: &Arc<Self>,
        source: &Arc<Source>,
        keys: &ValidKeys,
        delivery: Delivery<'_>,
    ) -> Result<Receipt, Refused> {
        let verified = self.verify(source, keys, delivery).await?;
        let reading = source.provider.read(&verified)?;
        self.follow(source, &verified, reading).await
    }

    /// Verifies. Where a delivery names its key, the key is looked for once everything else about it is in order.
    async fn verify<'a>(
        &self,
        source: &Source,
        keys: &ValidKeys,
        delivery: Delivery<'a>,
    ) -> Result<Verified<'a>, Refused> {
        let now = self.clock.unix_seconds();
        if !keys.need_a_named_key() {
            return Ok(keys.verify(delivery, now)?);
        }
        let provider = source.provider;
        let address = match keys.verify(delivery.clone(), now) {
            Err(Refusal::BadSignature) => provider.certificate_url(&delivery.headers),
            outcome => return Ok(outcome?),
        };
        // An address that is not one of the provider's own is a stranger's.
        let (address, domain) = address
            .zip(provider.certificate_domain())
            .ok_or(Refusal::BadSignature)?;
        match self.certificates.key(address, domain, now).await {
            Ok(key) => Ok(keys.verify_with(&key, delivery, now)?),
            Err(NoKey::Untrusted) => Err(Refusal::BadSignature.into()),
            Err(NoKey::Unavailable) => Err(Refused::NoKey),
        }
    }

    /// What follows from what was read: the answer to a handshake, or the events, each seen through.
    ///
    /// # Errors
    /// [`Refused::TooManyEvents`], of which none was stored; [`Refused::Interrupted`], of which some may be.
    pub async fn follow(
        self: &Arc<Self>,
        source: &Arc<Source>,
        verified: &Verified<'_>,
        reading: Reading,
    ) -> Result<Receipt, Refused> {
        if let Some(answer) = reading.handshake {
            return Ok(Receipt::Handshake(answer));
        }
        if reading.events.len() > batch::EVENTS_MAX {
            return Err(Refused::TooManyEvents);
        }
        let new = |event| {
            self.count_dropped(source, &event);
            let aside = identity::aside(&source.identity, source.provider, &event);
            let mut event = new_event(source, verified, event);
            if aside.is_some() {
                // Somebody else's event is no original of ours.
                event.content_keys.clear();
            }
            let (receiver, source) = (Arc::clone(self), Arc::clone(source));
            async move { receiver.see_through(&source, event, aside).await }
        };
        let events: Vec<_> = reading.events.into_iter().map(new).collect();
        let all = async { stream::iter(events).buffered(batch::AT_ONCE).collect().await };
        let seen = self.tasks.spawn_on(all, &self.runtime).await;
        // A task that was aborted or panicked outside the handler promises nothing.
        seen.map(Receipt::Events).map_err(|_| Refused::Interrupted)
    }

    /// From claim to close.
    async fn see_through(&self, source: &Source, event: NewEvent, aside: Option<Aside>) -> Received {
        // Read before anything is stored: a done mark must not outlive the history that the event went into.
        let epoch = self.stores.claims.as_ref().map(|claims| claims.epoch());
        let mut hold = match &self.stores.claims {
            None => Hold::Unclaimed,
            Some(claims) => {
                let claimed = claims.claim(&event.key, source.terms).await;
                self.count_fallback(source, &claimed);
                match Hold::after(claimed) {
                    Some(hold) => hold,
                    None => return self.count(event.key, Handled::Duplicate(DecidedBy::Claim), aside),
                }
            }
        };
        let handled = AssertUnwindSafe(source.handler.handle(&event, aside, &mut hold))
            .catch_unwind()
            .await;
        let handled = handled.unwrap_or_else(|_| {
            tracing::error!(event.key = %event.key, "handling {} panicked", event.key);
            Handled::Failed
        });
        if let (Some(claims), Some(epoch)) = (&self.stores.claims, epoch) {
            self.close(claims, source, &event.key, epoch, hold, handled).await;
        }
        self.count(event.key, handled, aside)
    }

    /// Marks the claim done, or deletes it if the event failed. The effect is durable by now, so whatever
    /// happens here cannot change the answer.
    async fn close(
        &self,
        claims: &Arc<GuardedClaims>,
        source: &Source,
        key: &EventKey,
        epoch: Epoch,
        hold: Hold,
        handled: Handled,
    ) {
        match Closing::of(handled, hold, self.stores.ledger.is_some()) {
            Closing::MarkDone => claims.mark_done(key, source.terms.ttl, epoch).await,
            Closing::Finish(lease) => {
                if !claims.finish(&lease).await {
                    self.tasks
                        .spawn_on(Arc::clone(claims).finish_later(lease), &self.runtime);
                }
            }
            Closing::FinishPossible(possible) => claims.finish_possible(&possible).await,
            Closing::Release(lease) => claims.release(&lease).await,
            Closing::ReleasePossible(possible) => claims.release_possible(&possible).await,
            Closing::Nothing => {}
        }
    }

    /// Nothing is known about the claim: the ledger decides alone.
    fn count_fallback(&self, source: &Source, claimed: &Result<Claim, Unavailable>) {
        if claimed.is_err() {
            self.metrics
                .claim_fallbacks
                .with_label_values(&[source.name.as_str()])
                .inc();
        }
    }

    fn count(&self, key: EventKey, handled: Handled, aside: Option<Aside>) -> Received {
        let source = key.source.as_str();
        if let Handled::Duplicate(decided_by) = handled {
            let layer = match decided_by {
                DecidedBy::Claim => "claim",
                DecidedBy::Ledger => "ledger",
                DecidedBy::Content => "content",
            };
            self.metrics
                .duplicates_skipped
                .with_label_values(&[source, layer])
                .inc();
        }
        self.metrics
            .deliveries
            .with_label_values(&[source, handled.outcome()])
            .inc();
        Received { key, handled, aside }
    }

    fn count_dropped(&self, source: &Source, event: &Event) {
        for dropped in &event.dropped {
            self.metrics
                .ignored
                .with_label_values(&[source.name.as_str(), dropped.reason()])
                .inc();
        }
    }
}

impl Handled {
    /// The contract's word for it.
    pub fn outcome(self) -> &'static str {
        match self {
            Self::Accepted | Self::AcceptedUnrecorded => "accepted",
            Self::Duplicate(DecidedBy::Content) => "twin",
            Self::Duplicate(DecidedBy::Claim | DecidedBy::Ledger) => "duplicate",
            Self::InFlight => "in_flight",
            Self::Failed => "failed",
            Self::Unavailable => "unavailable",
        }
    }
}

/// The ledger's row of an event: what was read, and the headers worth keeping.
fn new_event(source: &Source, verified: &Verified<'_>, event: Event) -> NewEvent {
    let knowledge = source.provider.knowledge();
    // The provider's own headers are about the whole, which a part is not.
    let own = match event.batch {
        None => knowledge.forwarded_headers,
        Some(_) => &[],
    };
    let kept = |name: &str| {
        let mut names = own.iter().chain(&KEPT_HEADERS);
        names.any(|kept| name.eq_ignore_ascii_case(kept))
    };
    let headers = verified.headers().iter().filter(|(name, _)| kept(name));
    let headers = headers.map(|(name, value)| (name.into(), value.to_vec()));
    let place = event.batch.as_ref().map(batch::header);
    let content_keys = identity::content_keys(&source.identity, source.provider, &event);
    NewEvent {
        content_keys,
        key: EventKey {
            source: source.name.clone(),
            id: event.id,
        },
        provider: knowledge.name,
        account: event.account,
        mode: event.mode,
        event_type: event.event_type,
        object_id: event.object_id,
        provider_time: event.provider_time,
        body_sha256: event.body_sha256,
        headers: headers.chain(place).collect(),
        body: event.body,
        delivery: DeliveryId(rand::random()),
    }
}
