//! Lets pods go that a Job has left behind with its finalizer.

use super::{TRACKING, pods};
use crate::{
    lookup::{self, CHILDREN},
    owner,
};
use flyball::{Action, Cache, Context, Controller, Key, Result};
use k8s_openapi::api::{batch::v1::Job, core::v1::Pod};
use kube::{ResourceExt, api::PartialObjectMeta};
use std::sync::Arc;

/// The controller of pods without their Job.
// pkg/controller/job/job_controller.go, syncOrphanPod
pub(crate) fn controller() -> Controller<Pod> {
    Controller::new(reconcile)
        .named("job-orphan-pod")
        .terminating(reconcile)
        .reads::<Job>()
        .watches(|job: Arc<PartialObjectMeta<Job>>, cache: Cache| pods_of(&job, &cache))
}

fn pods_of(job: &PartialObjectMeta<Job>, cache: &Cache) -> Result<Vec<Key>> {
    if cache
        .get::<PartialObjectMeta<Job>>(Key::of(job))?
        .is_some_and(|known| known.uid() == job.uid())
    {
        return Ok(Vec::new());
    }
    let pods =
        cache.by_index::<PartialObjectMeta<Pod>>(CHILDREN, &lookup::controlled_by(&job.uid().unwrap_or_default()))?;
    Ok(pods.iter().map(|pod| Key::of(&**pod)).collect())
}

async fn reconcile(pod: Arc<Pod>, ctx: Context) -> Result {
    if !pod.finalizers().iter().any(|finalizer| finalizer == TRACKING) {
        return Ok(Action::await_change());
    }
    let of_job = owner::controller(&pod.metadata).filter(|owner| owner.kind == "Job");
    if let Some(owner) = of_job {
        let job = ctx.get::<Job>(&*owner.name).await?;
        let is_there = job.is_some_and(|job| job.uid().as_ref() == Some(&owner.uid) && !super::is_finished(&job));
        if is_there {
            return Ok(Action::await_change());
        }
        // The cache may not know a new Job yet.
        let jobs: kube::Api<Job> = kube::Api::namespaced(ctx.client(), &pod.namespace().unwrap_or_default());
        let live = jobs.get_opt(&owner.name).await?;
        if live.is_some_and(|job| job.uid().as_ref() == Some(&owner.uid) && !super::is_finished(&job)) {
            return Ok(Action::await_change());
        }
    }
    pods::untrack(&pod, &ctx).await?;
    Ok(Action::await_change())
}
