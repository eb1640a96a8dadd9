//! The model: every version of every key, all of them kept.

use super::chance::Chance;
use crate::{Committed, Entry, Error, Event, Expect, Op, Page, Range, Result, Value};
use bytes::Bytes;
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// The expected contents of a store.
#[derive(Default)]
pub(crate) struct Expected {
    pub revision: u64,
    pub compacted: u64,
    /// The events since this was last emptied.
    pub events: Vec<Event>,
    log: VecDeque<Event>,
    /// By key, the revisions at which it changed, and its entry from then on.
    versions: BTreeMap<Bytes, Vec<(u64, Option<Entry>)>>,
}

impl Expected {
    /// Begins as an empty store at a revision.
    pub fn at(revision: u64) -> Expected {
        Expected { revision, ..Expected::default() }
    }

    /// A random commit of different keys; some expectations are wrong.
    pub fn ops(&self, chance: &mut Chance) -> Vec<Op> {
        let keys: BTreeSet<_> = (0..=chance.below(3)).map(|_| key(chance)).collect();
        keys.into_iter().map(|key| self.op(key, chance)).collect()
    }

    /// The entry of a key at a revision.
    pub fn get(&self, key: &[u8], revision: u64) -> Option<&Entry> {
        at(self.versions.get(key)?, revision)
    }

    fn op(&self, key: String, chance: &mut Chance) -> Op {
        let current = self.get(key.as_bytes(), self.revision).map(|entry| entry.revision);
        let expect = match (chance.below(20), current) {
            (0..8, _) => Expect::Anything,
            (8..18, Some(revision)) => Expect::Revision(revision),
            (8..18, None) => Expect::Absent,
            (18, _) => Expect::Absent,
            _ => Expect::Revision(chance.below(1 + self.revision as usize) as u64),
        };
        match chance.below(9) {
            0..3 => return Op::delete(key, expect),
            3 => return Op::check(key, expect),
            _ => {}
        }
        let text = "v".repeat(chance.below(50));
        let at = chance.below(text.len() + 1);
        let value = if chance.sometimes(2) {
            Value::stamped(text, at)
        } else {
            Value::plain(text)
        };
        Op::put(key, value, expect)
    }

    /// Applies a commit, or returns its conflict.
    pub fn commit(&mut self, ops: Vec<Op>) -> Result<Committed> {
        for op in &ops {
            let (key, expect) = (op.key(), op.expect());
            let current = self.get(key, self.revision);
            let is_met = match expect {
                Expect::Anything => true,
                Expect::Absent => current.is_none(),
                Expect::Revision(revision) => current.is_some_and(|entry| entry.revision == revision),
            };
            if !is_met {
                let current = current.cloned().map(Box::new);
                return Err(Error::Conflict { key: key.clone(), expect, current });
            }
        }
        let before = self.log.len();
        let entries = ops.into_iter().map(|op| self.apply(op)).collect();
        if self.log.len() > before {
            self.revision += 1;
        }
        Ok(Committed { revision: self.revision, entries })
    }

    fn apply(&mut self, op: Op) -> Option<Entry> {
        let revision = self.revision + 1;
        let previous = self.get(op.key(), self.revision).cloned();
        let (key, entry, is_put) = match op {
            Op::Put { key, value, .. } => {
                let created = previous.as_ref().map_or(revision, |entry| entry.created);
                let entry = Entry::stamped(key.clone(), &value, revision, created);
                (key, entry, true)
            }
            Op::Delete { key, .. } => {
                let entry = previous.clone()?.removed_at(revision);
                (key, entry, false)
            }
            Op::Check { .. } => return None,
        };
        self.versions
            .entry(key.clone())
            .or_default()
            .push((revision, is_put.then(|| entry.clone())));
        let value = is_put.then(|| entry.value.clone());
        let created = previous.is_none();
        let event = Event {
            revision,
            key,
            value,
            last: entry.value.clone(),
            previous,
            created,
        };
        self.events.push(event.clone());
        self.log.push_back(event);
        Some(entry)
    }

    /// Reads a range.
    pub fn range(&self, range: &Range) -> Result<Page> {
        let revision = range.revision.unwrap_or(self.revision);
        self.check(revision)?;
        let start = range.start.clone().unwrap_or_default();
        let all = self.versions.values().filter_map(|versions| at(versions, revision));
        let found = all.filter(|entry| entry.key.starts_with(&range.prefix) && entry.key >= start);
        let mut entries: Vec<_> = found.cloned().collect();
        let count = entries.len();
        entries.truncate(range.limit.unwrap_or(usize::MAX));
        let remaining = (count - entries.len()) as u64;
        Ok(Page { entries, revision, more: remaining > 0, remaining })
    }

    pub fn check(&self, requested: u64) -> Result<()> {
        match requested {
            _ if requested < self.compacted => Err(Error::Compacted { requested, oldest: self.compacted }),
            _ if requested > self.revision => Err(Error::Future { requested, current: self.revision }),
            _ => Ok(()),
        }
    }

    pub fn events_after(&self, after: u64, prefix: &str) -> VecDeque<Event> {
        let found = self
            .log
            .iter()
            .filter(|event| event.revision > after && event.key.starts_with(prefix.as_bytes()));
        found.cloned().collect()
    }

    pub fn compact(&mut self, revision: u64) {
        self.compacted = revision;
        while self.log.front().is_some_and(|event| event.revision <= revision) {
            self.log.pop_front();
        }
    }

    /// A revision in the history, or a little outside of it.
    pub fn some_revision(&self, chance: &mut Chance) -> u64 {
        let from = self.compacted.saturating_sub(3);
        from + chance.below((self.revision + 3 - from) as usize) as u64
    }
}

fn at(versions: &[(u64, Option<Entry>)], revision: u64) -> Option<&Entry> {
    let until = versions.partition_point(|(changed, _)| *changed <= revision);
    versions[..until].last()?.1.as_ref()
}

pub(crate) fn key(chance: &mut Chance) -> String {
    format!("/{}/{:02}", pick(chance, &["a", "b", "ab", "a/b"]), chance.below(40))
}

pub(crate) fn prefix(chance: &mut Chance) -> String {
    match chance.below(4) {
        0 => key(chance),
        _ => pick(chance, &["", "/", "/a", "/a/", "/a/b/", "/a/b/1", "/b/", "/c/"]).to_owned(),
    }
}

fn pick<'a>(chance: &mut Chance, from: &[&'a str]) -> &'a str {
    from[chance.below(from.len())]
}
