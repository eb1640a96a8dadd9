//! The body of a response: bytes that are all there, or a stream that ends when a watch does.

use bytes::Bytes;
use futures::stream::BoxStream;
use futures::{Stream, StreamExt};
use http_body::{Frame, SizeHint};
use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};

/// The body of a response.
pub struct Body(Form);

enum Form {
    Whole(Bytes),
    Stream(BoxStream<'static, Bytes>),
}

impl Body {
    /// A body of no bytes.
    pub fn empty() -> Body {
        Body::whole(Bytes::new())
    }

    /// A body of bytes that are all there.
    pub fn whole(bytes: impl Into<Bytes>) -> Body {
        Body(Form::Whole(bytes.into()))
    }

    /// A body of chunks as they come.
    pub fn stream(chunks: impl Stream<Item = Bytes> + Send + 'static) -> Body {
        Body(Form::Stream(chunks.boxed()))
    }

    /// The same body, which ends early if it is a stream and the future comes first.
    pub fn until(self, end: impl Future<Output = ()> + Send + 'static) -> Body {
        match self.0 {
            Form::Whole(bytes) => Body::whole(bytes),
            Form::Stream(chunks) => Body::stream(chunks.take_until(Box::pin(end))),
        }
    }

    /// The bytes, if they are all there; the body itself if it is a stream.
    pub fn into_whole(self) -> Result<Bytes, Body> {
        match self.0 {
            Form::Whole(bytes) => Ok(bytes),
            Form::Stream(_) => Err(self),
        }
    }
}

impl http_body::Body for Body {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(mut self: Pin<&mut Self>, ctx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        match &mut self.0 {
            Form::Whole(bytes) if bytes.is_empty() => Poll::Ready(None),
            Form::Whole(bytes) => Poll::Ready(Some(Ok(Frame::data(std::mem::take(bytes))))),
            Form::Stream(chunks) => chunks.poll_next_unpin(ctx).map(|chunk| chunk.map(|bytes| Ok(Frame::data(bytes)))),
        }
    }

    fn is_end_stream(&self) -> bool {
        matches!(&self.0, Form::Whole(bytes) if bytes.is_empty())
    }

    fn size_hint(&self) -> SizeHint {
        match &self.0 {
            Form::Whole(bytes) => SizeHint::with_exact(bytes.len() as u64),
            Form::Stream(_) => SizeHint::default(),
        }
    }
}
