//! How a simulated pod behaves, as told by a test, an annotation or a file of rules.

mod duration;

use k8s_openapi::api::core::v1::Pod;
use kube::{ResourceExt, core::SelectorExt};
use serde::Deserialize;
use std::{collections::BTreeMap, sync::Arc, time::Duration};

/// The annotation of a pod that holds its [`Behaviour`] as YAML or JSON.
pub const ANNOTATION: &str = "flyball.dev/behaviour";

/// How the containers of a simulated pod behave. What is not said is as usual: they start, become ready and run on; those of a
/// Job's pod succeed after a second.
///
/// ```
/// # use flyball_cluster::Behaviour;
/// let text = "exit: { code: 1, after: 10s }\ncontainers: { sidecar: { pullError: no such tag } }";
/// let behaviour: Behaviour = text.parse()?;
/// assert_eq!(behaviour.exit.map(|exit| exit.code), Some(1));
/// # Ok::<_, flyball_cluster::BehaviourError>(())
/// ```
#[derive(Clone, Debug, Default, Deserialize, PartialEq)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Behaviour {
    /// How long after the pod is bound its containers start; half a second unless set.
    #[serde(with = "duration::optional")]
    pub start_after: Option<Duration>,
    /// How long after its start a container becomes ready; the initial delay of its probes unless set.
    #[serde(with = "duration::optional")]
    pub ready_after: Option<Duration>,
    /// Images cannot be pulled, with this message.
    pub pull_error: Option<String>,
    /// Containers exit.
    pub exit: Option<Exit>,
    /// When readiness probes fail.
    pub unready: Vec<Window>,
    /// When liveness probes fail: the container is then killed and started again.
    #[serde(with = "duration::optional")]
    pub unhealthy_after: Option<Duration>,
    /// How much CPU a container uses over time, each amount from a time after its start on: `{ from: 1m, amount: 250m }`.
    pub cpu: Vec<Usage>,
    /// How much memory a container uses over time.
    pub memory: Vec<Usage>,
    /// Containers that behave otherwise, by name.
    pub containers: BTreeMap<String, Behaviour>,
}

/// How a container ends.
#[derive(Clone, Debug, Default, Deserialize, PartialEq)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Exit {
    /// The exit code.
    pub code: i32,
    /// How long after its start.
    #[serde(with = "duration")]
    pub after: Duration,
    /// How often; after so many exits the container runs on. Always unless set.
    pub times: Option<u32>,
    /// Why, such as `OOMKilled`; `Completed` or `Error` unless set.
    pub reason: Option<String>,
    /// The termination message.
    pub message: Option<String>,
}

/// A span of time after the start of a container.
#[derive(Clone, Debug, Default, Deserialize, PartialEq)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Window {
    /// Its beginning.
    #[serde(with = "duration")]
    pub from: Duration,
    /// Its end, if it has one.
    #[serde(with = "duration::optional")]
    pub until: Option<Duration>,
}

/// An amount of a resource that is used from some time on.
#[derive(Clone, Debug, Default, Deserialize, PartialEq)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Usage {
    /// How long after the start of the container.
    #[serde(with = "duration")]
    pub from: Duration,
    /// The amount, as a quantity: `250m`, `64Mi`.
    pub amount: String,
}

/// A line of a file of rules: the pods that it is about, and how they behave.
///
/// ```yaml
/// - namespace: default
///   labels: { app: flaky }
///   behaviour: { exit: { code: 1, after: 5s } }
/// ```
#[derive(Clone, Debug, Default, Deserialize, PartialEq)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Rule {
    /// The namespace of the pods; all unless set.
    pub namespace: Option<String>,
    /// Labels that the pods have.
    pub labels: BTreeMap<String, String>,
    /// The image of one of their containers.
    pub image: Option<String>,
    /// How they behave.
    pub behaviour: Behaviour,
}

/// Why a text is no behaviour or no list of rules.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct BehaviourError(String);

impl std::str::FromStr for Behaviour {
    type Err = BehaviourError;

    fn from_str(text: &str) -> Result<Behaviour, BehaviourError> {
        serde_saphyr::from_str(text).map_err(|error| BehaviourError(error.to_string()))
    }
}

impl Rule {
    /// Reads a file of rules: a YAML list.
    pub fn parse_all(text: &str) -> Result<Vec<Rule>, BehaviourError> {
        serde_saphyr::from_str(text).map_err(|error| BehaviourError(error.to_string()))
    }

    fn is_about(&self, pod: &Pod) -> bool {
        let image = |wanted: &String| {
            let containers = pod.spec.iter().flat_map(|spec| &spec.containers);
            containers.filter_map(|container| container.image.as_ref()).any(|image| image == wanted)
        };
        self.namespace
            .as_ref()
            .is_none_or(|namespace| pod.namespace().as_ref() == Some(namespace))
            && self.labels.matches_all(pod)
            && self.image.as_ref().is_none_or(image)
    }
}

trait MatchesAll {
    fn matches_all(&self, pod: &Pod) -> bool;
}

impl MatchesAll for BTreeMap<String, String> {
    fn matches_all(&self, pod: &Pod) -> bool {
        kube::core::Selector::from_iter(self.clone()).matches(pod.labels())
    }
}

impl Behaviour {
    /// How one container behaves.
    pub(crate) fn of_container(&self, name: &str) -> &Behaviour {
        self.containers.get(name).unwrap_or(self)
    }
}

/// Where behaviours come from: a test's function first, then the pod's annotation, then the first rule about it.
#[derive(Clone, Default)]
pub(crate) struct Behaviours {
    pub(crate) told: Option<Told>,
    pub(crate) rules: Arc<[Rule]>,
}

/// A test's function.
pub(crate) type Told = Arc<dyn Fn(&Pod) -> Option<Behaviour> + Send + Sync>;

impl Behaviours {
    /// How a pod behaves.
    pub(crate) fn of(&self, pod: &Pod) -> Result<Behaviour, BehaviourError> {
        if let Some(behaviour) = self.told.as_ref().and_then(|told| told(pod)) {
            return Ok(behaviour);
        }
        if let Some(text) = pod.annotations().get(ANNOTATION) {
            return text.parse();
        }
        if let Some(rule) = self.rules.iter().find(|rule| rule.is_about(pod)) {
            return Ok(rule.behaviour.clone());
        }
        let of_job = crate::owner::controller(&pod.metadata).is_some_and(|owner| owner.kind == "Job");
        let exit = of_job.then(|| Exit { after: Duration::from_secs(1), ..Exit::default() });
        Ok(Behaviour { exit, ..Behaviour::default() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn pod(annotation: Option<&str>) -> Pod {
        let annotations = annotation.map(|text| json!({ ANNOTATION: text }));
        let metadata =
            json!({ "name": "a", "namespace": "default", "labels": { "app": "web" }, "annotations": annotations });
        let spec = json!({ "containers": [{ "name": "c", "image": "web:1" }] });
        serde_json::from_value(json!({ "metadata": metadata, "spec": spec })).unwrap()
    }

    #[test]
    fn an_annotation_goes_before_the_rules() {
        let rules = "[{ labels: { app: web }, behaviour: { exit: { code: 2 } } }]";
        let behaviours = Behaviours { told: None, rules: Rule::parse_all(rules).unwrap().into() };
        let code = |pod: &Pod| behaviours.of(pod).unwrap().exit.map(|exit| exit.code);
        assert_eq!(code(&pod(None)), Some(2));
        assert_eq!(code(&pod(Some("exit: { code: 3, after: 1m30s }"))), Some(3));
        assert_eq!(code(&pod(Some("{}"))), None);
    }

    #[test]
    fn a_field_that_does_not_exist_is_named() {
        let error = "exits: 1".parse::<Behaviour>().unwrap_err().to_string();
        assert!(error.contains("exits"), "{error}");
        let error = "startAfter: soon".parse::<Behaviour>().unwrap_err().to_string();
        assert!(error.contains("soon"), "{error}");
    }
}
