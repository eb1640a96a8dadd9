//! Gives ClusterRoles with an aggregation rule the rules of the roles that it selects.
// pkg/controller/clusterroleaggregation/clusterroleaggregation_controller.go

use flyball::{Action, Cache, Context, Controller, Key, Result};
use k8s_openapi::api::rbac::v1::{ClusterRole, PolicyRule};
use kube::{
    Api, ResourceExt,
    api::{Patch, PatchParams},
    core::{Selector, SelectorExt},
};
use serde_json::json;
use std::sync::Arc;

const MANAGER: &str = "clusterrole-aggregation-controller";

/// The controller of aggregated roles.
pub(crate) fn controller() -> Controller<ClusterRole> {
    Controller::new(reconcile).named(MANAGER).reads::<ClusterRole>().watches(aggregated)
}

/// Every role may belong to every aggregated one.
fn aggregated(_role: Arc<ClusterRole>, cache: Cache) -> Result<Vec<Key>> {
    let roles = cache.list::<ClusterRole>()?.into_iter();
    let aggregated = roles.filter(|role| role.aggregation_rule.is_some());
    Ok(aggregated.map(|role| Key::of(&*role)).collect())
}

async fn reconcile(role: Arc<ClusterRole>, ctx: Context) -> Result {
    if role.aggregation_rule.is_none() {
        return Ok(Action::await_change());
    }
    let rules = rules(&role, ctx.list::<ClusterRole>().await?);
    if rules == role.rules.clone().unwrap_or_default() {
        return Ok(Action::await_change());
    }
    let name = role.name_any();
    let applied = json!({ "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole",
        "metadata": { "name": name }, "rules": rules });
    let roles: Api<ClusterRole> = Api::all(ctx.client());
    roles.patch(&name, &PatchParams::apply(MANAGER).force(), &Patch::Apply(applied)).await?;
    Ok(Action::await_change())
}

/// The rules of the roles that each selector selects, by name, each rule once.
fn rules(role: &ClusterRole, mut roles: Vec<Arc<ClusterRole>>) -> Vec<PolicyRule> {
    roles.sort_by_key(|other| other.name_any());
    let rule = role.aggregation_rule.clone().unwrap_or_default();
    let selectors = rule.cluster_role_selectors.into_iter().flatten();
    let mut rules: Vec<PolicyRule> = Vec::new();
    for selector in selectors.filter_map(|selector| Selector::try_from(selector).ok()) {
        let selected = roles.iter().filter(|other| selector.matches(other.labels()));
        for other in selected.filter(|other| other.name_any() != role.name_any()) {
            for one in other.rules.iter().flatten() {
                if !rules.contains(one) {
                    rules.push(one.clone());
                }
            }
        }
    }
    rules
}
