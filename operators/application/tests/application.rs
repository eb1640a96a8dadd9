//! What becomes of an Application in a cluster.

use application::{
    api::{Application, ApplicationSpec, Phase, Strategy},
    desired::CONFIG_HASH,
    operator,
};
use flyball_test::Cluster;
use futures::StreamExt;
use k8s_openapi::api::{
    apps::v1::Deployment,
    core::v1::{ConfigMap, Event, Service},
};
use kube::{
    Api,
    api::{WatchEvent, WatchParams},
};

fn web(replicas: i32) -> Application {
    let spec = ApplicationSpec {
        replicas,
        image: "nginx:1.29".into(),
        strategy: Strategy::RollingUpdate,
        config: [("LOG_LEVEL".into(), "info".into())].into(),
    };
    Application::new("web", spec)
}

fn runs(application: &Application) -> bool {
    application.status.as_ref().is_some_and(|status| status.phase == Phase::Running)
}

fn runs_generation(generation: i64) -> impl Fn(&Application) -> bool {
    move |application| {
        let observed = application.status.as_ref().and_then(|status| status.observed_generation);
        runs(application) && observed == Some(generation)
    }
}

fn config_hash(deployment: &Deployment) -> String {
    let spec = deployment.spec.as_ref().expect("a spec");
    let metadata = spec.template.metadata.as_ref().expect("a template with metadata");
    metadata.annotations.as_ref().expect("annotations")[CONFIG_HASH].clone()
}

#[tokio::test(start_paused = true)]
async fn an_application_becomes_a_deployment_a_service_and_a_config_map() {
    let cluster = Cluster::with(operator()).await;
    cluster.create(web(3)).await;

    let application = cluster.until("web", runs).await;
    let status = application.status.unwrap();
    assert_eq!((status.replicas, status.ready_replicas), (3, 3));
    assert_eq!(status.selector.as_deref(), Some("app.kubernetes.io/name=web"));
    let ready = status.conditions.iter().find(|condition| condition.type_ == "Ready").unwrap();
    assert_eq!((ready.status.as_str(), ready.reason.as_str()), ("True", "ReconciliationSucceeded"));

    let deployment = cluster.get::<Deployment>("web").await;
    assert_eq!(deployment.status.unwrap().ready_replicas, Some(3));
    let service = cluster.get::<Service>("web").await.spec.unwrap();
    assert_eq!(service.ports.unwrap()[0].port, 80);
    let config = cluster.get::<ConfigMap>("web").await;
    assert_eq!(config.data.unwrap()["LOG_LEVEL"], "info");
}

#[tokio::test(start_paused = true)]
async fn a_changed_configuration_rolls_the_pods() {
    let cluster = Cluster::with(operator()).await;
    cluster.create(web(2)).await;
    cluster.until("web", runs).await;
    let before = config_hash(&cluster.get("web").await);

    let mut changed = web(2);
    changed.spec.config.insert("LOG_LEVEL".into(), "debug".into());
    cluster.apply(changed).await;
    cluster.until("web", runs_generation(2)).await;

    let deployment = cluster.get::<Deployment>("web").await;
    assert_ne!(config_hash(&deployment), before);
    let revision = &deployment.metadata.annotations.unwrap()["deployment.kubernetes.io/revision"];
    assert_eq!(revision, "2", "a second ReplicaSet took over");
}

#[tokio::test(start_paused = true)]
async fn a_strategy_may_change_to_recreate() {
    let cluster = Cluster::with(operator()).await;
    cluster.create(web(1)).await;
    cluster.until("web", runs).await;

    let mut changed = web(1);
    changed.spec.strategy = Strategy::Recreate;
    cluster.apply(changed).await;
    let recreates = |deployment: &Deployment| {
        let strategy = deployment.spec.as_ref().and_then(|spec| spec.strategy.as_ref());
        strategy
            .is_some_and(|strategy| strategy.type_.as_deref() == Some("Recreate") && strategy.rolling_update.is_none())
    };
    cluster.until("web", recreates).await;
}

#[tokio::test(start_paused = true)]
async fn what_somebody_else_changed_or_deleted_is_put_right() {
    let cluster = Cluster::with(operator()).await;
    cluster.create(web(3)).await;
    cluster.until("web", runs).await;

    let mut deployment = cluster.get::<Deployment>("web").await;
    deployment.metadata.managed_fields = None;
    deployment.spec.as_mut().unwrap().replicas = Some(7);
    cluster.apply(deployment).await;
    let three = |deployment: &Deployment| deployment.spec.as_ref().unwrap().replicas == Some(3);
    cluster.until("web", three).await;

    let uid = cluster.get::<ConfigMap>("web").await.metadata.uid;
    cluster.delete::<ConfigMap>("web").await;
    cluster.until("web", |map: &ConfigMap| map.metadata.uid != uid).await;
}

#[tokio::test(start_paused = true)]
async fn no_replicas_are_a_running_application_too() {
    let cluster = Cluster::with(operator()).await;
    cluster.create(web(0)).await;
    let application = cluster.until("web", runs).await;
    assert_eq!(application.status.unwrap().ready_replicas, 0);
}

#[tokio::test(start_paused = true)]
async fn every_child_goes_with_its_application() {
    let cluster = Cluster::with(operator()).await;
    cluster.create(web(2)).await;
    cluster.until("web", runs).await;

    cluster.delete::<Application>("web").await;
    cluster.until_gone::<Application>("web").await;
    cluster.until_gone::<Deployment>("web").await;
    cluster.until_gone::<Service>("web").await;
    cluster.until_gone::<ConfigMap>("web").await;
}

#[tokio::test(start_paused = true)]
async fn events_tell_how_an_application_came_to_run() {
    let cluster = Cluster::with(operator()).await;
    cluster.create(web(1)).await;
    cluster.until("web", runs).await;

    let ours = WatchParams::default().fields("involvedObject.kind=Application,involvedObject.name=web");
    let events: Api<Event> = Api::namespaced(cluster.client(), "default");
    let reasons = events.watch(&ours, "0").await.unwrap().filter_map(async |event| match event.unwrap() {
        WatchEvent::Added(event) => event.reason,
        _ => None,
    });
    let reasons: Vec<String> = reasons.take(2).collect().await;
    assert_eq!(reasons, ["RollingOut", "Running"]);
}
