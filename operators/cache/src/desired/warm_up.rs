//! The job that fills a Cache from time to time.

use super::{address, labelled};
use crate::api::Cache;
use k8s_openapi::api::{
    batch::v1::{CronJob, CronJobSpec, JobSpec, JobTemplateSpec},
    core::v1::{Container, PodSpec, PodTemplateSpec},
};

/// A CronJob with the schedule of the Cache, if it has one.
pub fn warm_up(cache: &Cache) -> Option<CronJob> {
    let schedule = cache.spec.warm_up.clone()?;
    let container = Container {
        name: "warm-up".into(),
        image: Some("example.io/warm-up:1".into()),
        args: Some(vec![address(cache)]),
        ..Default::default()
    };
    let pod = PodSpec {
        containers: vec![container],
        restart_policy: Some("OnFailure".into()),
        ..Default::default()
    };
    let template = PodTemplateSpec { spec: Some(pod), ..Default::default() };
    let job = JobSpec { template, ..Default::default() };
    let job_template = JobTemplateSpec { spec: Some(job), ..Default::default() };
    let spec = CronJobSpec { schedule, job_template, ..Default::default() };
    Some(CronJob { metadata: labelled(cache), spec, ..Default::default() })
}
