//! A `Status` for requests whose head is too large. hyper refuses them before the service sees them, with an empty body,
//! so the response is replaced on its way to the client.

use serde_json::json;
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

const REFUSALS: [(&[u8], &str, &str); 2] = [
    (
        b"HTTP/1.1 414 ",
        "HTTP/1.1 414 URI Too Long",
        "the request URI is longer than 65534 bytes",
    ),
    (
        b"HTTP/1.1 431 ",
        "HTTP/1.1 431 Request Header Fields Too Large",
        "the request has too many or too long headers",
    ),
];

/// A stream to a client that replaces hyper's empty refusals.
pub(super) struct HeadLimits<T> {
    stream: T,
    /// A replacement that is not yet written.
    pending: Vec<u8>,
}

impl<T> HeadLimits<T> {
    pub(super) fn new(stream: T) -> HeadLimits<T> {
        HeadLimits { stream, pending: Vec::new() }
    }
}

impl<T: AsyncWrite + Unpin> HeadLimits<T> {
    fn poll_pending(&mut self, ctx: &mut Context<'_>) -> Poll<io::Result<()>> {
        while !self.pending.is_empty() {
            match ready!(Pin::new(&mut self.stream).poll_write(ctx, &self.pending))? {
                0 => return Poll::Ready(Err(io::ErrorKind::WriteZero.into())),
                written => drop(self.pending.drain(..written)),
            }
        }
        Poll::Ready(Ok(()))
    }
}

/// The refusal with a body, if these bytes are one of hyper's without.
fn replacement(head: &[u8]) -> Option<Vec<u8>> {
    let (_, line, message) = REFUSALS.iter().find(|(start, ..)| head.starts_with(start))?;
    let text = std::str::from_utf8(head).ok()?;
    let is_empty = text.contains("\r\ncontent-length: 0\r\n") && text.ends_with("\r\n\r\n");
    let code: u16 = is_empty.then(|| line[9..12].parse().ok())??;
    let status = json!({
        "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
        "message": message, "reason": "Unknown", "code": code
    });
    let (body, kind) = (status.to_string(), "content-type: application/json\r\nconnection: close");
    Some(format!("{line}\r\n{kind}\r\ncontent-length: {}\r\n\r\n{body}", body.len()).into_bytes())
}

impl<T: AsyncWrite + Unpin> AsyncWrite for HeadLimits<T> {
    fn poll_write(mut self: Pin<&mut Self>, ctx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        ready!(self.poll_pending(ctx))?;
        match replacement(bytes) {
            Some(replacement) => {
                self.pending = replacement;
                Poll::Ready(Ok(bytes.len()))
            }
            None => Pin::new(&mut self.stream).poll_write(ctx, bytes),
        }
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        ctx: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        match slices {
            [bytes] => self.poll_write(ctx, bytes),
            _ => {
                ready!(self.poll_pending(ctx))?;
                Pin::new(&mut self.stream).poll_write_vectored(ctx, slices)
            }
        }
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, ctx: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(self.poll_pending(ctx))?;
        Pin::new(&mut self.stream).poll_flush(ctx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, ctx: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(self.poll_pending(ctx))?;
        Pin::new(&mut self.stream).poll_shutdown(ctx)
    }
}

impl<T: AsyncRead + Unpin> AsyncRead for HeadLimits<T> {
    fn poll_read(mut self: Pin<&mut Self>, ctx: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(ctx, buffer)
    }
}
