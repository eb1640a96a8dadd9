//! `Context::set_status`: the status of the object being reconciled, written only if it differs.

use super::{
    Context,
    apply::{hash, without_nulls},
    attempt,
};
use crate::{Result, object::Object};
use kube::api::{Patch, PatchParams, Request};
use serde::Serialize;
use serde_json::{Value, json};

impl Context {
    /// Sets the status of the object being reconciled, by server-side apply to its `status` subresource.
    ///
    /// What other managers have set in the status stays; what this operator set before and does not set now goes. Nothing is
    /// sent if the object already has this status.
    pub async fn set_status(&self, status: impl Serialize) -> Result<()> {
        let mut status = serde_json::to_value(status)?;
        without_nulls(&mut status);
        let (key, hash) = (&self.object.key, hash(&status));
        let current = self.current();
        let written = self.mirror.notes(key).status.filter(|(before, _)| *before == hash);
        if is_set(&current, &status, written.map(|(_, version)| version)) {
            return Ok(());
        }
        let mut metadata = json!({ "name": key.name(), "uid": &*self.object.uid });
        if let Some(namespace) = key.namespace() {
            metadata["namespace"] = namespace.into();
        }
        let (version, kind) = (&self.kind().resource.api_version, self.kind().name());
        let body = json!({ "apiVersion": version, "kind": kind, "metadata": metadata, "status": status });
        let params = PatchParams::apply(&self.operator.name).force();
        let collection = Request::new(self.kind().path(key.namespace()));
        let request = collection.patch_subresource("status", key.name(), &params, &Patch::Apply(&body))?;
        let (_, text) = self.request(request).await.map_err(attempt("set status of", self.kind(), key))?;
        let version = Object::parse(text)?.version;
        self.mirror.note(key, |notes| notes.status = Some((hash, version)));
        Ok(())
    }
}

/// Whether an object has this status, `written` being its version after the same status was last set.
///
/// A status that the server keeps differently than it was sent is found by the version; one that others write to as well is
/// found by comparing what is ours.
fn is_set(object: &Object, status: &Value, written: Option<u64>) -> bool {
    let current = object.field("status").unwrap_or_else(|| json!({}));
    current == *status || written.is_some_and(|version| object.version == version || contains(&current, status))
}

/// Whether `whole` has every field of `part`, with the same value.
fn contains(whole: &Value, part: &Value) -> bool {
    match (whole, part) {
        (Value::Object(whole), Value::Object(part)) => part
            .iter()
            .all(|(name, value)| whole.get(name).is_some_and(|whole| contains(whole, value))),
        _ => whole == part,
    }
}
