//! The FlowSchemas and PriorityLevelConfigurations that every cluster has. Those that are absent are added.
// pkg/registry/flowcontrol/rest/storage_flowcontrol.go

use crate::bootstrap::prepared::{self, Prepared, TIME, UID};
use crate::clock;
use crate::endpoints::{FieldManager, Subresource};
use crate::flow_control::{GROUP, status};
use crate::registry::Kind;
use crate::server::ApiServer;
use crate::status::Result;
use serde_json::{Map, Value, json};
use std::sync::LazyLock;

/// One object a line, as a real server has them: written and compared by the conformance command.
static OBJECTS: &str = include_str!("flow_control.jsonl");
const PRODUCER: &str = "api-priority-and-fairness-config-producer-v1";

static PREPARED: LazyLock<Vec<Prepared>> = LazyLock::new(|| {
    let lines = OBJECTS.lines().map(|line| serde_json::from_str(line).expect("a line of ours is JSON"));
    lines.map(|line| prepare(&line)).collect()
});

/// Adds what is absent.
pub(super) async fn seed(server: &ApiServer) -> Result<()> {
    let stored = prepared::stored(server, GROUP).await?;
    let now = clock::seconds(server.clock().now());
    let absent = PREPARED.iter().filter(|prepared| !stored.contains_key(&prepared.key));
    let ops: Vec<_> = absent.map(|prepared| prepared.create(&now)).collect();
    prepared::commit(server, &ops).await
}

fn prepare(line: &Map<String, Value>) -> Prepared {
    let kind = prepared::kind_of(GROUP, line["kind"].as_str().unwrap_or_default());
    let mut object = json!({
        "apiVersion": kind.resource.api_version(),
        "kind": kind.resource.kind,
        "metadata": {
            "name": line["name"],
            "uid": UID,
            "generation": 1,
            "creationTimestamp": TIME,
            "annotations": {"apf.kubernetes.io/autoupdate-spec": "true"},
        },
        "spec": line["spec"],
        "status": {},
    });
    manager(&kind, Subresource::Whole, PRODUCER).update(None, &mut object);
    if &*kind.resource.kind == "FlowSchema" {
        let level = line["spec"]["priorityLevelConfiguration"]["name"].as_str().unwrap_or_default();
        let applied = json!({"apiVersion": object["apiVersion"], "kind": object["kind"], "metadata": {"name": line["name"]},
            "status": {"conditions": [status::condition(level, false, TIME)]}});
        let consumer = manager(&kind, Subresource::Status, status::MANAGER);
        let with_status = consumer.apply(Some(&object), &applied, true);
        object = with_status.ok().flatten().expect("the condition is new");
    }
    Prepared::new(&kind, object)
}

fn manager<'a>(kind: &'a Kind, subresource: Subresource, manager: &'a str) -> FieldManager<'a> {
    FieldManager {
        kind,
        others: Vec::new(),
        subresource,
        manager,
        now: TIME.to_owned(),
    }
}
