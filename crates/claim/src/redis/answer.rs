//! What the server answered, or why it did not; whether a command may have taken effect unseen.

use std::time::Duration;

use redis::{ErrorKind, RedisError, ServerError, Value as Reply};

use crate::cell::{Held, Replaced, Value};
use crate::claims::{Lease, Ownership, Trouble, Unavailable};

/// Longest text of a server's error that goes into a cause.
const DETAIL_CHARS_MAX: usize = 120;

/// The server's word for a key that holds no string.
const WRONG_TYPE: &str = "WRONGTYPE";

/// Why a command has no usable answer.
#[derive(Debug, Clone)]
pub(super) enum Failure {
    /// It never left this process.
    Unsent(String),
    /// The server answered and did nothing.
    Refused(String),
    /// The server answered and did nothing, because of what stands under the key.
    OfKey(String),
    /// The server does not know this form of a command.
    UnknownSyntax,
    /// It was sent; whether it took effect is unknown.
    Unanswered {
        cause: String,
        /// The connection is gone, so no answer will come any more. Else the limit passed first.
        dropped: bool,
    },
    /// A node of a cluster fails like this, and others do not.
    InPart(Box<Self>),
}

impl Failure {
    pub(super) fn silence(limit: Duration) -> Self {
        Self::Unanswered {
            cause: format!("no answer within {limit:?}"),
            dropped: false,
        }
    }

    /// From an error that the connection itself reported after a command was handed to it.
    pub(super) fn of_sent(error: &RedisError, limit: Duration) -> Self {
        match error.code() {
            Some(WRONG_TYPE) => Self::OfKey(cause(error)),
            Some(_) => Self::Refused(cause(error)),
            None if error.is_timeout() => Self::silence(limit),
            None => Self::Unanswered {
                cause: cause(error),
                dropped: true,
            },
        }
    }

    fn of_server(error: &ServerError) -> Self {
        let details = error.details().unwrap_or_default();
        match error.code() {
            "ERR" if details.contains("syntax error") => Self::UnknownSyntax,
            WRONG_TYPE => Self::OfKey(WRONG_TYPE.to_owned()),
            // A script's error, as Redis before 7.0 tells it.
            "ERR" if details.contains(WRONG_TYPE) => Self::OfKey(WRONG_TYPE.to_owned()),
            "ERR" if details.contains("can't run this command") => Self::Refused(
                "NOPERM: the user may not run set, get, pttl, expire or del, which scripts use".to_owned(),
            ),
            "ERR" => Self::Refused(format!("ERR {}", shortened(details))),
            code => Self::Refused(explained(code, details)),
        }
    }

    /// The same, of a command that was sent before and may have taken effect then.
    pub(super) fn after_another(self) -> Self {
        match self {
            Self::Unsent(cause) | Self::Refused(cause) => Self::Unanswered {
                cause,
                dropped: false,
            },
            Self::InPart(failure) => Self::InPart(Box::new(failure.after_another())),
            // What stands there now is not what a first try would have stored.
            Self::OfKey(_) | Self::UnknownSyntax | Self::Unanswered { .. } => self,
        }
    }

    /// For steps that leave no new claim behind.
    pub(super) fn unavailable(self) -> Unavailable {
        let (trouble, cause) = match self {
            Self::InPart(failure) => {
                let failure = failure.unavailable();
                let of_key = failure.trouble == Trouble::Key;
                (if of_key { Trouble::Key } else { Trouble::Part }, failure.cause)
            }
            Self::OfKey(cause) => (Trouble::Key, cause),
            Self::Unsent(cause) | Self::Refused(cause) | Self::Unanswered { cause, .. } => {
                (Trouble::Store, cause)
            }
            Self::UnknownSyntax => (Trouble::Store, "ERR syntax error".to_owned()),
        };
        Unavailable {
            trouble,
            cause,
            possible: None,
        }
    }

    fn may_have_applied(&self) -> bool {
        match self {
            Self::Unanswered { .. } => true,
            Self::InPart(failure) => failure.may_have_applied(),
            Self::Unsent(_) | Self::Refused(_) | Self::OfKey(_) | Self::UnknownSyntax => false,
        }
    }

    /// For steps that would have stored `lease`.
    pub(super) fn about(self, lease: &Lease) -> Unavailable {
        let applied = self.may_have_applied();
        let possible = applied.then(|| Box::new(lease.clone()));
        Unavailable {
            possible,
            ..self.unavailable()
        }
    }
}

/// A short text without addresses or secrets, which the error's own text may hold.
pub(super) fn cause(error: &RedisError) -> String {
    match error.code() {
        Some(code) => explained(code, error.detail().unwrap_or_default()),
        None if error.kind() == ErrorKind::AuthenticationFailed => {
            "authentication failed: user or password is wrong".to_owned()
        }
        None if error.is_timeout() => "no answer in time".to_owned(),
        None if error.is_connection_refusal() => "connection refused".to_owned(),
        None if error.is_connection_dropped() => "connection lost".to_owned(),
        None => error.category().to_owned(),
    }
}

/// The server's code, and what to mend where that can be told.
fn explained(code: &str, details: &str) -> String {
    match code {
        "NOAUTH" => "NOAUTH: the server wants a password, and the URL has none".to_owned(),
        "WRONGPASS" => "WRONGPASS: user or password is wrong".to_owned(),
        "NOPERM" => match (command_named(details), details.contains("key")) {
            (Some(command), _) => format!("NOPERM: the user may not run {command}"),
            (None, true) => "NOPERM: the user may not use keys that begin with webhook:".to_owned(),
            (None, false) => code.to_owned(),
        },
        _ => code.to_owned(),
    }
}

/// The command that a refusal names between quotes.
fn command_named(details: &str) -> Option<&str> {
    let (_, rest) = details.split_once("run the '")?;
    let (command, _) = rest.split_once('\'')?;
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"|-_".contains(&byte);
    command.bytes().all(plain).then_some(command)
}

fn shortened(text: &str) -> String {
    text.chars().take(DETAIL_CHARS_MAX).collect()
}

/// Another node of a cluster, as `host:port`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Redirection<'answer> {
    /// It serves the slot.
    Moved(&'answer str),
    /// It will serve the slot, and has this key already, or may be given it.
    Ask(&'answer str),
}

/// The replies to one write, in order.
pub(super) struct Answer {
    pub(super) replies: Vec<Reply>,
    /// A first try may have taken effect: its connection was dropped, or a part of it was sent on to another node.
    pub(super) resent: bool,
    /// What is refused here is not refused by other nodes of the cluster.
    pub(super) in_part: bool,
}

impl Answer {
    /// Of one server, to commands sent once.
    pub(super) fn new(replies: Vec<Reply>) -> Self {
        Self {
            replies,
            resent: false,
            in_part: false,
        }
    }

    /// Whether the server refuses commands because of its own state or rules, whatever the key: it is full, loading,
    /// demoted, or does not know the user.
    pub(super) fn is_refusal(&self) -> bool {
        const OF_ONE_COMMAND: [&str; 5] = ["MOVED", "ASK", "TRYAGAIN", "NOSCRIPT", "CROSSSLOT"];
        let mut errors = self
            .errors()
            .filter(|error| !OF_ONE_COMMAND.contains(&error.code()));
        errors.any(|error| matches!(Failure::of_server(error), Failure::Refused(_)))
    }

    /// Whether the server forgot a script, as after a restart.
    pub(super) fn lacks_script(&self) -> bool {
        matches!(self.replies.first(), Some(Reply::ServerError(error)) if error.code() == "NOSCRIPT")
    }

    /// Whether a server answered that is no primary, or not yet: demoted, or loading what another one has. Writes
    /// will fail on this connection until it is made anew, to wherever the name leads by then.
    pub(super) fn is_of_no_primary(&self) -> bool {
        const CODES: [&str; 3] = ["READONLY", "LOADING", "MASTERDOWN"];
        self.errors().any(|error| {
            // Redis before 7.0 wraps a script's error into another.
            let wrapped = || {
                error
                    .details()
                    .is_some_and(|details| details.contains("-READONLY"))
            };
            CODES.contains(&error.code()) || wrapped()
        })
    }

    /// Where a node of a cluster says that the key is, or will be.
    pub(super) fn redirection(&self) -> Option<Redirection<'_>> {
        self.errors().find_map(|error| {
            let to = || error.details()?.split_ascii_whitespace().nth(1);
            match error.code() {
                "MOVED" => Some(Redirection::Moved(to()?)),
                "ASK" => Some(Redirection::Ask(to()?)),
                _ => None,
            }
        })
    }

    /// Whether the node is cut off from the cluster, or its slot is served by nobody it knows.
    pub(super) fn is_of_a_cluster_down(&self) -> bool {
        self.errors().any(|error| error.code() == "CLUSTERDOWN")
    }

    /// Whether a command before the first error took effect.
    pub(super) fn is_applied_in_part(&self) -> bool {
        !matches!(self.replies.first(), Some(Reply::ServerError(_)) | None)
    }

    fn errors(&self) -> impl Iterator<Item = &ServerError> {
        self.replies.iter().filter_map(|reply| match reply {
            Reply::ServerError(error) => Some(error),
            _ => None,
        })
    }

    /// From a value and its `PTTL`.
    pub(super) fn held(self) -> Result<Option<Held>, Failure> {
        match self.checked()?.as_slice() {
            [Reply::Nil, _] => Ok(None),
            [Reply::BulkString(value), Reply::Int(left)] => held(value, *left).map(Some),
            _ => Err(unexpected()),
        }
    }

    /// From a `SET`: whether it stored.
    pub(super) fn stored(self) -> Result<bool, Failure> {
        match self.checked()?.as_slice() {
            [Reply::Okay, ..] => Ok(true),
            [Reply::Nil, ..] => Ok(false),
            _ => Err(unexpected()),
        }
    }

    /// From a script that compares the value first.
    pub(super) fn owned(self) -> Result<Ownership, Failure> {
        let resent = self.resent;
        match self.checked()?.as_slice() {
            [Reply::Int(0)] if resent => Err(Failure::Refused(
                "it may have been done before the connection broke".into(),
            )),
            [Reply::Int(0)] => Ok(Ownership::Lost),
            [Reply::Int(_)] => Ok(Ownership::Kept),
            _ => Err(unexpected()),
        }
    }

    /// From a takeover.
    pub(super) fn replaced(self) -> Result<Replaced, Failure> {
        match self.checked()?.as_slice() {
            [Reply::Int(1)] => Ok(Replaced::Free),
            [Reply::Int(2)] => Ok(Replaced::Seen),
            [Reply::Array(items)] => match items.as_slice() {
                [Reply::BulkString(value), Reply::Int(left)] => held(value, *left).map(Replaced::No),
                _ => Err(unexpected()),
            },
            _ => Err(unexpected()),
        }
    }

    /// From a write and a read of the same key.
    pub(super) fn echoes(self, token: &str) -> Result<(), Failure> {
        match self.checked()?.as_slice() {
            [Reply::Okay, Reply::BulkString(read)] if read == token.as_bytes() => Ok(()),
            _ => Err(Failure::Refused(
                "it does not return what was just written".into(),
            )),
        }
    }

    /// Why an answer that should not have been one of these is of no use.
    pub(super) fn refusal(self) -> Failure {
        self.checked().err().unwrap_or_else(unexpected)
    }

    /// The replies, if none is an error.
    fn checked(self) -> Result<Vec<Reply>, Failure> {
        let Some(failure) = self.errors().next().map(Failure::of_server) else {
            return Ok(self.replies);
        };
        let failure = match self.resent || self.is_applied_in_part() {
            true => failure.after_another(),
            false => failure,
        };
        Err(match self.in_part {
            true => Failure::InPart(Box::new(failure)),
            false => failure,
        })
    }
}

/// What stands under a key. What is no value of ours is unknown, and surely not done.
fn held(value: &[u8], left_ms: i64) -> Result<Held, Failure> {
    let value = Value::parse(value).ok_or_else(|| Failure::OfKey("no claim of a known form".into()))?;
    Ok(Held { value, left_ms })
}

fn unexpected() -> Failure {
    Failure::Refused("an answer of an unexpected form".into())
}
