//! The objects of one kind in a test's cluster, and the verbs of a test. A verb that fails panics with the caller's line, the
//! object, and what the API server answered.

use crate::{Cluster, wait};
use http::StatusCode;
use kube::{
    Api, Resource,
    api::{ApiResource, DeleteParams, DynamicObject, ListParams, Patch, PatchParams, PostParams},
    core::{NamespaceResourceScope, Status},
};
use serde::{Serialize, de::DeserializeOwned};
use serde_json::Value;
use std::{any::TypeId, fmt::Debug, marker::PhantomData, panic::Location};

/// The objects of one kind: of a Rust type by [`Cluster::objects`], or known at run time only by [`Cluster::dynamic`].
///
/// The verbs of [`Cluster`] are short for those of this type. A name is `"ada"`, in namespace `default` unless
/// [`Objects::namespace`] says otherwise, or `"prod/ada"`.
#[derive(Clone, Debug)]
pub struct Objects<'a, K> {
    pub(crate) cluster: &'a Cluster,
    resource: ApiResource,
    within: Within,
    object: PhantomData<fn() -> K>,
}

/// Which objects of a kind are meant.
#[derive(Clone, Debug)]
enum Within {
    /// The kind is cluster-scoped.
    Cluster,
    Namespace(String),
    /// For lists; a name is in `default`.
    AllNamespaces,
}

/// One object's place, and the API that serves it.
pub(crate) struct Place {
    pub(crate) api: Api<DynamicObject>,
    pub(crate) namespace: Option<String>,
    pub(crate) name: String,
    /// As messages name it: `ConfigMap default/ada`.
    pub(crate) what: String,
}

impl<'a, K> Objects<'a, K> {
    pub(crate) fn of_kind(cluster: &'a Cluster, resource: ApiResource) -> Objects<'a, K> {
        let within = Within::Namespace("default".into());
        Objects { cluster, resource, within, object: PhantomData }
    }

    pub(crate) fn of_type(cluster: &'a Cluster) -> Objects<'a, K>
    where
        K: Resource<DynamicType = (), Scope: 'static>,
    {
        let objects = Objects::of_kind(cluster, ApiResource::erase::<K>(&()));
        match TypeId::of::<K::Scope>() == TypeId::of::<NamespaceResourceScope>() {
            true => objects,
            false => objects.cluster_wide(),
        }
    }

    /// Those of one namespace. A name alone then means that namespace.
    pub fn namespace(self, namespace: impl Into<String>) -> Objects<'a, K> {
        Objects { within: Within::Namespace(namespace.into()), ..self }
    }

    /// Those of all namespaces, for [`Objects::list`].
    pub fn all_namespaces(self) -> Objects<'a, K> {
        Objects { within: Within::AllNamespaces, ..self }
    }

    /// Says that a kind known at run time only is cluster-scoped. [`Cluster::dynamic`] takes it for namespaced otherwise.
    pub fn cluster_wide(self) -> Objects<'a, K> {
        Objects { within: Within::Cluster, ..self }
    }

    pub(crate) fn place(&self, text: &str) -> Place {
        let (namespace, name) = match (&self.within, text.split_once('/')) {
            (Within::Cluster, _) => (None, text),
            (_, Some((namespace, name))) => (Some(namespace), name),
            (Within::Namespace(namespace), None) => (Some(namespace.as_str()), text),
            (Within::AllNamespaces, None) => (Some("default"), text),
        };
        let (client, kind) = (self.cluster.client(), &self.resource.kind);
        let (api, what) = match namespace {
            Some(namespace) => {
                let api = Api::namespaced_with(client, namespace, &self.resource);
                (api, format!("{kind} {namespace}/{name}"))
            }
            None => (Api::all_with(client, &self.resource), format!("{kind} {name}")),
        };
        Place {
            api,
            namespace: namespace.map(Into::into),
            name: name.into(),
            what,
        }
    }

    pub(crate) fn kind(&self) -> &str {
        &self.resource.kind
    }

    /// Deletes an object; [`Objects::until_gone`] waits until it is gone.
    #[track_caller]
    pub fn delete(self, name: &str) -> impl Future<Output = ()> {
        let (caller, place) = (Location::caller(), self.place(name));
        async move {
            let deleted = place.api.delete(&place.name, &DeleteParams::default()).await;
            done(caller, "delete", &place.what, deleted);
        }
    }
}

impl<'a, K: DeserializeOwned> Objects<'a, K> {
    /// The object of that name.
    #[track_caller]
    pub fn get(self, name: &str) -> impl Future<Output = K> {
        let (caller, place) = (Location::caller(), self.place(name));
        async move { parse(caller, "get", &place.what, place.api.get(&place.name).await) }
    }

    /// All objects, in the order of namespace and name.
    #[track_caller]
    pub fn list(self) -> impl Future<Output = Vec<K>> {
        let (caller, client) = (Location::caller(), self.cluster.client());
        async move {
            let api: Api<DynamicObject> = match &self.within {
                Within::Namespace(namespace) => Api::namespaced_with(client, namespace, &self.resource),
                Within::Cluster | Within::AllNamespaces => Api::all_with(client, &self.resource),
            };
            let kind = &self.resource.kind;
            let found = done(caller, "list", kind, api.list(&ListParams::default()).await);
            found.into_iter().map(|object| parse(caller, "list", kind, Ok(object))).collect()
        }
    }

    /// Patches an object.
    #[track_caller]
    pub fn patch(self, name: &str, patch: Patch<impl Serialize + Debug>) -> impl Future<Output = K> {
        let (caller, place) = (Location::caller(), self.place(name));
        async move {
            let patched = place.api.patch(&place.name, &manager(&patch), &patch).await;
            parse(caller, "patch", &place.what, patched)
        }
    }

    /// Patches an object's status.
    #[track_caller]
    pub fn patch_status(self, name: &str, patch: Patch<impl Serialize + Debug>) -> impl Future<Output = K> {
        let (caller, place) = (Location::caller(), self.place(name));
        async move {
            let patched = place.api.patch_status(&place.name, &manager(&patch), &patch).await;
            parse(caller, "patch the status of", &place.what, patched)
        }
    }

    /// Waits until the object exists and satisfies the condition.
    #[track_caller]
    pub fn until(self, name: &str, condition: impl Fn(&K) -> bool) -> impl Future<Output = K> {
        let (caller, place) = (Location::caller(), self.place(name));
        let satisfied = move |object: Option<K>| object.filter(|object| condition(object));
        wait::until(caller, self.cluster, place, satisfied)
    }

    /// Waits until there is no object of that name.
    #[track_caller]
    pub fn until_gone(self, name: &str) -> impl Future<Output = ()> {
        let (caller, place) = (Location::caller(), self.place(name));
        wait::until(caller, self.cluster, place, |object: Option<K>| object.is_none().then_some(()))
    }
}

impl<'a, K: Serialize + DeserializeOwned> Objects<'a, K> {
    /// Creates an object.
    #[track_caller]
    pub fn create(self, object: K) -> impl Future<Output = K> {
        let caller = Location::caller();
        let (place, object) = self.located(object);
        async move {
            let created = place.api.create(&PostParams::default(), &object).await;
            parse(caller, "create", &place.what, created)
        }
    }

    /// Applies an object with server-side apply, as field manager `test`, by force.
    ///
    /// It sets the fields that the object has. A field that [`Objects::create`] has set and this leaves out stays, since another
    /// manager owns it: use [`Objects::edit`] to take it away.
    #[track_caller]
    pub fn apply(self, object: K) -> impl Future<Output = K> {
        let caller = Location::caller();
        let (place, object) = self.located(object);
        async move {
            let patch = Patch::Apply(&object);
            let applied = place.api.patch(&place.name, &manager(&patch), &patch).await;
            parse(caller, "apply", &place.what, applied)
        }
    }

    /// Changes an object, as `kubectl edit` does: reads it, lets `change` change it, and replaces it. If it was written by others
    /// meanwhile, all of that is done again.
    ///
    /// It does not change the status where that is a subresource: see [`Objects::patch_status`].
    #[track_caller]
    pub fn edit(self, name: &str, mut change: impl FnMut(&mut K)) -> impl Future<Output = K> {
        let (caller, place) = (Location::caller(), self.place(name));
        async move {
            loop {
                let mut object = parse(caller, "edit", &place.what, place.api.get(&place.name).await);
                change(&mut object);
                let (_, object) = self.located(object);
                match place.api.replace(&place.name, &PostParams::default(), &object).await {
                    Err(kube::Error::Api(status)) if is_conflict(&status) => {}
                    replaced => return parse(caller, "edit", &place.what, replaced),
                }
            }
        }
    }

    /// The object as the API takes it, and where it belongs.
    fn located(&self, object: K) -> (Place, DynamicObject) {
        let mut value = serde_json::to_value(object).expect("an object is JSON");
        value["apiVersion"] = self.resource.api_version.clone().into();
        value["kind"] = self.resource.kind.clone().into();
        let object: DynamicObject = serde_json::from_value(value).expect("an object has metadata");
        let meta = &object.metadata;
        let name = meta.name.as_deref().or(meta.generate_name.as_deref()).unwrap_or_default();
        let place = match &meta.namespace {
            Some(namespace) => self.place(&format!("{namespace}/{name}")),
            None => self.place(name),
        };
        (place, object)
    }
}

/// The field manager of a patch; an apply is by force.
fn manager<P: Serialize>(patch: &Patch<P>) -> PatchParams {
    match patch {
        Patch::Apply(_) => PatchParams::apply("test").force(),
        _ => PatchParams::default(),
    }
}

fn is_conflict(status: &Status) -> bool {
    status.code == StatusCode::CONFLICT.as_u16()
}

pub(crate) fn done<T>(caller: &Location<'_>, verb: &str, what: &str, answer: kube::Result<T>) -> T {
    answer.unwrap_or_else(|error| panic!("{caller}: {verb} {what}: {}", reason(&error)))
}

fn parse<K: DeserializeOwned>(caller: &Location<'_>, verb: &str, what: &str, answer: kube::Result<DynamicObject>) -> K {
    let object = done(caller, verb, what, answer);
    decode(&object).unwrap_or_else(|error| panic!("{caller}: {verb} {what}: the answer does not decode: {error}"))
}

pub(crate) fn decode<K: DeserializeOwned>(object: &DynamicObject) -> serde_json::Result<K> {
    let value: Value = serde_json::to_value(object)?;
    serde_json::from_value(value)
}

/// The API server's message, without the client's wording around it.
fn reason(error: &kube::Error) -> String {
    match error {
        kube::Error::Api(status) => status.message.clone(),
        error => error.to_string(),
    }
}
