//! The real protocol with one transition changed, for every transition. A model that lets such a change pass does not
//! look at that transition.

mod claim;
mod ledger;
mod path;

use crate::naive::Suspect;

/// One changed transition: its name, what it does, where it shows, what it breaks, and the method that differs.
macro_rules! mutation {
    ($name:literal, $does:literal, $mode:ident breaks $promise:ident, { $($method:item)* }) => {{
        struct Mutated;
        impl $crate::protocol::Protocol for Mutated {
            $($method)*
        }
        $crate::naive::Suspect {
            name: $name,
            does: $does,
            mode: $crate::bounds::Mode::$mode,
            breaks: $crate::promises::Promise::$promise,
            protocol: std::sync::Arc::new(Mutated),
        }
    }};
}
use mutation;

/// All of them.
pub fn all() -> Vec<Suspect> {
    let mut all = claim::of_the_store();
    all.extend(claim::of_the_client());
    all.extend(path::of_the_close());
    all.extend(path::of_a_forward());
    all.extend(path::of_an_inbox());
    all.extend(ledger::of_taking_in());
    all.extend(ledger::of_ending());
    all
}
