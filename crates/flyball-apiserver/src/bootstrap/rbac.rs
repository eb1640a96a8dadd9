//! The roles and bindings that every cluster has. Those that are absent are added, and those that lack rights get them
//! back, unless their annotation says that they are not to be updated.
// pkg/registry/rbac/rest/storage_rbac.go, component-helpers/auth/rbac/reconciliation

use crate::authz::policy::{self, PolicyRule};
use crate::authz::rbac::GROUP;
use crate::clock;
use crate::endpoints::{FieldManager, Subresource};
use crate::registry::{Kind, object};
use crate::server::ApiServer;
use crate::status::{Result, Status};
use bytes::Bytes;
use flyball_store::{Entry, Error, Expect, Op, Range};
use serde_json::{Map, Value, json};
use std::collections::HashMap;
use std::sync::{Arc, LazyLock};

/// One object a line, as a real server has them: written and compared by the conformance command.
static OBJECTS: &str = include_str!("rbac.jsonl");
const AUTO_UPDATE: &str = "rbac.authorization.kubernetes.io/autoupdate";
/// The most objects that are written in one commit: etcd refuses more operations.
const MAX_OPS: usize = 100;
/// Stand in for the uid and the time in prepared bytes, and are as long.
const UID: &str = "00000000-0000-0000-0000-000000000000";
const TIME: &str = "0000-00-00T00:00:00Z";

/// An object in the form in which it is stored, but for its uid and its times.
struct Prepared {
    key: Bytes,
    object: Value,
    bytes: Vec<u8>,
    revision_at: Option<usize>,
    uid_at: usize,
    times_at: Vec<usize>,
}

static PREPARED: LazyLock<Vec<Prepared>> = LazyLock::new(|| {
    let lines = OBJECTS.lines().map(|line| serde_json::from_str(line).expect("a line of ours is JSON"));
    lines.map(prepare).collect()
});

/// Adds what is absent, and completes what lacks rights.
pub(super) async fn seed(server: &ApiServer) -> Result<()> {
    let prefix = format!("{GROUP}/");
    let stored = server.store().range(Range::prefix(prefix)).await.map_err(Status::store_failed)?;
    let stored: HashMap<Bytes, Entry> = stored.entries.into_iter().map(|entry| (entry.key.clone(), entry)).collect();
    let now = clock::seconds(server.clock().now());
    let mut ops = Vec::new();
    for prepared in PREPARED.iter() {
        match stored.get(&prepared.key) {
            None => ops.push(prepared.create(&now)),
            Some(entry) => ops.extend(prepared.complete(entry, &now)),
        }
    }
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

fn prepare(line: Map<String, Value>) -> Prepared {
    let text = |field: &str| line.get(field).and_then(Value::as_str).unwrap_or_default();
    let kind = kind_of(text("kind"));
    let mut labels = line.get("labels").and_then(Value::as_object).cloned().unwrap_or_default();
    labels.insert("kubernetes.io/bootstrapping".into(), "rbac-defaults".into());
    let mut object = json!({
        "apiVersion": kind.resource.api_version(),
        "kind": kind.resource.kind,
        "metadata": {
            "name": text("name"),
            "uid": UID,
            "creationTimestamp": TIME,
            "labels": labels,
            "annotations": {AUTO_UPDATE: "true"},
        },
    });
    if line.contains_key("namespace") {
        object["metadata"]["namespace"] = text("namespace").into();
    }
    for field in ["aggregationRule", "rules", "roleRef", "subjects"] {
        if let Some(value) = line.get(field) {
            object[field] = value.clone();
        }
    }
    manager(&kind, TIME).update(None, &mut object);
    let value = kind.encode_for_storage(object.clone());
    let text_of = String::from_utf8_lossy(&value.bytes);
    let namespace = Some(text("namespace")).filter(|namespace| !namespace.is_empty());
    Prepared {
        key: kind.key(namespace, text("name")),
        uid_at: text_of.find(UID).expect("the uid is encoded"),
        times_at: text_of.match_indices(TIME).map(|(at, _)| at).collect(),
        revision_at: value.revision_at,
        bytes: value.bytes.to_vec(),
        object,
    }
}

fn kind_of(kind: &str) -> Arc<Kind> {
    static KINDS: LazyLock<Vec<Arc<Kind>>> = LazyLock::new(|| {
        let resources = flyball_schema::kinds::builtin().resources.iter();
        let of_group = resources.filter(|resource| *resource.group == *GROUP);
        of_group.cloned().map(|resource| Arc::new(Kind::built_in(resource))).collect()
    });
    let found = KINDS.iter().find(|own| *own.resource.kind == *kind);
    found.cloned().expect("roles and bindings are built in")
}

fn manager<'a>(kind: &'a Kind, now: &str) -> FieldManager<'a> {
    FieldManager {
        kind,
        others: Vec::new(),
        subresource: Subresource::Whole,
        manager: "kube-apiserver",
        now: now.to_owned(),
    }
}

impl Prepared {
    /// The operation that stores the object.
    fn create(&self, now: &str) -> Op {
        let mut bytes = self.bytes.clone();
        let mut write = |at: usize, text: &str| bytes[at..at + text.len()].copy_from_slice(text.as_bytes());
        write(self.uid_at, &uuid::Uuid::new_v4().to_string());
        self.times_at.iter().for_each(|at| write(*at, now));
        let value = flyball_store::Value { bytes: bytes.into(), revision_at: self.revision_at };
        Op::put(self.key.clone(), value, Expect::Absent)
    }

    /// The operation that adds to a stored object what it lacks; none if it lacks nothing, or is not to be updated.
    fn complete(&self, entry: &Entry, now: &str) -> Option<Op> {
        let old = object::decode(&entry.value);
        if old["metadata"]["annotations"][AUTO_UPDATE] != "true" || old.get("aggregationRule").is_some() {
            return None;
        }
        let mut new = old.clone();
        add_rules(&mut new, &self.object);
        add_subjects(&mut new, &self.object);
        if new == old {
            return None;
        }
        let kind = kind_of(self.object["kind"].as_str().unwrap_or_default());
        manager(&kind, now).update(Some(&old), &mut new);
        let expect = Expect::Revision(entry.revision);
        Some(Op::put(self.key.clone(), kind.encode_for_storage(new), expect))
    }
}

fn add_rules(stored: &mut Value, wanted: &Value) {
    let rules =
        |object: &Value| -> Vec<PolicyRule> { serde_json::from_value(object["rules"].clone()).unwrap_or_default() };
    let missing = policy::uncovered(&rules(stored), &rules(wanted));
    if !missing.is_empty() {
        let all: Vec<PolicyRule> = rules(stored).into_iter().chain(missing).collect();
        stored["rules"] = json!(all);
    }
}

fn add_subjects(stored: &mut Value, wanted: &Value) {
    let subjects = |object: &Value| object["subjects"].as_array().cloned().unwrap_or_default();
    let mut all = subjects(stored);
    let missing: Vec<Value> = subjects(wanted).into_iter().filter(|wanted| !all.contains(wanted)).collect();
    if !missing.is_empty() && stored["roleRef"] == wanted["roleRef"] {
        all.extend(missing);
        stored["subjects"] = all.into();
    }
}
