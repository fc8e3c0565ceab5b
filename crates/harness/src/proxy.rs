//! A TCP proxy that breaks on command: between the gateway and a store, or between two stores. What it does to the
//! bytes is decided anew at every moment, so that a fault also strikes connections that are already open.

mod connection;
mod trap;

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::JoinSet;

use connection::Connection;
use trap::Traps;
pub use trap::{Trap, Trapped};

/// What the proxy does to the connections through it.
#[derive(Clone, Debug, PartialEq)]
pub enum Fault {
    /// Passes everything on.
    None,
    /// Resets every open connection, and every new one as soon as it is accepted.
    Refuse,
    /// Holds back all bytes in both directions without a word, as a network does that drops packets. They go on
    /// their way when the fault ends.
    Blackhole,
    /// Lets each piece of a reply wait before it is passed on.
    DelayReplies(Duration),
    /// Passes the next command on and swallows its reply: the server has acted, and the client does not learn it.
    /// Strikes once; other connections live on.
    DropNextReply {
        /// What the client sees in place of the reply.
        then: Then,
    },
    /// Answers the next command with these bytes; the server never sees it. Strikes once.
    ReplyWith(Vec<u8>),
    /// Answers every command with these bytes, such as `-LOADING Redis is loading the dataset in memory\r\n`.
    ReplyToAllWith(Vec<u8>),
}

/// What a client sees whose reply was swallowed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Then {
    /// The connection is reset.
    Reset,
    /// Nothing, for as long as it cares to wait.
    Silence,
}

/// A proxy before one server. Dropping it closes it and all connections through it.
pub struct Proxy {
    address: SocketAddr,
    shared: Arc<Shared>,
    _accepting: JoinSet<()>,
}

struct Shared {
    upstream: Mutex<SocketAddr>,
    armed: watch::Sender<Armed>,
    traps: Arc<Traps>,
    connections: AtomicUsize,
    client_writes: AtomicU64,
}

/// A fault, and what a command must contain for a fault that strikes commands to strike it.
#[derive(Clone)]
struct Armed {
    fault: Fault,
    commands_with: Vec<u8>,
    /// Connections made before the last of so many cuts carry nothing any more.
    cuts: u64,
}

impl Proxy {
    /// Listens on a free port of 127.0.0.1 and passes everything on to `upstream`, until told otherwise.
    pub async fn start(upstream: SocketAddr) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))
            .await
            .expect("127.0.0.1 has a free port");
        let address = listener.local_addr().expect("a bound listener has an address");
        let shared = Arc::new(Shared {
            upstream: Mutex::new(upstream),
            armed: watch::Sender::new(Armed {
                fault: Fault::None,
                commands_with: Vec::new(),
                cuts: 0,
            }),
            traps: Arc::default(),
            connections: AtomicUsize::new(0),
            client_writes: AtomicU64::new(0),
        });
        let mut accepting = JoinSet::new();
        accepting.spawn(accept(listener, Arc::clone(&shared)));
        Self {
            address,
            shared,
            _accepting: accepting,
        }
    }

    /// Where clients connect.
    pub fn addr(&self) -> SocketAddr {
        self.address
    }

    /// From now on new connections lead to this server; open ones stay where they are, as when a name gets another
    /// address.
    pub fn lead_to(&self, upstream: SocketAddr) {
        *self.shared.upstream.lock().expect(COPIED) = upstream;
    }

    /// From now on does this to all connections, open and new.
    pub fn set(&self, fault: Fault) {
        self.set_for(b"", fault);
    }

    /// As [`Proxy::set`], but a fault that strikes commands passes over those without `needle` in their bytes: the
    /// greeting of a new connection, for instance, when the needle is `SET`.
    pub fn set_for(&self, needle: &[u8], fault: Fault) {
        self.shared.armed.send_modify(|armed| {
            armed.fault = fault;
            armed.commands_with = needle.to_vec();
        });
    }

    /// Holds one command at a step, for as long as what is returned lives.
    pub fn trap(&self, trap: Trap) -> Trapped {
        self.shared.traps.add(trap)
    }

    /// Leaves every open connection half-open: both sides take it for good, and it carries nothing any more. New ones
    /// are as good as ever.
    pub fn cut_silently(&self) {
        self.shared.armed.send_modify(|armed| armed.cuts += 1);
    }

    /// What it does now; a fault that strikes once is [`Fault::None`] after it struck.
    pub fn fault(&self) -> Fault {
        self.shared.armed.borrow().fault.clone()
    }

    /// How many connections are open now.
    pub fn connections(&self) -> usize {
        self.shared.connections.load(Ordering::SeqCst)
    }

    /// How many times clients have sent something: the round trips, if clients wait for each reply.
    pub fn client_writes(&self) -> u64 {
        self.shared.client_writes.load(Ordering::SeqCst)
    }
}

async fn accept(listener: TcpListener, shared: Arc<Shared>) {
    let mut connections = JoinSet::new();
    while let Ok((client, _)) = listener.accept().await {
        while connections.try_join_next().is_some() {}
        let shared = Arc::clone(&shared);
        connections.spawn(async move {
            shared.connections.fetch_add(1, Ordering::SeqCst);
            let _counted = Counted(&shared.connections);
            // A connection that fails is what the proxy is for; the client sees it, and so does the test.
            let _ = Connection::run(client, &shared).await;
        });
    }
}

/// Counts a connection as closed however it ends.
struct Counted<'count>(&'count AtomicUsize);

impl Drop for Counted<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

/// Why a lock is never poisoned.
const COPIED: &str = "nobody panics while copying an address";

impl Shared {
    fn upstream(&self) -> SocketAddr {
        *self.upstream.lock().expect(COPIED)
    }

    /// What happens to this command. A fault that strikes once is taken here, by exactly one connection.
    fn fault_for(&self, command: &[u8]) -> Fault {
        let mut struck = Fault::None;
        self.armed.send_if_modified(|armed| {
            if !contains(command, &armed.commands_with) {
                return false;
            }
            struck = armed.fault.clone();
            let once = matches!(struck, Fault::DropNextReply { .. } | Fault::ReplyWith(_));
            if once {
                armed.fault = Fault::None;
            }
            once
        });
        struck
    }
}

fn contains(haystack: &[u8], needle: &[u8]) -> bool {
    needle.is_empty() || haystack.windows(needle.len()).any(|window| window == needle)
}
