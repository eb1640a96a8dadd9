//! POST of a Binding: a pod gets its node.

use crate::admission::{self, Attributes, Operation, Options};
use crate::endpoints::{Subresource, decode};
use crate::registry::generic::{Admission, Write};
use crate::registry::object;
use crate::request::context::ResourceRequest;
use crate::request::info::ResourceInfo;
use crate::request::options::{WriteOptions, causes};
use crate::response::ApiResponse;
use crate::status::{Result, Status};
use flyball_schema::kinds;
use flyball_schema::schema::Node;
use flyball_schema::violation::Violation;
use serde_json::{Value, json};

/// Binds a pod to a node.
// pkg/registry/core/pod/storage/storage.go, BindingREST
pub(crate) async fn bind(request: &ResourceRequest) -> Result<ApiResponse> {
    let (options, binding) = read(request)?;
    assign(request, Subresource::Binding, request, &options, binding).await
}

/// Binds the pod that a Binding beside the pods names.
// pkg/registry/core/pod/storage/storage.go, LegacyBindingREST
pub(crate) async fn bind_named(request: &ResourceRequest) -> Result<ApiResponse> {
    let (options, binding) = read(request)?;
    let name = object::name(&binding).to_owned();
    if name.is_empty() {
        return Err(Status::bad_request("Name parameter required."));
    }
    let pods = request.server.registry().served().find("", "v1", "pods").cloned();
    let target = ResourceInfo {
        resource: "pods".into(),
        name: Some(name),
        subresource: Some("binding".into()),
        ..request.target.clone()
    };
    let pod = request.about(pods.expect("pods are built in"), target);
    assign(request, Subresource::Whole, &pod, &options, binding).await
}

fn read(request: &ResourceRequest) -> Result<(WriteOptions, Value)> {
    let options = WriteOptions::create(&request.info.query, &request.headers)?;
    let binding = decode::as_type(request, node(), "Binding", "v1", options.field_validation)?;
    Ok((options, binding))
}

/// Runs admission on the Binding, and writes the node into the pod. That write is not admitted a second time.
async fn assign(
    request: &ResourceRequest,
    subresource: Subresource,
    pod: &ResourceRequest,
    options: &WriteOptions,
    binding: Value,
) -> Result<ApiResponse> {
    let mut attributes = Attributes::new(request, Operation::Create, Options::Write(options));
    attributes.subresource = subresource;
    attributes.object = binding;
    admission::admit(&mut attributes).await?;
    let name = object::name(&attributes.object);
    if !name.is_empty() && name != pod.name() {
        let why = format!("name in URL does not match name in Binding object: {} != {name}", pod.name());
        return Err(Status::bad_request(why));
    }
    refuse(pod, &attributes.object["target"])?;
    admission::validate(&mut attributes).await?;
    let now = pod.now();
    let write = Write {
        admission: Admission::Done,
        ..Write::new(pod, Subresource::Binding, options)
    };
    write
        .update(|live| {
            let mut placed = live.ok_or_else(|| pod.not_found())?.clone();
            place(pod, &mut placed, &attributes.object, &now)?;
            Ok(Some(placed))
        })
        .await?;
    Ok(ApiResponse::Done(Status::created()))
}

fn node() -> Node<'static> {
    kinds::builtin().schema("io.k8s.api.core.v1.Binding").expect("Binding is in the table")
}

fn refuse(request: &ResourceRequest, target: &Value) -> Result<()> {
    let mut violations = Vec::new();
    let kind = target["kind"].as_str().unwrap_or_default();
    if !kind.is_empty() && kind != "Node" {
        violations.push(Violation::not_supported("target.kind", kind, &["Node", "<empty>"]));
    }
    if target["name"].as_str().unwrap_or_default().is_empty() {
        violations.push(Violation::required("target.name", ""));
    }
    if violations.is_empty() {
        return Ok(());
    }
    Err(Status::invalid("", "Binding", request.name(), causes(violations)))
}

fn place(request: &ResourceRequest, pod: &mut Value, binding: &Value, now: &str) -> Result<()> {
    let conflict = |why: String| Err(Status::conflict_about("", "pods/binding", request.name(), why));
    let name = request.name();
    if object::is_deleting(pod) {
        return conflict(format!("pod {name} is being deleted, cannot be assigned to a host"));
    }
    if let Some(placed) = pod["spec"]["nodeName"].as_str().filter(|placed| !placed.is_empty()) {
        return conflict(format!("pod {name} is already assigned to node {placed:?}"));
    }
    if pod["spec"]["schedulingGates"].as_array().is_some_and(|gates| !gates.is_empty()) {
        return conflict(format!("pod {name} has non-empty .spec.schedulingGates"));
    }
    pod["spec"]["nodeName"] = binding["target"]["name"].clone();
    for field in ["annotations", "labels"] {
        for (key, value) in object::metadata(binding).get(field).and_then(Value::as_object).into_iter().flatten() {
            let all = object::metadata_mut(pod).entry(field).or_insert_with(|| json!({}));
            all[key] = value.clone();
        }
    }
    let condition = json!({"type": "PodScheduled", "status": "True", "lastProbeTime": null, "lastTransitionTime": now});
    match pod["status"]["conditions"].as_array_mut() {
        Some(conditions) => {
            conditions.retain(|condition| condition["type"] != "PodScheduled");
            conditions.push(condition);
        }
        None => pod["status"]["conditions"] = json!([condition]),
    }
    Ok(())
}
