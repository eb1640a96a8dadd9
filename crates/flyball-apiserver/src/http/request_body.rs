//! The body of a request. What the service leaves unread is given back to the connection, which reads it or closes.

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use http_body_util::BodyExt;
use hyper::body::Incoming;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

/// How much of an unread body is read so that the connection can be used again.
// net/http/server.go, maxPostHandlerReadBytes
const MAX_DRAIN_BYTES: usize = 256 * 1024;

/// How long the rest of an unread body may take.
const MAX_DRAIN_WAIT: Duration = Duration::from_secs(1);

/// The body of a request.
pub struct RequestBody {
    body: Option<Incoming>,
    unread: Unread,
}

/// The body of a request that was answered before its body was read.
#[derive(Clone, Default)]
pub(crate) struct Unread(Arc<Mutex<Option<Incoming>>>);

impl RequestBody {
    pub(crate) fn new(body: Incoming, unread: Unread) -> RequestBody {
        RequestBody { body: Some(body), unread }
    }
}

impl Drop for RequestBody {
    fn drop(&mut self) {
        if let Some(body) = self.body.take().filter(|body| !body.is_end_stream()) {
            *self.unread.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(body);
        }
    }
}

impl Unread {
    /// Takes the unread body, if there is one.
    pub(crate) fn take(&self) -> Option<Incoming> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

/// Reads the rest of a body; false if it is too long or too slow.
pub(crate) async fn drain(mut body: Incoming) -> bool {
    let read = async {
        let mut bytes = 0;
        while let Some(frame) = body.frame().await {
            bytes += frame.ok()?.data_ref().map_or(0, Bytes::len);
            if bytes > MAX_DRAIN_BYTES {
                return None;
            }
        }
        Some(())
    };
    tokio::time::timeout(MAX_DRAIN_WAIT, read).await.is_ok_and(|read| read.is_some())
}

impl Body for RequestBody {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(mut self: Pin<&mut Self>, ctx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        let Some(body) = &mut self.body else {
            return Poll::Ready(None);
        };
        let frame = Pin::new(body).poll_frame(ctx);
        if matches!(frame, Poll::Ready(None | Some(Err(_)))) {
            self.body = None;
        }
        frame
    }

    fn is_end_stream(&self) -> bool {
        self.body.as_ref().is_none_or(|body| body.is_end_stream())
    }

    fn size_hint(&self) -> SizeHint {
        self.body.as_ref().map_or_else(|| SizeHint::with_exact(0), |body| body.size_hint())
    }
}
