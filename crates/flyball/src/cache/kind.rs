//! A kind with its Rust type erased: where its objects are served, and whether they live in namespaces.

use crate::Selection;
use kube::{
    Resource,
    api::{ApiResource, DynamicObject},
    core::{ClusterResourceScope, NamespaceResourceScope},
};
use std::any::TypeId;

/// What an operator knows of a kind at run time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Kind {
    pub(crate) resource: ApiResource,
    pub(crate) scope: Scope,
    pub(crate) form: Form,
    /// Which of its objects are asked for, and what is kept of them.
    pub(crate) selection: Selection,
    /// Whether it is known at run time only, and so has no Rust type.
    pub(crate) dynamic: bool,
    /// Whether it may not be installed.
    pub(crate) optional: bool,
}

/// Where the objects of a kind live.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Scope {
    Namespaced,
    Cluster,
    /// A kind that is known at run time only.
    Unknown,
}

/// How much of each object is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Form {
    Metadata,
    Whole,
}

/// What tells two kinds apart: `apps/v1` and `deployments`.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct KindId {
    pub(crate) api_version: String,
    pub(crate) plural: String,
}

impl KindId {
    /// The group, which is empty for the core kinds.
    pub(crate) fn group(&self) -> &str {
        self.api_version.rsplit_once('/').map_or("", |(group, _)| group)
    }
}

impl Kind {
    pub(crate) fn of<K>() -> Kind
    where
        K: Resource<DynamicType = (), Scope: 'static>,
    {
        Kind::new::<K>(ApiResource::erase::<K>(&()))
    }

    pub(crate) fn new<K>(resource: ApiResource) -> Kind
    where
        K: Resource<Scope: 'static>,
    {
        let scope = match TypeId::of::<K::Scope>() {
            id if id == TypeId::of::<NamespaceResourceScope>() => Scope::Namespaced,
            id if id == TypeId::of::<ClusterResourceScope>() => Scope::Cluster,
            _ => Scope::Unknown,
        };
        let form = if K::metadata_api() { Form::Metadata } else { Form::Whole };
        let dynamic = TypeId::of::<K::DynamicType>() != TypeId::of::<()>();
        Kind {
            resource,
            scope,
            form,
            selection: Selection::default(),
            dynamic,
            optional: false,
        }
    }

    pub(crate) fn metadata(self) -> Kind {
        Kind { form: Form::Metadata, ..self }
    }

    /// Whether all of an object is kept.
    pub(crate) fn is_kept_whole(&self) -> bool {
        self.form == Form::Whole && !self.selection.transforms()
    }

    /// Whether a change of what an author says is a new generation. Of PriorityClasses every one is the first
    /// (`pkg/registry/scheduling/priorityclass/strategy.go`, `PrepareForUpdate`).
    pub(crate) fn counts_generations(&self) -> bool {
        (self.resource.group.as_str(), self.resource.plural.as_str()) != ("scheduling.k8s.io", "priorityclasses")
    }

    /// Whether both are the same resource, in whichever version.
    pub(crate) fn is_same_resource(&self, other: &Kind) -> bool {
        self.resource.group == other.resource.group && self.resource.plural == other.resource.plural
    }

    /// What it is in whichever version.
    pub(crate) fn group_resource(&self) -> (String, String) {
        (self.resource.group.clone(), self.resource.plural.clone())
    }

    pub(crate) fn id(&self) -> KindId {
        KindId {
            api_version: self.resource.api_version.clone(),
            plural: self.resource.plural.clone(),
        }
    }

    /// The line that declares what a controller does with the kind, as in `.owns::<ConfigMap>()`.
    pub(crate) fn declaration(&self, method: &str, arguments: &str) -> String {
        match self.dynamic {
            true => format!(".dynamic(&resource, |kind| kind.{method}({arguments}))"),
            false => format!(".{method}::<{}>({arguments})", self.name()),
        }
    }

    /// The kind's name, as in manifests.
    pub(crate) fn name(&self) -> &str {
        &self.resource.kind
    }

    /// The collection's path, in one namespace or in all.
    pub(crate) fn path(&self, namespace: Option<&str>) -> String {
        DynamicObject::url_path(&self.resource, namespace)
    }
}
