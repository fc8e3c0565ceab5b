//! What becomes of a body that was not read to its end. Left alone, the server would read on for as long as
//! the client cares to send, to keep the connection for a next request: a stranger could hold it for ever.

use std::error::Error;
use std::pin::Pin;
use std::task::{Context, Poll};

use actix_web::body::{BodySize, BoxBody, MessageBody};
use actix_web::{HttpResponse, web};
use bytes::Bytes;

/// An answer that holds on to the request's body until it is sent. The server closes a connection whose body
/// somebody still holds, lets the client hear the answer first, and gives it a second for that.
pub(crate) fn closing(answer: HttpResponse, unread: web::Payload) -> HttpResponse {
    answer.map_body(|_, body| {
        BoxBody::new(Beside {
            body,
            _unread: unread,
        })
    })
}

struct Beside {
    body: BoxBody,
    _unread: web::Payload,
}

impl MessageBody for Beside {
    type Error = Box<dyn Error>;

    fn size(&self) -> BodySize {
        self.body.size()
    }

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Bytes, Self::Error>>> {
        Pin::new(&mut self.body).poll_next(cx)
    }
}
