//! CronJobs over days and weeks.

use crate::web::events;
use flyball_test::{Builder, Cluster};
use jiff::Timestamp;
use k8s_openapi::api::batch::v1::{CronJob, Job};
use kube::ResourceExt;
use serde_json::{Value, json};
use std::time::Duration;
use tokio::time::sleep;

const HOUR: Duration = Duration::from_secs(3600);

fn report(schedule: &str, spec: Value) -> CronJob {
    let pod = json!({ "restartPolicy": "Never", "containers": [{ "name": "c", "image": "i" }] });
    let mut full = json!({ "schedule": schedule, "jobTemplate": { "spec": { "template": { "spec": pod } } } });
    full.as_object_mut().unwrap().extend(spec.as_object().unwrap().clone());
    serde_json::from_value(json!({ "metadata": { "name": "report" }, "spec": full })).unwrap()
}

async fn slow() -> Cluster {
    Cluster::build(
        Builder::default()
            .heartbeats(false)
            .pods(|_| Some("exit: { after: 180m }".parse().unwrap())),
    )
    .await
}

#[tokio::test(start_paused = true)]
async fn a_week_of_jobs_takes_no_time_and_leaves_three() {
    let cluster = Cluster::start().await;
    cluster.create(report("0 3 * * *", json!({ "timeZone": "Europe/Berlin" }))).await;
    sleep(7 * 24 * HOUR).await;
    let cron = cluster.get::<CronJob>("report").await;
    let status = cron.status.unwrap();
    assert_eq!((status.active, status.last_successful_time.is_some()), (None, true));
    let scheduled = status.last_schedule_time.unwrap().0;
    let berlin = scheduled.in_tz("Europe/Berlin").unwrap();
    assert_eq!((berlin.hour(), berlin.minute()), (3, 0));
    let jobs = cluster.list::<Job>().await;
    assert_eq!(jobs.len(), 3, "the history limit of successful Jobs");
    let last = jobs.last().unwrap();
    assert_eq!(last.name_any(), format!("report-{}", scheduled.as_second() / 60));
    let annotation = &last.annotations()["batch.kubernetes.io/cronjob-scheduled-timestamp"];
    assert_eq!(annotation.parse::<Timestamp>().unwrap(), scheduled);
}

#[tokio::test(start_paused = true)]
async fn jobs_overlap_unless_that_is_forbidden() {
    for (policy, expected) in [("Allow", 2), ("Forbid", 1), ("Replace", 1)] {
        let cluster = slow().await;
        cluster.create(report("0 * * * *", json!({ "concurrencyPolicy": policy }))).await;
        sleep(HOUR + Duration::from_secs(1)).await;
        let events = events(&cluster, "CronJob").await;
        assert!(
            events
                .iter()
                .all(|event| event.starts_with("cronjob-controller SuccessfulCreate: Created job report-"))
        );
        let first = cluster.get::<CronJob>("report").await;
        assert_eq!(active(&first), 1);
        let before = first.status.unwrap().last_schedule_time;
        sleep(HOUR).await;
        let second = cluster.get::<CronJob>("report").await;
        assert_eq!(active(&second), expected, "{policy}");
        let moved = second.status.as_ref().unwrap().last_schedule_time != before;
        assert_eq!(moved, policy != "Forbid", "{policy}");
    }
}

fn active(cron: &CronJob) -> usize {
    cron.status.as_ref().and_then(|status| status.active.as_ref()).map_or(0, Vec::len)
}

#[tokio::test(start_paused = true)]
async fn a_suspended_cron_job_makes_up_for_one_time_within_its_deadline() {
    let cluster = Cluster::start().await;
    cluster.create(report("0 * * * *", json!({ "suspend": true }))).await;
    sleep(5 * HOUR).await;
    assert!(cluster.list::<Job>().await.is_empty());
    cluster.merge::<CronJob>("report", json!({ "spec": { "suspend": false } })).await;
    cluster
        .until("report", |cron: &CronJob| {
            cron.status.as_ref().is_some_and(|it| it.last_schedule_time.is_some())
        })
        .await;
    assert_eq!(cluster.list::<Job>().await.len(), 1);

    let late = Cluster::start().await;
    late.create(report("0 0 1 1 *", json!({ "startingDeadlineSeconds": 60 }))).await;
    sleep(HOUR).await;
    assert!(late.list::<Job>().await.is_empty());
}
