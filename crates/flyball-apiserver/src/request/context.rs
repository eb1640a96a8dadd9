//! What is known of one request: who sent it, what it asks for, and until when it is to be answered.

use crate::audit::AuditRecord;
use crate::authn::user::User;
use crate::clock;
use crate::registry::Kind;
use crate::request::info::{RequestInfo, ResourceInfo};
use crate::server::ApiServer;
use crate::status::{Result, Status};
use bytes::Bytes;
use flyball_schema::resource::Resource;
use flyball_store::Store;
use http::{HeaderMap, HeaderValue};
use serde_json::Value;
use std::collections::BTreeMap;
use std::ops::Deref;
use std::sync::{Arc, Mutex};
use tokio::time::Instant;

/// How many characters all warnings of a response may have before they are truncated.
const MAX_WARNING_CHARS: usize = 4 * 1024;
/// How many characters a truncated warning has.
const MAX_TRUNCATED_WARNING_CHARS: usize = 256;

/// One request, from the first filter to the last: filters fill it in, endpoints and admission read it.
#[derive(Clone)]
pub struct RequestContext {
    /// The server that handles the request.
    pub server: ApiServer,
    /// What the method, the path and the query ask for.
    pub info: RequestInfo,
    /// The user on whose behalf the request is made; anonymous until a filter authenticates it.
    pub user: User,
    /// Identifies the request in audit events, logs and the response header `Audit-Id`.
    pub audit_id: HeaderValue,
    /// When the request arrived.
    pub received: Instant,
    /// When the server stops waiting for the request; none for long-running requests.
    pub deadline: Option<Instant>,
    warnings: Arc<Mutex<Vec<String>>>,
    annotations: Arc<Mutex<BTreeMap<String, String>>>,
    /// The audit record, if the audit policy selects the request.
    pub(crate) audit: Option<Arc<AuditRecord>>,
}

impl RequestContext {
    /// The context of a request that no filter has looked at yet.
    pub fn new(server: ApiServer, info: RequestInfo, audit_id: HeaderValue) -> RequestContext {
        RequestContext {
            server,
            info,
            user: User::anonymous(),
            audit_id,
            received: Instant::now(),
            deadline: None,
            warnings: Arc::default(),
            annotations: Arc::default(),
            audit: None,
        }
    }

    /// Adds a Warning header to the response, once.
    pub fn warn(&self, text: impl Into<String>) {
        let text = text.into();
        if text.is_empty() {
            return;
        }
        let mut warnings = self.warnings.lock().expect("no panic while held");
        if !warnings.contains(&text) {
            warnings.push(text);
        }
    }

    /// The texts of the response's Warning headers. If they are too long together, each is truncated.
    pub fn warnings(&self) -> Vec<String> {
        limit_warnings(&self.warnings.lock().expect("no panic while held"))
    }
}

/// Truncates warnings once all together exceed the limit.
// apiserver/pkg/endpoints/filters/warning.go
fn limit_warnings(all: &[String]) -> Vec<String> {
    let mut total = 0;
    let exceeding = all.iter().position(|text| {
        total += text.chars().count();
        total > MAX_WARNING_CHARS
    });
    let Some(exceeding) = exceeding else {
        return all.to_vec();
    };
    let mut written = 0;
    let mut kept = Vec::new();
    for (index, text) in all.iter().enumerate() {
        if index > exceeding && written >= MAX_WARNING_CHARS {
            break;
        }
        let text: String = text.chars().take(MAX_TRUNCATED_WARNING_CHARS).collect();
        written += text.chars().count();
        kept.push(text);
    }
    kept
}

/// Auditing.
impl RequestContext {
    /// Records the object, patch or options that were sent.
    pub(crate) fn audit_request(&self, object: &Value) {
        if let Some(record) = &self.audit {
            record.request_object(object);
        }
    }

    /// Adds an annotation to the audit events of the request. The first value of a key counts.
    pub fn annotate(&self, key: impl Into<String>, value: impl Into<String>) {
        let mut annotations = self.annotations.lock().expect("no panic while held");
        annotations.entry(key.into()).or_insert_with(|| value.into());
    }

    /// The annotations of the request's audit events so far.
    pub fn annotations(&self) -> BTreeMap<String, String> {
        self.annotations.lock().expect("no panic while held").clone()
    }
}

/// One request to a resource that is served.
pub(crate) struct ResourceRequest {
    /// The kind that it is about.
    pub kind: Arc<Kind>,
    /// The object or collection that the path names.
    pub target: ResourceInfo,
    /// The request's headers.
    pub headers: HeaderMap,
    /// The request's body; empty for requests that read.
    pub body: Bytes,
    context: RequestContext,
}

impl Deref for ResourceRequest {
    type Target = RequestContext;

    fn deref(&self) -> &RequestContext {
        &self.context
    }
}

impl ResourceRequest {
    /// A request that has been routed to a kind.
    pub fn new(kind: Arc<Kind>, target: ResourceInfo, context: RequestContext, headers: HeaderMap) -> ResourceRequest {
        ResourceRequest { kind, target, headers, body: Bytes::new(), context }
    }

    /// The same request, about another object.
    pub fn about(&self, kind: Arc<Kind>, target: ResourceInfo) -> ResourceRequest {
        ResourceRequest {
            kind,
            target,
            headers: self.headers.clone(),
            body: self.body.clone(),
            context: self.context.clone(),
        }
    }

    /// The store that keeps the objects.
    pub fn store(&self) -> &Store {
        self.server.store()
    }

    /// The namespace of the objects, if they have one and the path names it.
    pub fn namespace(&self) -> Option<&str> {
        let namespace = self.target.namespace.as_deref().filter(|namespace| !namespace.is_empty());
        namespace.filter(|_| self.kind.resource.namespaced)
    }

    /// The name in the path; empty if there is none.
    pub fn name(&self) -> &str {
        self.target.name.as_deref().unwrap_or_default()
    }

    /// The store's key of the object that the path names.
    pub fn key(&self) -> Bytes {
        self.kind.key(self.namespace(), self.name())
    }

    /// The time now, as timestamps are written.
    pub fn now(&self) -> String {
        clock::seconds(self.server.clock().now())
    }

    /// 404 for the object that the path names.
    pub fn not_found(&self) -> Status {
        if let Some((group, plural)) = self.kind.spec.stored_as {
            let resource = Resource {
                group: group.into(),
                plural: plural.into(),
                ..self.kind.resource.clone()
            };
            return Status::not_found(&resource, self.name());
        }
        Status::not_found(&self.kind.resource, self.name())
    }

    /// A failure of the store that the client cannot repair.
    pub fn store_failed<T>(&self, error: flyball_store::Error) -> Result<T> {
        Err(Status::store_failed(error))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn warnings_are_truncated_once_they_are_too_long_together() {
        let long = |length: usize| "é".repeat(length);
        assert_eq!(limit_warnings(&[long(4096)]), [long(4096)]);
        assert_eq!(limit_warnings(&[long(4096), long(1)]), [long(256), long(1)]);
        let many = vec![long(300); 40];
        assert_eq!(limit_warnings(&many), vec![long(256); 16]);
    }
}
