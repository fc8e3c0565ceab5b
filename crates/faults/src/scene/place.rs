//! One place of the deployment: a process that is started again after its death, as an orchestrator would, always
//! behind the same proxies. Each process that lived there keeps its name and its log.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};

use hookgate_harness::{Process, Proxy};

/// What a place is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    /// Receives.
    Receive,
    /// Delivers.
    Work,
}

impl Role {
    /// The subcommand.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Receive => "receive",
            Self::Work => "work",
        }
    }
}

/// A process that runs or ran.
pub(crate) struct Running {
    /// Unlike every other's, such as `receive-0.2`.
    pub(crate) name: String,
    /// The child.
    pub(crate) process: Process,
    /// Public address; empty for a worker.
    pub(crate) public: String,
    /// Admin address.
    pub(crate) admin: String,
    /// Told to end: its probes may say so.
    pub(crate) leaving: AtomicBool,
}

impl Running {
    /// Whether it lives and nobody has told it to end.
    pub(crate) fn stays(&self) -> bool {
        !self.process.has_exited() && !self.leaving.load(Ordering::SeqCst)
    }
}

/// A place and who was there.
pub(crate) struct Place {
    /// What it is for.
    pub(crate) role: Role,
    /// Between it and Redis.
    pub(crate) redis: Proxy,
    /// Between it and Postgres.
    pub(crate) ledger: Proxy,
    name: String,
    incarnations: AtomicUsize,
    lived: Mutex<Vec<Arc<Running>>>,
}

impl Place {
    /// An empty place.
    pub(crate) fn new(role: Role, number: usize, redis: Proxy, ledger: Proxy) -> Self {
        Self {
            role,
            redis,
            ledger,
            name: format!("{}-{number}", role.as_str()),
            incarnations: AtomicUsize::new(0),
            lived: Mutex::default(),
        }
    }

    /// A name for the next process here.
    pub(crate) fn next_name(&self) -> String {
        let number = self.incarnations.fetch_add(1, Ordering::SeqCst);
        format!("{}.{number}", self.name)
    }

    /// Whoever is there now, dead or alive.
    ///
    /// # Panics
    /// If nobody ever was.
    pub(crate) fn present(&self) -> Arc<Running> {
        let lived = self.lived();
        Arc::clone(lived.last().expect("the scene fills all places"))
    }

    /// Everybody who was ever there.
    pub(crate) fn all(&self) -> Vec<Arc<Running>> {
        self.lived().clone()
    }

    /// Somebody new.
    pub(crate) fn fill(&self, running: Arc<Running>) {
        self.lived().push(running);
    }

    fn lived(&self) -> MutexGuard<'_, Vec<Arc<Running>>> {
        self.lived.lock().expect("nobody panics over a list")
    }
}
