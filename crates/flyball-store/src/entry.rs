//! What readers and watchers get.

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
    /// The revision at which the key came into being.
    pub created: u64,
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
    /// What was there before.
    pub previous: Option<Entry>,
    /// Whether the key came into being.
    pub created: bool,
}
