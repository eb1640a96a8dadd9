//! Where an object is: `"ada"` is in namespace `default`, `"prod/ada"` in `prod`; cluster-scoped kinds have a name only.

use kube::{
    Api, Client, Resource,
    api::{ApiResource, DynamicObject},
    core::NamespaceResourceScope,
};
use std::any::TypeId;

/// The place of one object.
pub(crate) struct Place {
    pub(crate) namespace: Option<String>,
    pub(crate) name: String,
}

impl Place {
    /// Reads `name` or `namespace/name` as the kind's scope asks.
    pub(crate) fn of<K: Resource<DynamicType = ()>>(text: &str) -> Place
    where
        K::Scope: 'static,
    {
        match text.split_once('/') {
            Some((namespace, name)) if is_namespaced::<K>() => {
                Place { namespace: Some(namespace.into()), name: name.into() }
            }
            _ if is_namespaced::<K>() => Place { namespace: Some("default".into()), name: text.into() },
            _ => Place { namespace: None, name: text.into() },
        }
    }

    /// The kind and place, as messages name them: `ConfigMap default/ada`.
    pub(crate) fn describe<K: Resource<DynamicType = ()>>(&self) -> String {
        let kind = K::kind(&());
        match &self.namespace {
            Some(namespace) => format!("{kind} {namespace}/{}", self.name),
            None => format!("{kind} {}", self.name),
        }
    }
}

/// The API of a kind in a namespace, whatever the kind's scope: objects are parsed where they are used.
pub(crate) fn api<K: Resource<DynamicType = ()>>(client: Client, namespace: Option<&str>) -> Api<DynamicObject> {
    let resource = ApiResource::erase::<K>(&());
    match namespace {
        Some(namespace) => Api::namespaced_with(client, namespace, &resource),
        None => Api::all_with(client, &resource),
    }
}

/// Whether objects of the kind live in a namespace.
pub(crate) fn is_namespaced<K: Resource<DynamicType = ()>>() -> bool
where
    K::Scope: 'static,
{
    TypeId::of::<K::Scope>() == TypeId::of::<NamespaceResourceScope>()
}
