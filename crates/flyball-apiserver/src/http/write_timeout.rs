//! Closes connections to clients that stopped reading. HTTP/2 notices them by their missing pongs; in HTTP/1.1 a response
//! that is never read would hold its connection, and so its place among the open connections, for ever.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Sleep, sleep};

/// How long a client may take to read any of what was sent. A slow client that reads now and then is not affected: each
/// byte begins the time anew. kube-apiserver sets no such limit.
const MAX_WRITE_STALL: Duration = Duration::from_secs(120);

/// A stream whose writes fail if the other side reads nothing for [`MAX_WRITE_STALL`].
pub(super) struct WriteTimeout<T> {
    stream: T,
    /// Runs while a write waits for the other side.
    stalled: Option<Pin<Box<Sleep>>>,
}

impl<T> WriteTimeout<T> {
    pub(super) fn new(stream: T) -> WriteTimeout<T> {
        WriteTimeout { stream, stalled: None }
    }

    /// The result of a write, or the error of one that waits for too long.
    fn bound<R>(&mut self, ctx: &mut Context<'_>, written: Poll<io::Result<R>>) -> Poll<io::Result<R>> {
        if written.is_ready() {
            self.stalled = None;
            return written;
        }
        let stalled = self.stalled.get_or_insert_with(|| Box::pin(sleep(MAX_WRITE_STALL)));
        stalled.as_mut().poll(ctx).map(|()| Err(io::ErrorKind::TimedOut.into()))
    }
}

impl<T: AsyncWrite + Unpin> AsyncWrite for WriteTimeout<T> {
    fn poll_write(mut self: Pin<&mut Self>, ctx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(ctx, bytes);
        self.bound(ctx, written)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        ctx: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write_vectored(ctx, slices);
        self.bound(ctx, written)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, ctx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let flushed = Pin::new(&mut self.stream).poll_flush(ctx);
        self.bound(ctx, flushed)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, ctx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let closed = Pin::new(&mut self.stream).poll_shutdown(ctx);
        self.bound(ctx, closed)
    }
}

impl<T: AsyncRead + Unpin> AsyncRead for WriteTimeout<T> {
    fn poll_read(mut self: Pin<&mut Self>, ctx: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(ctx, buffer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::io::{AsyncReadExt, AsyncWriteExt, duplex};
    use tokio::time::Instant;

    #[tokio::test(start_paused = true)]
    async fn a_client_that_reads_nothing_is_disconnected() {
        let (server, _client) = duplex(64);
        let (mut server, started) = (WriteTimeout::new(server), Instant::now());

        let error = server.write_all(&[0; 100]).await.unwrap_err();

        assert_eq!((error.kind(), started.elapsed()), (io::ErrorKind::TimedOut, MAX_WRITE_STALL));
    }

    #[tokio::test(start_paused = true)]
    async fn a_client_that_reads_slowly_gets_everything() {
        let (server, mut client) = duplex(64);
        let mut server = WriteTimeout::new(server);
        let read = async {
            let mut count = 0;
            while count < 1_000 {
                sleep(MAX_WRITE_STALL / 2).await;
                count += client.read(&mut [0; 10]).await.unwrap();
            }
        };

        let (written, ()) = tokio::join!(server.write_all(&[0; 1_000]), read);

        written.unwrap();
    }
}
