//! `Context::apply`: server-side apply of a child, with its owner's name, namespace and reference.

use super::{Context, attempt, unset};
use crate::{
    Error, Key, Result,
    kind::{Kind, Scope},
    object::Object,
};
use kube::{
    Resource,
    api::{Patch, PatchParams, Request},
};
use serde::{Serialize, de::DeserializeOwned};
use serde_json::{Value, json};
use std::hash::{DefaultHasher, Hash, Hasher};

/// What an apply did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Applied {
    /// The child was not there.
    Created,
    /// The child was changed, or might have been: its version before was not known.
    Configured,
    /// The child was as it should be. Nothing was written.
    Unchanged,
}

/// Why a child cannot belong to its owner.
#[derive(Debug, thiserror::Error)]
enum Misfit {
    #[error("apply {0}: a child must be an object with metadata")]
    NoObject(String),
    #[error("apply {kind} {key}: a child lives in its owner's namespace, which is {owner}")]
    OtherNamespace { kind: String, key: Key, owner: String },
    #[error("apply {kind} {key}: a cluster-scoped object cannot belong to one in a namespace")]
    Cluster { kind: String, key: Key },
    #[error("apply {kind} {key}: its owner is cluster-scoped, so it needs a namespace of its own")]
    NoNamespace { kind: String, key: Key },
    #[error("apply {kind} {key}: an object cannot be its own child")]
    Itself { kind: String, key: Key },
}

impl Context {
    /// Makes `child` exist as given, owned by the object being reconciled.
    ///
    /// A child without name or namespace takes its owner's. It is applied server-side, by force, with the operator's name
    /// as field manager: what others set beside it stays, what was applied before and is not any more goes. Nothing is
    /// sent if the same was applied before and the child has not changed since.
    ///
    /// Fields that Rust's type of a built-in kind cannot leave out are not sent while they are empty.
    pub async fn apply<C>(&self, child: C) -> Result<Applied>
    where
        C: Resource<DynamicType = (), Scope: 'static> + Serialize + DeserializeOwned,
    {
        let kind = Kind::of::<C>();
        let (key, child) = self.adopt(&kind, serde_json::to_value(child)?).map_err(Error::permanent)?;
        let hash = hash(&child);
        let mirror = self.operator.cache.mirror(&kind.id());
        let before = mirror.as_ref().and_then(|mirror| mirror.get(&key));
        if let (Some(mirror), Some(before)) = (&mirror, &before)
            && mirror.notes(&key).applied == Some((hash, before.meta().fingerprint()))
        {
            return Ok(Applied::Unchanged);
        }
        let child = if unset::may_be_dropped(&kind) {
            unset::drop_from::<C>(child)
        } else {
            child
        };
        let (created, after) = self.send(&kind, &key, &child).await?;
        if let Some(mirror) = mirror {
            mirror.note(&key, |notes| notes.applied = Some((hash, after.meta().fingerprint())));
        }
        let unchanged = before.is_some_and(|before| before.uid == after.uid && before.version == after.version);
        Ok(if created {
            Applied::Created
        } else if unchanged {
            Applied::Unchanged
        } else {
            Applied::Configured
        })
    }

    async fn send(&self, kind: &Kind, key: &Key, child: &Value) -> Result<(bool, Object)> {
        let params = PatchParams::apply(&self.operator.name).force();
        let request = Request::new(kind.path(key.namespace())).patch(key.name(), &params, &Patch::Apply(child))?;
        let (created, text) = self.request(request).await.map_err(attempt("apply", kind, key))?;
        Ok((created, Object::parse(text)?))
    }

    /// Sends a write, and says whether it created something.
    pub(super) async fn request(&self, request: http::Request<Vec<u8>>) -> kube::Result<(bool, String)> {
        let response = self.operator.client.send(request.map(kube::client::Body::from)).await?;
        let created = response.status() == http::StatusCode::CREATED;
        let success = response.status().is_success();
        let body = response.into_body().collect_bytes().await?;
        let text = String::from_utf8(body.into()).map_err(kube::Error::FromUtf8)?;
        if success {
            Ok((created, text))
        } else {
            Err(refused(&text))
        }
    }

    fn adopt(&self, kind: &Kind, mut child: Value) -> Result<(Key, Value), Misfit> {
        let misfit = || Misfit::NoObject(kind.name().into());
        let root = child.as_object_mut().ok_or_else(misfit)?;
        root.insert("apiVersion".into(), kind.resource.api_version.clone().into());
        root.insert("kind".into(), kind.name().into());
        let metadata = root.entry("metadata").or_insert_with(|| json!({}));
        let metadata = metadata.as_object_mut().ok_or_else(misfit)?;
        let text = |field: Option<&Value>| field.and_then(Value::as_str).map(str::to_owned);
        let name = text(metadata.get("name")).unwrap_or_else(|| self.object.key.name().into());
        let key = self.place(kind, Key::from(name).in_namespace(text(metadata.get("namespace")).as_deref()))?;
        metadata.insert("name".into(), key.name().into());
        if let Some(namespace) = key.namespace() {
            metadata.insert("namespace".into(), namespace.into());
        }
        let owners = metadata.entry("ownerReferences").or_insert_with(|| json!([]));
        owners.as_array_mut().ok_or_else(misfit)?.push(self.owner_reference());
        without_nulls(&mut child);
        Ok((key, child))
    }

    /// Where a child goes, if it may go there: an owner is in the child's namespace, or in none.
    fn place(&self, kind: &Kind, key: Key) -> Result<Key, Misfit> {
        let (name, owner) = (kind.name().to_owned(), &self.object.key);
        let key = if kind.scope == Scope::Cluster {
            key
        } else {
            key.in_namespace(owner.namespace())
        };
        match (key.namespace(), owner.namespace()) {
            _ if key == *owner && kind.id() == self.kind().id() => Err(Misfit::Itself { kind: name, key }),
            (None, Some(_)) => Err(Misfit::Cluster { kind: name, key }),
            (None, None) if kind.scope == Scope::Namespaced => Err(Misfit::NoNamespace { kind: name, key }),
            (Some(child), Some(owner)) if child != owner => {
                Err(Misfit::OtherNamespace { owner: owner.to_owned(), kind: name, key })
            }
            _ => Ok(key),
        }
    }

    fn owner_reference(&self) -> Value {
        json!({
            "apiVersion": self.kind().resource.api_version,
            "kind": self.kind().name(),
            "name": self.object.key.name(),
            "uid": &*self.object.uid,
            "controller": true,
            "blockOwnerDeletion": true,
        })
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

fn refused(text: &str) -> kube::Error {
    let status =
        serde_json::from_str(text).unwrap_or_else(|_| kube::core::Status::failure(text, "Failed to parse error data"));
    kube::Error::Api(Box::new(status))
}
