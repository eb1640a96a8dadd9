//! Pod security standards: the levels `baseline` and `restricted` in each version, and the labels by which a namespace
//! chooses them.
// k8s.io/pod-security-admission/{api,policy}

mod baseline;
mod checks;
mod policy;
mod restricted;
#[cfg(test)]
mod tests;

use checks::CHECKS;
use serde_json::Value;
use std::fmt;

pub use policy::Policy;

/// How much a pod may do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// Everything.
    Privileged,
    /// Nothing that is known to escalate privileges.
    Baseline,
    /// What hardened pods need.
    Restricted,
}

/// The version of Kubernetes whose definition of a level applies: `v1.N`, or the latest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Version {
    /// The minor version.
    Minor(u32),
    /// The newest definition.
    Latest,
}

/// A level in a version.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Standard {
    /// The level.
    pub level: Level,
    /// The version.
    pub version: Version,
}

/// Why a pod violates a standard.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Offence {
    /// What is forbidden, in few words.
    pub reason: &'static str,
    /// The parts of the pod that offend; may be empty.
    pub detail: String,
}

impl fmt::Display for Level {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Level::Privileged => "privileged",
            Level::Baseline => "baseline",
            Level::Restricted => "restricted",
        })
    }
}

impl fmt::Display for Standard {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.version {
            Version::Minor(minor) => write!(formatter, "{}:v1.{minor}", self.level),
            Version::Latest => write!(formatter, "{}:latest", self.level),
        }
    }
}

impl Standard {
    /// The offences of a pod, or of a template of pods, in upstream's order.
    // policy/registry.go, EvaluatePod
    pub fn offences(self, pod: &Value) -> Vec<Offence> {
        if self.level == Level::Privileged {
            return Vec::new();
        }
        let minor = match self.version {
            Version::Minor(minor) => minor,
            Version::Latest => u32::MAX,
        };
        let applies = |level: Level| level <= self.level;
        let current: Vec<_> = CHECKS.iter().filter(|check| applies(check.level)).collect();
        let newest = |name: &str| {
            let mut versions = current.iter().filter(|check| check.name == name && check.since <= minor);
            versions.next_back()
        };
        let overridden: Vec<&str> = current
            .iter()
            .filter(|check| check.since <= minor)
            .filter_map(|check| check.overrides)
            .collect();
        let mut offences = Vec::new();
        let mut last = "";
        for check in &current {
            if check.name == last || overridden.contains(&check.name) {
                continue;
            }
            last = check.name;
            offences.extend(newest(check.name).and_then(|check| (check.run)(pod)));
        }
        offences
    }
}

/// The reasons of offences: `host namespaces, privileged`.
pub fn reasons(offences: &[Offence]) -> String {
    offences.iter().map(|offence| offence.reason).collect::<Vec<_>>().join(", ")
}

/// The reasons of offences with their details: `host namespaces (hostPID=true), privileged (container "a" …)`.
pub fn details(offences: &[Offence]) -> String {
    let one = |offence: &Offence| match offence.detail.as_str() {
        "" => offence.reason.to_owned(),
        detail => format!("{} ({detail})", offence.reason),
    };
    offences.iter().map(one).collect::<Vec<_>>().join(", ")
}

/// All containers of a pod: init containers, containers, ephemeral containers.
fn containers(pod: &Value) -> impl Iterator<Item = &Value> {
    let lists = ["initContainers", "containers", "ephemeralContainers"];
    lists.into_iter().flat_map(|list| pod["spec"][list].as_array().into_iter().flatten())
}

/// The names of the containers of which something holds.
fn containers_where(pod: &Value, holds: impl Fn(&Value) -> bool) -> Vec<String> {
    let found = containers(pod).filter(|container| holds(container));
    found.map(|container| text(&container["name"]).to_owned()).collect()
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

fn quoted<T: AsRef<str>>(items: impl IntoIterator<Item = T>) -> String {
    let items: Vec<String> = items.into_iter().map(|item| format!("\"{}\"", item.as_ref())).collect();
    items.join(", ")
}

fn plural<'a>(one: &'a str, many: &'a str, count: usize) -> &'a str {
    if count == 1 { one } else { many }
}

/// `container "a"`, or `containers "a", "b"`.
fn named_containers(names: &[String]) -> String {
    format!("{} {}", plural("container", "containers", names.len()), quoted(names))
}

/// `pod and containers "a", "b"`: what sets something; empty if nothing does.
fn setters(pod_sets: bool, containers: &[String]) -> String {
    let pod = pod_sets.then(|| "pod".to_owned());
    let containers = (!containers.is_empty()).then(|| named_containers(containers));
    pod.into_iter().chain(containers).collect::<Vec<_>>().join(" and ")
}
