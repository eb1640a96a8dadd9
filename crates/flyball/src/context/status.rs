//! `Context::set_status`: the status of the object being reconciled, written by server-side apply, and only if it differs.

use crate::Result;
use crate::cache::object::{Object, extract};
use crate::context::apply::{hash, without_nulls};
use crate::context::condition::keep_times;
use crate::context::ready_condition::keep_ready;
use crate::context::{Context, attempt};
use kube::api::{Patch, PatchParams, Request};
use serde::Serialize;
use serde_json::{Value, json};
use std::sync::Arc;

impl Context {
    /// Sets the status of the object being reconciled, by its `status` subresource.
    ///
    /// It is applied server-side, by force: what other managers have set in the status stays; what this operator set before
    /// and does not set now goes. Nothing is sent if the object already has this status, whichever process set it.
    ///
    /// All controllers of an operator are one manager: of those that reconcile the same kind, let one set its status.
    pub async fn set_status(&self, status: impl Serialize) -> Result<()> {
        let mut status = serde_json::to_value(status)?;
        without_nulls(&mut status);
        let object = self.with_status().await?;
        let before = object.field("status").unwrap_or_else(|| json!({}));
        if self.ready_condition {
            keep_ready(&mut status, &before);
        }
        if !self.kind().is_kept_whole() {
            keep_times(&mut status, &before);
        }
        self.apply_status(&object, &before, &status).await
    }

    /// Applies a status, unless it is the operator's part of the one that the object has `before`.
    pub(super) async fn apply_status(&self, object: &Object, before: &Value, status: &Value) -> Result<()> {
        let (key, hash) = (&self.object.key, hash(status));
        let noted = self.mirror.notes(key).status;
        if noted == Some((hash, object.version)) || self.own_status(object, before) == *status {
            return Ok(());
        }
        let (api_version, kind) = (&self.kind().resource.api_version, self.kind().name());
        let metadata = json!({ "name": key.name(), "uid": &*self.object.uid });
        let body = json!({ "apiVersion": api_version, "kind": kind, "metadata": metadata, "status": status });
        let params = PatchParams::apply(&self.operator.name).force();
        let collection = Request::new(self.kind().path(key.namespace()));
        let request = collection.patch_subresource("status", key.name(), &params, &Patch::Apply(&body))?;
        let (_, text) = self.request(request).await.map_err(attempt("set status of", self.kind(), key))?;
        let version = Object::parse(text)?.version;
        self.mirror.note(key, |notes| notes.status = Some((hash, version)));
        Ok(())
    }

    /// The part of a status that this operator has set.
    pub(super) fn own_status(&self, object: &Object, status: &Value) -> Value {
        let applied = object.applied_fields(&self.operator.name, "status");
        match applied.as_ref().and_then(|fields| fields.get("f:status")) {
            Some(fields) => extract(fields, status),
            None => json!({}),
        }
    }

    /// The object with its status: from the cache, or from the API server where the cache keeps less.
    pub(super) async fn with_status(&self) -> Result<Arc<Object>> {
        if self.kind().is_kept_whole() {
            return Ok(self.current());
        }
        let key = &self.object.key;
        let request = Request::new(self.kind().path(key.namespace())).get(key.name(), &Default::default())?;
        let (_, text) = self.request(request).await.map_err(attempt("get", self.kind(), key))?;
        Ok(Arc::new(Object::parse(text)?))
    }
}
