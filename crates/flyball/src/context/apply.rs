//! `Context::apply`: server-side apply of a child, with its owner's name, namespace and reference.

use crate::cache::kind::Kind;
use crate::cache::object::{Object, missing};
use crate::context::own::Ownership;
use crate::context::{Context, attempt, unset};
use crate::{Error, Key, Result, Why};
use http::StatusCode;
use k8s_openapi::ByteString;
use kube::{
    Resource,
    api::{Patch, PatchParams, Request},
};
use serde::{Serialize, de::DeserializeOwned};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use std::sync::Arc;

/// How the annotations begin that hold the hash of what was applied.
pub(super) const APPLIED: &str = "flyball.dev/applied-";

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
    /// sent if the same was applied before, by this process or an earlier one, and no other manager has changed any of it: an
    /// annotation `flyball.dev/applied-by-` and the operator's name holds the hash of what was applied.
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
        let (_, applied) = self.apply_keyed(kind, child, ownership).await?;
        Ok(applied)
    }

    /// Also says where the child is, unless its kind is not installed.
    pub(super) async fn apply_keyed<C>(
        &self,
        kind: &Kind,
        child: C,
        ownership: Ownership,
    ) -> Result<(Option<Key>, Applied)>
    where
        C: Serialize + DeserializeOwned,
    {
        self.declared
            .check_apply(kind)
            .inspect_err(|_| self.applied.failed())
            .map_err(Error::permanent)?;
        if !self.is_installed(kind).await {
            return Ok((None, Applied::NotInstalled));
        }
        let child = serde_json::to_value(child).inspect_err(|_| self.applied.failed())?;
        let adopted = self.adopt(kind, child, ownership);
        let (key, mut child) = adopted.inspect_err(|_| self.applied.failed()).map_err(Error::permanent)?;
        without_nulls(&mut child);
        fold_string_data(kind, &mut child);
        self.applied.applies(kind, &key);
        let applied = self.apply_value::<C>(kind, &key, child, ownership).await;
        let applied = applied.inspect_err(|_| self.applied.failed())?;
        Ok((Some(key), applied))
    }

    async fn apply_value<C>(&self, kind: &Kind, key: &Key, mut child: Value, ownership: Ownership) -> Result<Applied>
    where
        C: Serialize + DeserializeOwned,
    {
        let (hash, by) = (hash(&child), self.applier(ownership));
        let mirror = self.operator.cache.mirror(&kind.id());
        let before = match &mirror {
            // Where the kind cannot be listed, the server decides.
            Some(mirror) => mirror.ready().await.ok().and_then(|()| mirror.get(key)),
            None => None,
        };
        let noted = mirror.as_ref().and_then(|mirror| mirror.notes(key).applied);
        let note = |fields| {
            mirror
                .iter()
                .for_each(|mirror| mirror.note(key, |notes| notes.applied = Some((hash, fields))))
        };
        let state = before.as_ref().map(|before| by.state::<C>(kind, before, noted, (hash, &child)));
        if let Some(State::AsApplied(fields)) = state {
            note(fields);
            return Ok(Applied::Unchanged);
        }
        if mirror.is_some() && before.is_none() && matches!(self.why, Why::Related(_)) {
            self.still_there().await.inspect_err(|_| self.applied.failed())?;
        }
        if unset::may_be_dropped(kind) {
            child = unset::drop_from::<C>(child);
        }
        child["metadata"]["annotations"][&by.annotation] = json!(format!("{hash:016x}"));
        let (created, after) = self.send(kind, key, &child, &by.manager).await?;
        note(self::hash(&by.fields(&after)));
        let before = before.as_ref().filter(|before| before.uid == after.uid);
        Ok(match (before, state) {
            _ if created => Applied::Created,
            (Some(before), _) if before.version == after.version => Applied::Unchanged,
            (Some(_), Some(State::Drifted(fields))) => {
                self.corrected(kind, key, &fields);
                Applied::Corrected
            }
            _ => Applied::Configured,
        })
    }

    fn applier(&self, ownership: Ownership) -> Applier {
        let (operator, uid) = (&self.operator.name, &self.object.uid);
        match ownership {
            Ownership::Controlled => Applier {
                manager: operator.clone(),
                annotation: format!("{APPLIED}by-{operator}"),
            },
            Ownership::Shared => Applier {
                manager: format!("{operator}/{uid}"),
                annotation: format!("{APPLIED}for-{uid}"),
            },
        }
    }

    /// Re-reads the owner before a deleted child is created again: while the owner's own deletion is not in the cache yet, the
    /// garbage collector would delete the child as often as it is created.
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

    async fn send(&self, kind: &Kind, key: &Key, child: &Value, manager: &str) -> Result<(bool, Object)> {
        let params = PatchParams::apply(manager).force();
        let request = Request::new(kind.path(key.namespace())).patch(key.name(), &params, &Patch::Apply(child))?;
        let mut answer = self.request(request.clone()).await;
        if let Err(kube::Error::Api(refusal)) = &answer
            && refusal.code == StatusCode::UNPROCESSABLE_ENTITY
            && self.replace_lists(kind, key, child, refusal).await?
        {
            answer = self.request(request).await;
        }
        let (created, text) = answer.map_err(attempt("apply", kind, key))?;
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

/// As whom a child is applied, and where its hash is kept.
struct Applier {
    manager: String,
    annotation: String,
}

/// How an object compares with what is to be applied.
enum State {
    /// The same was applied last, and all of it still is; with the hash of the fields.
    AsApplied(u64),
    /// The same was applied last, and others have changed or removed these fields since.
    Drifted(Vec<String>),
    /// Something else was applied last, or nothing.
    Differs,
}

impl Applier {
    /// `noted` is what this process applied last and the fields that it had afterwards, as hashes.
    ///
    /// Values are not compared: the API server and webhooks may store others than were applied. Another manager that changes or
    /// removes a field takes it from the fields of this one (KEP-555), so these say whether all is as it was applied.
    fn state<C>(&self, kind: &Kind, object: &Object, noted: Option<(u64, u64)>, (hash, child): (u64, &Value)) -> State
    where
        C: Serialize + DeserializeOwned,
    {
        let fields = self.fields(object);
        let (noted, now) = (noted.filter(|(last, _)| *last == hash), self::hash(&fields));
        if noted == Some((hash, now)) {
            return State::AsApplied(now);
        }
        let annotated = || object.json().meta().annotation(&self.annotation) == Some(format!("{hash:016x}"));
        if noted.is_none() && !annotated() {
            return State::Differs;
        }
        let mut lost = missing(&fields, child);
        if !lost.is_empty() && unset::may_be_dropped(kind) {
            lost = missing(&fields, &unset::drop_from::<C>(child.clone()));
        }
        match noted {
            None if lost.is_empty() => State::AsApplied(now),
            _ => State::Drifted(lost),
        }
    }

    /// The fields that are this manager's.
    fn fields(&self, object: &Object) -> Value {
        object.applied_fields(&self.manager, "").unwrap_or_default()
    }
}

/// The same in every process that has the same value.
pub(super) fn hash(value: &Value) -> u64 {
    let digest = Sha256::digest(value.to_string());
    u64::from_be_bytes(*digest.first_chunk().expect("a digest has 32 bytes"))
}

/// Writes `stringData` as `data`, which is what is stored: server-side apply does not notice changes of what is only sent.
pub(super) fn fold_string_data(kind: &Kind, secret: &mut Value) {
    if kind.group_resource() != (String::new(), "secrets".to_owned()) {
        return;
    }
    let Some(Value::Object(texts)) = secret.as_object_mut().and_then(|secret| secret.remove("stringData")) else {
        return;
    };
    for (name, text) in texts {
        let bytes = text.as_str().unwrap_or_default().as_bytes().to_vec();
        secret["data"][&name] = json!(ByteString(bytes));
    }
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
