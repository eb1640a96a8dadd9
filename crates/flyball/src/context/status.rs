//! `Context::set_status`: the status of the object being reconciled, written only if it differs.

mod merge;
mod owned;

use crate::Result;
use crate::cache::object::Object;
use crate::context::apply::{hash, without_nulls};
use crate::context::condition::keep_times;
use crate::context::ready_condition::keep_ready;
use crate::context::{Context, attempt};
use http::StatusCode;
use kube::api::{Patch, PatchParams, PostParams, Request};
use serde::Serialize;
use serde_json::{Value, json};

/// Attempts to write a status that other writers change at the same time, before that is an error.
pub(crate) const MAX_CONFLICTS: usize = 3;

/// A change of the status.
pub(crate) struct Change {
    /// A merge patch of the status.
    pub(crate) status: Value,
    /// The resource version that it was made for, where that matters.
    pub(crate) version: Option<String>,
}

impl Context {
    /// Sets the status of the object being reconciled, by its `status` subresource.
    ///
    /// What other managers have set in the status stays; what this operator set before and does not set now goes. Nothing is
    /// sent if the object already has this status.
    ///
    /// All controllers of an operator are one manager: of those that reconcile the same kind, let one set its status.
    pub async fn set_status(&self, status: impl Serialize) -> Result<()> {
        let mut status = serde_json::to_value(status)?;
        without_nulls(&mut status);
        let current = self.current();
        let before = current.field("status").unwrap_or_else(|| json!({}));
        if self.ready_condition {
            keep_ready(&mut status, &before);
        }
        let hash = hash(&status);
        let noted = self.mirror.notes(&self.object.key).status;
        if is_set(&current, &before, &status, noted.filter(|(before, _)| *before == hash)) {
            return Ok(());
        }
        let version = match self.change(&before, &status, noted.map(|(hash, _)| hash)).await? {
            Some(change) => self.write_status(&current, &before, &status, change).await?,
            None => current.version,
        };
        self.mirror.note(&self.object.key, |notes| notes.status = Some((hash, version)));
        Ok(())
    }

    /// What makes `status` of what was there `before`, `ours` being the hash of what was last set; none if nothing does.
    ///
    /// Only where something might have to go that others have set is the API server asked who set it.
    async fn change(&self, before: &Value, status: &Value, ours: Option<u64>) -> Result<Option<Change>> {
        let is_whole = self.kind().is_kept_whole();
        if is_whole && !merge::has_more(before, status) {
            return Ok(Some(Change { status: status.clone(), version: None }));
        }
        if is_whole && ours == Some(hash(before)) {
            return Ok(Some(Change { status: merge::patch(before, status), version: None }));
        }
        self.live_change(status).await
    }

    /// What makes `status` of what the object has now; none if nothing does.
    async fn live_change(&self, status: &Value) -> Result<Option<Change>> {
        let live = self.live().await?;
        let mut status = status.clone();
        if !self.kind().is_kept_whole() {
            keep_times(&mut status, &live["status"]);
        }
        let wanted = owned::merged(&live, &self.operator.name, &status);
        let version = live["metadata"]["resourceVersion"].as_str().map(str::to_owned);
        let change = Change { status: merge::patch(&live["status"], &wanted), version };
        Ok((live["status"] != wanted).then_some(change))
    }

    /// Makes a change, and answers with the version of the object afterwards.
    ///
    /// If somebody came in between, it is made for what is there then: what they set beside it stays.
    async fn write_status(&self, current: &Object, before: &Value, status: &Value, change: Change) -> Result<u64> {
        let mut answer = self.send_status(current, before, change).await?;
        for _ in 0..MAX_CONFLICTS {
            if !matches!(&answer, Err(kube::Error::Api(status)) if status.code == StatusCode::CONFLICT) {
                break;
            }
            let Some(change) = self.live_change(status).await? else {
                return Ok(current.version);
            };
            answer = self.patch_status(change).await?;
        }
        let text = answer.map_err(attempt("set status of", self.kind(), &self.object.key))?;
        Ok(Object::version_in(&text)?)
    }

    /// Where the cached object is all there is to know, what the patch would make of it is sent, for as long as it has this
    /// version: that costs a real API server a sixth less than the patch. A patch replaces lists as a whole, so one that has any
    /// holds for this version only, too.
    async fn send_status(&self, current: &Object, before: &Value, change: Change) -> Result<kube::Result<String>> {
        match change.version {
            None if self.kind().is_custom() => {
                let status = merge::applied(before, &change.status);
                self.put_status(current, &status).await
            }
            None if merge::has_lists(&change.status) => {
                let version = Some(current.resource_version());
                self.patch_status(Change { version, ..change }).await
            }
            _ => self.patch_status(change).await,
        }
    }

    async fn put_status(&self, current: &Object, status: &Value) -> Result<kube::Result<String>> {
        let params = PostParams {
            field_manager: Some(self.operator.name.clone()),
            ..PostParams::default()
        };
        let (key, body) = (&self.object.key, merge::body(current, self.kind(), status)?);
        let collection = Request::new(self.kind().path(key.namespace()));
        let request = collection.replace_subresource("status", key.name(), &params, body)?;
        Ok(self.request(request).await.map(|(_, text)| text))
    }

    pub(crate) async fn patch_status(&self, change: Change) -> Result<kube::Result<String>> {
        let key = &self.object.key;
        let mut metadata = json!({ "uid": &*self.object.uid });
        if let Some(version) = change.version {
            metadata["resourceVersion"] = version.into();
        }
        let body = json!({ "metadata": metadata, "status": change.status });
        let params = PatchParams {
            field_manager: Some(self.operator.name.clone()),
            ..PatchParams::default()
        };
        let collection = Request::new(self.kind().path(key.namespace()));
        let request = collection.patch_subresource("status", key.name(), &params, &Patch::Merge(&body))?;
        Ok(self.request(request).await.map(|(_, text)| text))
    }
}

/// Whether an object that has the status `before` has this one, `written` being known if the same was set last.
///
/// A status that the server keeps differently than it was sent is found by the version; one that others write to as well is
/// found by comparing what is ours.
fn is_set(object: &Object, before: &Value, status: &Value, written: Option<(u64, u64)>) -> bool {
    before == status || written.is_some_and(|(_, version)| object.version == version || merge::contains(before, status))
}
