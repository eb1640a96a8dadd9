//! Which object is meant: a namespace and a name.

use kube::Resource;
use std::{fmt, sync::Arc};

/// The namespace and name of an object, or only the name of one that belongs to no namespace.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Key {
    namespace: Option<Arc<str>>,
    name: Arc<str>,
}

impl Key {
    /// Names an object in a namespace.
    pub fn namespaced(namespace: impl Into<Arc<str>>, name: impl Into<Arc<str>>) -> Key {
        Key { namespace: Some(namespace.into()), name: name.into() }
    }

    /// Names an object of a cluster-scoped kind.
    pub fn cluster(name: impl Into<Arc<str>>) -> Key {
        Key { namespace: None, name: name.into() }
    }

    /// The key of an object that the API server has named.
    pub fn of<K: Resource>(object: &K) -> Key {
        let meta = object.meta();
        let name = meta.name.as_deref().unwrap_or_default();
        Key {
            namespace: meta.namespace.as_deref().map(Arc::from),
            name: name.into(),
        }
    }

    /// The namespace, unless the kind is cluster-scoped.
    pub fn namespace(&self) -> Option<&str> {
        self.namespace.as_deref()
    }

    /// The name.
    pub fn name(&self) -> &str {
        &self.name
    }

    pub(crate) fn in_namespace(self, namespace: Option<&str>) -> Key {
        Key {
            namespace: self.namespace.or_else(|| namespace.map(Arc::from)),
            ..self
        }
    }
}

/// A name alone: of a cluster-scoped object, or beside the object that is being reconciled.
impl From<&str> for Key {
    fn from(name: &str) -> Key {
        Key::cluster(name)
    }
}

impl From<String> for Key {
    fn from(name: String) -> Key {
        Key::cluster(name)
    }
}

/// `namespace/name`, or the name alone.
impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(namespace) = &self.namespace {
            write!(f, "{namespace}/")?;
        }
        f.write_str(&self.name)
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}
