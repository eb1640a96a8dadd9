//! Decides commits in their order, on top of what is decided and has not reached the index yet.

use crate::{
    Expect,
    core::State,
    history::Change,
    plan::Plan,
    record::{Place, Record},
    wish::{Action, Few, Made, Outcome, Want, Wish},
};
use bytes::Bytes;
use std::{
    collections::HashMap,
    hash::{BuildHasherDefault, Hasher},
    mem,
    ops::Deref,
};
use xxhash_rust::xxh3::xxh3_64;

/// So many keys are in a generation before the next one begins.
const GENERATION: usize = 512;

/// What is decided and has not reached the index. It is right afterwards, too, and forgotten when there is enough of it to be
/// forgotten together.
pub(crate) struct Ahead {
    pub revision: u64,
    recent: Generation,
    older: Generation,
    /// What was decided after this revision is not forgotten.
    forgotten: u64,
}

/// The latest records of some keys.
#[derive(Default)]
pub(crate) struct Generation {
    latest: HashMap<Bytes, Record, BuildHasherDefault<KeyHasher>>,
    /// No record is of a later revision.
    until: u64,
}

impl Generation {
    /// Has room for so many keys.
    fn of(keys: usize) -> Generation {
        let latest = HashMap::with_capacity_and_hasher(keys, BuildHasherDefault::default());
        Generation { latest, until: 0 }
    }
}

/// Hashes keys. There are never so many in a map that somebody could make them collide on purpose.
#[derive(Default)]
struct KeyHasher(u64);

impl Hasher for KeyHasher {
    fn write(&mut self, bytes: &[u8]) {
        self.0 = self.0.rotate_left(5) ^ xxh3_64(bytes);
    }

    fn write_usize(&mut self, length: usize) {
        self.0 ^= length as u64;
    }

    fn finish(&self) -> u64 {
        self.0
    }
}

impl Ahead {
    /// Starts where nothing is decided on top of an index at a revision.
    pub fn at(revision: u64) -> Ahead {
        Ahead {
            revision,
            recent: Generation::default(),
            older: Generation::default(),
            forgotten: 0,
        }
    }

    /// Decides a commit as the next revision; plans nothing where it is refused or changes nothing.
    pub fn add<S: Deref<Target = State>>(&mut self, plan: &mut Plan, state: impl Fn() -> S, wish: Wish) -> Outcome {
        let mut currents = Few::with_capacity(wish.wants.len());
        for want in &wish.wants {
            let current = self.current(want, wish.seen, &state);
            let as_expected = match want.expect {
                Expect::Anything => true,
                Expect::Absent => current.is_none(),
                Expect::Revision(revision) => current.as_ref().is_some_and(|record| record.revision() == revision),
            };
            if !as_expected {
                let current = current.map(|record| (record, state().view()));
                return Outcome::Refused(want.key.clone(), want.expect, current);
            }
            currents.push(current);
        }
        let (before, revision) = (plan.changes.len(), self.revision + 1);
        let positions = currents.into_iter().zip(0..);
        let made = wish.wants.into_iter().zip(positions).map(|(want, (previous, position))| {
            let (record, made) = make(want, previous.as_ref(), revision, position, &state)?;
            self.plan(plan, Change { record, previous }, wish.has_outlines);
            Some(made)
        });
        let made = made.collect();
        if plan.changes.len() > before {
            self.revision = revision;
        }
        Outcome::Done(self.revision, made)
    }

    fn plan(&mut self, plan: &mut Plan, change: Change, has_outlines: bool) {
        let record = &change.record;
        self.recent.until = record.revision();
        self.recent.latest.insert(record.key_bytes(), record.clone());
        if has_outlines {
            plan.outlines.push(change.outline());
        }
        plan.changes.push(change);
    }

    /// Forgets what the index reached long ago, if that is much; returns it, to be dropped where nobody waits for that.
    pub fn renew(&mut self, reached: u64) -> Option<Generation> {
        if self.recent.latest.len() < GENERATION || self.older.until > reached {
            return None;
        }
        self.forgotten = self.older.until;
        let recent = mem::replace(&mut self.recent, Generation::of(GENERATION));
        Some(mem::replace(&mut self.older, recent))
    }

    /// What an operation finds: what is decided, or what was in the index when the commit was prepared.
    fn current<S: Deref<Target = State>>(&self, want: &Want, seen: u64, state: &impl Fn() -> S) -> Option<Record> {
        let decided = self.recent.latest.get(&want.key).or_else(|| self.older.latest.get(&want.key));
        match decided {
            Some(record) => Some(record).filter(|record| !record.is_removal()).cloned(),
            // What was decided meanwhile may have reached the index and be forgotten.
            None if self.forgotten > seen => state().index.get(&want.key).cloned(),
            None => want.found.clone(),
        }
    }
}

/// The record of an operation and what is answered to it; `None` where it changes nothing.
fn make<S: Deref<Target = State>>(
    want: Want,
    previous: Option<&Record>,
    revision: u64,
    position: u32,
    state: &impl Fn() -> S,
) -> Option<(Record, Made)> {
    match want.action {
        Action::Put(draft) => {
            let created = previous.map_or(revision, Record::created);
            let record = draft.finish(Place { revision, created, position });
            Some((record.clone(), Made::Written(record)))
        }
        Action::Delete => {
            let removed = previous?.clone();
            let view = if removed.is_whole() {
                Default::default()
            } else {
                state().view()
            };
            Some((Record::removal(&want.key, revision, position), Made::Removed(removed, view)))
        }
        Action::Check => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Error, Op, Options, core::Core};

    fn put(core: &Core, key: &str) -> Wish {
        Wish::prepare(core, vec![Op::put(key.to_owned(), "v", Expect::Absent)]).unwrap()
    }

    #[test]
    fn what_was_decided_after_a_commit_was_prepared_counts_also_when_it_is_forgotten() {
        let core = Core::new(Options::default(), State::default());
        let mut ahead = Ahead::at(0);
        let [early, late] = ["/x", "/y"].map(|key| put(&core, key));
        let mut decide = |wish| {
            let mut plan = Plan::default();
            let answer = ahead.add(&mut plan, || core.state(), wish).answer();
            core.apply(&mut plan, |_| {});
            (answer, ahead.renew(core.revision()).is_some())
        };
        assert!(decide(put(&core, "/x")).0.is_ok());
        let forgotten = (0..2 * GENERATION).filter(|n| decide(put(&core, &format!("/{n}"))).1).count();
        assert_eq!(forgotten, 2);
        assert!(matches!(decide(early).0, Err(Error::Conflict { current: Some(found), .. }) if found.revision == 1));
        assert_eq!(decide(late).0.unwrap().revision, 2 + 2 * GENERATION as u64);
    }
}
