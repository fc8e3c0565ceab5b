//! Deliveries that carry several events. Each becomes a row of its own with its exact slice of the body, and
//! keeps its place in the whole; the provider's signature covers the whole, so no row of a part keeps it.

use hookgate_webhook::Batch;

/// Tells a target, or a consumer that pulls, where in which delivery an event stood.
pub const HEADER: &str = "Hookgate-Batch";

/// Events that one delivery may carry. HubSpot sends up to a hundred, Adyen usually one; SendGrid bounds its deliveries by
/// size, at 768 kB, which small events fill with two or three thousand (its figure is unconfirmed). Whoever sends more is
/// told that it is too much, before anything is stored.
pub const EVENTS_MAX: usize = 5_000;

/// Events of one delivery that are seen through at the same time: as many as one commit of the ledger takes. A
/// large delivery leaves room for others.
pub const AT_ONCE: usize = 64;

/// `<sha256 of the whole body, hex>;<i>/<n>`, the first event being 1.
pub fn header(batch: &Batch) -> (Box<str>, Vec<u8>) {
    let digest: String = batch.sha256.iter().map(|byte| format!("{byte:02x}")).collect();
    let place = format!("{digest};{}/{}", batch.index + 1, batch.count);
    (HEADER.into(), place.into_bytes())
}
