//! The user's own service, as tests need it: a target that writes down each request and answers, fails, dawdles, hangs
//! or breaks off as it is told, for all events or for one.

use std::collections::HashMap;
use std::future::pending;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, watch};
use tokio::task::JoinSet;
use tokio::time::sleep;

use crate::http::HttpStream;
use crate::journal::{End, Journal, Request};
use crate::lottery::Lottery;

/// What a target does with a request.
#[derive(Clone, Debug)]
pub enum Answer {
    /// Answers at once.
    Status(u16),
    /// Answers at once with further headers, such as `Retry-After`.
    StatusWithHeaders(u16, Vec<(String, String)>),
    /// Answers after this time.
    Slow(Duration, u16),
    /// Never answers.
    Hang,
    /// Resets the connection.
    Reset,
    /// Answers the first `times` requests of each event with `status`, the others with 200. Setting it counts anew.
    FailFirst {
        /// How many requests fail.
        times: usize,
        /// How they fail.
        status: u16,
    },
    /// Answers when the test opens the gate.
    Gate(Gate, u16),
    /// Does what is drawn for this event this time.
    Lottery(Lottery),
    /// Works on a few requests at a time, and tells the others that it is busy.
    Capacity(Capacity),
}

/// What a target can do at a time: its places, and how long a request takes one. Clones share the places.
#[derive(Clone, Debug)]
pub struct Capacity {
    places: Arc<Semaphore>,
    time: Duration,
    busy: u16,
}

impl Capacity {
    /// Answers 200 after `time` to at most `places` requests at once, and `busy` to the others at once.
    pub fn new(places: usize, time: Duration, busy: u16) -> Self {
        Self {
            places: Arc::new(Semaphore::new(places)),
            time,
            busy,
        }
    }

    async fn work(&self) -> u16 {
        let Ok(_place) = self.places.try_acquire() else {
            return self.busy;
        };
        sleep(self.time).await;
        200
    }
}

/// Holds requests until the test opens it, for all its clones and for good.
#[derive(Clone, Debug)]
pub struct Gate(Arc<watch::Sender<bool>>);

impl Gate {
    /// A closed gate.
    pub fn closed() -> Self {
        Self(Arc::new(watch::Sender::new(false)))
    }

    /// Lets everybody pass, now and later.
    pub fn open(&self) {
        self.0.send_replace(true);
    }

    async fn pass(&self) {
        // The sender cannot be gone: we hold it.
        let _ = self.0.subscribe().wait_for(|open| *open).await;
    }
}

/// A target on a free port. Dropping it closes it and all its connections.
pub struct Upstream {
    address: SocketAddr,
    shared: Arc<Shared>,
    _accepting: JoinSet<()>,
}

#[derive(Default)]
struct Shared {
    journal: Journal,
    answers: Mutex<Answers>,
}

/// Who gets which answer.
#[derive(Default)]
struct Answers {
    default: Option<Answer>,
    by_id: HashMap<String, Answer>,
    failures: HashMap<Option<String>, usize>,
}

/// What goes onto the wire.
enum Reply {
    Status(u16, Vec<(String, String)>),
    Reset,
}

impl Upstream {
    /// Starts a target that answers everything with 200, until told otherwise.
    pub async fn start() -> Self {
        Self::start_at((Ipv4Addr::LOCALHOST, 0).into()).await
    }

    /// The same at the address of a target that was closed, as when a service comes back.
    ///
    /// # Panics
    /// If somebody else has the port by now.
    pub async fn start_at(address: SocketAddr) -> Self {
        let listener = TcpListener::bind(address).await.expect("the port is free");
        let address = listener.local_addr().expect("a bound listener has an address");
        let shared = Arc::<Shared>::default();
        let mut accepting = JoinSet::new();
        accepting.spawn(accept(listener, Arc::clone(&shared)));
        Self {
            address,
            shared,
            _accepting: accepting,
        }
    }

    /// Where it listens.
    pub fn addr(&self) -> SocketAddr {
        self.address
    }

    /// `http://127.0.0.1:<port>`.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// How it answers from now on, except where [`Upstream::answer_for`] says otherwise.
    pub fn answer(&self, answer: Answer) {
        let mut answers = self.shared.answers();
        answers.default = Some(answer);
        answers.failures.clear();
    }

    /// How it answers requests with this `Webhook-Id` from now on.
    pub fn answer_for(&self, id: &str, answer: Answer) {
        let mut answers = self.shared.answers();
        answers.by_id.insert(id.to_owned(), answer);
        answers.failures.remove(&Some(id.to_owned()));
    }

    /// Every request so far, in the order they began.
    pub fn requests(&self) -> Vec<Request> {
        self.shared.journal.requests()
    }

    /// The requests with this `Webhook-Id`.
    pub fn requests_for(&self, id: &str) -> Vec<Request> {
        self.requests()
            .into_iter()
            .filter(|request| request.id() == Some(id))
            .collect()
    }

    /// How many requests had this `Webhook-Id`.
    pub fn count_for(&self, id: &str) -> usize {
        self.requests_for(id).len()
    }

    /// Whether two requests with this `Webhook-Id` were ever in hand at one time.
    pub fn overlapped(&self, id: &str) -> bool {
        let requests = self.requests_for(id);
        requests
            .iter()
            .enumerate()
            .any(|(index, one)| requests[..index].iter().any(|other| one.overlaps(other)))
    }

    /// The most requests that were in its hands at one time.
    pub fn peak(&self) -> usize {
        self.shared.journal.peak()
    }

    /// Waits until at least `count` requests have begun, and returns them all.
    ///
    /// # Panics
    /// If they do not come within [`PATIENCE`](crate::PATIENCE).
    pub async fn wait_for(&self, count: usize) -> Vec<Request> {
        self.wait_until(|requests| requests.len() >= count).await
    }

    /// Waits until the requests seen satisfy `settled`, and returns them.
    ///
    /// # Panics
    /// If they do not within [`PATIENCE`](crate::PATIENCE).
    pub async fn wait_until(&self, settled: impl Fn(&[Request]) -> bool) -> Vec<Request> {
        self.shared.journal.wait_until(settled).await
    }
}

async fn accept(listener: TcpListener, shared: Arc<Shared>) {
    let mut connections = JoinSet::new();
    while let Ok((stream, _)) = listener.accept().await {
        while connections.try_join_next().is_some() {}
        let shared = Arc::clone(&shared);
        connections.spawn(async move {
            // A connection that breaks is seen at its other end, and in the journal.
            let _ = serve(stream, &shared).await;
        });
    }
}

async fn serve(stream: TcpStream, shared: &Shared) -> io::Result<()> {
    stream.set_nodelay(true)?;
    let mut http = HttpStream::new(stream);
    loop {
        let (head, body) = match http.read_request().await {
            Ok(Some(request)) => request,
            Ok(None) => return Ok(()),
            Err(error) if error.kind() == io::ErrorKind::InvalidData => return http.answer(400, &[]).await,
            Err(error) => return Err(error),
        };
        let number = shared.journal.begin(head, body);
        let reply = tokio::select! {
            reply = shared.reply(number) => reply,
            () = http.client_leaves() => {
                shared.journal.end(number, End::ClientLeft);
                return Ok(());
            }
        };
        // Before the answer leaves: a client that has it may already send its next request.
        match reply {
            Reply::Status(status, headers) => {
                shared.journal.end(number, End::Answered(status));
                http.answer(status, &headers).await?;
            }
            Reply::Reset => {
                shared.journal.end(number, End::Reset);
                return http.reset();
            }
        }
    }
}

impl Shared {
    fn answers(&self) -> MutexGuard<'_, Answers> {
        self.answers
            .lock()
            .expect("nobody panics while holding the answers")
    }

    async fn reply(&self, number: usize) -> Reply {
        let id = self.journal.id_of(number);
        let mut answer = self.answers().answer_to(&id);
        while let Answer::Lottery(lottery) = &answer {
            answer = lottery.draw(id.as_deref().unwrap_or_default());
        }
        let status = match answer {
            Answer::Status(status) => status,
            Answer::StatusWithHeaders(status, headers) => return Reply::Status(status, headers),
            Answer::Slow(time, status) => {
                sleep(time).await;
                status
            }
            Answer::Hang => pending().await,
            Answer::Reset => return Reply::Reset,
            Answer::FailFirst { times, status } => {
                let fails = self.answers().fails_again(id, times);
                if fails { status } else { 200 }
            }
            Answer::Gate(gate, status) => {
                gate.pass().await;
                status
            }
            Answer::Capacity(capacity) => capacity.work().await,
            Answer::Lottery(_) => unreachable!("what was drawn is no lottery"),
        };
        Reply::Status(status, Vec::new())
    }
}

impl Answers {
    fn answer_to(&self, id: &Option<String>) -> Answer {
        let own = id.as_ref().and_then(|id| self.by_id.get(id));
        own.or(self.default.as_ref())
            .cloned()
            .unwrap_or(Answer::Status(200))
    }

    /// Counts one more failure of this event, unless it has had its share.
    fn fails_again(&mut self, id: Option<String>, times: usize) -> bool {
        let failures = self.failures.entry(id).or_default();
        let fails = *failures < times;
        *failures += usize::from(fails);
        fails
    }
}
