//! The PodDisruptionBudget of a pod that is to be evicted: whether it permits that, and how it is charged.

use crate::endpoints::Subresource;
use crate::kinds::policy::POD_DISRUPTION_BUDGET;
use crate::registry::field_manager::FieldManager;
use crate::registry::object;
use crate::request::context::ResourceRequest;
use crate::status::{Cause, Result, Status};
use flyball_schema::selector::LabelSelector;
use flyball_store::{Entry, Expect, Op, Range};
use http::StatusCode;
use serde_json::{Value, json};

/// How many evictions may be unconfirmed by the controller that computes the budget.
const MAX_DISRUPTED_PODS: usize = 2000;

/// What a pod's budget says of its eviction.
pub(super) enum Verdict {
    /// No budget selects the pod.
    Unguarded,
    /// The budget permits it and is charged.
    Charged { budget: String, charge: Op },
    /// The budget permits it because the pod is not ready, and is not charged.
    Unhealthy { budget: String },
}

impl Verdict {
    /// The name of the budget.
    pub fn budget(&self) -> &str {
        match self {
            Verdict::Unguarded => "",
            Verdict::Charged { budget, .. } | Verdict::Unhealthy { budget } => budget,
        }
    }

    /// The write that charges the budget.
    pub fn into_charge(self) -> Option<Op> {
        match self {
            Verdict::Charged { charge, .. } => Some(charge),
            Verdict::Unguarded | Verdict::Unhealthy { .. } => None,
        }
    }
}

/// Checks the budget of a pod; refuses an eviction that the budget does not permit.
pub(super) async fn check(request: &ResourceRequest, pod: &Value) -> Result<Verdict> {
    let mut budgets = budgets(request, pod).await?;
    let Some((entry, mut budget)) = budgets.pop() else {
        return Ok(Verdict::Unguarded);
    };
    if !budgets.is_empty() {
        let why = "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support.";
        return Err(Status::without_reason(StatusCode::INTERNAL_SERVER_ERROR, why));
    }
    let name = object::name(&budget).to_owned();
    if !is_ready(pod) && permits_unhealthy(&budget) {
        return Ok(Verdict::Unhealthy { budget: name });
    }
    check_allowed(&budget)?;
    let charge = charge(request, &entry, &mut budget, object::name(pod));
    Ok(Verdict::Charged { budget: name, charge })
}

/// The budgets that select a pod.
async fn budgets(request: &ResourceRequest, pod: &Value) -> Result<Vec<(Entry, Value)>> {
    let served = request.server.registry().served();
    let kind = served.find("policy", "v1", POD_DISRUPTION_BUDGET.plural).expect("budgets are built in");
    let page = match request.store().range(Range::prefix(kind.prefix(request.namespace()))).await {
        Ok(page) => page,
        Err(error) => return request.store_failed(error),
    };
    let labels = object::metadata(pod).get("labels").and_then(Value::as_object);
    let budgets = page.entries.into_iter().map(|entry| {
        let budget = object::decode(&entry.value);
        (entry, budget)
    });
    let selects = |(_, budget): &(Entry, Value)| {
        LabelSelector::from_value(&budget["spec"]["selector"]).is_some_and(|selector| selector.matches(labels))
    };
    Ok(budgets.filter(selects).collect())
}

fn is_ready(pod: &Value) -> bool {
    let conditions = pod["status"]["conditions"].as_array().into_iter().flatten();
    conditions
        .into_iter()
        .any(|condition| condition["type"] == "Ready" && condition["status"] == "True")
}

fn number(budget: &Value, field: &str) -> i64 {
    budget["status"][field].as_i64().unwrap_or(0)
}

/// Whether a pod that is not ready may go without charging the budget.
fn permits_unhealthy(budget: &Value) -> bool {
    let (current, desired) = (number(budget, "currentHealthy"), number(budget, "desiredHealthy"));
    budget["spec"]["unhealthyPodEvictionPolicy"] == "AlwaysAllow" || (current >= desired && desired > 0)
}

// checkAndDecrement
fn check_allowed(budget: &Value) -> Result<()> {
    let name = object::name(budget);
    if number(budget, "observedGeneration") < object::generation(budget) {
        return Err(still_processed(name));
    }
    let disrupted = budget["status"]["disruptedPods"].as_object().map_or(0, |pods| pods.len());
    match number(budget, "disruptionsAllowed") {
        allowed if allowed < 0 => Err(Status::budget_forbidden(name, "pdb disruptions allowed is negative")),
        _ if disrupted > MAX_DISRUPTED_PODS => {
            let why = "DisruptedPods map too big - too many evictions not confirmed by PDB controller";
            Err(Status::budget_forbidden(name, why))
        }
        0 => Err(refusal(0, reason(budget))),
        _ => Ok(()),
    }
}

/// Why a budget without disruptions left permits none.
fn reason(budget: &Value) -> String {
    let name = object::name(budget);
    let (current, desired) = (number(budget, "currentHealthy"), number(budget, "desiredHealthy"));
    let conditions = budget["status"]["conditions"].as_array().into_iter().flatten();
    let text = |condition: &Value, field: &str| condition[field].as_str().unwrap_or_default().to_owned();
    let condition = conditions
        .into_iter()
        .find(|it| it["type"] == "DisruptionAllowed")
        .filter(|it| it["status"] == "False" && !text(it, "message").is_empty());
    match condition.map(|it| (text(it, "reason"), text(it, "message"))) {
        Some((reason, message)) if reason == "SyncFailed" => {
            format!(
                "The disruption budget {name} does not allow evicting pods currently because it failed sync: {message}"
            )
        }
        _ if current <= desired => {
            format!("The disruption budget {name} needs {desired} healthy pods and has {current} currently")
        }
        Some((reason, message)) => {
            format!("The disruption budget {name} does not allow evicting pods currently ({reason}): {message}")
        }
        None => format!("The disruption budget {name} does not allow evicting pods currently"),
    }
}

/// 429: the budget's status is older than the budget, or the pod's health has changed.
pub(super) fn still_processed(name: &str) -> Status {
    refusal(10, format!("The disruption budget {name} is still being processed by the server."))
}

fn refusal(retry_after_seconds: u16, why: String) -> Status {
    let message = "Cannot evict pod as it would violate the pod's disruption budget.";
    let mut status = Status::too_many_requests(message, retry_after_seconds);
    status.details.get_or_insert_default().causes.push(Cause {
        reason: "DisruptionBudget".into(),
        message: why,
        field: String::new(),
    });
    status
}

/// Decrements the disruptions that a budget allows and records the pod.
fn charge(request: &ResourceRequest, entry: &Entry, budget: &mut Value, pod: &str) -> Op {
    let served = request.server.registry().served();
    let kind = served.find("policy", "v1", POD_DISRUPTION_BUDGET.plural).expect("budgets are built in");
    let (old, now) = (budget.clone(), request.now());
    let left = number(budget, "disruptionsAllowed") - 1;
    let generation = number(budget, "observedGeneration");
    let status = &mut budget["status"];
    status["disruptionsAllowed"] = left.into();
    if !status["disruptedPods"].is_object() {
        status["disruptedPods"] = json!({});
    }
    status["disruptedPods"][pod] = now.as_str().into();
    if left == 0 {
        set_insufficient(status, generation, &now);
    }
    let manager = FieldManager {
        kind,
        others: Vec::new(),
        subresource: Subresource::Status,
        manager: "kube-apiserver",
        now,
    };
    manager.update(Some(&old), budget);
    Op::put(entry.key.clone(), kind.encode_built_in(budget.take()), Expect::Revision(entry.revision))
}

// component-helpers/apps/poddisruptionbudget/helpers.go, UpdateDisruptionAllowedCondition
fn set_insufficient(status: &mut Value, generation: i64, now: &str) {
    let mut condition = json!({"type": "DisruptionAllowed", "status": "False", "reason": "InsufficientPods", "message": "",
        "observedGeneration": generation, "lastTransitionTime": now});
    if !status["conditions"].is_array() {
        status["conditions"] = json!([]);
    }
    let Some(conditions) = status["conditions"].as_array_mut() else {
        return;
    };
    match conditions.iter_mut().find(|it| it["type"] == "DisruptionAllowed") {
        Some(old) => {
            if old["status"] == "False" {
                condition["lastTransitionTime"] = old["lastTransitionTime"].take();
            }
            *old = condition;
        }
        None => conditions.push(condition),
    }
}
