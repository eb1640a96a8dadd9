//! The ReplicaSets of a Deployment: which one has its current template, and how large each is.

use super::{annotation, rollout::Size};
use crate::template_hash;
use k8s_openapi::api::{
    apps::v1::{Deployment, ReplicaSet, ReplicaSetStatus},
    core::v1::PodTemplateSpec,
};
use std::sync::Arc;

/// The ReplicaSets that a Deployment controls.
#[derive(Clone, Debug, Default)]
pub(crate) struct Sets {
    /// The one with the Deployment's current template.
    pub(crate) new: Option<Arc<ReplicaSet>>,
    /// All others, oldest first.
    pub(crate) old: Vec<Arc<ReplicaSet>>,
}

impl Sets {
    /// Sorts out the ReplicaSets of a Deployment. If several have its template, the oldest is the current one.
    // deployment_util.go, FindNewReplicaSet
    pub(crate) fn of(deployment: &Deployment, mut sets: Vec<Arc<ReplicaSet>>) -> Sets {
        let age = |set: &ReplicaSet| (set.metadata.creation_timestamp.clone(), set.metadata.name.clone());
        sets.sort_by_cached_key(|set| age(set));
        let template = deployment.spec.as_ref().map(|spec| unlabelled(&spec.template));
        let is_new = |set: &Arc<ReplicaSet>| template == template_of(set).map(unlabelled);
        let new = sets.iter().position(is_new).map(|index| sets.remove(index));
        Sets { new, old: sets }
    }

    /// All ReplicaSets, the current one last.
    pub(crate) fn all(&self) -> impl DoubleEndedIterator<Item = &Arc<ReplicaSet>> {
        self.old.iter().chain(&self.new)
    }

    /// Those that are to have pods.
    pub(crate) fn active(&self) -> Vec<&Arc<ReplicaSet>> {
        self.all().filter(|set| replicas(set) > 0).collect()
    }
}

/// `spec.replicas`.
pub(crate) fn replicas(set: &ReplicaSet) -> i32 {
    set.spec.as_ref().and_then(|spec| spec.replicas).unwrap_or(1)
}

/// What the arithmetic of a rollout needs to know of a ReplicaSet.
pub(crate) fn size(set: &ReplicaSet) -> Size {
    Size {
        replicas: replicas(set),
        available: status(set).and_then(|status| status.available_replicas).unwrap_or_default(),
        desired: annotation::number(&set.metadata, annotation::DESIRED_REPLICAS),
        most: annotation::number(&set.metadata, annotation::MAX_REPLICAS),
    }
}

/// The status that the ReplicaSet's own controller has written.
pub(crate) fn status(set: &ReplicaSet) -> Option<&ReplicaSetStatus> {
    set.status.as_ref()
}

/// The template of a ReplicaSet's pods.
pub(crate) fn template_of(set: &ReplicaSet) -> Option<&PodTemplateSpec> {
    set.spec.as_ref()?.template.as_ref()
}

/// A template without the label that only ReplicaSets give it.
pub(crate) fn unlabelled(template: &PodTemplateSpec) -> PodTemplateSpec {
    let mut template = template.clone();
    if let Some(labels) = template.metadata.as_mut().and_then(|meta| meta.labels.as_mut()) {
        labels.remove(template_hash::LABEL);
    }
    template
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use serde_json::json;

    pub(crate) fn deployment(replicas: i32, image: &str) -> Deployment {
        let value = json!({
            "metadata": { "name": "web", "namespace": "default", "uid": "d", "generation": 1 },
            "spec": {
                "replicas": replicas,
                "selector": { "matchLabels": { "app": "web" } },
                "strategy": { "type": "RollingUpdate", "rollingUpdate": { "maxSurge": 1, "maxUnavailable": 0 } },
                "progressDeadlineSeconds": 600,
                "template": {
                    "metadata": { "labels": { "app": "web" } },
                    "spec": { "containers": [{ "name": "web", "image": image }] },
                },
            },
        });
        serde_json::from_value(value).unwrap()
    }

    pub(crate) fn set(name: &str, image: &str, replicas: i32, available: i32) -> Arc<ReplicaSet> {
        let value = json!({
            "metadata": {
                "name": name, "uid": name, "creationTimestamp": "2026-01-01T00:00:00Z",
                "annotations": { "deployment.kubernetes.io/desired-replicas": "3" },
            },
            "spec": {
                "replicas": replicas,
                "selector": { "matchLabels": { "app": "web", "pod-template-hash": name } },
                "template": {
                    "metadata": { "labels": { "app": "web", "pod-template-hash": name } },
                    "spec": { "containers": [{ "name": "web", "image": image }] },
                },
            },
            "status": { "replicas": replicas, "readyReplicas": available, "availableReplicas": available },
        });
        Arc::new(serde_json::from_value(value).unwrap())
    }

    #[test]
    fn the_current_set_is_the_one_with_the_deployments_template() {
        let sets = vec![
            set("a", "web:1", 3, 3),
            set("b", "web:2", 0, 0),
            set("c", "web:3", 0, 0),
        ];
        let sets = Sets::of(&deployment(3, "web:2"), sets);
        let name = |set: &Arc<ReplicaSet>| set.metadata.name.clone().unwrap();
        assert_eq!(sets.new.as_ref().map(name).as_deref(), Some("b"));
        assert_eq!(sets.old.iter().map(name).collect::<Vec<_>>(), ["a", "c"]);
        assert_eq!(sets.active().len(), 1);
    }

    #[test]
    fn of_two_sets_with_the_template_the_older_is_the_current_one() {
        let sets = vec![set("b", "web:1", 0, 0), set("a", "web:1", 3, 3)];
        let sets = Sets::of(&deployment(3, "web:1"), sets);
        assert_eq!(sets.new.unwrap().metadata.name.as_deref(), Some("a"));
    }
}
