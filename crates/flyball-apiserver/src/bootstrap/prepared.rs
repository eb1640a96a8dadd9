//! Objects that every cluster has, encoded once per process: a new cluster copies the bytes and sets uid and time.

use crate::registry::Kind;
use crate::server::ApiServer;
use crate::status::{Result, Status};
use bytes::Bytes;
use flyball_schema::kinds;
use flyball_store::{Entry, Error, Expect, Op, Range};
use serde_json::Value;
use std::collections::HashMap;
use std::sync::Arc;

/// Stand in for the uid and the time in prepared bytes, and are as long.
pub(super) const UID: &str = "00000000-0000-0000-0000-000000000000";
pub(super) const TIME: &str = "0000-00-00T00:00:00Z";
/// The most objects that are written in one commit: etcd refuses more operations.
const MAX_OPS: usize = 100;

/// An object in the form in which it is stored, but for its uid and its times.
pub(super) struct Prepared {
    pub key: Bytes,
    pub object: Value,
    bytes: Vec<u8>,
    revision_at: Option<usize>,
    uid_at: usize,
    times_at: Vec<usize>,
}

impl Prepared {
    /// Encodes an object that has [`UID`] and [`TIME`].
    pub fn new(kind: &Kind, object: Value) -> Prepared {
        let value = kind.encode_built_in(object.clone());
        let text = String::from_utf8_lossy(&value.bytes);
        let metadata = &object["metadata"];
        Prepared {
            key: kind.key(metadata["namespace"].as_str(), metadata["name"].as_str().unwrap_or_default()),
            uid_at: text.find(UID).expect("the uid is encoded"),
            times_at: text.match_indices(TIME).map(|(at, _)| at).collect(),
            revision_at: value.revision_at,
            bytes: value.bytes.to_vec(),
            object,
        }
    }

    /// The operation that stores the object.
    pub fn create(&self, now: &str) -> Op {
        let mut bytes = self.bytes.clone();
        let mut write = |at: usize, text: &str| bytes[at..at + text.len()].copy_from_slice(text.as_bytes());
        write(self.uid_at, &uuid::Uuid::new_v4().to_string());
        self.times_at.iter().for_each(|at| write(*at, now));
        let value = flyball_store::Value { bytes: bytes.into(), revision_at: self.revision_at };
        Op::put(self.key.clone(), value, Expect::Absent)
    }
}

/// A built-in kind of an API group.
pub(super) fn kind_of(group: &str, kind: &str) -> Arc<Kind> {
    let mut resources = kinds::builtin().resources.iter();
    let found = resources.find(|resource| *resource.group == *group && *resource.kind == *kind);
    Arc::new(Kind::built_in(found.expect("the kinds of bootstrap objects are built in").clone()))
}

/// What the store has under a prefix, by key.
pub(super) async fn stored(server: &ApiServer, group: &str) -> Result<HashMap<Bytes, Entry>> {
    let range = Range::prefix(format!("{group}/"));
    let page = server.store().range(range).await.map_err(Status::store_failed)?;
    Ok(page.entries.into_iter().map(|entry| (entry.key.clone(), entry)).collect())
}

/// Commits operations on different objects.
pub(super) async fn commit(server: &ApiServer, ops: &[Op]) -> Result<()> {
    for some in ops.chunks(MAX_OPS) {
        match server.store().commit(some.to_vec()).await {
            Ok(_) => {}
            // Another server of the same store adds them at the same time: one by one, its objects are kept.
            Err(Error::Conflict { .. }) => one_by_one(server, some).await?,
            Err(error) => return Err(Status::store_failed(error)),
        }
    }
    Ok(())
}

async fn one_by_one(server: &ApiServer, ops: &[Op]) -> Result<()> {
    for op in ops {
        match server.store().commit(vec![op.clone()]).await {
            Ok(_) | Err(Error::Conflict { .. }) => {}
            Err(error) => return Err(Status::store_failed(error)),
        }
    }
    Ok(())
}
