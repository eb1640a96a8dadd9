//! What this process has deleted, or written so that it is not selected any more, and the watch still speaks of. Until it reports
//! that, its news of such an object are old.

use crate::Key;
use crate::cache::object::Object;
use std::collections::{HashMap, VecDeque};

/// More than ever come between the API server's answer and the watch's news.
const UNCERTAIN: usize = 1_024;

#[derive(Default)]
pub(super) struct Deletions {
    pending: HashMap<Key, Vec<Deletion>>,
    /// Those that the watch may never report, or has reported already: the oldest are forgotten.
    uncertain: VecDeque<(Key, Box<str>)>,
    /// How many lists have begun.
    lists: u64,
}

struct Deletion {
    uid: Box<str>,
    how: Removal,
    /// Of an object that is gone, the last one that we knew; of one that left, the one that it left with.
    version: u64,
    /// The last list that may yet be followed by news of it: the one that it was made during or after, or that contained it.
    list: u64,
    /// Whether the watch has yet to report it.
    certain: bool,
}

/// How an object went.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Removal {
    /// It was deleted, and will not come back.
    Gone,
    /// It is not selected any more, and may return in a later version.
    Left,
}

impl Deletion {
    /// Whether an object of the same name is this one, or one that came before it.
    fn covers(&self, object: &Object) -> bool {
        match self.how {
            Removal::Gone => self.uid == object.uid || self.version >= object.version,
            // At that version itself the server says whether it is selected.
            Removal::Left => object.version < self.version,
        }
    }
}

impl Deletions {
    /// Whether news of an object are old.
    pub(super) fn cover(&self, object: &Object) -> bool {
        let mut pending = self.pending.get(&object.key).into_iter().flatten();
        pending.any(|deletion| deletion.covers(object))
    }

    /// This process deleted the object with this uid; `version` is the one that we had, if we did.
    pub(super) fn gone(&mut self, key: &Key, uid: &str, version: Option<u64>) {
        self.made(key, uid, Removal::Gone, version.unwrap_or_default(), version.is_some());
    }

    /// This process wrote the object with this uid, and at `version` it is not selected; `held` if it was before.
    pub(super) fn left(&mut self, key: &Key, uid: &str, version: u64, held: bool) {
        self.made(key, uid, Removal::Left, version, held);
    }

    fn made(&mut self, key: &Key, uid: &str, how: Removal, version: u64, certain: bool) {
        let deletion = Deletion { uid: uid.into(), how, version, list: self.lists, certain };
        self.pending.entry(key.clone()).or_default().push(deletion);
        if !certain {
            self.mark_unconfirmed(key, uid);
        }
    }

    /// Keeps one more that is uncertain, and forgets the oldest if those are too many.
    fn mark_unconfirmed(&mut self, key: &Key, uid: &str) {
        self.uncertain.push_back((key.clone(), uid.into()));
        if self.uncertain.len() <= UNCERTAIN {
            return;
        }
        if let Some((key, uid)) = self.uncertain.pop_front()
            && let Some(pending) = self.pending.get_mut(&key)
        {
            let oldest = pending.iter().position(|deletion| deletion.uid == uid && !deletion.certain);
            oldest.map(|oldest| pending.remove(oldest));
            if pending.is_empty() {
                self.pending.remove(&key);
            }
        }
    }

    /// The watch reports that an object was deleted; or else, where only some are selected, that it left and may have returned.
    pub(super) fn tell(&mut self, object: &Object, all_are_selected: bool) {
        let Some(pending) = self.pending.get_mut(&object.key) else {
            return;
        };
        let mut doubted = 0;
        pending.retain_mut(|deletion| {
            let told = match deletion.how {
                Removal::Gone => all_are_selected,
                Removal::Left => deletion.version <= object.version,
            };
            let same = deletion.uid == object.uid;
            doubted += usize::from(same && !told && std::mem::take(&mut deletion.certain));
            !(same && told)
        });
        if pending.is_empty() {
            self.pending.remove(&object.key);
        }
        (0..doubted).for_each(|_| self.mark_unconfirmed(&object.key, &object.uid));
    }

    pub(super) fn list_began(&mut self) {
        self.lists += 1;
    }

    /// A list contains an object: if it was deleted, or left after that, the watch will tell of it.
    pub(super) fn listed(&mut self, object: &Object) {
        let pending = self.pending.get_mut(&object.key).into_iter().flatten();
        let same = pending.filter(|deletion| deletion.uid == object.uid && deletion.covers(object));
        same.for_each(|deletion| deletion.list = self.lists);
    }

    /// A list has ended. What went before it began, and is not in it, will not be told of.
    pub(super) fn list_ended(&mut self) {
        self.pending.retain(|_, pending| {
            pending.retain(|deletion| deletion.list == self.lists);
            !pending.is_empty()
        });
    }

    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.pending.values().map(Vec::len).sum()
    }
}
