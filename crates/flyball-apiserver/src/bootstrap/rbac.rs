//! The roles and bindings that every cluster has. Those that are absent are added, and those that lack rights get them
//! back, unless their annotation says that they are not to be updated.
// pkg/registry/rbac/rest/storage_rbac.go, component-helpers/auth/rbac/reconciliation

use crate::authz::policy::{self, PolicyRule};
use crate::authz::rbac::GROUP;
use crate::bootstrap::prepared::{self, Prepared, TIME, UID};
use crate::clock;
use crate::endpoints::{FieldManager, Subresource};
use crate::registry::{Kind, object};
use crate::server::ApiServer;
use crate::status::Result;
use flyball_store::{Entry, Expect, Op};
use serde_json::{Map, Value, json};
use std::sync::{Arc, LazyLock};

/// One object a line, as a real server has them: written and compared by the conformance command.
static OBJECTS: &str = include_str!("rbac.jsonl");
const AUTO_UPDATE: &str = "rbac.authorization.kubernetes.io/autoupdate";
static PREPARED: LazyLock<Vec<Prepared>> = LazyLock::new(|| {
    let lines = OBJECTS.lines().map(|line| serde_json::from_str(line).expect("a line of ours is JSON"));
    lines.map(prepare).collect()
});

/// Adds what is absent, and completes what lacks rights.
pub(super) async fn seed(server: &ApiServer) -> Result<()> {
    let stored = prepared::stored(server, GROUP).await?;
    let now = clock::seconds(server.clock().now());
    let mut ops = Vec::new();
    for prepared in PREPARED.iter() {
        match stored.get(&prepared.key) {
            None => ops.push(prepared.create(&now)),
            Some(entry) => ops.extend(complete(prepared, entry, &now)),
        }
    }
    prepared::commit(server, &ops).await
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
    Prepared::new(&kind, object)
}

fn kind_of(kind: &str) -> Arc<Kind> {
    static KINDS: LazyLock<[Arc<Kind>; 4]> = LazyLock::new(|| {
        ["ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding"].map(|kind| prepared::kind_of(GROUP, kind))
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

/// The operation that adds to a stored object what it lacks; none if it lacks nothing, or is not to be updated.
fn complete(prepared: &Prepared, entry: &Entry, now: &str) -> Option<Op> {
    let old = object::decode(&entry.value);
    if old["metadata"]["annotations"][AUTO_UPDATE] != "true" || old.get("aggregationRule").is_some() {
        return None;
    }
    let mut new = old.clone();
    add_rules(&mut new, &prepared.object);
    add_subjects(&mut new, &prepared.object);
    if new == old {
        return None;
    }
    let kind = kind_of(prepared.object["kind"].as_str().unwrap_or_default());
    manager(&kind, now).update(Some(&old), &mut new);
    let expect = Expect::Revision(entry.revision);
    Some(Op::put(prepared.key.clone(), kind.encode_built_in(new), expect))
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
