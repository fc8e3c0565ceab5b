//! What a target has seen: every request as it came, and when it began and ended in relation to the others.

use bytes::Bytes;
use tokio::sync::watch;
use tokio::time::{Instant, timeout};

use crate::PATIENCE;
use crate::http::Head;

/// The header that names the event.
const ID: &str = "webhook-id";

/// One request as the target saw it.
#[derive(Clone, Debug)]
pub struct Request {
    /// The method, such as `POST`.
    pub method: String,
    /// Path and query, as sent.
    pub path: String,
    /// Names and values in the order and spelling they came in.
    pub headers: Vec<(String, String)>,
    /// The body's exact bytes.
    pub body: Bytes,
    /// When it was read whole, on a clock that ticks at each beginning and end.
    pub began: u64,
    /// When the target answered or lost the client, on the same clock; `None` while it is still in hand.
    pub ended: Option<u64>,
    /// The moment of `began`.
    pub began_at: Instant,
    /// The moment of `ended`.
    pub ended_at: Option<Instant>,
    /// Whether the client closed the connection before it had an answer.
    pub client_left: bool,
    /// The status that the target answered with. Whether it arrived is another question.
    pub answered: Option<u16>,
}

impl Request {
    /// The first header of that name, in any case.
    pub fn header(&self, name: &str) -> Option<&str> {
        let header = self
            .headers
            .iter()
            .find(|(candidate, _)| candidate.eq_ignore_ascii_case(name));
        header.map(|(_, value)| value.as_str())
    }

    /// The header `Webhook-Id`.
    pub fn id(&self) -> Option<&str> {
        self.header(ID)
    }

    /// Whether both were in the target's hands at one time.
    pub fn overlaps(&self, other: &Self) -> bool {
        let is_before = |one: &Self, two: &Self| one.ended.is_some_and(|ended| ended < two.began);
        !is_before(self, other) && !is_before(other, self)
    }
}

/// How a request ended.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum End {
    Answered(u16),
    Reset,
    ClientLeft,
}

/// All requests, in the order they began.
#[derive(Default)]
pub(crate) struct Journal {
    entries: watch::Sender<Entries>,
}

#[derive(Default)]
struct Entries {
    requests: Vec<Request>,
    clock: u64,
}

impl Journal {
    /// Writes a request down; the number returned names it at [`Journal::end`].
    pub(crate) fn begin(&self, head: Head, body: Bytes) -> usize {
        let mut number = 0;
        self.entries.send_modify(|entries| {
            let Head {
                method,
                path,
                headers,
            } = head;
            entries.clock += 1;
            let began = entries.clock;
            number = entries.requests.len();
            let request = Request {
                method,
                path,
                headers,
                body,
                began,
                ended: None,
                began_at: Instant::now(),
                ended_at: None,
                client_left: false,
                answered: None,
            };
            entries.requests.push(request);
        });
        number
    }

    pub(crate) fn end(&self, number: usize, end: End) {
        self.entries.send_modify(|entries| {
            entries.clock += 1;
            let request = &mut entries.requests[number];
            request.ended = Some(entries.clock);
            request.ended_at = Some(Instant::now());
            request.client_left = end == End::ClientLeft;
            request.answered = match end {
                End::Answered(status) => Some(status),
                End::ClientLeft | End::Reset => None,
            };
        });
    }

    /// The most requests that were in hand at one time.
    pub(crate) fn peak(&self) -> usize {
        let entries = self.entries.borrow();
        let began = entries.requests.iter().map(|request| (request.began, true));
        let ended = entries.requests.iter().filter_map(|request| request.ended);
        let mut ticks: Vec<_> = began.chain(ended.map(|tick| (tick, false))).collect();
        ticks.sort_unstable();
        let (mut in_hand, mut peak) = (0_usize, 0);
        for (_, begins) in ticks {
            in_hand = if begins { in_hand + 1 } else { in_hand - 1 };
            peak = peak.max(in_hand);
        }
        peak
    }

    pub(crate) fn requests(&self) -> Vec<Request> {
        self.entries.borrow().requests.clone()
    }

    pub(crate) fn id_of(&self, number: usize) -> Option<String> {
        self.entries.borrow().requests[number].id().map(str::to_owned)
    }

    /// Waits until `settled` holds, or panics with what there is.
    pub(crate) async fn wait_until(&self, settled: impl Fn(&[Request]) -> bool) -> Vec<Request> {
        let mut entries = self.entries.subscribe();
        let waited = timeout(PATIENCE, entries.wait_for(|entries| settled(&entries.requests))).await;
        match waited {
            Ok(Ok(entries)) => entries.requests.clone(),
            _ => panic!("the target waited in vain; it has seen {:#?}", self.requests()),
        }
    }
}
