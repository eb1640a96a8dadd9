//! Releases what a watch holds at its timeout, also if the client does not read and so nothing polls the stream.

use crate::response::WatchEvent;
use futures::stream::BoxStream;
use futures::{Stream, StreamExt};
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};
use tokio::task::AbortHandle;
use tokio::time::Instant;

type Events = Mutex<Option<BoxStream<'static, WatchEvent>>>;

/// A stream that is dropped, and so ends, at a time.
pub(super) struct Expiring {
    events: Arc<Events>,
    timer: AbortHandle,
}

impl Expiring {
    pub fn new(events: BoxStream<'static, WatchEvent>, at: Instant) -> Expiring {
        let events: Arc<Events> = Arc::new(Mutex::new(Some(events)));
        let expiring = Arc::downgrade(&events);
        let timer = tokio::spawn(async move {
            tokio::time::sleep_until(at).await;
            if let Some(events) = expiring.upgrade() {
                let expired = events.lock().expect("no panic while held").take();
                drop(expired);
            }
        });
        Expiring { events, timer: timer.abort_handle() }
    }
}

impl Stream for Expiring {
    type Item = WatchEvent;

    fn poll_next(self: Pin<&mut Self>, ctx: &mut Context<'_>) -> Poll<Option<WatchEvent>> {
        match &mut *self.events.lock().expect("no panic while held") {
            Some(events) => events.poll_next_unpin(ctx),
            None => Poll::Ready(None),
        }
    }
}

impl Drop for Expiring {
    fn drop(&mut self) {
        self.timer.abort();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures::stream;
    use std::time::Duration;

    #[tokio::test(start_paused = true)]
    async fn a_watch_that_is_never_polled_is_released_at_its_end() {
        let held = Arc::new(());
        let inner = held.clone();
        let events = stream::pending().map(move |event| {
            let _held = &inner;
            event
        });

        let mut watch = Expiring::new(events.boxed(), Instant::now() + Duration::from_secs(10));
        tokio::time::sleep(Duration::from_secs(9)).await;
        assert_eq!(Arc::strong_count(&held), 2);
        tokio::time::sleep(Duration::from_secs(2)).await;

        assert_eq!(Arc::strong_count(&held), 1);
        assert!(watch.next().await.is_none());
    }
}
