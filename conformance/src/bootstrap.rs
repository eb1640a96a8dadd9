//! The roles, bindings, FlowSchemas and priority levels that a real server has from the start, in the form in which ours
//! keeps them: `crates/flyball-apiserver/src/bootstrap/*.jsonl`, one object a line.

use http::Request;
use kube::Client;
use serde_json::{Map, Value};
use std::path::{Path, PathBuf};

use crate::reference::Reference;
use crate::report::sentence;

const BOOTSTRAPPING: &str = "kubernetes.io/bootstrapping";
const AUTO_UPDATE_SPEC: &str = "apf.kubernetes.io/autoupdate-spec";

/// The objects of one API group that are kept in a file.
struct Kept {
    file: &'static str,
    path: &'static str,
    kinds: &'static [(&'static str, &'static str)],
}

const KEPT: [Kept; 2] = [
    Kept {
        file: "rbac.jsonl",
        path: "/apis/rbac.authorization.k8s.io/v1",
        kinds: &[
            ("clusterroles", "ClusterRole"),
            ("clusterrolebindings", "ClusterRoleBinding"),
            ("roles", "Role"),
            ("rolebindings", "RoleBinding"),
        ],
    },
    Kept {
        file: "flow_control.jsonl",
        path: "/apis/flowcontrol.apiserver.k8s.io/v1",
        kinds: &[
            ("prioritylevelconfigurations", "PriorityLevelConfiguration"),
            ("flowschemas", "FlowSchema"),
        ],
    },
];

impl Kept {
    fn path(&self) -> PathBuf {
        let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("../crates/flyball-apiserver/src/bootstrap");
        directory.join(self.file)
    }
}

/// Writes the files anew.
pub async fn write() -> Result<(), String> {
    let reference = Reference::start().await.map_err(|error| sentence(&error))?;
    let client = reference.admin.client().map_err(|error| sentence(&error))?;
    for group in &KEPT {
        let lines: String = objects(&client, group).await?.iter().map(|object| format!("{object}\n")).collect();
        let path = group.path();
        std::fs::write(&path, lines).map_err(|error| format!("write {}: {error}", path.display()))?;
    }
    Ok(())
}

/// Compares the files with what a real server has.
pub async fn check(client: &Client) -> Result<(), String> {
    for group in &KEPT {
        let path = group.path();
        let text = std::fs::read_to_string(&path).map_err(|error| format!("read {}: {error}", path.display()))?;
        let kept: Vec<Value> = text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
        let real = objects(client, group).await?;
        if let Some(object) = real.iter().find(|object| !kept.contains(object)) {
            let (kind, name) = (&object["kind"], &object["name"]);
            return Err(format!("{kind} {name} is not kept, or differs: run `conformance bootstrap`"));
        }
        if kept.len() != real.len() {
            return Err(format!("{} are kept in {}, the real server has {}", kept.len(), group.file, real.len()));
        }
    }
    Ok(())
}

async fn objects(client: &Client, group: &Kept) -> Result<Vec<Value>, String> {
    let mut objects = Vec::new();
    for (plural, kind) in group.kinds {
        let request = Request::get(format!("{}/{plural}", group.path))
            .body(Vec::new())
            .map_err(|error| error.to_string())?;
        let list: Value = client
            .request(request)
            .await
            .map_err(|error| format!("list {plural}: {}", sentence(&error)))?;
        let items = list["items"].as_array().into_iter().flatten();
        objects.extend(items.filter_map(|item| kept(kind, item)));
    }
    Ok(objects)
}

/// What is kept of an object; nothing of one that the server did not bring.
fn kept(kind: &str, item: &Value) -> Option<Value> {
    let metadata = &item["metadata"];
    let mut labels = metadata["labels"].as_object().cloned().unwrap_or_default();
    let is_role = labels.remove(BOOTSTRAPPING).is_some();
    if !is_role && metadata["annotations"].get(AUTO_UPDATE_SPEC).is_none() {
        return None;
    }
    let mut kept = Map::new();
    kept.insert("kind".into(), kind.into());
    for field in ["name", "namespace"] {
        if let Some(value) = metadata.get(field) {
            kept.insert(field.into(), value.clone());
        }
    }
    if !labels.is_empty() {
        kept.insert("labels".into(), labels.into());
    }
    for field in ["aggregationRule", "rules", "roleRef", "subjects", "spec"] {
        if let Some(value) = item.get(field) {
            kept.insert(field.into(), value.clone());
        }
    }
    Some(kept.into())
}
