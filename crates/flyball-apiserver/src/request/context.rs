//! One request to a resource, with all that its handler needs to know.

use crate::clock;
use crate::registry::Kind;
use crate::request::info::{Query, Route, Target, Verb};
use crate::server::ApiServer;
use crate::status::{Result, Status};
use bytes::Bytes;
use flyball_schema::resource::Resource;
use flyball_store::Store;
use http::HeaderMap;
use std::sync::{Arc, Mutex};

/// One request to a resource.
pub(crate) struct ResourceRequest {
    /// Who answers it.
    pub server: ApiServer,
    /// The kind that it is about.
    pub kind: Arc<Kind>,
    /// What its path names.
    pub target: Target,
    /// Its parameters.
    pub query: Query,
    /// Its headers.
    pub headers: HeaderMap,
    /// Its body; empty for requests that read.
    pub body: Bytes,
    warnings: Mutex<Vec<String>>,
}

impl ResourceRequest {
    /// A request that has been routed.
    pub fn new(server: ApiServer, kind: Arc<Kind>, route: Route, headers: HeaderMap) -> ResourceRequest {
        let target = route.target.expect("only requests to a resource are routed here");
        ResourceRequest {
            server,
            kind,
            target,
            query: route.query,
            headers,
            body: Bytes::new(),
            warnings: Mutex::default(),
        }
    }

    /// The same request, about another object.
    pub fn about(&self, kind: Arc<Kind>, target: Target) -> ResourceRequest {
        ResourceRequest {
            server: self.server.clone(),
            kind,
            target,
            query: self.query.clone(),
            headers: self.headers.clone(),
            body: self.body.clone(),
            warnings: Mutex::default(),
        }
    }

    /// Where objects are kept.
    pub fn store(&self) -> &Store {
        self.server.store()
    }

    /// The namespace of the objects, if they have one and the path names it.
    pub fn namespace(&self) -> Option<&str> {
        self.target.namespace.as_deref().filter(|_| self.kind.resource.namespaced)
    }

    /// The name in the path; empty if there is none.
    pub fn name(&self) -> &str {
        self.target.name.as_deref().unwrap_or_default()
    }

    /// Where the store keeps the object that the path names.
    pub fn key(&self) -> Bytes {
        self.kind.key(self.namespace(), self.name())
    }

    /// The time now, as timestamps are written.
    pub fn now(&self) -> String {
        clock::seconds(self.server.clock().now())
    }

    /// Whether the body has anything to say.
    pub fn reads_body(&self) -> bool {
        !matches!(self.target.verb, Verb::Get | Verb::List | Verb::Watch)
    }

    /// Tells the client something in a Warning header.
    pub fn warn(&self, text: impl Into<String>) {
        let text = text.into();
        let mut warnings = self.warnings.lock().expect("no panic while held");
        if !warnings.contains(&text) {
            warnings.push(text);
        }
    }

    /// What the client was told.
    pub fn warnings(&self) -> Vec<String> {
        self.warnings.lock().expect("no panic while held").clone()
    }

    /// 404 for the object that the path names.
    pub fn not_found(&self) -> Status {
        if self.kind.is("", "componentstatuses") {
            // The one kind that names itself in the singular: nothing of it is stored.
            let resource = Resource {
                plural: "componentstatus".into(),
                ..self.kind.resource.clone()
            };
            return Status::not_found(&resource, self.name());
        }
        Status::not_found(&self.kind.resource, self.name())
    }

    /// A failure of the store that no client can help.
    pub fn store_failed<T>(&self, error: flyball_store::Error) -> Result<T> {
        tracing::error!(%error, resource = self.kind.resource.qualified(), "the store failed");
        Err(Status::internal(error))
    }
}
