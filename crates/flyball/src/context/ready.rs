//! Whether an object has become what its spec asks for, by the rules of kstatus (sigs.k8s.io/cli-utils, `pkg/kstatus`).

mod workload;

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use serde::Serialize;
use serde_json::Value;
use std::fmt;

/// How far an object is.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Readiness {
    /// It is what its spec asks for.
    Ready,
    /// It is on the way there; this is what it lacks.
    InProgress(String),
    /// It will not get there by itself; this is why.
    Failed(String),
    /// It is being deleted.
    Terminating,
}

impl Readiness {
    /// Looks at an object as it is at `now`.
    ///
    /// Deployments, StatefulSets, DaemonSets, ReplicaSets, Jobs, Pods, PersistentVolumeClaims, Services and
    /// CustomResourceDefinitions have rules of their own. Every other kind is ready unless it says otherwise: by an
    /// `observedGeneration` that is behind, or by a condition `Ready` that is not `True`, `Reconciling` or `Stalled` that is.
    pub fn of(object: &impl Serialize, now: &Time) -> Readiness {
        match serde_json::to_value(object) {
            Ok(object) => look(&object, now.0),
            Err(error) => Readiness::Failed(format!("it is not JSON: {error}")),
        }
    }

    /// Whether it is what its spec asks for.
    pub fn is_ready(&self) -> bool {
        *self == Readiness::Ready
    }
}

/// As messages and conditions show it.
impl fmt::Display for Readiness {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Readiness::Ready => f.write_str("ready"),
            Readiness::InProgress(lack) => write!(f, "in progress: {lack}"),
            Readiness::Failed(why) => write!(f, "failed: {why}"),
            Readiness::Terminating => f.write_str("being deleted"),
        }
    }
}

/// `Ready`, or what the object lacks or suffers from.
type Check = Result<(), Readiness>;

fn look(object: &Value, now: Timestamp) -> Readiness {
    let checked = general(object).and_then(|()| own(object, now));
    checked.err().unwrap_or(Readiness::Ready)
}

/// What holds for every kind (`generic.go`, `checkGenericProperties`).
fn general(object: &Value) -> Check {
    if !object["metadata"]["deletionTimestamp"].is_null() {
        return Err(Readiness::Terminating);
    }
    let generation = object["metadata"]["generation"].as_i64();
    let observed = object["status"]["observedGeneration"].as_i64();
    if let (Some(generation), Some(observed)) = (generation, observed)
        && generation != observed
    {
        return lacks(format!("generation {generation} was not seen yet, only {observed}"));
    }
    if let Some(stalled) = condition(object, "Stalled").filter(|stalled| stalled.is("True")) {
        return fails(stalled.told("it is stalled"));
    }
    match condition(object, "Reconciling").filter(|reconciling| reconciling.is("True")) {
        Some(reconciling) => lacks(reconciling.told("it is being reconciled")),
        None => Ok(()),
    }
}

fn own(object: &Value, now: Timestamp) -> Check {
    let version = object["apiVersion"].as_str().unwrap_or_default();
    let group = version.split_once('/').map_or("", |(group, _)| group);
    match (group, object["kind"].as_str().unwrap_or_default()) {
        ("apps", "Deployment") => workload::deployment(object),
        ("apps", "StatefulSet") => workload::stateful_set(object),
        ("apps", "DaemonSet") => workload::daemon_set(object),
        ("apps", "ReplicaSet") => workload::replica_set(object),
        ("batch", "Job") => workload::job(object),
        ("", "Pod") => workload::pod(object, now),
        ("", "PersistentVolumeClaim") => match text(object, "/status/phase") {
            "Bound" => Ok(()),
            phase => lacks(format!("it is not bound, but {}", if phase.is_empty() { "has no phase" } else { phase })),
        },
        ("", "Service")
            if text(object, "/spec/type") == "LoadBalancer" && text(object, "/spec/clusterIP").is_empty() =>
        {
            lacks("it has no cluster IP yet")
        }
        ("apiextensions.k8s.io", "CustomResourceDefinition") => definition(object),
        _ => match condition(object, "Ready").filter(|ready| !ready.is("True")) {
            Some(ready) => lacks(ready.told("its condition Ready is not True")),
            None => Ok(()),
        },
    }
}

fn definition(object: &Value) -> Check {
    if let Some(names) = condition(object, "NamesAccepted").filter(|names| names.is("False")) {
        return fails(names.told("its names are taken"));
    }
    match condition(object, "Established") {
        Some(established) if established.is("True") => Ok(()),
        Some(established) if established.is("False") && established.reason != "Installing" => {
            fails(established.told("it is not established"))
        }
        _ => lacks("it is being installed"),
    }
}

/// A condition of an object's status.
struct Condition<'a> {
    status: &'a str,
    reason: &'a str,
    message: &'a str,
}

impl Condition<'_> {
    fn is(&self, status: &str) -> bool {
        self.status == status
    }

    /// What the condition says, or else this.
    fn told(&self, otherwise: &str) -> String {
        match (self.message, self.reason) {
            ("", "") => otherwise.into(),
            ("", reason) => reason.into(),
            (message, _) => message.into(),
        }
    }
}

fn condition<'a>(object: &'a Value, r#type: &str) -> Option<Condition<'a>> {
    let conditions = object["status"]["conditions"].as_array()?;
    let condition = conditions.iter().find(|condition| condition["type"] == r#type)?;
    let text = |name: &str| condition[name].as_str().unwrap_or_default();
    Some(Condition {
        status: text("status"),
        reason: text("reason"),
        message: text("message"),
    })
}

fn number(object: &Value, path: &str, default: i64) -> i64 {
    object.pointer(path).and_then(Value::as_i64).unwrap_or(default)
}

fn text<'a>(object: &'a Value, path: &str) -> &'a str {
    object.pointer(path).and_then(Value::as_str).unwrap_or_default()
}

fn lacks(what: impl Into<String>) -> Check {
    Err(Readiness::InProgress(what.into()))
}

fn fails(why: impl Into<String>) -> Check {
    Err(Readiness::Failed(why.into()))
}

/// Refuses fewer than wanted: `ready: 1 of 3`.
fn enough(what: &str, has: i64, wanted: i64) -> Check {
    if has < wanted {
        lacks(format!("{what}: {has} of {wanted}"))
    } else {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde::Deserialize;

    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Case {
        name: String,
        object: Value,
        ready: Option<bool>,
        lacks: Option<String>,
        fails: Option<String>,
        terminating: Option<bool>,
    }

    #[test]
    fn a_readiness_is_shown_with_its_reason() {
        let shown = [
            Readiness::Ready,
            Readiness::InProgress("1 of 2 pods is ready".into()),
            Readiness::Failed("no quota".into()),
            Readiness::Terminating,
        ]
        .map(|readiness| readiness.to_string());
        assert_eq!(
            shown,
            [
                "ready",
                "in progress: 1 of 2 pods is ready",
                "failed: no quota",
                "being deleted"
            ]
        );
    }

    #[test]
    fn every_case_of_the_table_is_judged_as_it_says() {
        let cases: Vec<Case> = serde_saphyr::from_str(include_str!("../../tests/data/ready.yaml")).unwrap();
        let now = Time("2026-01-01T00:01:00Z".parse().unwrap());
        for case in cases {
            let expected = match (case.ready, case.lacks, case.fails, case.terminating) {
                (Some(true), None, None, None) => Readiness::Ready,
                (None, Some(what), None, None) => Readiness::InProgress(what),
                (None, None, Some(why), None) => Readiness::Failed(why),
                (None, None, None, Some(true)) => Readiness::Terminating,
                _ => panic!("{}: says one of ready, lacks, fails, terminating", case.name),
            };
            assert_eq!(Readiness::of(&case.object, &now), expected, "{}", case.name);
        }
    }
}
