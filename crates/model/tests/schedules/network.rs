//! What can happen to a call to a store on its way.

use std::future::Future;
use std::pin::Pin;

use hookgate_ledger::DeliveryId;
use rand::RngExt as _;
use rand::rngs::StdRng;

/// A call that arrives after its sender gave up.
pub(crate) struct Late {
    pub(crate) call: Pin<Box<dyn Future<Output = ()>>>,
    /// The run that it is about, if it is about one.
    pub(crate) owner: Option<DeliveryId>,
}

/// The way of one call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Way {
    /// There and back.
    Through,
    /// It never arrives.
    RequestLost,
    /// It takes effect, and its answer is lost.
    ReplyLost,
    /// It arrives some time later, when nobody waits for an answer any more.
    Delayed,
}

/// One call in six goes astray.
const ASTRAY_ONE_IN: u32 = 6;

impl Way {
    pub(crate) fn draw(rng: &mut StdRng) -> Self {
        if rng.random_range(0..ASTRAY_ONE_IN) > 0 {
            return Self::Through;
        }
        [Self::RequestLost, Self::ReplyLost, Self::Delayed][rng.random_range(0..3)]
    }

    /// Sends a call on its way. `Err`: there was no answer; it holds what was answered to nobody.
    pub(crate) async fn send<T: 'static>(
        self,
        call: impl Future<Output = T> + 'static,
        owner: Option<DeliveryId>,
        late: &mut Vec<Late>,
    ) -> Result<T, Option<T>> {
        match self {
            Self::Through => Ok(call.await),
            Self::ReplyLost => Err(Some(call.await)),
            Self::RequestLost => Err(None),
            Self::Delayed => {
                let call = Box::pin(async move { drop(call.await) });
                late.push(Late { call, owner });
                Err(None)
            }
        }
    }
}
