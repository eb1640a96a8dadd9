//! The commits of a model's run: some at once, and the check of their outcomes.

use super::{chance::Chance, model::Run};
use crate::{Committed, Error, Expect, Op, Result, Store};
use bytes::Bytes;
use futures::future::{BoxFuture, join_all};
use std::{
    collections::{BTreeMap, HashMap, HashSet},
    time::Duration,
};

/// How commits that are sent together take effect.
#[derive(Clone, Copy)]
pub(super) enum Order {
    /// One after the other.
    AsSent,
    /// In an order that the store chooses; the watch on all keys shows it.
    AsCommitted,
}

/// A key that nothing else writes; a commit to it shows that the store answers again.
const FENCE: &str = "/fence";

/// How long a commit with an unknown outcome may still be in flight once the store answers again: a member of etcd forwards
/// requests only when there is a leader.
const MAX_IN_FLIGHT: Duration = Duration::from_secs(1);

impl<O: Fn() -> BoxFuture<'static, Result<Store>>> Run<O> {
    /// Commits some batches at once, which take effect in the order in which they are sent; returns how many.
    pub(super) async fn commit_in_order(&mut self, chance: &mut Chance) -> usize {
        let count = 1 + chance.below(80);
        let mut wanted = Vec::new();
        let mut sent = Vec::new();
        for _ in 0..count {
            let ops = self.expected.ops(chance);
            sent.push(self.store.commit(ops.clone()));
            wanted.push(self.expected.commit(ops));
        }
        for (committed, wanted) in join_all(sent).await.into_iter().zip(wanted) {
            assert_same_commit(committed, wanted);
        }
        count
    }

    /// Commits some batches of different keys at once. What is acknowledged must have happened, as it was acknowledged;
    /// what was refused must not; what has an unknown outcome may.
    pub(super) async fn commit_in_any_order(&mut self, chance: &mut Chance) -> usize {
        let mut commits = self.commits(chance);
        let mut answers = join_all(commits.iter().map(|ops| self.store.commit(ops.clone()))).await;
        if answers.iter().any(is_unknown) {
            self.settle(&mut commits, &mut answers).await;
        }
        let count = commits.len();
        let happened = self.happened(&commits, &answers).await;
        let mut commits: Vec<Option<Vec<Op>>> = commits.into_iter().map(Some).collect();
        let mut answers: Vec<Option<Result<Committed>>> = answers.into_iter().map(Some).collect();
        // Their keys differ, so what did not happen can be compared with what was before.
        let is_still: HashSet<usize> = happened.values().copied().collect();
        for at in (0..count).filter(|at| !is_still.contains(at)) {
            let (ops, answer) = (commits[at].take().expect("once"), answers[at].take().expect("once"));
            if !is_unknown(&answer) {
                let before = self.expected.revision;
                let wanted = self.expected.commit(ops);
                assert_eq!(self.expected.revision, before, "lost: {answer:?} was acknowledged but did not happen");
                let revision = answer.as_ref().map_or(0, |committed| committed.revision);
                assert_same_commit(answer, wanted.map(|committed| Committed { revision, ..committed }));
            }
        }
        for (revision, at) in happened {
            let (ops, answer) = (commits[at].take().expect("one revision each"), answers[at].take().expect("once"));
            let wanted = self.expected.commit(ops);
            assert_eq!(self.expected.revision, revision);
            if !is_unknown(&answer) {
                assert_same_commit(answer, wanted);
            }
        }
        count
    }

    /// Commits until two in a row are answered, so far apart that every commit with an unknown outcome came before the last.
    async fn settle(&self, commits: &mut Vec<Vec<Op>>, answers: &mut Vec<Result<Committed>>) {
        let mut answered = 0;
        for fences in 0.. {
            // Another key each time: the outcome of a fence may be unknown too.
            let fence = vec![Op::put(format!("{FENCE}/{fences}"), "", Expect::Anything)];
            let answer = self.store.commit(fence.clone()).await;
            answered = if is_unknown(&answer) { 0 } else { answered + 1 };
            commits.push(fence);
            answers.push(answer);
            if answered == 2 {
                return;
            }
            tokio::time::sleep(MAX_IN_FLIGHT).await;
        }
    }

    fn commits(&self, chance: &mut Chance) -> Vec<Vec<Op>> {
        let mut taken = HashSet::new();
        let mut commits = Vec::new();
        for _ in 0..=chance.below(80) {
            let ops = self.expected.ops(chance).into_iter();
            let ops: Vec<Op> = ops.filter(|op| taken.insert(op.key().clone())).collect();
            commits.extend(Some(ops).filter(|ops| !ops.is_empty()));
        }
        commits
    }

    /// Reads in the log which commits happened, by revision.
    async fn happened(&mut self, commits: &[Vec<Op>], answers: &[Result<Committed>]) -> BTreeMap<u64, usize> {
        let of = |(at, ops): (usize, &Vec<Op>)| ops.iter().map(move |op| (op.key().clone(), at)).collect::<Vec<_>>();
        let owners: HashMap<Bytes, usize> = commits.iter().enumerate().flat_map(of).collect();
        let acknowledged = answers.iter().flatten().map(|committed| committed.revision);
        let last = acknowledged.max().unwrap_or(0);
        let mut happened = BTreeMap::new();
        let mut seen = self.expected.revision;
        while seen < last {
            let event = self
                .log
                .next()
                .await
                .expect("the log goes on")
                .unwrap_or_else(|error| panic!("log: {error}"));
            let at = owners.get(&event.key).unwrap_or_else(|| panic!("{event:?} was not asked for"));
            happened.insert(event.revision, *at);
            seen = self.log.revision();
        }
        happened
    }
}

fn is_unknown(answer: &Result<Committed>) -> bool {
    matches!(answer, Err(Error::Unavailable { .. }))
}

fn assert_same_commit(found: Result<Committed>, wanted: Result<Committed>) {
    match (found, wanted) {
        (Ok(found), Ok(wanted)) => {
            assert_eq!((found.revision, found.entries), (wanted.revision, wanted.entries));
        }
        (Err(Error::Conflict { key, current, .. }), Err(Error::Conflict { key: key_, current: current_, .. })) => {
            assert_eq!((key, current), (key_, current_));
        }
        (found, wanted) => panic!("found {found:?}, wanted {wanted:?}"),
    }
}
