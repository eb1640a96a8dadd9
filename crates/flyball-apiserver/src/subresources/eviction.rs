//! POST of an Eviction: deletes a pod, unless that would violate its PodDisruptionBudget. The budget is charged in the
//! commit that marks the pod as a disruption target, so that concurrent evictions cannot exceed it.
// pkg/registry/core/pod/storage/eviction.go

mod budget;

use crate::admission::{self, Attributes, Operation, Options};
use crate::endpoints::{Subresource, decode};
use crate::registry::deletion::Delete;
use crate::registry::generic::Tries;
use crate::registry::object;
use crate::request::context::ResourceRequest;
use crate::request::options::{DeleteOptions, WriteOptions};
use crate::response::ApiResponse;
use crate::status::{Result, Status};
use budget::Verdict;
use flyball_schema::kinds;
use flyball_store::{Entry, Error, Expect, Op};
use serde_json::{Value, json};

/// Evicts a pod.
pub(crate) async fn evict(request: &ResourceRequest) -> Result<ApiResponse> {
    let options = WriteOptions::create(&request.info.query, &request.headers)?;
    let node = kinds::builtin()
        .schema("io.k8s.api.policy.v1.Eviction")
        .expect("Eviction is in the table");
    let eviction = decode::as_type(request, node, "Eviction", "policy/v1", options.field_validation)?;
    let eviction = admit(request, &options, eviction).await?;
    let options = DeleteOptions::of_value(&eviction["deleteOptions"], options.dry_run)?;
    let mut tries = Tries::new(request, "create");
    loop {
        let entry = match request.store().get(request.key()).await {
            Ok(Some(entry)) => entry,
            Ok(None) => return Err(request.not_found()),
            Err(error) => return request.store_failed(error),
        };
        if let Some(response) = try_evict(request, &options, &entry).await? {
            return Ok(response);
        }
        tries.next()?;
    }
}

/// Runs admission on the Eviction. The delete of the pod is not admitted a second time.
async fn admit(request: &ResourceRequest, options: &WriteOptions, eviction: Value) -> Result<Value> {
    let mut attributes = Attributes::new(request, Operation::Create, Options::Write(options));
    attributes.subresource = Subresource::Eviction;
    attributes.object = eviction;
    admission::admit(&mut attributes).await?;
    let name = object::name(&attributes.object);
    if !name.is_empty() && name != request.name() {
        return Err(Status::bad_request("name in URL does not match name in Eviction object"));
    }
    admission::validate(&mut attributes).await?;
    Ok(attributes.object)
}

/// Evicts a pod that has been read; none if the pod or its budget has changed since.
async fn try_evict(request: &ResourceRequest, options: &DeleteOptions, entry: &Entry) -> Result<Option<ApiResponse>> {
    let delete = Delete { request, options, is_admitted: true };
    let pod = object::decode(&entry.value);
    delete.check(&pod)?;
    let verdict = match ignores_budgets(&pod) {
        true => Verdict::Unguarded,
        false => budget::check(request, &pod).await?,
    };
    if options.dry_run() {
        return Ok(delete.try_delete(entry, request.namespace(), Vec::new()).await?.map(evicted));
    }
    let is_unhealthy = matches!(verdict, Verdict::Unhealthy { .. });
    let budget = verdict.budget().to_owned();
    let marked = match mark(request, entry, pod, verdict.into_charge()).await? {
        Some(marked) => marked,
        None if is_unhealthy && !options.expects_version() => return Err(budget::still_processed(&budget)),
        None => return Ok(None),
    };
    let options = options.expecting(marked.revision);
    let delete = Delete { options: &options, ..delete };
    if let Some(response) = delete.try_delete(&marked, request.namespace(), Vec::new()).await? {
        return Ok(Some(evicted(response)));
    }
    // The budget is charged: whatever else changed of the pod, it is deleted, unless its health was decisive.
    if is_unhealthy {
        return Err(budget::still_processed(&budget));
    }
    delete
        .delete(request.namespace(), request.name())
        .await
        .map(|response| Some(evicted(response)))
}

fn evicted(_deleted: ApiResponse) -> ApiResponse {
    ApiResponse::Done(Status::created())
}

/// Whether a pod is deleted without a look at budgets: it has not started, has ended, or is being deleted.
// canIgnorePDB
fn ignores_budgets(pod: &Value) -> bool {
    object::is_deleting(pod) || matches!(pod["status"]["phase"].as_str(), Some("Pending" | "Succeeded" | "Failed"))
}

/// Adds the condition `DisruptionTarget` to the pod and charges its budget in one commit; none after a conflict.
async fn mark(request: &ResourceRequest, entry: &Entry, mut pod: Value, charge: Option<Op>) -> Result<Option<Entry>> {
    add_condition(&mut pod, &request.now());
    let pod = Op::put(entry.key.clone(), request.kind.encode_built_in(pod), Expect::Revision(entry.revision));
    match request.store().commit(std::iter::once(pod).chain(charge).collect()).await {
        Ok(committed) => Ok(committed.entries.into_iter().next().flatten()),
        Err(Error::Conflict { .. }) => Ok(None),
        Err(error) => request.store_failed(error),
    }
}

// pkg/api/v1/pod/util.go, UpdatePodCondition
fn add_condition(pod: &mut Value, now: &str) {
    let mut condition = json!({"type": "DisruptionTarget", "status": "True", "reason": "EvictionByEvictionAPI",
        "message": "Eviction API: evicting", "lastProbeTime": null, "lastTransitionTime": now});
    let status = object::field_mut(pod, "status");
    let conditions = status.entry("conditions").or_insert_with(|| json!([]));
    let Some(conditions) = conditions.as_array_mut() else {
        return;
    };
    match conditions.iter_mut().find(|it| it["type"] == "DisruptionTarget") {
        Some(old) => {
            if old["status"] == "True" {
                condition["lastTransitionTime"] = old["lastTransitionTime"].take();
            }
            *old = condition;
        }
        None => conditions.push(condition),
    }
}
