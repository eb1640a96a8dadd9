//! Handles as many requests at a time as their priority level has seats; the others wait in a queue or are refused with 429.
//! Long-running requests take no seat.
// apiserver/pkg/server/filters/priority-and-fairness.go

use crate::encoding::output;
use crate::filters::{Next, Request, Response, context, refuse};
use crate::flow_control::seats::{Admission, Seat};
use crate::request::context::RequestContext;
use http::header::RETRY_AFTER;
use http::{HeaderName, HeaderValue, StatusCode};
use tokio::sync::oneshot;

const SCHEMA_UID: HeaderName = HeaderName::from_static("x-kubernetes-pf-flowschema-uid");
const LEVEL_UID: HeaderName = HeaderName::from_static("x-kubernetes-pf-prioritylevel-uid");
/// A request waits in its queue for at most this part of the longest time that it may take.
const MAX_WAIT_PART: u32 = 4;

pub(super) async fn filter(request: Request, next: Next) -> Response {
    let context = context(&request);
    if context.info.is_long_running() {
        return next.run(request).await;
    }
    let classified = match context.server.flow_control().classify(context).await {
        Ok(classified) => classified,
        Err(status) => return refuse(&request, &status),
    };
    let seat = match classified.admission {
        Admission::Exempt => None,
        Admission::Granted(seat) => Some(seat),
        Admission::Queued(granted) => match wait(context, granted).await {
            Some(seat) => Some(seat),
            None => return too_many(),
        },
        Admission::Rejected => return too_many(),
    };
    let mut response = next.run(request).await;
    let headers = response.headers_mut();
    headers.insert(SCHEMA_UID, classified.schema_uid);
    headers.insert(LEVEL_UID, classified.level_uid);
    response.map(|body| body.holding(seat))
}

async fn wait(context: &RequestContext, granted: oneshot::Receiver<Seat>) -> Option<Seat> {
    let most = context.server.options().request_timeout / MAX_WAIT_PART;
    tokio::time::timeout(most, granted).await.ok()?.ok()
}

fn too_many() -> Response {
    let text = "Too many requests, please try again later.\n";
    let mut response = output::text(StatusCode::TOO_MANY_REQUESTS, text);
    response.headers_mut().insert(RETRY_AFTER, HeaderValue::from_static("1"));
    response
}
