//! Jobs: completed, failed, indexed, suspended, and gone after a while.

use crate::web::events;
use flyball_test::{Builder, Cluster};
use k8s_openapi::api::{
    batch::v1::{Job, JobStatus},
    core::v1::Pod,
};
use kube::{Api, ResourceExt, api::DeleteParams};
use serde_json::{Value, json};
use std::time::Duration;
use tokio::time::{Instant, sleep};

fn job(spec: Value) -> Job {
    let template = json!({ "spec": { "restartPolicy": "Never", "containers": [{ "name": "c", "image": "i" }] } });
    let mut full = json!({ "template": template });
    full.as_object_mut().unwrap().extend(spec.as_object().unwrap().clone());
    serde_json::from_value(json!({ "metadata": { "name": "work" }, "spec": full })).unwrap()
}

fn status(job: &Job) -> JobStatus {
    job.status.clone().unwrap_or_default()
}

/// `Complete CompletionsReached`, of the condition by which a Job ended.
fn end(job: &Job) -> String {
    let conditions = status(job).conditions.unwrap_or_default();
    let end = conditions
        .into_iter()
        .find(|it| matches!(&*it.type_, "Complete" | "Failed") && it.status == "True");
    end.map(|end| format!("{} {}: {}", end.type_, end.reason.unwrap_or_default(), end.message.unwrap_or_default()))
        .unwrap_or_default()
}

async fn ended(cluster: &Cluster) -> (Job, String) {
    let job = cluster.until("work", |job: &Job| !end(job).is_empty()).await;
    let end = end(&job);
    (job, end)
}

/// A cluster whose pods exit as `told` says by their index.
async fn telling(told: impl Fn(i32) -> &'static str + Send + Sync + 'static) -> Cluster {
    let told = move |pod: &Pod| {
        let index = pod.annotations().get("batch.kubernetes.io/job-completion-index");
        let text = told(index.and_then(|index| index.parse().ok()).unwrap_or(-1));
        (!text.is_empty()).then(|| text.parse().unwrap())
    };
    Cluster::build(Builder::default().pods(told)).await
}

#[tokio::test(start_paused = true)]
async fn a_job_completes_when_enough_pods_have_succeeded() {
    let cluster = Cluster::start().await;
    cluster.create(job(json!({ "completions": 3, "parallelism": 2 }))).await;
    let (job, end) = ended(&cluster).await;
    assert_eq!(end, "Complete CompletionsReached: Reached expected number of succeeded pods");
    let status = status(&job);
    assert_eq!((status.succeeded, status.failed, status.active), (Some(3), None, None));
    assert_eq!((status.ready, status.terminating), (Some(0), Some(0)));
    assert!(status.start_time.is_some() && status.completion_time.is_some());
    let types: Vec<_> = status.conditions.unwrap().into_iter().map(|it| it.type_).collect();
    assert_eq!(types, ["SuccessCriteriaMet", "Complete"]);
    let pods = cluster.list::<Pod>().await;
    assert!(pods.len() == 3 && pods.iter().all(|pod| pod.finalizers().is_empty()));
    assert_eq!(pods[0].labels()["batch.kubernetes.io/job-name"], "work");
    let events = events(&cluster, "Job").await;
    assert_eq!(events.len(), 4);
    assert_eq!(events[3], "job-controller Completed: Job completed");
    assert!(
        events[0].starts_with("job-controller SuccessfulCreate: Created pod: work-"),
        "{}",
        events[0]
    );
    let jobs: Api<Job> = Api::default_namespaced(cluster.client());
    jobs.delete("work", &DeleteParams::background()).await.unwrap();
    cluster.until_gone::<Pod>(&pods[0].name_any()).await;
}

#[tokio::test(start_paused = true)]
async fn a_job_that_fails_too_often_gives_up() {
    let cluster = telling(|_| "exit: { code: 1, after: 1s }").await;
    let started = Instant::now();
    cluster.create(job(json!({ "backoffLimit": 2 }))).await;
    let (job, end) = ended(&cluster).await;
    assert_eq!(end, "Failed BackoffLimitExceeded: Job has reached the specified backoff limit");
    assert_eq!((status(&job).failed, status(&job).succeeded), (Some(3), None));
    let seconds = started.elapsed().as_secs();
    assert!((30..40).contains(&seconds), "10 and 20 seconds of backoff, not {seconds}");
    let last = events(&cluster, "Job").await.pop().unwrap();
    assert_eq!(last, "job-controller BackoffLimitExceeded: Job has reached the specified backoff limit");
}

#[tokio::test(start_paused = true)]
async fn containers_that_are_started_again_count_as_failures() {
    let cluster = telling(|_| "exit: { code: 1, after: 1s }").await;
    let template = json!({ "spec": { "restartPolicy": "OnFailure", "containers": [{ "name": "c", "image": "i" }] } });
    cluster.create(job(json!({ "backoffLimit": 3, "template": template }))).await;
    let (_, end) = ended(&cluster).await;
    assert_eq!(end, "Failed BackoffLimitExceeded: Job has reached the specified backoff limit");
}

#[tokio::test(start_paused = true)]
async fn a_deadline_ends_a_job() {
    let cluster = telling(|_| "exit: { after: 1h }").await;
    let started = Instant::now();
    cluster.create(job(json!({ "activeDeadlineSeconds": 60 }))).await;
    let (job, end) = ended(&cluster).await;
    assert_eq!(end, "Failed DeadlineExceeded: Job was active longer than specified deadline");
    assert!((60..70).contains(&started.elapsed().as_secs()));
    assert_eq!(status(&job).failed, Some(1));
    assert!(cluster.list::<Pod>().await.iter().all(|pod| pod.finalizers().is_empty()));
}

#[tokio::test(start_paused = true)]
async fn the_pods_of_an_indexed_job_are_told_apart() {
    let cluster = Cluster::start().await;
    cluster
        .create(job(json!({ "completions": 3, "parallelism": 3, "completionMode": "Indexed" })))
        .await;
    let (job, _) = ended(&cluster).await;
    assert_eq!(status(&job).completed_indexes.as_deref(), Some("0-2"));
    let pods = cluster.list::<Pod>().await;
    assert!(pods[1].name_any().starts_with("work-1-"));
    let spec = pods[1].spec.clone().unwrap();
    assert_eq!(spec.hostname.as_deref(), Some("work-1"));
    assert_eq!(spec.containers[0].env.as_ref().unwrap()[0].name, "JOB_COMPLETION_INDEX");
}

#[tokio::test(start_paused = true)]
async fn each_index_may_fail_so_often() {
    let cluster = telling(|index| if index == 1 { "exit: { code: 1 }" } else { "" }).await;
    let spec = json!({
        "completions": 3, "parallelism": 3, "completionMode": "Indexed", "backoffLimitPerIndex": 1, "maxFailedIndexes": 2,
    });
    cluster.create(job(spec)).await;
    let (job, end) = ended(&cluster).await;
    assert_eq!(end, "Failed FailedIndexes: Job has failed indexes");
    let status = status(&job);
    assert_eq!(
        (status.completed_indexes.as_deref(), status.failed_indexes.as_deref()),
        (Some("0,2"), Some("1"))
    );
    assert_eq!((status.succeeded, status.failed), (Some(2), Some(2)));
}

#[tokio::test(start_paused = true)]
async fn a_success_policy_ends_a_job_early() {
    let cluster = telling(|index| {
        if index == 0 {
            "exit: { after: 1s }"
        } else {
            "exit: { after: 1h }"
        }
    })
    .await;
    let policy = json!({ "rules": [{ "succeededIndexes": "0" }] });
    let spec = json!({ "completions": 3, "parallelism": 3, "completionMode": "Indexed", "successPolicy": policy });
    cluster.create(job(spec)).await;
    let (job, end) = ended(&cluster).await;
    assert_eq!(end, "Complete SuccessPolicy: Matched rules at index 0");
    assert_eq!((status(&job).completed_indexes.as_deref(), status(&job).failed), (Some("0"), None));
}

#[tokio::test(start_paused = true)]
async fn a_failure_policy_ends_a_job_or_ignores_a_failure() {
    let cluster = telling(|_| "exit: { code: 42 }").await;
    let rule = json!({ "action": "FailJob", "onExitCodes": { "operator": "In", "values": [42] } });
    cluster.create(job(json!({ "podFailurePolicy": { "rules": [rule] } }))).await;
    let (job_, end) = ended(&cluster).await;
    let pod = cluster.list::<Pod>().await.remove(0).name_any();
    let expected = format!(
        "Failed PodFailurePolicy: Container c for pod default/{pod} failed with exit code 42 matching FailJob rule at index 0"
    );
    assert_eq!((end, status(&job_).failed), (expected, Some(1)));
    cluster.delete::<Job>("work").await;
    cluster.until_gone::<Job>("work").await;

    let rule = json!({ "action": "Ignore", "onExitCodes": { "operator": "In", "values": [42] } });
    cluster
        .create(job(json!({ "backoffLimit": 0, "podFailurePolicy": { "rules": [rule] } })))
        .await;
    sleep(Duration::from_secs(120)).await;
    let ignoring = cluster.get::<Job>("work").await;
    assert_eq!((self::end(&ignoring).as_str(), status(&ignoring).failed), ("", None));
}

#[tokio::test(start_paused = true)]
async fn a_suspended_job_has_no_pods() {
    let cluster = telling(|_| "exit: { after: 10m }").await;
    cluster.create(job(json!({ "suspend": true }))).await;
    cluster.until_event::<Job>("work", "Suspended").await;
    sleep(Duration::from_secs(60)).await;
    assert!(cluster.list::<Pod>().await.is_empty() && status(&cluster.get("work").await).start_time.is_none());
    cluster.merge::<Job>("work", json!({ "spec": { "suspend": false } })).await;
    cluster.until("work", |job: &Job| status(job).ready == Some(1)).await;
    cluster.merge::<Job>("work", json!({ "spec": { "suspend": true } })).await;
    let suspended = |job: &Job| status(job).active.is_none() && status(job).terminating == Some(0);
    cluster.until("work", suspended).await;
    assert!(cluster.list::<Pod>().await.is_empty());
    cluster.merge::<Job>("work", json!({ "spec": { "suspend": false } })).await;
    let (_, end) = ended(&cluster).await;
    assert!(end.starts_with("Complete"), "{end}");
}

#[tokio::test(start_paused = true)]
async fn a_finished_job_goes_after_its_time_to_live() {
    let cluster = Cluster::start().await;
    cluster.create(job(json!({ "ttlSecondsAfterFinished": 3600 }))).await;
    ended(&cluster).await;
    sleep(Duration::from_secs(3590)).await;
    assert!(cluster.get::<Job>("work").await.metadata.deletion_timestamp.is_none());
    cluster.until_gone::<Job>("work").await;
    assert!(cluster.list::<Pod>().await.is_empty());
}
