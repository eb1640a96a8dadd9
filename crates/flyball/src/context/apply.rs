//! `Context::apply`: server-side apply of a child, with its owner's name, namespace and reference.

use crate::cache::kind::{Form, Kind};
use crate::cache::object::Object;
use crate::context::own::Ownership;
use crate::context::{Context, attempt, unset};
use crate::{Error, Key, Result, Why};
use kube::{
    Resource,
    api::{Patch, PatchParams, Request},
};
use serde::{Serialize, de::DeserializeOwned};
use serde_json::Value;
use std::{
    hash::{DefaultHasher, Hash, Hasher},
    sync::Arc,
};

/// What an apply did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Applied {
    /// The child was not there.
    Created,
    /// The child was changed, or might have been: its version before was not known.
    Configured,
    /// The child had been changed by others since it was applied last, and was put back.
    Corrected,
    /// The child was as it should be. Nothing was written.
    Unchanged,
    /// The kind is [optional](crate::Controller::optional) and not installed. Nothing was written.
    NotInstalled,
}

impl Context {
    /// Makes `child` exist as given, owned by the object being reconciled.
    ///
    /// A child without name or namespace takes its owner's. It is applied server-side, by force, with the operator's name
    /// as field manager: what others set beside it stays, what was applied before and is not any more goes. Nothing is
    /// sent if the same was applied before and the child has not changed since.
    ///
    /// The kind must be declared with [`Controller::owns`](crate::Controller::owns), or with the verb `patch` by
    /// [`Controller::needs`](crate::Controller::needs).
    ///
    /// Fields that Rust's type of a built-in kind cannot leave out are not sent while they are empty.
    ///
    /// If the child was changed by others since the same was applied last, and is put back by this, the answer is
    /// [`Applied::Corrected`]; it is logged, counted in `flyball_drift_corrected_total`, and told by an event.
    pub async fn apply<C>(&self, child: C) -> Result<Applied>
    where
        C: Resource<DynamicType = (), Scope: 'static> + Serialize + DeserializeOwned,
    {
        self.objects::<C>().apply(child).await
    }

    /// As [`Context::apply`], for a child that several objects own together: none controls it, and it goes with the last.
    ///
    /// Each owner applies it as a manager of its own, the operator's name and the owner's uid; they had better agree on it.
    pub async fn apply_shared<C>(&self, child: C) -> Result<Applied>
    where
        C: Resource<DynamicType = (), Scope: 'static> + Serialize + DeserializeOwned,
    {
        self.objects::<C>().apply_shared(child).await
    }

    pub(super) async fn apply_owned<C>(&self, kind: &Kind, child: C, ownership: Ownership) -> Result<Applied>
    where
        C: Serialize + DeserializeOwned,
    {
        self.declared
            .check_apply(kind)
            .inspect_err(|_| self.round.failed())
            .map_err(Error::permanent)?;
        if !self.is_installed(kind).await {
            return Ok(Applied::NotInstalled);
        }
        let child = serde_json::to_value(child).inspect_err(|_| self.round.failed())?;
        let adopted = self.adopt(kind, child, ownership);
        let (key, mut child) = adopted.inspect_err(|_| self.round.failed()).map_err(Error::permanent)?;
        without_nulls(&mut child);
        self.round.applies(kind, &key);
        let applied = self.apply_value::<C>(kind, &key, child, ownership).await;
        applied.inspect_err(|_| self.round.failed())
    }

    async fn apply_value<C>(&self, kind: &Kind, key: &Key, child: Value, ownership: Ownership) -> Result<Applied>
    where
        C: Serialize + DeserializeOwned,
    {
        let (hash, print) = (hash(&child), |object: &Object| object.json().meta().fingerprint(kind));
        let mirror = self.operator.cache.mirror(&kind.id());
        let before = mirror.as_ref().and_then(|mirror| mirror.get(key));
        let noted = mirror.as_ref().and_then(|mirror| mirror.notes(key).applied);
        if before.as_ref().is_some_and(|before| noted == Some((hash, print(before)))) {
            return Ok(Applied::Unchanged);
        }
        if mirror.is_some() && before.is_none() && matches!(self.why, Why::Related(_)) {
            self.still_there().await.inspect_err(|_| self.round.failed())?;
        }
        let child = if unset::may_be_dropped(kind) {
            unset::drop_from::<C>(child)
        } else {
            child
        };
        let (created, after) = self.send(kind, key, &child, ownership).await?;
        // What is kept may be less than what was answered.
        let kept = mirror.as_ref().and_then(|mirror| mirror.get(key));
        let kept = kept.filter(|kept| kept.version == after.version);
        let printed = print(kept.as_deref().unwrap_or(&after));
        if let Some(mirror) = &mirror {
            mirror.note(key, |notes| notes.applied = Some((hash, printed)));
        }
        let before = before.filter(|before| before.uid == after.uid);
        Ok(match (before, noted) {
            _ if created => Applied::Created,
            (Some(before), _) if before.version == after.version => Applied::Unchanged,
            // Its status has moved on, and nothing else.
            (Some(before), Some((noted, _))) if noted == hash && print(&before) == printed => Applied::Unchanged,
            (Some(before), Some((noted, _))) if noted == hash => {
                let form = mirror.map_or(Form::Metadata, |mirror| mirror.kind().form);
                self.corrected(kind, key, &before, &after, form);
                Applied::Corrected
            }
            _ => Applied::Configured,
        })
    }

    /// Asks the API server whether the object is there, before a child is made for it that was there a moment ago, as a rule: if
    /// the object's own deletion is not seen yet, the garbage collector deletes the child as often as it is made.
    async fn still_there(&self) -> Result<()> {
        let key = &self.object.key;
        let request = Request::new(self.kind().path(key.namespace())).get(key.name(), &Default::default())?;
        let found = match self.request(request).await {
            Ok((_, text)) => Some(Object::parse(text)?),
            Err(kube::Error::Api(status)) if status.code == 404 => None,
            Err(error) => return Err(attempt("get", self.kind(), key)(error).into()),
        };
        if found.is_some_and(|found| found.uid == self.object.uid) {
            return Ok(());
        }
        self.mirror.removed(key, &self.object.uid);
        Err(Error::retry(format!(
            "{} {key} is gone: nothing is made for it any more",
            self.kind().name()
        )))
    }

    /// Patches an object, as the operator's field manager, and answers with what it is then.
    ///
    /// A name alone means the namespace of the object being reconciled. `rbac` allows it for kinds that are owned; for others
    /// declare [`Controller::needs`](crate::Controller::needs).
    pub async fn patch<C>(&self, key: impl Into<Key>, patch: &Patch<impl Serialize>) -> Result<Arc<C>>
    where
        C: Resource<DynamicType = (), Scope: 'static> + DeserializeOwned,
    {
        self.objects::<C>().patch(key, patch).await
    }

    pub(super) async fn patch_key<C>(&self, kind: &Kind, key: &Key, patch: &Patch<impl Serialize>) -> Result<Arc<C>>
    where
        C: DeserializeOwned,
    {
        let params = PatchParams {
            field_manager: Some(self.operator.name.clone()),
            ..PatchParams::default()
        };
        let request = Request::new(kind.path(key.namespace())).patch(key.name(), &params, patch)?;
        let (_, text) = self.request(request).await.map_err(attempt("patch", kind, key))?;
        Ok(Arc::new(serde_json::from_str(&text)?))
    }

    async fn send(&self, kind: &Kind, key: &Key, child: &Value, ownership: Ownership) -> Result<(bool, Object)> {
        let params = match ownership {
            Ownership::Controlled => PatchParams::apply(&self.operator.name).force(),
            Ownership::Shared => PatchParams::apply(&format!("{}/{}", self.operator.name, self.object.uid)).force(),
        };
        let request = Request::new(kind.path(key.namespace())).patch(key.name(), &params, &Patch::Apply(child))?;
        let (created, text) = self.request(request).await.map_err(attempt("apply", kind, key))?;
        Ok((created, Object::parse(text)?))
    }

    /// Sends a write, and says whether it created something.
    pub(super) async fn request(&self, request: http::Request<Vec<u8>>) -> kube::Result<(bool, String)> {
        let response = self.operator.api.send(request.map(kube::client::Body::from)).await?;
        let code = response.status();
        let body = response.into_body().collect_bytes().await?;
        let text = String::from_utf8(body.into()).map_err(kube::Error::FromUtf8)?;
        if code.is_success() {
            Ok((code == http::StatusCode::CREATED, text))
        } else {
            Err(refused(code, &text))
        }
    }
}

pub(super) fn hash(value: &Value) -> u64 {
    let mut hasher = DefaultHasher::new();
    value.to_string().hash(&mut hasher);
    hasher.finish()
}

/// Drops fields that are `null`: to a type with `Option` that is the same as not set.
pub(super) fn without_nulls(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            fields.retain(|_, value| !value.is_null());
            fields.values_mut().for_each(without_nulls);
        }
        Value::Array(items) => items.iter_mut().for_each(without_nulls),
        _ => {}
    }
}

/// What the server said; a proxy in front of it may not speak of a Status.
fn refused(code: http::StatusCode, text: &str) -> kube::Error {
    let status = serde_json::from_str(text).unwrap_or_else(|_| {
        kube::core::Status::failure(&format!("{code}: {text}"), "Failed to parse error data").with_code(code.as_u16())
    });
    kube::Error::Api(Box::new(status))
}
