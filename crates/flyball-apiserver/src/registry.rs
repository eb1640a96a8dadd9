//! Kinds: the built-in table, plus one for each served version of each custom resource. A request keeps the
//! [`Served`] that it was routed with; a change makes a new one.

pub(crate) mod conversion;
pub(crate) mod deletion;
pub(crate) mod field_manager;
pub(crate) mod generic;
pub mod object;
mod served;
pub(crate) mod service_allocator;
pub(crate) mod strategy;
pub(crate) mod warn;

use crate::crd::CrdSchemas;
use crate::kinds::custom_resource::CUSTOM_RESOURCE;
use crate::kinds::spec::{ResourceSpec, SubresourceEndpoint};
use crate::registry::conversion::webhook::ConversionWebhook;
use bytes::Bytes;
use flyball_schema::crd::{Structural, Validator};
use flyball_schema::kinds;
use flyball_schema::print::{CustomColumn, Printer};
use flyball_schema::resource::Resource;
use flyball_schema::schema::{Node, SchemaId};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use tokio::sync::watch;

pub(crate) use served::version_priority;
pub use served::{Group, Registry, Served, Version};

/// One kind in one version: what discovery says of it, its type, and where it came from.
pub struct Kind {
    /// What discovery says of it.
    pub resource: Resource,
    /// Its strategy: all that the server knows of it beyond its type.
    pub spec: &'static ResourceSpec,
    root: Option<SchemaId>,
    head: String,
    /// The definition it came from; none for a built-in kind.
    pub custom: Option<CrdVersion>,
}

/// What a CustomResourceDefinition says of one version, beyond its type.
#[derive(Clone, Debug, Default)]
pub struct CrdVersion {
    /// The definition's name, such as `greetings.example.dev`.
    pub name: String,
    /// The definition's uid.
    pub uid: String,
    /// The version that objects are stored in.
    pub storage_version: String,
    /// How often the definition's `spec` changed.
    pub generation: i64,
    /// The schemas of all versions, served or not.
    pub(crate) schemas: Arc<CrdSchemas>,
    /// The columns of `kubectl get`, as in `additionalPrinterColumns`.
    pub columns: Vec<CustomColumn>,
    /// The JSON paths that field selectors may name.
    pub selectable_fields: Vec<String>,
    /// Where `scale` finds its numbers, if there is such a subresource.
    pub scale: Option<Scale>,
    /// Whether there is a `status` subresource.
    pub status: bool,
    /// What the Warning header says of a deprecated version.
    pub deprecation_warning: Option<String>,
    /// The webhook that converts between versions; none if only `apiVersion` changes.
    pub(crate) conversion: Option<Arc<ConversionWebhook>>,
    /// Whether the definition is being deleted; watches continue when this changes.
    pub(crate) terminating: Arc<AtomicBool>,
    /// Whether the definition was removed or replaced, which ends watches.
    pub(crate) withdrawn: watch::Sender<bool>,
    /// The revision at which the schemas took effect; objects written before are pruned and defaulted on every read.
    pub since: u64,
    /// The stored definition that these schemas come from, which every commit of a served object checks.
    pub(crate) definition: Option<Arc<StoredDefinition>>,
}

/// A definition as the store has it.
#[derive(Debug, Default)]
pub(crate) struct StoredDefinition {
    /// Its key.
    pub key: Bytes,
    /// Its latest known revision with the same schemas: changes of its status raise it.
    pub revision: AtomicU64,
}

impl CrdVersion {
    /// Whether the definition is being deleted.
    pub fn is_terminating(&self) -> bool {
        self.terminating.load(Ordering::Relaxed)
    }

    /// Records whether the definition is being deleted; returns whether that is a change.
    pub(crate) fn set_terminating(&self, terminating: bool) -> bool {
        self.terminating.swap(terminating, Ordering::Relaxed) != terminating
    }

    /// Whether this version is not served any more, or another schema has taken its place.
    pub(crate) fn is_withdrawn(&self) -> bool {
        *self.withdrawn.borrow()
    }

    /// Ends the watches of this version: it is not served any more, or another schema has taken its place.
    pub(crate) fn withdraw(&self) {
        self.withdrawn.send_replace(true);
    }
}

/// Where a custom resource keeps what `scale` shows.
#[derive(Clone, Debug)]
#[allow(missing_docs, reason = "each is the field of its name")]
pub struct Scale {
    pub spec_replicas_path: String,
    pub status_replicas_path: String,
    pub label_selector_path: Option<String>,
}

impl Kind {
    /// A built-in kind of the table.
    pub fn built_in(resource: Resource) -> Kind {
        let root = resource.schema;
        let spec = crate::kinds::find(&resource.group, &resource.plural).expect("every built-in kind has a spec");
        let head = object::head(&resource.api_version(), &resource.kind);
        Kind { resource, spec, root, head, custom: None }
    }

    /// One version of a custom resource.
    pub fn custom(resource: Resource, custom: CrdVersion) -> Kind {
        let head = object::head(&resource.api_version(), &resource.kind);
        Kind {
            resource,
            spec: &CUSTOM_RESOURCE,
            root: None,
            head,
            custom: Some(custom),
        }
    }

    /// The type of its objects, ready to be walked; none for the few kinds that have no objects.
    pub fn node(&self) -> Option<Node<'_>> {
        match &self.custom {
            Some(custom) => custom.schemas.version(&self.resource.version).map(Structural::node),
            None => self.root.map(|root| kinds::builtin().schemas.node(root)),
        }
    }

    /// The validation rules of a custom kind, if it has any.
    pub(crate) fn validator(&self) -> Option<&Validator> {
        self.custom.as_ref()?.schemas.version(&self.resource.version)?.validator.as_deref()
    }

    /// Whether it is that kind, in whatever version.
    pub(crate) fn is(&self, spec: &'static ResourceSpec) -> bool {
        std::ptr::eq(self.spec, spec)
    }

    /// Whether selectors may name the namespace of its objects.
    pub(crate) fn selects_namespace(&self) -> bool {
        self.resource.namespaced || (self.custom.is_none() && self.spec.fields.is_empty())
    }

    /// The handler of a subresource.
    pub(crate) fn subresource_endpoint(&self, name: &str) -> SubresourceEndpoint {
        let handler = self.spec.subresources.iter().find(|(its_name, _)| *its_name == name);
        handler.map_or(SubresourceEndpoint::Unsupported, |(_, handler)| *handler)
    }

    /// What prints its objects in a `Table`.
    pub fn printer(&self) -> Printer {
        match &self.custom {
            Some(custom) => Printer::custom(&custom.columns),
            None => Printer::built_in(&self.resource.group, &self.resource.kind),
        }
    }

    /// How each of its objects begins when encoded.
    pub fn head(&self) -> &str {
        &self.head
    }

    /// Whether its objects have a `status` that is written apart.
    pub fn has_status(&self) -> bool {
        self.resource.subresource("status").is_some()
    }

    /// The key under which the store keeps an object.
    pub fn key(&self, namespace: Option<&str>, name: &str) -> Bytes {
        let mut key = self.key_prefix(namespace);
        key.push_str(name);
        key.into()
    }

    /// What the keys of its objects, all or those of one namespace, begin with.
    pub fn prefix(&self, namespace: Option<&str>) -> Bytes {
        self.key_prefix(namespace).into()
    }

    fn key_prefix(&self, namespace: Option<&str>) -> String {
        let own = (&*self.resource.group, &*self.resource.plural);
        let (group, plural) = self.spec.stored_as.unwrap_or(own);
        let group = if group.is_empty() { "core" } else { group };
        match namespace.filter(|_| self.resource.namespaced) {
            Some(namespace) => format!("{group}/{plural}/{namespace}/"),
            None => format!("{group}/{plural}/"),
        }
    }
}
