//! What an operator counts and measures, as a scraper reads it.

use crate::world::{World, config_map, pass};
use flyball::{
    Action, Context, Controller, Error, Event, Operator, Result,
    metrics::{Format, SECONDS},
};
use k8s_openapi::api::core::v1::{ConfigMap, Pod};
use serde_json::json;
use std::{collections::BTreeMap, sync::Arc, time::Duration};

/// A scrape, read as strictly as Prometheus' text format (0.0.4) is specified.
struct Scrape {
    types: BTreeMap<String, String>,
    samples: BTreeMap<String, f64>,
}

impl Scrape {
    fn read(text: &str) -> Scrape {
        let mut scrape = Scrape { types: BTreeMap::new(), samples: BTreeMap::new() };
        let mut family = String::new();
        for line in text.lines() {
            if let Some(described) = line.strip_prefix("# TYPE ") {
                let (name, kind) = described.split_once(' ').unwrap();
                assert!(["counter", "gauge", "histogram", "untyped", "summary"].contains(&kind), "{line}");
                assert!(scrape.types.insert(name.into(), kind.into()).is_none(), "{name} is described twice");
                family = name.into();
            } else if !line.starts_with("# HELP ") {
                assert!(!line.starts_with('#'), "{line}");
                let (series, value) = line.rsplit_once(' ').unwrap();
                let name = series.split('{').next().unwrap();
                let of_family = match scrape.types[&family].as_str() {
                    "histogram" => ["_bucket", "_sum", "_count"].map(|suffix| format!("{family}{suffix}")).to_vec(),
                    _ => vec![family.clone()],
                };
                assert!(of_family.iter().any(|allowed| allowed == name), "{name} is no sample of {family}");
                assert!(scrape.samples.insert(series.into(), value.parse().unwrap()).is_none(), "{series} twice");
            }
        }
        scrape
    }

    #[track_caller]
    fn value(&self, series: &str) -> f64 {
        *self
            .samples
            .get(series)
            .unwrap_or_else(|| panic!("{series} in {:#?}", self.samples.keys()))
    }
}

/// Succeeds, comes back, fails, fails for good or panics, as the map's entry says.
async fn fare(map: Arc<ConfigMap>, ctx: Context) -> Result {
    ctx.event(Event::warning("Fared", "somehow"));
    ctx.metrics()
        .counter("fared", "How often", ["how"])?
        .inc([&map.data.as_ref().unwrap()["how"]]);
    match map.data.as_ref().unwrap()["how"].as_str() {
        "well" => Ok(Action::await_change()),
        "again" => Ok(Action::requeue_after(Duration::from_secs(3_600))),
        "badly" => Err(Error::retry_after(Duration::from_secs(3_600), "no luck")),
        "hopelessly" => Err(Error::permanent("no chance")),
        "slowly" => std::future::pending().await,
        _ => panic!("divided by zero"),
    }
}

async fn look(_: Arc<Pod>, _: Context) -> Result {
    Ok(Action::await_change())
}

#[tokio::test(start_paused = true)]
async fn every_name_that_dashboards_know_is_there() {
    let world = World::start().await;
    let operator = Operator::new("meter")
        .controller(Controller::new(fare).concurrency(7))
        .controller(Controller::new(look));
    let running = world.run(&operator).await;
    for how in ["well", "again", "badly", "hopelessly", "madly", "slowly"] {
        world.create(config_map(how, "how", how)).await;
    }
    let pod = json!({ "metadata": { "name": "ada" }, "spec": { "containers": [{ "name": "a", "image": "b" }] } });
    world.create::<Pod>(serde_json::from_value(pod).unwrap()).await;
    pass(Duration::from_millis(100)).await;
    let scrape = Scrape::read(&running.metrics().text(Format::Prometheus));

    let controller = |name: &str, count: f64| {
        assert_eq!(scrape.value(&format!("{name}{{controller=\"configmap\"}}")), count, "{name}");
    };
    for name in ["controller_reconcile_total", "controller_runtime_reconcile_total"] {
        let result = |result: &str| scrape.value(&format!("{name}{{controller=\"configmap\",result=\"{result}\"}}"));
        assert_eq!((result("success"), result("requeue_after")), (1.0, 1.0), "{name}");
        assert!(result("error") >= 3.0, "{name}");
    }
    controller("controller_runtime_terminal_reconcile_errors_total", 1.0);
    controller("controller_runtime_reconcile_timeouts_total", 0.0);
    controller("controller_runtime_max_concurrent_reconciles", 7.0);
    controller("controller_runtime_active_workers", 1.0);
    for name in [
        "controller_reconcile_errors_total",
        "controller_runtime_reconcile_errors_total",
    ] {
        assert!(scrape.value(&format!("{name}{{controller=\"configmap\"}}")) >= 3.0);
    }
    assert!(scrape.value("controller_runtime_reconcile_panics_total{controller=\"configmap\"}") >= 1.0);

    queues_and_caches(&scrape);
    assert!(scrape.value("process_resident_memory_bytes") > 1_000_000.0);
    assert!(scrape.value("process_cpu_seconds_total") >= 0.0);
    running.stop().await;
}

fn queues_and_caches(scrape: &Scrape) {
    let queue = |name: &str| scrape.value(&format!("{name}{{name=\"configmap\",controller=\"configmap\"}}"));
    assert_eq!(queue("workqueue_depth"), 0.0);
    assert!(queue("workqueue_adds_total") >= 6.0);
    assert!(queue("workqueue_retries_total") >= 3.0);
    assert!(queue("workqueue_queue_duration_seconds_count") >= 6.0);
    assert!(queue("workqueue_work_duration_seconds_count") >= 5.0);
    assert!(queue("workqueue_unfinished_work_seconds") > 0.05);
    assert!(queue("workqueue_longest_running_processor_seconds") > 0.05);

    assert_eq!(scrape.value("resource_count{kind=\"ConfigMap\",namespace=\"default\"}"), 6.0);
    assert_eq!(scrape.value("resource_phase_count{kind=\"Pod\",phase=\"Pending\"}"), 1.0);
    assert!(scrape.value("event_total{type=\"Warning\",severity=\"warning\"}") >= 6.0);
    assert_eq!(scrape.value("fared_total{how=\"well\"}"), 1.0);

    assert!(scrape.value("flyball_cache_objects{kind=\"ConfigMap\"}") >= 6.0);
    assert!(scrape.value("flyball_cache_bytes{kind=\"ConfigMap\"}") > 600.0);
    assert_eq!(scrape.value("flyball_cache_synced{kind=\"Pod\"}"), 1.0);
    assert_eq!(
        scrape.value("flyball_api_requests_total{verb=\"list\",resource=\"pods\",code=\"200\"}"),
        1.0
    );
    assert_eq!(
        scrape.value("flyball_api_requests_total{verb=\"watch\",resource=\"pods\",code=\"200\"}"),
        1.0
    );
    assert!(
        scrape
            .samples
            .keys()
            .any(|series| series.starts_with("rest_client_requests_total{code=\"200\",method=\"GET\",host="))
    );
}

#[tokio::test(start_paused = true)]
async fn durations_are_counted_in_buckets_from_five_milliseconds_to_ten_seconds() {
    async fn nap(_: Arc<ConfigMap>, _: Context) -> Result {
        pass(Duration::from_millis(30)).await;
        Ok(Action::await_change())
    }
    let world = World::start().await;
    let running = world.run(&Operator::new("napper").controller(Controller::new(nap))).await;
    world.create(config_map("ada", "a", "1")).await;
    pass(Duration::from_secs(1)).await;
    let scrape = Scrape::read(&running.metrics().text(Format::Prometheus));
    let bucket = |le: &str| {
        scrape.value(&format!(
            "controller_reconcile_duration_seconds_bucket{{le=\"{le}\",controller=\"configmap\"}}"
        ))
    };
    for seconds in SECONDS {
        assert_eq!(bucket(&format!("{seconds:?}")), f64::from(u8::from(seconds > 0.03)));
    }
    assert_eq!(bucket("+Inf"), 1.0);
    assert_eq!(scrape.types["controller_reconcile_duration_seconds"], "histogram");
    assert_eq!(scrape.types["controller_reconcile_total"], "counter");
}

#[tokio::test(start_paused = true)]
async fn a_watch_that_begins_anew_is_counted() {
    let world = World::start().await;
    let running = world.run(&Operator::new("watcher").controller(Controller::new(look))).await;
    pass(Duration::from_secs(1)).await;
    pass(Duration::from_secs(600)).await;
    let scrape = Scrape::read(&running.metrics().text(Format::Prometheus));
    assert!(scrape.value("flyball_watch_restarts_total{kind=\"Pod\",reason=\"ended\"}") >= 2.0);
}
