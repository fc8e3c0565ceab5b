//! A target whose mood is drawn anew with every request. The draw depends on the seed, the event and how often the
//! event has come, and on nothing else: the same seed gives an event the same fate in every order of things.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use crate::Answer;

/// Answers with their odds. Clones draw from one urn.
#[derive(Clone, Debug)]
pub struct Lottery(Arc<Urn>);

#[derive(Debug)]
struct Urn {
    seed: u64,
    /// Upper bounds of the draws that lead to each answer, in percent.
    lots: Vec<(u64, Answer)>,
    otherwise: Answer,
    drawn: Mutex<HashMap<String, u64>>,
}

impl Lottery {
    /// Gives each answer with its chance in percent, and `otherwise` with what is left.
    pub fn new(seed: u64, chances: &[(u64, Answer)], otherwise: Answer) -> Self {
        let mut bound = 0;
        let lots = chances.iter().map(|(percent, answer)| {
            bound += percent;
            (bound, answer.clone())
        });
        Self(Arc::new(Urn {
            seed,
            lots: lots.collect(),
            otherwise,
            drawn: Mutex::default(),
        }))
    }

    /// What this event gets this time.
    pub(crate) fn draw(&self, id: &str) -> Answer {
        let urn = &self.0;
        let mut drawn = urn.drawn.lock().expect("nobody panics while drawing");
        let turn = drawn.entry(id.to_owned()).or_default();
        *turn += 1;
        let lot = mixed(id.bytes().fold(mixed(urn.seed ^ *turn), |hash, byte| {
            mixed(hash ^ u64::from(byte))
        })) % 100;
        let found = urn.lots.iter().find(|(bound, _)| lot < *bound);
        found.map_or(&urn.otherwise, |(_, answer)| answer).clone()
    }
}

/// A number with all its bits stirred (the last step of splitmix64).
fn mixed(number: u64) -> u64 {
    let number = number.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let number = (number ^ (number >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let number = (number ^ (number >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    number ^ (number >> 31)
}
