//! The gate before a target: how many events may be on their way to it now.
//!
//! ```text
//! open ── 5 misses in a row ──▶ shut ── pause over ──▶ one probe ── it answers ──▶ open, one at a time, then two, four …
//!                                 ▲─────── it misses, twice the pause ──┘
//! ```
//!
//! A miss is a target that is not there: refused, 502–504, no answer in time, a broken connection. While the gate
//! is shut its events stay queued, which costs them nothing. When the target is back it is not met by all that
//! waited: what may be on its way grows by one with each answer, and a target that says 429 or 503 has it halved.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::Instant;

/// Misses in a row that shut the gate.
const MISSES_MAX: u32 = 5;

/// How long it is shut at first, and at most.
const PAUSE: Duration = Duration::from_secs(1);
const PAUSE_MAX: Duration = Duration::from_secs(30);

/// A target that asks for time gets it, for all its events, up to here; the event itself waits as long as asked.
const ASKED_MAX: Duration = Duration::from_secs(60);

/// How a target took a delivery, as far as it says something about the target.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Seen {
    /// It is there, whatever it said of the event.
    There,
    /// It is there, and asks for less.
    Busy {
        /// For how long.
        asked: Option<Duration>,
    },
    /// It is not there.
    Missing {
        /// What whoever answered in its place asked for.
        asked: Option<Duration>,
    },
    /// Nothing: we broke off ourselves.
    Nothing,
}

/// What a delivery changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Turn {
    /// The target went away.
    Down,
    /// It is there: for the first time, or again.
    Up,
}

/// How many at once, and how many a second.
#[derive(Debug, Clone, Copy)]
pub struct Bounds {
    /// Events on their way at the same time.
    pub concurrency: usize,
    /// Events per second; `None`: no bound.
    pub rate: Option<f64>,
}

/// The gate before one target.
pub struct Gate {
    name: String,
    bounds: Bounds,
    freed: Arc<Notify>,
    state: Mutex<State>,
}

struct State {
    in_hand: usize,
    /// How many may be on their way now.
    allowance: f64,
    misses: u32,
    shut_until: Option<Instant>,
    pause: Duration,
    asked_until: Option<Instant>,
    tokens: f64,
    filled_at: Instant,
    /// By a person, or because it is not known yet whether by one.
    paused: bool,
    away_since: Option<Instant>,
    known_up: bool,
    /// Whether it has answered since that was last asked.
    answered: bool,
}

impl Gate {
    /// A gate that lets nothing through before it is known whether a person has paused the target. `freed` is told
    /// whenever a place becomes free.
    pub fn new(name: &str, bounds: Bounds, freed: Arc<Notify>, now: Instant) -> Arc<Self> {
        Arc::new(Self {
            name: name.to_owned(),
            bounds,
            freed,
            state: Mutex::new(State {
                in_hand: 0,
                allowance: bounds.concurrency as f64,
                misses: 0,
                shut_until: None,
                pause: PAUSE,
                asked_until: None,
                tokens: bounds.burst(),
                filled_at: now,
                paused: true,
                away_since: None,
                known_up: false,
                answered: false,
            }),
        })
    }

    /// Name of the target.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// How many more events may go now. Places are given out a quarter at a time at least: leasing one by one
    /// would cost a statement an event.
    pub fn room(&self, now: Instant) -> usize {
        let mut state = self.state();
        state.fill(&self.bounds, now);
        let barred = |until: Option<Instant>| until.is_some_and(|until| now < until);
        if state.paused || barred(state.shut_until) || barred(state.asked_until) {
            return 0;
        }
        let allowed = match state.shut_until {
            Some(_) => 1,
            None => state.allowance as usize,
        };
        let free = allowed.saturating_sub(state.in_hand);
        match free >= allowed.div_ceil(4) {
            true => free.min(state.tokens as usize),
            false => 0,
        }
    }

    /// When it is worth asking again, if time alone can open it.
    pub fn opens_at(&self, now: Instant) -> Option<Instant> {
        let state = self.state();
        let barred = state
            .shut_until
            .max(state.asked_until)
            .filter(|until| *until > now);
        barred.or_else(|| {
            let missing = (1.0 - state.tokens).max(0.0);
            let rate = self.bounds.rate.filter(|_| missing > 0.0)?;
            Some(now + Duration::from_secs_f64(missing / rate))
        })
    }

    /// Takes a place.
    pub fn enter(self: &Arc<Self>) -> Pass {
        let mut state = self.state();
        state.in_hand += 1;
        state.tokens -= 1.0;
        Pass(Arc::clone(self))
    }

    /// Learns from a delivery.
    pub fn learn(&self, seen: Seen, now: Instant) -> Option<Turn> {
        let mut state = self.state();
        match seen {
            Seen::Nothing => None,
            Seen::There => state.there(&self.bounds),
            Seen::Busy { asked } => {
                state.ease_off(asked, now);
                state.up()
            }
            Seen::Missing { asked } => {
                if asked.is_some() {
                    state.ease_off(asked, now);
                }
                state.missing(now)
            }
        }
    }

    /// How long the target has been away.
    pub fn away_for(&self, now: Instant) -> Duration {
        let since = self.state().away_since;
        since.map_or(Duration::ZERO, |since| now.saturating_duration_since(since))
    }

    /// It has been away for longer than this process knows.
    pub fn known_away_for(&self, away_for: Duration, now: Instant) {
        let mut state = self.state();
        let since = now.checked_sub(away_for);
        state.away_since = state
            .away_since
            .map(|known| since.map_or(known, |since| known.min(since)));
    }

    /// How many are on their way.
    pub fn in_hand(&self) -> usize {
        self.state().in_hand
    }

    /// Whether events go through, as far as it is the target's and people's to say.
    pub fn is_open(&self) -> bool {
        let state = self.state();
        !state.paused && state.shut_until.is_none()
    }

    /// Whether it has answered since this was last asked.
    pub fn take_answered(&self) -> bool {
        std::mem::take(&mut self.state().answered)
    }

    /// Whether it is away as far as this process knows.
    pub fn is_away(&self) -> bool {
        self.state().away_since.is_some()
    }

    /// A person pauses or resumes the target. True if that is news.
    pub fn set_paused(&self, paused: bool) -> bool {
        let before = std::mem::replace(&mut self.state().paused, paused);
        if before && !paused {
            self.freed.notify_one();
        }
        before != paused
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // Nothing panics while it holds the state, and it is consistent between any two steps.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Bounds {
    /// What may go at once after a quiet time: a second's worth, but never more than fit.
    fn burst(&self) -> f64 {
        let most = self.concurrency as f64;
        self.rate.map_or(most, |rate| rate.clamp(1.0, most))
    }
}

impl State {
    fn fill(&mut self, bounds: &Bounds, now: Instant) {
        let passed = now.saturating_duration_since(self.filled_at).as_secs_f64();
        self.filled_at = now;
        self.tokens = match bounds.rate {
            Some(rate) => (self.tokens + passed * rate).min(bounds.burst()),
            None => bounds.burst(),
        };
    }

    fn there(&mut self, bounds: &Bounds) -> Option<Turn> {
        self.allowance = (self.allowance + 1.0).min(bounds.concurrency as f64);
        self.up()
    }

    fn up(&mut self) -> Option<Turn> {
        self.misses = 0;
        self.shut_until = None;
        self.pause = PAUSE;
        self.away_since = None;
        self.answered = true;
        (!std::mem::replace(&mut self.known_up, true)).then_some(Turn::Up)
    }

    fn ease_off(&mut self, asked: Option<Duration>, now: Instant) {
        self.allowance = (self.allowance / 2.0).max(1.0);
        let until = asked.map(|asked| now + asked.min(ASKED_MAX));
        self.asked_until = self.asked_until.max(until);
    }

    fn missing(&mut self, now: Instant) -> Option<Turn> {
        self.misses = self.misses.saturating_add(1);
        let probe_missed = self.shut_until.is_some_and(|until| until <= now);
        let shuts = self.shut_until.is_none() && self.misses >= MISSES_MAX;
        if probe_missed {
            self.pause = (self.pause * 2).min(PAUSE_MAX);
        }
        if probe_missed || shuts {
            self.shut_until = Some(now + self.pause);
            self.allowance = 1.0;
        }
        if !shuts {
            return None;
        }
        self.away_since = Some(now);
        self.known_up = false;
        Some(Turn::Down)
    }
}

/// A place on the way to a target; given back when dropped.
pub struct Pass(Arc<Gate>);

impl Drop for Pass {
    fn drop(&mut self) {
        self.0.state().in_hand -= 1;
        self.0.freed.notify_one();
    }
}

#[cfg(test)]
mod tests;
