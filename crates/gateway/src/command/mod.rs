//! The subcommands, one file each.

pub mod config;
pub mod migrate;
pub mod operations;
pub mod providers;
pub mod send;
pub mod serve;
pub mod sweep;
pub mod verify;

use std::io::Write as _;

use crate::app::StartError;
use crate::config::Wrong;

/// Why a command failed: one sentence for standard error, and the exit code.
#[derive(Debug)]
pub struct Failure {
    /// What happened, to what, and what to do; empty if it was printed already.
    pub sentence: String,
    /// 64: change the configuration; 3: nothing was found; 4: refused; 1: anything else.
    pub exit_code: u8,
}

impl Failure {
    /// Exit 1.
    pub fn new(sentence: impl std::fmt::Display) -> Self {
        Self {
            sentence: sentence.to_string(),
            exit_code: 1,
        }
    }

    /// Exit 3: what was asked for is not there.
    pub fn nothing(sentence: impl std::fmt::Display) -> Self {
        Self {
            exit_code: 3,
            ..Self::new(sentence)
        }
    }

    /// Exit 4: it is there, but in a way that does not allow it.
    pub fn refused(sentence: impl std::fmt::Display) -> Self {
        Self {
            exit_code: 4,
            ..Self::new(sentence)
        }
    }

    /// Exit 64.
    pub fn usage(sentence: impl std::fmt::Display) -> Self {
        Self {
            sentence: sentence.to_string(),
            exit_code: 64,
        }
    }
}

impl From<Wrong> for Failure {
    fn from(wrong: Wrong) -> Self {
        Self::usage(wrong)
    }
}

impl From<StartError> for Failure {
    fn from(error: StartError) -> Self {
        Self {
            exit_code: error.exit_code(),
            sentence: error.to_string(),
        }
    }
}

/// Prints to standard output. A reader that went away, such as `head`, is no failure.
fn print(text: &str) {
    let mut out = std::io::stdout().lock();
    let _ = out.write_all(text.as_bytes()).and_then(|()| out.flush());
}
