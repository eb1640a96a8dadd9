//! Which object is meant: a namespace and a name.

use crate::cache::ReadError;
use crate::cache::kind::{Kind, Scope};
use kube::Resource;
use std::{cmp::Ordering, fmt, sync::Arc};

/// The namespace and name of an object, or only the name of one that belongs to no namespace.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Key {
    /// `namespace/name`, or the name alone: one piece of memory, which all clones share.
    text: Arc<str>,
    /// The length of the namespace; there is none if it is 0.
    namespace: u32,
}

impl Key {
    /// Names an object in a namespace.
    pub fn namespaced(namespace: impl AsRef<str>, name: impl AsRef<str>) -> Key {
        Key::new(Some(namespace.as_ref()), name.as_ref())
    }

    /// Names an object of a cluster-scoped kind.
    pub fn cluster(name: impl Into<Arc<str>>) -> Key {
        Key { text: name.into(), namespace: 0 }
    }

    /// The key of an object that the API server has named.
    pub fn of<K: Resource>(object: &K) -> Key {
        let meta = object.meta();
        Key::new(meta.namespace.as_deref(), meta.name.as_deref().unwrap_or_default())
    }

    pub(crate) fn new(namespace: Option<&str>, name: &str) -> Key {
        match namespace {
            None | Some("") => Key::cluster(name),
            Some(namespace) => Key {
                namespace: u32::try_from(namespace.len()).expect("a namespace has 63 characters at most"),
                text: [namespace, "/", name].concat().into(),
            },
        }
    }

    /// The namespace, unless the kind is cluster-scoped.
    pub fn namespace(&self) -> Option<&str> {
        let length = self.namespace as usize;
        (length > 0).then(|| &self.text[..length])
    }

    /// The name.
    pub fn name(&self) -> &str {
        match self.namespace as usize {
            0 => &self.text,
            length => &self.text[length + 1..],
        }
    }

    /// Refuses a key that no object of a kind can have.
    pub(crate) fn for_kind(self, kind: &Kind) -> Result<Key, ReadError> {
        match (kind.scope, self.namespace()) {
            (Scope::Namespaced, None) => {
                Err(ReadError::NoNamespace { kind: kind.name().into(), name: self.name().into() })
            }
            (Scope::Cluster, Some(_)) => Err(ReadError::Namespaced { kind: kind.name().into(), key: self }),
            _ => Ok(self),
        }
    }

    pub(crate) fn in_namespace(self, namespace: Option<&str>) -> Key {
        match self.namespace() {
            Some(_) => self,
            None => Key::new(namespace, &self.text),
        }
    }
}

/// By namespace, then by name; what belongs to no namespace comes first.
impl Ord for Key {
    fn cmp(&self, other: &Key) -> Ordering {
        (self.namespace(), self.name()).cmp(&(other.namespace(), other.name()))
    }
}

impl PartialOrd for Key {
    fn partial_cmp(&self, other: &Key) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// A name alone: of a cluster-scoped object, or beside the object that is being reconciled.
impl From<&str> for Key {
    fn from(name: &str) -> Key {
        Key::cluster(name)
    }
}

impl From<&String> for Key {
    fn from(name: &String) -> Key {
        Key::cluster(name.as_str())
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
        f.write_str(&self.text)
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_namespace_and_a_name_are_told_apart() {
        let key = Key::namespaced("default", "ada");
        assert_eq!(
            (key.namespace(), key.name(), key.to_string().as_str()),
            (Some("default"), "ada", "default/ada")
        );
        let node = Key::cluster("ada");
        assert_eq!((node.namespace(), node.name(), node.to_string().as_str()), (None, "ada", "ada"));
        assert_ne!(key, node);
        assert_eq!(node.clone().in_namespace(Some("default")), key);
        assert_eq!(key.clone().in_namespace(Some("other")), key);
        assert_eq!(node.clone().in_namespace(None), node);
    }

    #[test]
    fn namespaces_stay_together() {
        let mut keys = ["a-b/c", "a/z", "b", "a/b"].map(|text| match text.split_once('/') {
            Some((namespace, name)) => Key::namespaced(namespace, name),
            None => Key::cluster(text),
        });
        keys.sort();
        assert_eq!(keys.map(|key| key.to_string()), ["b", "a/b", "a/z", "a-b/c"]);
    }
}
