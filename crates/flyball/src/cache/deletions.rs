//! What this process has deleted and the watch still speaks of. Until it reports the deletion, its news of such an object are old.

use crate::{Key, object::Object};
use std::collections::{HashMap, VecDeque};

/// More deletions than ever come between the API server's answer to one and our taking note of it.
const TOLD: usize = 1_024;

#[derive(Default)]
pub(super) struct Deletions {
    pending: HashMap<Key, Vec<Deletion>>,
    /// The uids that the watch reported as deleted last, in case our own deletion of one is answered after that.
    told: VecDeque<Box<str>>,
    /// How many lists have begun.
    lists: u64,
}

struct Deletion {
    uid: Box<str>,
    /// The version that was deleted, as far as we knew it: what came before it under the same name is older still.
    version: u64,
    /// The last list that may yet be followed by news of it: the one that it was made during or after, or that contained it.
    list: u64,
}

impl Deletions {
    /// Whether an object is one that was deleted, or one that came before it.
    pub(super) fn cover(&self, object: &Object) -> bool {
        let pending = self.pending.get(&object.key).into_iter().flatten();
        pending
            .into_iter()
            .any(|deletion| deletion.uid == object.uid || deletion.version >= object.version)
    }

    /// This process deleted the object with this uid; `version` is the last one we knew, or 0.
    pub(super) fn made(&mut self, key: &Key, uid: &str, version: u64) {
        if !self.told.iter().any(|told| **told == *uid) {
            let deletion = Deletion { uid: uid.into(), version, list: self.lists };
            self.pending.entry(key.clone()).or_default().push(deletion);
        }
    }

    /// The watch reports that an object was deleted.
    pub(super) fn tell(&mut self, object: &Object) {
        let pending = self.pending.get_mut(&object.key);
        let found = pending.and_then(|pending| pending.extract_if(.., |deletion| deletion.uid == object.uid).next());
        if found.is_none() {
            self.told.truncate(TOLD - 1);
            self.told.push_front(object.uid.clone());
        }
        if self.pending.get(&object.key).is_some_and(Vec::is_empty) {
            self.pending.remove(&object.key);
        }
    }

    pub(super) fn list_began(&mut self) {
        self.lists += 1;
    }

    /// A list contains an object: if it was deleted, the watch will tell of that.
    pub(super) fn listed(&mut self, object: &Object) {
        let pending = self.pending.get_mut(&object.key).into_iter().flatten();
        let same = pending.filter(|deletion| deletion.uid == object.uid);
        same.for_each(|deletion| deletion.list = self.lists);
    }

    /// A list has ended. What was deleted before it began, and is not in it, will not be told of.
    pub(super) fn list_ended(&mut self) {
        self.pending.retain(|_, pending| {
            pending.retain(|deletion| deletion.list == self.lists);
            !pending.is_empty()
        });
    }
}
