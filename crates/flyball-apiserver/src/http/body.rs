//! The body of a response: complete bytes, or the stream of a watch.

use bytes::Bytes;
use futures::stream::BoxStream;
use futures::{Stream, StreamExt};
use http_body::{Frame, SizeHint};
use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};

/// The body of a response.
pub struct Body {
    form: Form,
    /// Dropped with the body.
    held: Vec<Box<dyn Send + Sync>>,
}

enum Form {
    Whole(Bytes),
    Stream(BoxStream<'static, Bytes>),
}

impl Body {
    /// A body of no bytes.
    pub fn empty() -> Body {
        Body::whole(Bytes::new())
    }

    /// A body of complete bytes.
    pub fn whole(bytes: impl Into<Bytes>) -> Body {
        Body { form: Form::Whole(bytes.into()), held: Vec::new() }
    }

    /// A body of chunks that arrive over time.
    pub fn stream(chunks: impl Stream<Item = Bytes> + Send + 'static) -> Body {
        Body { form: Form::Stream(chunks.boxed()), held: Vec::new() }
    }

    /// The same body; if it is a stream, it ends when the future completes.
    pub fn until(self, end: impl Future<Output = ()> + Send + 'static) -> Body {
        let form = match self.form {
            Form::Whole(bytes) => Form::Whole(bytes),
            Form::Stream(chunks) => Form::Stream(chunks.take_until(Box::pin(end)).boxed()),
        };
        Body { form, held: self.held }
    }

    /// The same body, with a value that is dropped after it is sent.
    pub(crate) fn holding(mut self, value: impl Send + Sync + 'static) -> Body {
        self.held.push(Box::new(value));
        self
    }

    /// The complete bytes; the body itself if it is a stream.
    pub fn into_whole(self) -> Result<Bytes, Body> {
        match self.form {
            Form::Whole(bytes) => Ok(bytes),
            Form::Stream(_) => Err(self),
        }
    }
}

impl http_body::Body for Body {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(mut self: Pin<&mut Self>, ctx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        match &mut self.form {
            Form::Whole(bytes) if bytes.is_empty() => Poll::Ready(None),
            Form::Whole(bytes) => Poll::Ready(Some(Ok(Frame::data(std::mem::take(bytes))))),
            Form::Stream(chunks) => chunks.poll_next_unpin(ctx).map(|chunk| chunk.map(|bytes| Ok(Frame::data(bytes)))),
        }
    }

    fn is_end_stream(&self) -> bool {
        matches!(&self.form, Form::Whole(bytes) if bytes.is_empty())
    }

    fn size_hint(&self) -> SizeHint {
        match &self.form {
            Form::Whole(bytes) => SizeHint::with_exact(bytes.len() as u64),
            Form::Stream(_) => SizeHint::default(),
        }
    }
}
