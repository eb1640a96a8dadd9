//! A commit as one transaction of etcd: expectations are its compares; where one fails, the keys are read instead.

use super::{
    Remote,
    client::Retry,
    keys,
    wire::{
        Compare, DeleteRequest, PutRequest, RangeRequest, Request, RequestOp, Response, ResponseOp, TARGET_MOD,
        TxnRequest, TxnResponse,
    },
};
use crate::{Backend, Committed, Entry, Error, Expect, Op, Result, txn::Txn};
use std::slice::Iter;

impl Remote {
    pub(super) async fn transact(&self, ops: Vec<Op>) -> Result<Committed> {
        self.check_open()?;
        let txn = Txn::new(ops)?;
        let ops = txn.ops();
        if ops.is_empty() {
            return Ok(Committed { revision: Backend::revision(self), entries: Vec::new() });
        }
        let answer = self.client.call("/etcdserverpb.KV/Txn", self.transaction(ops), Retry::IfNotSent).await;
        let answer: TxnResponse = answer.map_err(|status| self.client.error(status))?;
        let revision = self.observe_revision(&answer.header);
        if !answer.succeeded {
            return Err(self.conflict(ops, &answer));
        }
        let mut answers = answer.responses.iter();
        let entries = ops.iter().map(|op| self.done(op, revision, &mut answers)).collect::<Result<_>>()?;
        Ok(Committed { revision, entries })
    }

    fn transaction(&self, ops: &[Op]) -> TxnRequest {
        let mut transaction = TxnRequest::default();
        for op in ops {
            let key = self.keys.outer(op.key());
            let expected = match op.expect() {
                Expect::Anything => None,
                Expect::Absent => Some(0),
                // No key is at revision 0, but to etcd that is an absent one.
                Expect::Revision(0) => Some(i64::MAX),
                Expect::Revision(revision) => Some(i64::try_from(revision).unwrap_or(i64::MAX)),
            };
            if expected.is_some() {
                transaction
                    .compare
                    .push(Compare { target: TARGET_MOD, key: key.clone(), mod_revision: expected });
                transaction
                    .failure
                    .push(read(RangeRequest { key: key.clone(), ..RangeRequest::default() }));
            }
            match op {
                Op::Put { value, .. } => {
                    let put = PutRequest { key: key.clone(), value: keys::encode(value) };
                    transaction.success.push(RequestOp { request: Some(Request::Put(put)) });
                    if expected != Some(0) {
                        // To learn when the key came into being.
                        transaction.success.push(read(RangeRequest {
                            key,
                            keys_only: true,
                            ..RangeRequest::default()
                        }));
                    }
                }
                Op::Delete { .. } => {
                    let delete = DeleteRequest { key, prev_kv: true };
                    transaction.success.push(RequestOp { request: Some(Request::Delete(delete)) });
                }
                Op::Check { .. } => {}
            }
        }
        transaction
    }

    /// The entry that an operation wrote or removed.
    fn done(&self, op: &Op, revision: u64, answers: &mut Iter<'_, ResponseOp>) -> Result<Option<Entry>> {
        let mut answer = || answers.next().and_then(|answer| answer.response.as_ref());
        let corrupt = || self.corrupt(op.key());
        match op {
            Op::Put { key, value, expect } => {
                answer().ok_or_else(corrupt)?;
                let created = match expect {
                    Expect::Absent => revision,
                    _ => match answer() {
                        Some(Response::Range(range)) if range.kvs.len() == 1 => range.kvs[0].create_revision as u64,
                        _ => return Err(corrupt()),
                    },
                };
                Ok(Some(Entry::stamped(key.clone(), value, revision, created)))
            }
            Op::Delete { .. } => match answer() {
                Some(Response::Delete(delete)) => match delete.prev_kvs.first() {
                    Some(pair) => Ok(Some(self.keys.entry(pair).ok_or_else(corrupt)?.removed_at(revision))),
                    None => Ok(None),
                },
                _ => Err(corrupt()),
            },
            Op::Check { .. } => Ok(None),
        }
    }

    /// Says which expectation was not met: the first one.
    fn conflict(&self, ops: &[Op], answer: &TxnResponse) -> Error {
        let expecting = ops.iter().filter(|op| op.expect() != Expect::Anything);
        for (op, answer) in expecting.zip(&answer.responses) {
            let Some(Response::Range(range)) = &answer.response else {
                return self.corrupt(op.key());
            };
            let found = range.kvs.first();
            let is_met = match op.expect() {
                Expect::Anything => true,
                Expect::Absent => found.is_none(),
                Expect::Revision(revision) => found.is_some_and(|pair| pair.mod_revision as u64 == revision),
            };
            if is_met {
                continue;
            }
            let current = match found.map(|pair| self.keys.entry(pair)) {
                Some(None) => return self.corrupt(op.key()),
                Some(entry) => entry.map(Box::new),
                None => None,
            };
            return Error::Conflict { key: op.key().clone(), expect: op.expect(), current };
        }
        self.corrupt(b"")
    }
}

fn read(range: RangeRequest) -> RequestOp {
    RequestOp { request: Some(Request::Range(range)) }
}
