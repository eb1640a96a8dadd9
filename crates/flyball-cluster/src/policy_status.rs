//! Type-checks the validations of ValidatingAdmissionPolicies against the kinds that they match, and sets their status.
// pkg/controller/validatingadmissionpolicystatus, apiserver/pkg/admission/plugin/policy/validating/typechecking.go

use crate::kinds::Kinds;
use flyball::{Action, Context, Controller, Result};
use flyball_apiserver::registry;
use flyball_schema::policy::{CheckedType, type_check};
use k8s_openapi::api::admissionregistration::v1::ValidatingAdmissionPolicy;
use kube::{
    Api, ResourceExt,
    api::{Patch, PatchParams},
};
use serde_json::{Value, json};
use std::{collections::BTreeMap, sync::Arc};

const NAME: &str = "validatingadmissionpolicy-status";
/// The most kinds that one rule of a policy is checked against.
const MAX_CHECKED_KINDS: usize = 10;

/// The controller of the status of policies.
pub(crate) fn controller(kinds: &Kinds) -> Controller<ValidatingAdmissionPolicy> {
    let kinds = kinds.clone();
    Controller::new(move |policy: Arc<ValidatingAdmissionPolicy>, ctx: Context| {
        let kinds = kinds.clone();
        async move { reconcile(&kinds, &policy, &ctx).await }
    })
    .named(NAME)
}

async fn reconcile(kinds: &Kinds, policy: &ValidatingAdmissionPolicy, ctx: &Context) -> Result {
    let generation = policy.metadata.generation.unwrap_or_default();
    let observed = policy.status.as_ref().and_then(|status| status.observed_generation);
    if generation <= observed.unwrap_or_default() {
        return Ok(Action::await_change());
    }
    let name = policy.name_any();
    let warnings: Vec<Value> = check(kinds, &serde_json::to_value(policy)?)
        .into_iter()
        .map(|(field, warning)| json!({"fieldRef": field, "warning": warning}))
        .collect();
    let checked = match warnings.is_empty() {
        true => json!({}),
        false => json!({"expressionWarnings": warnings}),
    };
    let status = json!({
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingAdmissionPolicy",
        "metadata": {"name": name},
        "status": {"observedGeneration": generation, "typeChecking": checked},
    });
    let policies: Api<ValidatingAdmissionPolicy> = Api::all(ctx.client());
    policies
        .patch_status(&name, &PatchParams::apply(NAME).force(), &Patch::Apply(status))
        .await?;
    Ok(Action::await_change())
}

fn check(kinds: &Kinds, policy: &Value) -> Vec<(String, String)> {
    let served = kinds.served_now();
    let all: Vec<&Arc<registry::Kind>> = served.kinds().collect();
    let objects = matched(&all, policy);
    let objects: Vec<CheckedType<'_>> = objects.values().filter_map(|kind| checked_type(kind)).collect();
    let param_kind = &policy["spec"]["paramKind"];
    let is_param = |kind: &&&Arc<registry::Kind>| {
        param_kind["apiVersion"] == *kind.resource.api_version() && param_kind["kind"] == *kind.resource.kind
    };
    let params = all.iter().find(is_param).and_then(|kind| kind.node());
    type_check(policy, &objects, params)
}

fn checked_type(kind: &registry::Kind) -> Option<CheckedType<'_>> {
    let resource = &kind.resource;
    Some(CheckedType {
        group: &resource.group,
        version: &resource.version,
        kind: &resource.kind,
        node: kind.node()?,
    })
}

type ByName<'a> = BTreeMap<(&'a str, &'a str, &'a str), &'a registry::Kind>;

/// The kinds that the rules of a policy name, by group, version and kind. Wildcards and subresources name none.
// TypeChecker.typesToCheck
fn matched<'a>(all: &[&'a Arc<registry::Kind>], policy: &Value) -> ByName<'a> {
    let mut found = ByName::new();
    for rule in policy["spec"]["matchConstraints"]["resourceRules"].as_array().into_iter().flatten() {
        let mut count = 0;
        let resources = texts(&rule["resources"]).into_iter().filter(|name| !name.contains(['*', '/']));
        let resources: Vec<&str> = resources.collect();
        let (groups, versions) = (texts(&rule["apiGroups"]), texts(&rule["apiVersions"]));
        if groups.iter().chain(&versions).any(|name| name.contains('*')) {
            continue;
        }
        for (group, version) in groups.iter().flat_map(|group| versions.iter().map(move |version| (group, version))) {
            for resource in &resources {
                for kind in all.iter().filter(|kind| is_named(kind, group, version, resource)) {
                    let its = &kind.resource;
                    found.insert((&its.group, &its.version, &its.kind), kind);
                    count += 1;
                    if count == MAX_CHECKED_KINDS {
                        return found;
                    }
                }
            }
        }
    }
    found
}

/// As upstream's RESTMapper has it: the core group stands for every group.
fn is_named(kind: &registry::Kind, group: &str, version: &str, resource: &str) -> bool {
    let its = &kind.resource;
    (group.is_empty() || *its.group == *group)
        && *its.version == *version
        && (*its.plural == *resource || *its.singular == *resource)
}

/// The texts of a list, sorted.
fn texts(list: &Value) -> Vec<&str> {
    let mut texts: Vec<&str> = list.as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    texts.sort_unstable();
    texts
}
