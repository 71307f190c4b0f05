//! Relay: the body of an engine's answer on its way to the caller. Each piece passes as it comes,
//! and is read on the way.

use std::pin::Pin;
use std::task::{ready, Context, Poll};

use bytes::Bytes;
use hyper::body::{Body, Frame, Incoming, SizeHint};

use crate::served::Served;

/// Dropped before its end, it closes the connection to the engine, which then stops computing.
pub struct Relay {
    from: Incoming,
    served: Served,
}

impl Relay {
    pub fn new(from: Incoming, served: Served) -> Relay {
        Relay { from, served }
    }
}

impl Body for Relay {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        let frame = ready!(Pin::new(&mut self.from).poll_frame(context));
        match &frame {
            Some(Ok(frame)) => {
                if let Some(piece) = frame.data_ref() {
                    self.served.piece(piece);
                }
            }
            // The engine broke off; the caller is told by the end of its connection.
            Some(Err(_)) => self.served.failed(),
            None => self.served.complete(),
        }
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        self.from.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.from.size_hint()
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        // A body of known length is not asked again after its last piece.
        if self.from.is_end_stream() {
            self.served.complete();
        }
    }
}
