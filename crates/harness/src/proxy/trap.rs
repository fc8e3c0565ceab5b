//! Traps: they hold one command at an exact step, before the server sees it or before the client hears of it, and tell
//! whoever set them. So a process can be killed between two steps without a hook inside it.

use std::sync::{Arc, Mutex, MutexGuard};

use tokio::sync::watch;

use super::contains;

/// What a trap waits for, and where it holds it.
#[derive(Clone, Debug)]
pub struct Trap {
    needle: Vec<u8>,
    nth: usize,
    hold: Hold,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Hold {
    Command,
    ReplyTo,
    ReplyWith,
}

impl Trap {
    /// Holds the first command with these bytes: the server does not see it.
    pub fn command(needle: &[u8]) -> Self {
        Self::new(needle, Hold::Command)
    }

    /// Holds the reply to the first command with these bytes: the server has acted, and the client does not know.
    pub fn reply_to(needle: &[u8]) -> Self {
        Self::new(needle, Hold::ReplyTo)
    }

    /// Holds the first reply that has these bytes itself.
    pub fn reply_with(needle: &[u8]) -> Self {
        Self::new(needle, Hold::ReplyWith)
    }

    /// Lets pass what matches until it is the `nth`.
    #[must_use]
    pub fn nth(self, nth: usize) -> Self {
        Self { nth, ..self }
    }

    fn new(needle: &[u8], hold: Hold) -> Self {
        Self {
            needle: needle.to_vec(),
            nth: 1,
            hold,
        }
    }
}

/// What has become of a trap.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    Waiting,
    Struck,
    Released,
}

/// A trap that is set. Dropping it takes it away and lets go on what it holds, in order.
pub struct Trapped {
    traps: Arc<Traps>,
    state: Arc<watch::Sender<State>>,
}

impl Trapped {
    /// Waits until something is held.
    pub async fn struck(&self) {
        // The sender cannot be gone: we hold it.
        let _ = self
            .state
            .subscribe()
            .wait_for(|state| *state == State::Struck)
            .await;
    }
}

impl Drop for Trapped {
    fn drop(&mut self) {
        self.traps
            .set()
            .retain(|set| !Arc::ptr_eq(&set.state, &self.state));
        self.state.send_replace(State::Released);
    }
}

/// The traps of one proxy.
#[derive(Default)]
pub(super) struct Traps(Mutex<Vec<SetTrap>>);

struct SetTrap {
    trap: Trap,
    seen: usize,
    state: Arc<watch::Sender<State>>,
}

impl Traps {
    pub(super) fn add(self: &Arc<Self>, trap: Trap) -> Trapped {
        let state = Arc::new(watch::Sender::new(State::Waiting));
        self.set().push(SetTrap {
            trap,
            seen: 0,
            state: Arc::clone(&state),
        });
        Trapped {
            traps: Arc::clone(self),
            state,
        }
    }

    /// The trap that this command springs, if any.
    pub(super) fn on_command(&self, command: &[u8]) -> Option<Held> {
        self.spring(command, |hold| hold != Hold::ReplyWith)
    }

    /// The trap that this reply springs, if any.
    pub(super) fn on_reply(&self, reply: &[u8]) -> Option<Held> {
        self.spring(reply, |hold| hold == Hold::ReplyWith)
    }

    fn spring(&self, bytes: &[u8], of: impl Fn(Hold) -> bool) -> Option<Held> {
        let mut set = self.set();
        let sprung = set.iter_mut().position(|set| {
            let matches = of(set.trap.hold) && contains(bytes, &set.trap.needle);
            set.seen += usize::from(matches);
            matches && set.seen == set.trap.nth
        })?;
        let SetTrap { trap, state, .. } = set.remove(sprung);
        Some(Held::new(state, bytes, trap.hold))
    }

    fn set(&self) -> MutexGuard<'_, Vec<SetTrap>> {
        self.0.lock().expect("nobody panics over the traps")
    }
}

/// What a connection holds back in each direction.
pub(super) struct Held {
    state: Arc<watch::Sender<State>>,
    pub(super) to_server: Vec<u8>,
    pub(super) to_client: Vec<u8>,
    /// What the server is to see at once, since only its reply is held.
    pub(super) at_once: Vec<u8>,
}

impl Held {
    fn new(state: Arc<watch::Sender<State>>, bytes: &[u8], hold: Hold) -> Self {
        let mut held = Self {
            state,
            to_server: Vec::new(),
            to_client: Vec::new(),
            at_once: Vec::new(),
        };
        match hold {
            Hold::Command => held.to_server.extend_from_slice(bytes),
            Hold::ReplyTo => held.at_once.extend_from_slice(bytes),
            Hold::ReplyWith => held.to_client.extend_from_slice(bytes),
        }
        if hold != Hold::ReplyTo {
            held.strike();
        }
        held
    }

    /// The reply is there, so the server has acted.
    pub(super) fn hold_reply(&mut self, reply: &[u8]) {
        self.to_client.extend_from_slice(reply);
        self.strike();
    }

    pub(super) async fn released(&self) {
        let mut state = self.state.subscribe();
        // The sender cannot be gone: we hold it.
        let _ = state.wait_for(|state| *state == State::Released).await;
    }

    fn strike(&self) {
        self.state.send_if_modified(|state| {
            let waiting = *state == State::Waiting;
            if waiting {
                *state = State::Struck;
            }
            waiting
        });
    }
}
