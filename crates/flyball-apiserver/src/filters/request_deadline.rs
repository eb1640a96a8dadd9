//! Bounds every request that is not long-running: by `?timeout=`, or by the server's own limit if that is shorter.
//! A write that runs out of time is finished all the same; only its client stops waiting.
// apiserver/pkg/endpoints/filters/request_deadline.go, apiserver/pkg/server/filters/timeout.go

use crate::encoding::output;
use crate::filters::{Next, Request, Response, context, context_mut, refuse};
use crate::request::info::Query;
use crate::status::{Result, Status};
use flyball_schema::go_duration;
use std::time::Duration;
use tokio::time::{Instant, timeout_at};

pub(super) async fn filter(mut request: Request, next: Next) -> Response {
    let context = context(&request);
    if context.info.is_long_running() {
        return next.run(request).await;
    }
    let max = context.server.options().request_timeout;
    let timeout = match requested(&context.info.query) {
        Ok(timeout) => timeout.map_or(max, |timeout| timeout.min(max)),
        Err(status) => return refuse(&request, &status),
    };
    let deadline = context.received + timeout;
    context_mut(&mut request).deadline = Some(deadline);
    if Instant::now() >= deadline {
        return timed_out();
    }
    timeout_at(deadline, next.run(request)).await.unwrap_or_else(|_| timed_out())
}

/// The client's own limit; zero and negative durations set none.
fn requested(query: &Query) -> Result<Option<Duration>> {
    let Some(text) = query.get("timeout") else {
        return Ok(None);
    };
    match go_duration::parse(text) {
        Some(nanoseconds) => Ok(u64::try_from(nanoseconds).ok().filter(|time| *time > 0).map(Duration::from_nanos)),
        None => {
            let why = format!("invalid timeout specified in the request URL - time: invalid duration {text:?}");
            Err(Status::bad_request(why))
        }
    }
}

/// kube-apiserver writes this status without its kind, as plain text.
fn timed_out() -> Response {
    let status = Status::timeout("request did not complete within the allotted timeout");
    let mut body = status.to_value();
    if let Some(fields) = body.as_object_mut() {
        fields.remove("kind");
        fields.remove("apiVersion");
    }
    let mut response = output::text(status.http_code(), format!("{body}\n"));
    response.headers_mut().remove("x-content-type-options");
    response
}
