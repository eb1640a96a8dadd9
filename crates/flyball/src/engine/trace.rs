//! What becomes a trace: a span for each reconcile, and one inside it for each call of the API. Without the feature `otel` they
//! are fields of the log's lines only.

use crate::{Key, Why};
use http::Response;
use tracing::{Level, Span, field::Empty};

/// Whether this build can send traces.
pub(crate) const EXPORTED: bool = cfg!(feature = "otel");

/// A reconcile. Its fields are in every line that is logged meanwhile, at every level: hence the level of the span.
pub(crate) fn reconcile(operator: &str, controller: &str, kind: &str, key: &Key, why: &Why, id: u64) -> Span {
    let id = format_args!("{id:016x}");
    tracing::error_span!(
        "reconcile",
        operator, controller, kind, %key, id, %why,
        result = Empty,
        otel.status_code = Empty,
        otel.status_description = Empty
    )
}

/// The current span's reconcile has ended, and everything was logged about it.
pub(crate) fn ended(result: &str, failure: Option<String>) {
    if EXPORTED {
        let span = Span::current();
        span.record("result", result);
        if let Some(failure) = failure {
            span.record("otel.status_code", "ERROR").record("otel.status_description", failure);
        }
    }
}

/// A call of the API within a reconcile; others, such as watches, belong to no trace.
pub(crate) fn call(verb: &str, resource: &str, path: &str) -> Span {
    if !tracing::span_enabled!(Level::DEBUG) || Span::current().is_none() {
        return Span::none();
    }
    tracing::debug_span!(
        "call",
        otel.name = %format_args!("{verb} {resource}"),
        otel.kind = "client",
        verb, resource,
        url.path = path,
        http.response.status_code = Empty,
        otel.status_code = Empty,
        otel.status_description = Empty
    )
}

/// A call was answered, or failed.
pub(crate) fn answered<B>(span: &Span, answer: &kube::Result<Response<B>>) {
    if span.is_disabled() {
        return;
    }
    match answer {
        Ok(answer) => {
            span.record("http.response.status_code", answer.status().as_u16());
            if !answer.status().is_success() {
                span.record("otel.status_code", "ERROR");
            }
        }
        Err(error) => {
            span.record("otel.status_code", "ERROR")
                .record("otel.status_description", error.to_string());
        }
    }
}
