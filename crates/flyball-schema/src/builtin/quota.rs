//! ResourceQuotas: how a write is charged to the quotas of its namespace, and what objects use of them together.
// apiserver/pkg/admission/plugin/resourcequota/controller.go, CheckRequest; apiserver/pkg/quota/v1/resources.go

mod measure;
mod scope;
mod validate;

use super::resources::aggregate::amounts_in;
use crate::quantity::Quantity;
use jiff::Timestamp;
use serde_json::{Map, Value};
use std::collections::BTreeMap;

use measure::{missing, usage};

pub use measure::matching;
pub use scope::includes;
pub use validate::{validate, validate_status};

/// Amounts by the name of their resource.
pub type Amounts = BTreeMap<String, Quantity>;

/// A resource, as quotas name it.
#[derive(Clone, Copy, Debug)]
pub struct Resource<'a> {
    /// The API group; empty for the core group.
    pub group: &'a str,
    /// The plural name.
    pub plural: &'a str,
}

/// A write of one object.
#[derive(Clone, Copy, Debug)]
pub struct Write<'a> {
    /// The resource of the object.
    pub resource: Resource<'a>,
    /// The subresource, if it writes one.
    pub subresource: Option<&'a str>,
    /// The new state.
    pub object: &'a Value,
    /// The old state; none for a create.
    pub old: Option<&'a Value>,
    /// The time of the write.
    pub now: Timestamp,
}

/// What is never charged: resources that are not stored, and events.
// pkg/quota/v1/install/registry.go, ignoredResources
const UNMEASURED: [&str; 3] = ["bindings", "componentstatuses", "events"];
const UNMEASURED_GROUPS: [&str; 3] = ["authentication.k8s.io", "authorization.k8s.io", "events.k8s.io"];

impl Write<'_> {
    /// Whether the write may change what its object uses.
    // Evaluator.Handles
    pub fn is_measured(&self) -> bool {
        let Resource { group, plural } = self.resource;
        if UNMEASURED_GROUPS.contains(&group) || (group.is_empty() && UNMEASURED.contains(&plural)) {
            return false;
        }
        match (group, plural, self.subresource, self.old) {
            (_, _, None, None) => true,
            ("", "pods", None, Some(old)) => scope::is_terminating(old) != scope::is_terminating(self.object),
            ("", "services" | "persistentvolumeclaims", None, Some(_)) => true,
            ("", "persistentvolumeclaims", Some("status"), Some(_)) => true,
            _ => false,
        }
    }

    /// What the write adds to the usage of a quota.
    fn added(&self, quota: &Value) -> Amounts {
        let new = usage(self.resource, self.object, self.now);
        let old = self.old.filter(|old| includes(self.resource, quota, old));
        let old = old.map(|old| usage(self.resource, old, self.now)).unwrap_or_default();
        let rest = new.into_iter().map(|(name, amount)| match old.get(&name) {
            Some(before) => (name, amount.minus_at_most(before)),
            None => (name, amount),
        });
        rest.filter(|(_, amount)| !amount.is_zero()).collect()
    }
}

/// Charges a write to quotas: the new `status.used` of each whose usage changes, or why the write is refused.
pub fn charge(quotas: &[Value], write: &Write<'_>) -> Result<Vec<Option<Value>>, String> {
    let resource = write.resource;
    let mut concerned = Vec::new();
    for quota in quotas {
        let hard = amounts_in(&quota["status"]["hard"]);
        let restricted = matching(resource, hard.keys());
        if restricted.is_empty() || !includes(resource, quota, write.object) {
            concerned.push(None);
            continue;
        }
        let name = name(quota);
        if let Some(why) = missing(resource, &restricted, write.object) {
            return Err(format!("failed quota: {name}: {why}"));
        }
        let used = amounts_in(&quota["status"]["used"]);
        if restricted.iter().any(|name| !used.contains_key(*name)) {
            return Err(format!("status unknown for quota: {name}, resources: {}", restricted.join(",")));
        }
        concerned.push(Some((hard, used)));
    }
    let negative = usage(resource, write.object, write.now)
        .into_iter()
        .filter(|(_, amount)| amount.is_negative());
    let negative: Vec<String> = negative.map(|(name, _)| name).collect();
    if !negative.is_empty() {
        return Err(format!("quota usage is negative for resource(s): {}", negative.join(",")));
    }
    let charged = quotas.iter().zip(concerned).map(|(quota, concerned)| match concerned {
        Some((hard, used)) => add(quota, write, &hard, used),
        None => Ok(None),
    });
    charged.collect()
}

fn add(quota: &Value, write: &Write<'_>, hard: &Amounts, used: Amounts) -> Result<Option<Value>, String> {
    let requested: Amounts = write.added(quota).into_iter().filter(|(name, _)| hard.contains_key(name)).collect();
    if requested.is_empty() {
        return Ok(None);
    }
    let mut total = used.clone();
    for (name, amount) in &requested {
        let sum = total.get(name).map_or_else(|| amount.clone(), |known| known.plus(amount));
        total.insert(name.clone(), sum);
    }
    let is_exceeded = |name: &&String| total.get(*name) > hard.get(*name);
    let exceeded: Vec<&String> = requested.keys().filter(is_exceeded).collect();
    if !exceeded.is_empty() && write.subresource != Some("status") {
        let shown = |amounts: &Amounts| {
            let one = |name: &&String| Some(format!("{name}={}", amounts.get(*name)?));
            exceeded.iter().filter_map(one).collect::<Vec<_>>().join(",")
        };
        let (name, requested, used, hard) = (name(quota), shown(&requested), shown(&used), shown(hard));
        return Err(format!("exceeded quota: {name}, requested: {requested}, used: {used}, limited: {hard}"));
    }
    Ok(Some(to_value(&total)))
}

/// Adds what an object uses of a quota to a total.
pub fn add_usage(total: &mut Amounts, resource: Resource<'_>, quota: &Value, object: &Value, now: Timestamp) {
    if !includes(resource, quota, object) {
        return;
    }
    for (name, amount) in usage(resource, object, now) {
        if let Some(known) = total.get_mut(&name) {
            *known = known.plus(&amount);
        }
    }
}

/// Amounts as a list of resources in JSON.
pub fn to_value(amounts: &Amounts) -> Value {
    let all = amounts.iter().map(|(name, amount)| (name.clone(), amount.to_string().into()));
    Value::Object(all.collect::<Map<String, Value>>())
}

fn name(quota: &Value) -> &str {
    quota["metadata"]["name"].as_str().unwrap_or_default()
}

fn items(list: &Value) -> impl Iterator<Item = &Value> {
    list.as_array().into_iter().flatten()
}

#[cfg(test)]
mod tests;
