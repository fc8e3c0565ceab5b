//! A TCP proxy that breaks on command: between the gateway and a store, or between two stores. What it does to the
//! bytes is decided anew at every moment, so that a fault also strikes connections that are already open.

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinSet;

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
    upstream: SocketAddr,
    armed: watch::Sender<Armed>,
    connections: AtomicUsize,
    client_writes: AtomicU64,
}

/// A fault, and what a command must contain for a fault that strikes commands to strike it.
#[derive(Clone)]
struct Armed {
    fault: Fault,
    commands_with: Vec<u8>,
}

impl Proxy {
    /// Listens on a free port of 127.0.0.1 and passes everything on to `upstream`, until told otherwise.
    pub async fn start(upstream: SocketAddr) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))
            .await
            .expect("127.0.0.1 has a free port");
        let address = listener.local_addr().expect("a bound listener has an address");
        let shared = Arc::new(Shared {
            upstream,
            armed: watch::Sender::new(Armed {
                fault: Fault::None,
                commands_with: Vec::new(),
            }),
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

    /// From now on does this to all connections, open and new.
    pub fn set(&self, fault: Fault) {
        self.set_for(b"", fault);
    }

    /// As [`Proxy::set`], but a fault that strikes commands passes over those without `needle` in their bytes: the
    /// greeting of a new connection, for instance, when the needle is `SET`.
    pub fn set_for(&self, needle: &[u8], fault: Fault) {
        self.shared.armed.send_replace(Armed {
            fault,
            commands_with: needle.to_vec(),
        });
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

/// One client, its connection to the server, and what is to happen to the server's next reply.
struct Connection<'shared> {
    client: TcpStream,
    server: TcpStream,
    swallow: Option<Then>,
    shared: &'shared Shared,
}

/// What [`Connection::step`] leaves to do.
enum Next {
    GoOn,
    Close,
    Reset,
}

/// Room for what is under way in each direction.
struct Buffers {
    command: Vec<u8>,
    reply: Vec<u8>,
}

impl<'shared> Connection<'shared> {
    async fn run(client: TcpStream, shared: &'shared Shared) -> io::Result<()> {
        client.set_nodelay(true)?;
        let mut armed = shared.armed.subscribe();
        let open = armed
            .wait_for(|armed| armed.fault != Fault::Blackhole)
            .await
            .is_ok_and(|armed| armed.fault != Fault::Refuse);
        let server = if open {
            TcpStream::connect(shared.upstream).await.ok()
        } else {
            None
        };
        let Some(server) = server else {
            return client.set_zero_linger();
        };
        server.set_nodelay(true)?;
        let mut connection = Self {
            client,
            server,
            swallow: None,
            shared,
        };
        let mut buffers = Buffers {
            command: vec![0; 64 * 1024],
            reply: vec![0; 64 * 1024],
        };
        loop {
            match connection.step(&mut armed, &mut buffers).await {
                Ok(Next::GoOn) => {}
                Ok(Next::Close) => return Ok(()),
                Ok(Next::Reset) | Err(_) => return connection.client.set_zero_linger(),
            }
        }
    }

    /// Waits for bytes from either side or for another fault, and deals with what comes first.
    async fn step(&mut self, armed: &mut watch::Receiver<Armed>, buffers: &mut Buffers) -> io::Result<Next> {
        let fault = armed.borrow_and_update().fault.clone();
        match fault {
            Fault::Refuse => return Ok(Next::Reset),
            Fault::Blackhole => return Ok(armed.changed().await.map_or(Next::Close, |()| Next::GoOn)),
            _ => {}
        }
        tokio::select! {
            // A fault that was set before a client sent something strikes it.
            biased;
            changed = armed.changed() => Ok(changed.map_or(Next::Close, |()| Next::GoOn)),
            read = self.client.read(&mut buffers.command) => match read? {
                0 => Ok(Next::Close),
                length => self.pass_command(&buffers.command[..length]).await,
            },
            read = self.server.read(&mut buffers.reply) => match read? {
                0 => Ok(Next::Close),
                length => self.pass_reply(&buffers.reply[..length], &fault).await,
            },
        }
    }

    async fn pass_command(&mut self, command: &[u8]) -> io::Result<Next> {
        self.shared.client_writes.fetch_add(1, Ordering::SeqCst);
        match self.shared.fault_for(command) {
            Fault::ReplyWith(reply) | Fault::ReplyToAllWith(reply) => self.client.write_all(&reply).await?,
            Fault::DropNextReply { then } => {
                self.swallow = Some(then);
                self.server.write_all(command).await?;
            }
            Fault::None | Fault::Refuse | Fault::Blackhole | Fault::DelayReplies(_) => {
                self.server.write_all(command).await?;
            }
        }
        Ok(Next::GoOn)
    }

    async fn pass_reply(&mut self, reply: &[u8], fault: &Fault) -> io::Result<Next> {
        match (self.swallow, fault) {
            (Some(Then::Reset), _) => return Ok(Next::Reset),
            // A connection that lost bytes never speaks sensibly again, so it stays silent for good.
            (Some(Then::Silence), _) => return Ok(Next::GoOn),
            (None, Fault::DelayReplies(delay)) => tokio::time::sleep(*delay).await,
            (None, _) => {}
        }
        self.client.write_all(reply).await?;
        Ok(Next::GoOn)
    }
}

impl Shared {
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
