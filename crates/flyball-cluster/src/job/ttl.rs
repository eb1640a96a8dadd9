//! Deletes Jobs some time after they have finished, as their `ttlSecondsAfterFinished` says.

use super::finished_condition;
use crate::refusal;
use flyball::{Action, Context, Controller, Result};
use jiff::SignedDuration;
use k8s_openapi::api::batch::v1::Job;
use kube::{
    Api, ResourceExt,
    api::{DeleteParams, Preconditions, PropagationPolicy},
};
use std::{sync::Arc, time::Duration};

/// The controller of finished Jobs.
pub(crate) fn controller() -> Controller<Job> {
    Controller::new(reconcile).named("ttl-after-finished")
}

// pkg/controller/ttlafterfinished/ttlafterfinished_controller.go
async fn reconcile(job: Arc<Job>, ctx: Context) -> Result {
    let ttl = job.spec.as_ref().and_then(|spec| spec.ttl_seconds_after_finished);
    let finished = finished_condition(&job).and_then(|condition| condition.last_transition_time.as_ref());
    let (Some(ttl), Some(finished)) = (ttl, finished) else {
        return Ok(Action::await_change());
    };
    let end = finished.0.saturating_add(SignedDuration::from_secs(ttl.into())).unwrap_or(finished.0);
    let left = Duration::try_from(end.duration_since(ctx.now().0)).unwrap_or_default();
    if !left.is_zero() {
        return Ok(Action::requeue_after(left));
    }
    let params = DeleteParams {
        propagation_policy: Some(PropagationPolicy::Foreground),
        preconditions: Some(Preconditions { uid: job.uid(), resource_version: job.resource_version() }),
        ..DeleteParams::default()
    };
    let jobs: Api<Job> = Api::namespaced(ctx.client(), &job.namespace().unwrap_or_default());
    match jobs.delete(&job.name_any(), &params).await {
        Err(error) if !(refusal::is_not_found(&error) || refusal::is_conflict(&error)) => Err(error.into()),
        _ => Ok(Action::await_change()),
    }
}
