//! Entries, which reads return, and events, which watches return.

#[cfg(any(feature = "etcd", feature = "testing"))]
use crate::Value;
use bytes::Bytes;

/// A key with its value at some revision.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// The key.
    pub key: Bytes,
    /// The value, stamped with `revision` where its writer asked for that.
    pub value: Bytes,
    /// The revision of the last change.
    pub revision: u64,
    /// Where in `value` the decimal `revision` stands.
    pub revision_at: Option<usize>,
    /// The revision that created the key.
    pub created: u64,
}

impl Entry {
    /// The entry that a put makes.
    #[cfg(any(feature = "etcd", feature = "testing"))]
    pub(crate) fn stamped(key: Bytes, value: &Value, revision: u64, created: u64) -> Entry {
        let revision_at = value.revision_at;
        let value = match revision_at {
            Some(at) => stamp(&value.bytes[..at], revision, &value.bytes[at..]),
            None => value.bytes.clone(),
        };
        Entry { key, value, revision, revision_at, created }
    }

    /// The entry as it is last seen: stamped with the revision of its removal.
    pub(crate) fn removed_at(self, revision: u64) -> Entry {
        let value = match self.revision_at {
            Some(at) => {
                let after = at + self.revision.to_string().len();
                stamp(&self.value[..at], revision, &self.value[after..])
            }
            None => self.value,
        };
        Entry { value, revision, ..self }
    }
}

/// The bytes of a value with a revision in them.
pub(crate) fn stamp(before: &[u8], revision: u64, after: &[u8]) -> Bytes {
    [before, revision.to_string().as_bytes(), after].concat().into()
}

/// One change of one key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    /// The revision of the commit; several events of one commit share it.
    pub revision: u64,
    /// The key that changed.
    pub key: Bytes,
    /// The new value; `None` where the key was removed.
    pub value: Option<Bytes>,
    /// The new value, or the removed one stamped with the revision of its removal.
    pub last: Bytes,
    /// The entry before the change.
    pub previous: Option<Entry>,
    /// Whether the key was created.
    pub created: bool,
}
