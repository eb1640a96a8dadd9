//! POST of an Eviction: a pod is deleted, unless a PodDisruptionBudget holds it.

use crate::endpoints::decode;
use crate::registry::deletion::Delete;
use crate::registry::object;
use crate::request::context::ResourceRequest;
use crate::request::options::{DeleteOptions, WriteOptions};
use crate::response::ApiResponse;
use crate::status::{Cause, Result, Status};
use flyball_schema::kinds;
use flyball_schema::selector::LabelSelector;
use flyball_store::Range;
use serde_json::Value;

/// Evicts a pod.
// pkg/registry/core/pod/storage/eviction.go
pub(crate) async fn evict(request: &ResourceRequest) -> Result<ApiResponse> {
    let options = WriteOptions::create(&request.info.query, &request.headers)?;
    let node = kinds::builtin()
        .schema("io.k8s.api.policy.v1.Eviction")
        .expect("Eviction is in the table");
    let eviction = decode::as_type(request, node, "Eviction", "policy/v1", options.field_validation)?;
    let name = object::name(&eviction);
    if !name.is_empty() && name != request.name() {
        return Err(Status::bad_request("name in URL does not match name in Eviction object"));
    }
    let pod = match request.store().get(request.key()).await {
        Ok(Some(entry)) => object::decode(&entry.value),
        Ok(None) => return Err(request.not_found()),
        Err(error) => return request.store_failed(error),
    };
    if !is_free(&pod) {
        check_budgets(request, &pod).await?;
    }
    let delete_options = DeleteOptions::of_value(&eviction["deleteOptions"], options.dry_run)?;
    let delete = Delete { request, options: &delete_options };
    delete.delete(request.namespace(), request.name()).await?;
    Ok(ApiResponse::Done(Status::created()))
}

/// Whether no budget counts the pod: it has not begun, has ended, or is going anyway.
fn is_free(pod: &Value) -> bool {
    object::is_deleting(pod) || matches!(pod["status"]["phase"].as_str(), Some("Pending" | "Succeeded" | "Failed"))
}

async fn check_budgets(request: &ResourceRequest, pod: &Value) -> Result<()> {
    let served = request.server.registry().served();
    let kind = served.find("policy", "v1", "poddisruptionbudgets").expect("budgets are built in");
    let page = match request.store().range(Range::prefix(kind.prefix(request.namespace()))).await {
        Ok(page) => page,
        Err(error) => return request.store_failed(error),
    };
    let labels = object::metadata(pod).get("labels").and_then(Value::as_object);
    let budgets = page.entries.iter().map(|entry| object::decode(&entry.value));
    let holds = |budget: &Value| {
        LabelSelector::from_value(&budget["spec"]["selector"]).is_some_and(|selector| selector.matches(labels))
    };
    let Some(budget) = budgets.into_iter().find(holds) else {
        return Ok(());
    };
    if budget["status"]["disruptionsAllowed"].as_i64().unwrap_or(0) > 0 {
        return Ok(());
    }
    let name = object::name(&budget);
    let desired = budget["status"]["desiredHealthy"].as_i64().unwrap_or(0);
    let current = budget["status"]["currentHealthy"].as_i64().unwrap_or(0);
    let message = "Cannot evict pod as it would violate the pod's disruption budget.";
    let mut status = Status::too_many_requests(message, 0);
    status.details.get_or_insert_default().causes.push(Cause {
        reason: "DisruptionBudget".into(),
        message: format!("The disruption budget {name} needs {desired} healthy pods and has {current} currently"),
        field: String::new(),
    });
    Err(status)
}
