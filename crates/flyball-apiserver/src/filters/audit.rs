//! Reports the stages of each request to the audit sink, if the server has one.
// apiserver/pkg/endpoints/filters/audit.go

use crate::filters::{Next, Request, Response, context};
use crate::request::context::RequestContext;
use http::StatusCode;
use std::sync::Arc;

/// How far a request has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// The request is authenticated and about to be handled.
    RequestReceived,
    /// The headers of a long-running request's response are sent; its body follows.
    ResponseStarted,
    /// The response is complete, or the client has closed the connection.
    ResponseComplete,
    /// Handling the request caused a panic.
    Panic,
}

/// One stage of one request.
pub struct AuditEvent<'a> {
    /// How far the request has come.
    pub stage: Stage,
    /// The request: its user, verb, resource and path.
    pub context: &'a RequestContext,
    /// The code of the response, once there is one.
    pub code: Option<StatusCode>,
}

/// Takes audit events; called from the tasks that handle requests, so it must not block.
pub trait AuditSink: Send + Sync + 'static {
    /// Takes one event.
    fn record(&self, event: &AuditEvent<'_>);
}

pub(super) async fn filter(request: Request, next: Next) -> Response {
    let context = context(&request);
    let Some(sink) = context.server.options().audit_sink.clone() else {
        return next.run(request).await;
    };
    let mut trail = Trail { sink, context: context.clone(), code: None };
    trail.record(Stage::RequestReceived);
    let response = next.run(request).await;
    trail.code = Some(response.status());
    if trail.context.info.is_long_running() {
        trail.record(Stage::ResponseStarted);
    }
    response.map(|body| body.holding(trail))
}

/// The audit events of one request; the last is recorded when the response is dropped.
struct Trail {
    sink: Arc<dyn AuditSink>,
    context: RequestContext,
    code: Option<StatusCode>,
}

impl Trail {
    fn record(&self, stage: Stage) {
        let event = AuditEvent { stage, context: &self.context, code: self.code };
        self.sink.record(&event);
    }
}

impl Drop for Trail {
    fn drop(&mut self) {
        match std::thread::panicking() {
            true => self.record(Stage::Panic),
            false => self.record(Stage::ResponseComplete),
        }
    }
}
