//! Which kinds are served: the built-in table, plus one entry for each served version of each custom resource.
//! Readers take a [`Served`] and keep it for a whole request; a change makes a new one.

pub(crate) mod allocate;
pub(crate) mod convert;
pub(crate) mod field_manager;
pub mod object;
pub(crate) mod prepare;
pub(crate) mod present;
pub mod strategy;
pub(crate) mod warn;

use crate::registry::strategy::Strategy;
use bytes::Bytes;
use flyball_schema::crd::Structural;
use flyball_schema::kinds;
use flyball_schema::print::{CustomColumn, Printer};
use flyball_schema::resource::Resource;
use flyball_schema::schema::{Node, SchemaId, Schemas};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, RwLock};
use tokio::sync::watch;

/// The kinds served now.
pub struct Registry {
    served: RwLock<Arc<Served>>,
    changes: watch::Sender<u64>,
}

/// The kinds served at one moment.
#[derive(Default)]
pub struct Served {
    /// Counts the changes, so that documents made from it can be kept until it changes.
    pub number: u64,
    /// How many kinds are on their way out.
    ending: usize,
    kinds: BTreeMap<Path, Arc<Kind>>,
}

/// Group, version and plural name.
type Path = (Box<str>, Box<str>, Box<str>);

/// One kind in one version: what discovery says of it, its type, and where it came from.
pub struct Kind {
    /// What discovery says of it.
    pub resource: Resource,
    /// What its objects are like beyond their type.
    pub strategy: &'static Strategy,
    types: Types,
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
    /// The type of each version, served or not.
    pub versions: Arc<BTreeMap<String, Structural>>,
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
    /// Whether the definition is being deleted: the one thing that changes while its watches go on.
    pub terminating: Arc<AtomicBool>,
    /// The revision at which this version's schema took effect; objects written before are read through it again.
    pub since: u64,
    /// The schema as it was written, for OpenAPI.
    pub open_api_v3_schema: serde_json::Value,
}

impl CrdVersion {
    /// Whether the definition is being deleted.
    pub fn is_terminating(&self) -> bool {
        self.terminating.load(Ordering::Relaxed)
    }

    /// Notes whether the definition is being deleted.
    pub fn set_terminating(&self, terminating: bool) {
        self.terminating.store(terminating, Ordering::Relaxed);
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

/// The arena that holds a kind's type.
enum Types {
    BuiltIn(&'static Schemas),
    Custom(Schemas),
}

impl Kind {
    /// A built-in kind of the table.
    pub fn built_in(resource: Resource) -> Kind {
        let types = Types::BuiltIn(&kinds::builtin().schemas);
        let root = resource.schema;
        let strategy = strategy::of(&resource.group, &resource.plural);
        let head = object::head(&resource.api_version(), &resource.kind);
        Kind { resource, strategy, types, root, head, custom: None }
    }

    /// One version of a custom resource.
    pub fn custom(resource: Resource, custom: CrdVersion) -> Kind {
        let structural = custom.versions.get(&*resource.version).cloned().unwrap_or_else(Structural::anything);
        let (types, root) = (Types::Custom(structural.schemas), structural.root);
        let head = object::head(&resource.api_version(), &resource.kind);
        Kind {
            resource,
            strategy: &strategy::CUSTOM,
            types,
            root: Some(root),
            head,
            custom: Some(custom),
        }
    }

    /// The type of its objects, ready to be walked; none for the few kinds that have no objects.
    pub fn node(&self) -> Option<Node<'_>> {
        self.root.map(|root| self.schemas().node(root))
    }

    /// The arena that holds its type.
    pub fn schemas(&self) -> &Schemas {
        match &self.types {
            Types::BuiltIn(schemas) => schemas,
            Types::Custom(schemas) => schemas,
        }
    }

    /// Whether it is that resource, in whatever version.
    pub fn is(&self, group: &str, plural: &str) -> bool {
        *self.resource.group == *group && *self.resource.plural == *plural
    }

    /// Whether selectors may name the namespace of its objects.
    pub(crate) fn selects_namespace(&self) -> bool {
        self.resource.namespaced || self.custom.is_none()
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
        let group = match (&*self.resource.group, &*self.resource.plural) {
            ("", _) | ("events.k8s.io", "events") => "core",
            (group, _) => group,
        };
        match namespace.filter(|_| self.resource.namespaced) {
            Some(namespace) => format!("{group}/{}/{namespace}/", self.resource.plural),
            None => format!("{group}/{}/", self.resource.plural),
        }
    }
}

impl Registry {
    /// A registry that serves these kinds.
    pub fn new(kinds: impl IntoIterator<Item = Kind>) -> Registry {
        let served = Served {
            number: 0,
            ending: 0,
            kinds: kinds.into_iter().map(|kind| (path(&kind.resource), Arc::new(kind))).collect(),
        };
        Registry {
            served: RwLock::new(Arc::new(served)),
            changes: watch::Sender::new(0),
        }
    }

    /// The kinds served now.
    pub fn served(&self) -> Arc<Served> {
        self.served.read().expect("no panic while held").clone()
    }

    /// Serves these custom resources beside the built-in kinds, and no others.
    pub fn replace_custom(&self, kinds: impl IntoIterator<Item = Arc<Kind>>) {
        let mut served = self.served.write().expect("no panic while held");
        let kinds: Vec<Arc<Kind>> = kinds.into_iter().collect();
        let before: Vec<&Arc<Kind>> = served.kinds().filter(|kind| kind.custom.is_some()).collect();
        let is_same = |kind: &&Arc<Kind>| kinds.iter().any(|other| Arc::ptr_eq(kind, other));
        let ending = kinds
            .iter()
            .filter_map(|kind| kind.custom.as_ref())
            .filter(|it| it.is_terminating())
            .count();
        if before.len() == kinds.len() && before.iter().all(is_same) && served.ending == ending {
            return;
        }
        let number = served.number + 1;
        let built_in = served.kinds().filter(|kind| kind.custom.is_none()).cloned();
        let kinds = built_in.chain(kinds).map(|kind| (path(&kind.resource), kind)).collect();
        *served = Arc::new(Served { number, kinds, ending });
        drop(served);
        self.changes.send_replace(number);
    }

    /// Sees each change of what is served, as [`Served::number`].
    pub fn changes(&self) -> watch::Receiver<u64> {
        self.changes.subscribe()
    }
}

impl Served {
    /// The kind at a path.
    pub fn find(&self, group: &str, version: &str, plural: &str) -> Option<&Arc<Kind>> {
        self.kinds.get(&(group.into(), version.into(), plural.into()))
    }

    /// Every kind, sorted by group, version and plural name.
    pub fn kinds(&self) -> impl Iterator<Item = &Arc<Kind>> {
        self.kinds.values()
    }
}

fn path(resource: &Resource) -> Path {
    (resource.group.clone(), resource.version.clone(), resource.plural.clone())
}
