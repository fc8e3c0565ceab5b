//! The user's own service, as far as a schedule needs it: what it does with a call, and what it remembers.

use rand::RngExt as _;
use rand::rngs::StdRng;

/// What comes of one call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Call {
    /// It took the event and said so.
    Taken,
    /// It refused the event.
    Refused,
    /// It took the event, and its answer came too late.
    TakenUnheard,
    /// Nothing came of it.
    Hung,
}

impl Call {
    pub(crate) fn draw(rng: &mut StdRng, in_order: bool) -> Self {
        const DRAWN: [Call; 6] = [
            Call::Taken,
            Call::Taken,
            Call::Taken,
            Call::Refused,
            Call::TakenUnheard,
            Call::Hung,
        ];
        if in_order {
            Self::Taken
        } else {
            DRAWN[rng.random_range(0..DRAWN.len())]
        }
    }

    pub(crate) fn took(self) -> bool {
        matches!(self, Self::Taken | Self::TakenUnheard)
    }

    /// As the caller sees it.
    pub(crate) fn succeeded(self) -> bool {
        self == Self::Taken
    }
}
