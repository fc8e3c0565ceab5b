//! Reads bodies as they come, within three limits: the size of each, the time for each, and the size of all
//! together. The last one matters because nobody is authenticated yet: strangers must not be able to fill the
//! memory with bodies that will be refused.

use std::sync::Arc;
use std::time::Duration;

use actix_web::http::header::{CONTENT_ENCODING, CONTENT_LENGTH};
use actix_web::{HttpRequest, web};
use bytes::{Bytes, BytesMut};
use futures_util::StreamExt as _;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::rejection::Refused;

/// All bodies that are in hand at once: ten of the largest that any provider sends, and a hundred thousand
/// of the common ones.
const ALL_BYTES_MAX: usize = 256 << 20;

/// A buffer starts no larger than this whatever length the client announces.
const BUFFER_BYTES_FIRST: usize = 16 << 10;

/// The bodies of one process.
pub struct Bodies {
    room: Arc<Semaphore>,
    timeout: Duration,
}

/// One body, and its share of the room until it is dropped.
pub struct Body {
    /// The bytes as they came.
    pub bytes: Bytes,
    _share: Option<OwnedSemaphorePermit>,
}

impl Bodies {
    /// All the room is free. A body may take `timeout` to arrive.
    pub fn new(timeout: Duration) -> Self {
        Self {
            room: Arc::new(Semaphore::new(ALL_BYTES_MAX)),
            timeout,
        }
    }

    /// Reads a body of at most `bytes_max`.
    ///
    /// # Errors
    /// [`Refused`] for a body that is compressed, too large, too slow or cut off, or for which there is no
    /// room now.
    pub async fn read(
        &self,
        request: &HttpRequest,
        payload: &mut web::Payload,
        bytes_max: usize,
    ) -> Result<Body, Refused> {
        if encoded(request) {
            return Err(Refused::UnsupportedEncoding);
        }
        let announced = announced_length(request);
        if announced > bytes_max as u64 {
            return Err(Refused::BodyTooLarge(bytes_max));
        }
        let first = usize::try_from(announced)
            .unwrap_or(usize::MAX)
            .min(BUFFER_BYTES_FIRST);
        let reading = self.collect(payload, BytesMut::with_capacity(first), bytes_max);
        tokio::time::timeout(self.timeout, reading)
            .await
            .map_err(|_| Refused::RequestTimeout)?
    }

    async fn collect(
        &self,
        payload: &mut web::Payload,
        mut body: BytesMut,
        bytes_max: usize,
    ) -> Result<Body, Refused> {
        let mut share: Option<OwnedSemaphorePermit> = None;
        while let Some(chunk) = payload.next().await {
            let chunk = chunk.map_err(|_| Refused::BodyCut)?;
            if body.len() + chunk.len() > bytes_max {
                return Err(Refused::BodyTooLarge(bytes_max));
            }
            let more = self.share(chunk.len())?;
            match &mut share {
                Some(share) => share.merge(more),
                None => share = Some(more),
            }
            body.extend_from_slice(&chunk);
        }
        Ok(Body {
            bytes: body.freeze(),
            _share: share,
        })
    }

    fn share(&self, bytes: usize) -> Result<OwnedSemaphorePermit, Refused> {
        let bytes = u32::try_from(bytes).map_err(|_| Refused::Overloaded)?;
        Arc::clone(&self.room)
            .try_acquire_many_owned(bytes)
            .map_err(|_| Refused::Overloaded)
    }
}

/// Whether the body came compressed. Its signature covers the bytes as sent, and a bomb stays packed.
fn encoded(request: &HttpRequest) -> bool {
    let encoding = request.headers().get(CONTENT_ENCODING);
    encoding.is_some_and(|encoding| !encoding.as_bytes().eq_ignore_ascii_case(b"identity"))
}

/// The length that the client announces; 0 for a chunked body.
fn announced_length(request: &HttpRequest) -> u64 {
    let length = request.headers().get(CONTENT_LENGTH);
    length
        .and_then(|length| length.to_str().ok()?.parse().ok())
        .unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bodies_share_one_room_and_give_it_back() {
        let bodies = Bodies::new(Duration::from_secs(1));
        let most = bodies.share(ALL_BYTES_MAX - 1).ok();
        assert!(most.is_some());
        assert!(matches!(bodies.share(2), Err(Refused::Overloaded)));
        drop(most);
        assert!(bodies.share(2).is_ok());
    }
}
