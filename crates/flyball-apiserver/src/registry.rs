//! Which kinds are served: the built-in table, plus one entry for each served version of each custom resource.
//! Readers take a [`Served`] and keep it for a whole request; a change makes a new one.

use flyball_schema::resource::Resource;
use flyball_schema::schema::{Node, SchemaId, Schemas};
use std::collections::BTreeMap;
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
    kinds: BTreeMap<Path, Arc<Kind>>,
}

/// Group, version and plural name.
type Path = (Box<str>, Box<str>, Box<str>);

/// One kind in one version: what discovery says of it, its type, and where it came from.
pub struct Kind {
    /// What discovery says of it.
    pub resource: Resource,
    /// The arena that holds its type.
    pub schemas: Arc<Schemas>,
    /// The type of its objects.
    pub root: SchemaId,
    /// The definition it came from; none for a built-in kind.
    pub custom: Option<Custom>,
}

/// What a CustomResourceDefinition says of one version, beyond its type.
#[derive(Clone, Debug, Default)]
pub struct Custom {
    /// The definition's name, such as `greetings.example.dev`.
    pub name: String,
    /// The definition's uid.
    pub uid: String,
    /// The version that objects are stored in.
    pub storage_version: String,
    /// The columns of `kubectl get`, as in `additionalPrinterColumns`.
    pub columns: Vec<Column>,
    /// The JSON paths that field selectors may name.
    pub selectable_fields: Vec<String>,
    /// Where `scale` finds its numbers, if there is such a subresource.
    pub scale: Option<Scale>,
    /// Whether there is a `status` subresource.
    pub status: bool,
    /// What the Warning header says of a deprecated version.
    pub deprecation_warning: Option<String>,
    /// Whether the definition is being deleted.
    pub terminating: bool,
    /// The revision at which this version's schema took effect; objects written before are read through it again.
    pub since: u64,
    /// The schema as it was written, for OpenAPI.
    pub open_api_v3_schema: serde_json::Value,
}

/// One of a custom resource's `additionalPrinterColumns`.
#[derive(Clone, Debug)]
#[allow(missing_docs, reason = "each is the field of its name")]
pub struct Column {
    pub name: String,
    pub kind: String,
    pub format: String,
    pub description: String,
    pub priority: i64,
    pub json_path: String,
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
    /// The type of its objects, ready to be walked.
    pub fn node(&self) -> Node<'_> {
        self.schemas.node(self.root)
    }
}

impl Registry {
    /// A registry that serves these kinds.
    pub fn new(kinds: Vec<Kind>) -> Registry {
        let served = Served {
            number: 0,
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
