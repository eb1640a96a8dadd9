//! What an Application's Deployment says, in the words of the Application's status.

use crate::{
    api::{Application, ApplicationStatus, Phase},
    desired,
};
use flyball::Context;
use k8s_openapi::api::apps::v1::{Deployment, DeploymentStatus};

/// The status of an Application whose Deployment is as given.
pub fn status(application: &Application, deployment: &Deployment, ctx: &Context) -> ApplicationStatus {
    let rollout = Rollout::of(application, deployment);
    let seen = deployment.status.clone().unwrap_or_default();
    let ready = seen.ready_replicas.unwrap_or_default();
    let count = format!("{ready} of {} replicas are ready", application.spec.replicas);
    ApplicationStatus {
        observed_generation: application.metadata.generation,
        replicas: seen.replicas.unwrap_or_default(),
        ready_replicas: ready,
        selector: Some(desired::selector(application)),
        phase: rollout.phase(),
        conditions: vec![
            ctx.condition("Ready", rollout == Rollout::Complete, rollout.ready_reason(), count),
            ctx.condition("Progressing", rollout == Rollout::Underway, rollout.progress_reason(), rollout.message()),
        ],
    }
}

/// How far a Deployment has come.
#[derive(Debug, PartialEq)]
enum Rollout {
    Underway,
    Complete,
    Stuck(String),
}

impl Rollout {
    fn of(application: &Application, deployment: &Deployment) -> Rollout {
        let status = deployment.status.clone().unwrap_or_default();
        let wanted = application.spec.replicas;
        let counts = [status.updated_replicas, status.ready_replicas, status.replicas];
        let seen = status.observed_generation >= deployment.metadata.generation;
        if let Some(why) = stuck(&status) {
            Rollout::Stuck(why)
        } else if seen && counts.iter().all(|count| count.unwrap_or_default() == wanted) {
            Rollout::Complete
        } else {
            Rollout::Underway
        }
    }

    fn phase(&self) -> Phase {
        match self {
            Rollout::Underway => Phase::Pending,
            Rollout::Complete => Phase::Running,
            Rollout::Stuck(_) => Phase::Failed,
        }
    }

    fn ready_reason(&self) -> &'static str {
        match self {
            Rollout::Underway => "ReplicasNotReady",
            Rollout::Complete => "ReconciliationSucceeded",
            Rollout::Stuck(_) => "RolloutStuck",
        }
    }

    fn progress_reason(&self) -> &'static str {
        match self {
            Rollout::Underway => "RollingOut",
            Rollout::Complete => "RolledOut",
            Rollout::Stuck(_) => "RolloutStuck",
        }
    }

    fn message(&self) -> String {
        match self {
            Rollout::Underway => "pods are being brought to what the spec asks for".into(),
            Rollout::Complete => "every pod is what the spec asks for".into(),
            Rollout::Stuck(why) => why.clone(),
        }
    }
}

/// What the Deployment controller says of a rollout that does not get on.
fn stuck(status: &DeploymentStatus) -> Option<String> {
    let conditions = status.conditions.as_deref().unwrap_or_default();
    let stuck = conditions.iter().find(|condition| {
        let reason = condition.reason.as_deref();
        (condition.type_ == "Progressing" && reason == Some("ProgressDeadlineExceeded"))
            || (condition.type_ == "ReplicaFailure" && condition.status == "True")
    })?;
    Some(stuck.message.clone().unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::ApplicationSpec;
    use k8s_openapi::api::apps::v1::DeploymentCondition;

    fn application(replicas: i32) -> Application {
        let (strategy, config) = Default::default();
        Application::new("web", ApplicationSpec { replicas, image: "nginx".into(), strategy, config })
    }

    fn deployment(replicas: i32, updated: i32, ready: i32) -> Deployment {
        let status = DeploymentStatus {
            replicas: Some(replicas),
            updated_replicas: Some(updated),
            ready_replicas: Some(ready),
            ..Default::default()
        };
        Deployment { status: Some(status), ..Default::default() }
    }

    #[test]
    fn a_rollout_is_complete_when_every_pod_is_new_and_ready() {
        let of = |deployment| Rollout::of(&application(2), &deployment);
        assert_eq!(of(deployment(2, 2, 2)), Rollout::Complete);
        assert_eq!(of(deployment(2, 2, 1)), Rollout::Underway);
        assert_eq!(of(deployment(3, 2, 3)), Rollout::Underway);
        assert_eq!(of(deployment(2, 1, 2)), Rollout::Underway);
    }

    #[test]
    fn a_deployment_that_was_not_looked_at_since_its_change_is_underway() {
        let mut changed = deployment(2, 2, 2);
        changed.metadata.generation = Some(2);
        assert_eq!(Rollout::of(&application(2), &changed), Rollout::Underway);
    }

    #[test]
    fn a_rollout_past_its_deadline_is_stuck_and_says_why() {
        let mut late = deployment(2, 1, 1);
        late.status.as_mut().unwrap().conditions = Some(vec![DeploymentCondition {
            type_: "Progressing".into(),
            status: "False".into(),
            reason: Some("ProgressDeadlineExceeded".into()),
            message: Some("it timed out".into()),
            ..Default::default()
        }]);
        assert_eq!(Rollout::of(&application(2), &late), Rollout::Stuck("it timed out".into()));
    }
}
