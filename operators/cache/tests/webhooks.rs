//! The webhooks of the operator: what is refused, what is completed, and what two versions of a Cache have in common.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use cache::{
    Flags,
    api::{Cache, CacheSpec, Exposure, v1beta1},
    directory::Absent,
    operator,
};
use flyball::{Config, Manifests, Operator};
use flyball_test::{Cluster, check_conversion};
use kube::{
    Api, ResourceExt,
    api::{DynamicObject, PostParams},
};

fn caches() -> Operator {
    operator(Absent, &Flags { zone: String::new() })
}

fn ada(spec: CacheSpec) -> Cache {
    Cache::new("ada", CacheSpec { version: "1.6".into(), replicas: 2, memory_mb: 64, ..spec })
}

#[tokio::test(start_paused = true)]
async fn a_cache_that_cannot_work_is_refused_with_the_field_to_change() {
    let cluster = Cluster::with(caches()).await;
    let caches: Api<Cache> = Api::default_namespaced(cluster.client());

    let unreachable = CacheSpec {
        exposure: Exposure::None,
        warm_up: Some("@daily".into()),
        ..Default::default()
    };
    let refused = caches.create(&PostParams::default(), &ada(unreachable)).await.unwrap_err();
    let message = "spec.warmUp: Forbidden: a Cache without a Service cannot be warmed up";
    assert!(refused.to_string().contains(message), "{refused}");

    cluster.create(ada(CacheSpec::default())).await;
    let mut downgraded: Cache = cluster.get("ada").await;
    downgraded.spec.version = "1.5".into();
    let refused = caches.replace("ada", &PostParams::default(), &downgraded).await.unwrap_err();
    assert!(
        refused.to_string().contains("spec.version: Invalid value: \"1.5\": is older than 1.6"),
        "{refused}"
    );
}

#[tokio::test(start_paused = true)]
async fn a_daily_warm_up_gets_a_time_of_its_own() {
    let cluster = Cluster::with(caches()).await;
    let daily = CacheSpec { warm_up: Some("daily".into()), ..Default::default() };
    let created = cluster.create(ada(daily)).await;
    assert_eq!(created.spec.warm_up.as_deref(), Some("54 4 * * *"));
}

#[test]
fn no_conversion_loses_anything() {
    check_conversion(&caches(), 1_000);
}

#[tokio::test(start_paused = true)]
async fn a_client_of_the_first_version_changes_what_it_knows_and_nothing_else() {
    let cluster = Cluster::with(caches()).await;
    let spec = CacheSpec { memory_mb: 1500, monitored: true, ..Default::default() };
    cluster
        .create(Cache::new("ada", CacheSpec { version: "1.6".into(), replicas: 3, ..spec }))
        .await;

    let old: v1beta1::Cache = cluster.get("ada").await;
    assert_eq!((old.spec.size, old.spec.version.as_str()), (1, "1.6"));
    cluster.edit("ada", |cache: &mut v1beta1::Cache| cache.spec.version = "1.7".into()).await;

    let new: Cache = cluster.get("ada").await;
    assert_eq!((new.spec.version.as_str(), new.spec.memory_mb, new.spec.replicas), ("1.7", 1500, 3));
    assert!(new.spec.monitored && new.annotations().is_empty());
}

#[test]
fn the_settings_of_the_guide_are_accepted() {
    let guide = include_str!("../../../docs/guide/11-certificates.md");
    let mut settings = guide.split("\n```yaml\n").skip(1).filter_map(|rest| rest.split("```").next());
    let config = Config::from_yaml(settings.next().unwrap()).unwrap();
    assert_eq!(config.webhook.cert_dir, "/etc/webhook");
}

#[test]
fn the_webhooks_are_printed_with_everything_else() {
    let operator = caches();
    let printed = Manifests::of(&operator).all("cache:1").unwrap();
    let kinds: Vec<_> = printed.iter().map(|object| object.types.clone().unwrap().kind).collect();
    assert!(
        kinds.contains(&"ValidatingWebhookConfiguration".into())
            && kinds.contains(&"MutatingWebhookConfiguration".into())
    );
    let is_service = |object: &&DynamicObject| object.name_any() == "cache-webhook";
    assert!(printed.iter().any(|object| is_service(&object)));
}
