//! Records the stages of each request that the audit policy selects.
// apiserver/pkg/endpoints/filters/audit.go

use crate::audit::{AuditRecord, Level, Stage};
use crate::filters::{Next, Request, Response, context, context_mut};
use crate::request::context::RequestContext;
use std::sync::Arc;

pub(super) async fn filter(request: Request, next: Next) -> Response {
    let (request, record) = begin(request);
    let Some(record) = record else {
        return next.run(request).await;
    };
    let trail = Trail { context: context(&request).clone(), record };
    trail.record.stage(&trail.context, Stage::RequestReceived);
    let response = next.run(request).await;
    trail.record.code(response.status());
    if trail.context.info.is_long_running() {
        trail.record.stage(&trail.context, Stage::ResponseStarted);
    }
    response.map(|body| body.holding(trail))
}

/// Begins the record of a request, if the server has a sink and its policy selects the request.
pub(super) fn begin(mut request: Request) -> (Request, Option<Arc<AuditRecord>>) {
    let options = context(&request).server.options();
    let Some(sink) = options.audit_sink.clone() else {
        return (request, None);
    };
    let recorded = options.audit_policy.evaluate(&context(&request).user, &context(&request).info);
    if recorded.level == Level::None {
        return (request, None);
    }
    let context = context(&request).clone();
    let (parts, body) = request.into_parts();
    let record = Arc::new(AuditRecord::new(sink, recorded, &context, &parts));
    request = Request::from_parts(parts, body);
    context_mut(&mut request).audit = Some(record.clone());
    (request, Some(record))
}

/// The record of a request that is handled; its last event is recorded when the response is dropped.
struct Trail {
    context: RequestContext,
    record: Arc<AuditRecord>,
}

impl Drop for Trail {
    fn drop(&mut self) {
        let stage = match std::thread::panicking() {
            true => Stage::Panic,
            false => Stage::ResponseComplete,
        };
        self.record.stage(&self.context, stage);
    }
}
