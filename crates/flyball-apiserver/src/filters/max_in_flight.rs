//! Limits how many requests are handled at a time; reads and writes are counted apart, long-running requests not at all.
// apiserver/pkg/server/filters/maxinflight.go

use crate::encoding::output;
use crate::filters::{Next, Request, Response, context};
use http::header::RETRY_AFTER;
use http::{HeaderValue, StatusCode};
use std::sync::Arc;
use tokio::sync::Semaphore;

/// How many more requests may be handled now; none where there is no limit.
#[derive(Debug)]
pub(crate) struct Limits {
    reads: Option<Arc<Semaphore>>,
    writes: Option<Arc<Semaphore>>,
}

impl Limits {
    /// Limits for that many reads and writes at a time; 0 sets no limit.
    pub fn new(reads: usize, writes: usize) -> Limits {
        let limit = |most: usize| (most > 0).then(|| Arc::new(Semaphore::new(most)));
        Limits { reads: limit(reads), writes: limit(writes) }
    }
}

pub(super) async fn filter(request: Request, next: Next) -> Response {
    let context = context(&request);
    let limits = context.server.limits();
    let limit = match context.info.is_read_only() {
        true => &limits.reads,
        false => &limits.writes,
    };
    let Some(limit) = limit.clone().filter(|_| !context.info.is_long_running()) else {
        return next.run(request).await;
    };
    match limit.try_acquire_owned() {
        Ok(permit) => next.run(request).await.map(|body| body.holding(permit)),
        // Administrators get through, so that they can repair an overloaded server.
        Err(_) if context.user.is_master() => next.run(request).await,
        Err(_) => {
            let text = "Too many requests, please try again later.\n";
            let mut response = output::text(StatusCode::TOO_MANY_REQUESTS, text);
            response.headers_mut().insert(RETRY_AFTER, HeaderValue::from_static("1"));
            response
        }
    }
}
