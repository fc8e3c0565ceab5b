//! One connection through a proxy: what passes in each direction, and what is done to it on the way.

use std::io;
use std::sync::atomic::Ordering;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::watch;

use super::trap::Held;
use super::{Armed, Fault, Shared, Then};

/// One client, its connection to the server, and what is to happen to the server's next reply.
pub(super) struct Connection<'shared> {
    client: TcpStream,
    server: TcpStream,
    swallow: Option<Then>,
    held: Option<Held>,
    /// The cuts that there had been when it was made.
    cuts: u64,
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
    pub(super) async fn run(client: TcpStream, shared: &'shared Shared) -> io::Result<()> {
        client.set_nodelay(true)?;
        let mut armed = shared.armed.subscribe();
        let cuts = armed.borrow().cuts;
        let open = armed
            .wait_for(|armed| armed.fault != Fault::Blackhole)
            .await
            .is_ok_and(|armed| armed.fault != Fault::Refuse);
        let server = if open {
            TcpStream::connect(shared.upstream()).await.ok()
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
            held: None,
            cuts,
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
        let (fault, cuts) = {
            let armed = armed.borrow_and_update();
            (armed.fault.clone(), armed.cuts)
        };
        match fault {
            Fault::Refuse => return Ok(Next::Reset),
            Fault::Blackhole => return Ok(armed.changed().await.map_or(Next::Close, |()| Next::GoOn)),
            _ if cuts > self.cuts => return self.say_nothing(buffers).await,
            _ => {}
        }
        if let Some(held) = self.held.take() {
            return self.hold(held, armed, buffers).await;
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

    /// Takes what the client sends and does nothing with it, until the client gives up.
    async fn say_nothing(&mut self, buffers: &mut Buffers) -> io::Result<Next> {
        match self.client.read(&mut buffers.command).await? {
            0 => Ok(Next::Close),
            _ => Ok(Next::GoOn),
        }
    }

    /// Keeps back whatever comes after what is held, and lets all go on together.
    async fn hold(
        &mut self,
        mut held: Held,
        armed: &mut watch::Receiver<Armed>,
        buffers: &mut Buffers,
    ) -> io::Result<Next> {
        tokio::select! {
            _ = armed.changed() => {}
            () = held.released() => {
                self.server.write_all(&held.to_server).await?;
                self.client.write_all(&held.to_client).await?;
                return Ok(Next::GoOn);
            }
            read = self.client.read(&mut buffers.command) => match read? {
                0 => return Ok(Next::Close),
                length => held.to_server.extend_from_slice(&buffers.command[..length]),
            },
            read = self.server.read(&mut buffers.reply) => match read? {
                0 => return Ok(Next::Close),
                length => held.hold_reply(&buffers.reply[..length]),
            },
        }
        self.held = Some(held);
        Ok(Next::GoOn)
    }

    async fn pass_command(&mut self, command: &[u8]) -> io::Result<Next> {
        self.shared.client_writes.fetch_add(1, Ordering::SeqCst);
        if let Some(mut held) = self.shared.traps.on_command(command) {
            self.server.write_all(&std::mem::take(&mut held.at_once)).await?;
            self.held = Some(held);
            return Ok(Next::GoOn);
        }
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
        if let Some(held) = self.shared.traps.on_reply(reply) {
            self.held = Some(held);
            return Ok(Next::GoOn);
        }
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
