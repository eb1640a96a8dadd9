//! The roles and bindings that a real server has from the start, in the form in which ours keeps them:
//! `crates/flyball-apiserver/src/bootstrap/rbac.jsonl`, one object a line.

use http::Request;
use kube::Client;
use serde_json::{Map, Value};
use std::path::Path;

use crate::reference::Reference;
use crate::report::sentence;

const RBAC: &str = "/apis/rbac.authorization.k8s.io/v1";
const FILE: &str = "../crates/flyball-apiserver/src/bootstrap/rbac.jsonl";
const BOOTSTRAPPING: &str = "kubernetes.io/bootstrapping";

/// Writes the file anew.
pub async fn write() -> Result<(), String> {
    let reference = Reference::start().await.map_err(|error| sentence(&error))?;
    let client = reference.admin.client().map_err(|error| sentence(&error))?;
    let lines: String = objects(&client).await?.iter().map(|object| format!("{object}\n")).collect();
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(FILE);
    std::fs::write(&path, lines).map_err(|error| format!("write {}: {error}", path.display()))
}

/// Compares the file with what a real server has.
pub async fn check(client: &Client) -> Result<(), String> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(FILE);
    let text = std::fs::read_to_string(&path).map_err(|error| format!("read {}: {error}", path.display()))?;
    let kept: Vec<Value> = text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
    let real = objects(client).await?;
    match real.iter().find(|object| !kept.contains(object)) {
        Some(object) => Err(format!(
            "{} {} is not kept, or differs: run `conformance bootstrap`",
            object["kind"], object["name"]
        )),
        None if kept.len() != real.len() => Err(format!("{} are kept, the real server has {}", kept.len(), real.len())),
        None => Ok(()),
    }
}

async fn objects(client: &Client) -> Result<Vec<Value>, String> {
    let mut objects = Vec::new();
    for (plural, kind) in [
        ("clusterroles", "ClusterRole"),
        ("clusterrolebindings", "ClusterRoleBinding"),
        ("roles", "Role"),
        ("rolebindings", "RoleBinding"),
    ] {
        let request = Request::get(format!("{RBAC}/{plural}"))
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
    labels.remove(BOOTSTRAPPING)?;
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
    for field in ["aggregationRule", "rules", "roleRef", "subjects"] {
        if let Some(value) = item.get(field) {
            kept.insert(field.into(), value.clone());
        }
    }
    Some(kept.into())
}
