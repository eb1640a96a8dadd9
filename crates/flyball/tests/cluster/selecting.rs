//! What is cached: which namespaces, which objects, what of each, and how they are found.

use crate::world::{World, config_map, pass};
use flyball::{Action, Context, Controller, Operator, Result, Selection};
use flyball_test::Answer;
use k8s_openapi::api::core::v1::{ConfigMap, Namespace, Pod, Secret};
use kube::{
    Api, ResourceExt,
    api::{ApiResource, DynamicObject, PartialObjectMeta, Patch, PatchParams, PostParams},
    core::Expression,
};
use serde_json::{Value, json};
use std::{collections::BTreeSet, sync::Arc, time::Duration};
use tokio::sync::{Notify, mpsc};

/// Tells the namespace and name of each ConfigMap that is reconciled, except those that the API server brings along.
fn telling() -> (Controller<ConfigMap>, mpsc::UnboundedReceiver<String>) {
    let (sender, told) = mpsc::unbounded_channel();
    let controller = Controller::new(move |map: Arc<ConfigMap>, _: Context| {
        let sender = sender.clone();
        async move {
            sender.send(format!("{}/{}", map.namespace().unwrap_or_default(), map.name_any()))?;
            Ok(Action::await_change())
        }
    });
    (controller, told)
}

async fn told(names: &mut mpsc::UnboundedReceiver<String>) -> BTreeSet<String> {
    pass(Duration::from_secs(1)).await;
    let names = std::iter::from_fn(|| names.try_recv().ok());
    names
        .filter(|name| !name.starts_with("kube-") && !name.ends_with("kube-root-ca.crt"))
        .collect()
}

fn set<const N: usize>(names: [&str; N]) -> BTreeSet<String> {
    names.map(String::from).into()
}

async fn in_namespace(world: &World, namespace: &str, name: &str) {
    let maps: Api<ConfigMap> = Api::namespaced(world.client.clone(), namespace);
    maps.create(&PostParams::default(), &config_map(name, "a", "1")).await.unwrap();
}

async fn namespaces(world: &World) {
    let all: Api<Namespace> = Api::all(world.client.clone());
    for name in ["blue", "red"] {
        let namespace = json!({ "metadata": { "name": name } });
        all.create(&PostParams::default(), &serde_json::from_value(namespace).unwrap())
            .await
            .unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn an_operator_is_confined_to_its_namespaces() {
    let world = World::start().await;
    namespaces(&world).await;
    for namespace in ["default", "blue", "red"] {
        in_namespace(&world, namespace, "before").await;
    }
    let (controller, mut names) = telling();
    let operator = Operator::new("confined").namespaces(["blue", "default"]).controller(controller);
    let running = world.run(&operator).await;
    assert_eq!(told(&mut names).await, set(["blue/before", "default/before"]));
    for namespace in ["default", "blue", "red"] {
        in_namespace(&world, namespace, "after").await;
    }
    assert_eq!(told(&mut names).await, set(["blue/after", "default/after"]));
    let requests = world.requests();
    assert!(requests.iter().all(|request| !request.contains("/api/v1/configmaps")), "{requests:?}");
    let watch = &running.cache().watches()[0];
    assert_eq!((watch.synced, &*watch.namespaces), (true, &["blue".to_owned(), "default".to_owned()][..]));
}

#[tokio::test(start_paused = true)]
async fn a_namespace_that_is_forbidden_delays_no_other_and_reads_of_others_are_refused() {
    let world = World::start().await;
    namespaces(&world).await;
    world.break_with(|request| request.uri().path().contains("/namespaces/red/").then(crate::watching::forbidden));
    let (sender, mut answers) = mpsc::unbounded_channel();
    let reconcile = move |map: Arc<ConfigMap>, ctx: Context| {
        let sender = sender.clone();
        async move {
            if map.name_any() == "ada" {
                let elsewhere = ctx.get::<Secret>(flyball::Key::namespaced("default", "ada")).await;
                sender.send(elsewhere.unwrap_err().to_string())?;
            }
            Ok(Action::await_change())
        }
    };
    let controller = Controller::new(reconcile).reads::<Secret>();
    let running = world
        .run(&Operator::new("confined").namespaces(["blue", "red"]).controller(controller))
        .await;
    in_namespace(&world, "blue", "ada").await;
    let refusal = answers.recv().await.unwrap();
    assert_eq!(refusal, "Secret is not cached in namespace default: this operator is confined to others");
    let watches = running.cache().watches();
    assert!(watches.iter().all(|watch| !watch.synced && watch.failing_since.is_some()), "{watches:?}");
    assert!(watches[0].last_error.as_ref().unwrap().contains("Forbidden"), "{watches:?}");
    world.mend();
    pass(Duration::from_secs(60)).await;
    let watches = running.cache().watches();
    assert!(watches.iter().all(|watch| watch.synced && watch.failing_since.is_none()), "{watches:?}");
}

fn labelled(name: &str, team: &str) -> ConfigMap {
    let mut map = config_map(name, "a", "1");
    map.metadata.labels = Some([("team".into(), team.into())].into());
    map
}

#[tokio::test(start_paused = true)]
async fn only_what_is_selected_is_reconciled_and_leaving_is_noticed() {
    let world = World::start().await;
    let (controller, mut names) = telling();
    let (sender, mut gone) = mpsc::unbounded_channel();
    let controller = controller
        .labels(Expression::Equal("team".into(), "blue".into()))
        .gone(move |key| sender.send(key.to_string()).unwrap());
    let _running = world.run(&Operator::new("selector").controller(controller)).await;
    world.create(labelled("ada", "blue")).await;
    world.create(labelled("bob", "red")).await;
    assert_eq!(told(&mut names).await, set(["default/ada"]));
    let label = |team: &str| json!({ "metadata": { "labels": { "team": team } } });
    world.merge::<ConfigMap>("bob", label("blue")).await;
    assert_eq!(told(&mut names).await, set(["default/bob"]));
    world.merge::<ConfigMap>("ada", label("red")).await;
    assert_eq!(gone.recv().await.unwrap(), "default/ada");
}

#[tokio::test(start_paused = true)]
async fn two_selections_of_a_kind_are_two_caches_and_the_same_is_one() {
    let world = World::start().await;
    let (controller, mut names) = telling();
    let by_name = |name: &str| controller.clone().fields(&format!("metadata.name={name}"));
    let operator = Operator::new("selector")
        .controller(by_name("ada").named("first"))
        .controller(by_name("ada").named("second"));
    let running = world.run(&operator.controller(by_name("bob"))).await;
    for name in ["ada", "bob", "cyd"] {
        world.create(config_map(name, "a", "1")).await;
    }
    assert_eq!(told(&mut names).await, set(["default/ada", "default/bob"]));
    let watches = running.cache().watches();
    let seen: Vec<_> = watches
        .iter()
        .map(|watch| (watch.selector.as_str(), watch.objects, watch.lists))
        .collect();
    assert_eq!(seen, [("metadata.name=ada", 1, 1), ("metadata.name=bob", 1, 1)]);
}

#[tokio::test(start_paused = true)]
async fn each_selection_of_a_kind_is_told_of_and_counted() {
    let world = World::start().await;
    world.break_with(|request| {
        let eves = request.uri().query().is_some_and(|query| query.contains("eve"));
        eves.then(crate::watching::forbidden)
    });
    let (controller, mut names) = telling();
    let by_name = |name: &str| controller.clone().fields(&format!("metadata.name={name}"));
    let operator = Operator::new("selector")
        .controller(by_name("ada").named("first"))
        .controller(by_name("bob").named("second"));
    let running = world.run(&operator.controller(by_name("eve"))).await;
    for name in ["ada", "bob", "eve"] {
        world.create(config_map(name, "a", "1")).await;
    }
    assert_eq!(told(&mut names).await, set(["default/ada", "default/bob"]));
    let mut metrics = running.metrics().text(flyball::metrics::Format::Prometheus);
    assert!(metrics.contains("flyball_cache_objects{kind=\"ConfigMap\"} 2.0"), "{metrics}");
    assert!(
        metrics.contains("resource_count{kind=\"ConfigMap\",namespace=\"default\"} 2.0"),
        "{metrics}"
    );
    assert!(metrics.contains("flyball_cache_synced{kind=\"ConfigMap\"} 0.0"), "{metrics}");
    let mut config = flyball::Config::default();
    config.metrics.address = "127.0.0.1".parse().unwrap();
    let ask = async |path: &str| {
        let request = http::Request::get(path).body(axum::body::Body::empty()).unwrap();
        let answer = tower::ServiceExt::oneshot(running.admin(&config), request).await.unwrap();
        let bytes = axum::body::to_bytes(answer.into_body(), usize::MAX).await.unwrap();
        String::from_utf8(bytes.into()).unwrap()
    };
    let ready = ask("/readyz").await;
    assert!(ready.contains("[+]cache-configmaps:metadata.name=bob ok\n"), "{ready}");
    assert!(ready.contains("[-]cache-configmaps:metadata.name=eve failed: "), "{ready}");
    assert!(ask("/debug/caches").await.contains("metadata.name=eve"));

    world.mend();
    assert_eq!(told(&mut names).await, set([]));
    pass(Duration::from_secs(60)).await;
    metrics = running.metrics().text(flyball::metrics::Format::Prometheus);
    assert!(metrics.contains("flyball_cache_synced{kind=\"ConfigMap\"} 1.0"), "{metrics}");
    assert_eq!(ask("/readyz").await, "ok");
}

/// A reconcile of `ada` that answers once.
async fn once<Fut>(
    world: &World,
    declare: impl FnOnce(Controller<ConfigMap>) -> Controller<ConfigMap>,
    reconcile: impl Fn(Context) -> Fut + Send + Sync + 'static,
) -> Value
where
    Fut: Future<Output = Result<Value>> + Send + 'static,
{
    let (sender, mut answers) = mpsc::unbounded_channel();
    let reconcile = Arc::new(reconcile);
    let work = move |map: Arc<ConfigMap>, ctx: Context| {
        let (sender, reconcile) = (sender.clone(), reconcile.clone());
        async move {
            if map.name_any() == "ada" {
                sender.send(reconcile(ctx).await?)?;
            }
            Ok(Action::await_change())
        }
    };
    let _running = world.run(&Operator::new("reader").controller(declare(Controller::new(work)))).await;
    world.create(config_map("ada", "a", "1")).await;
    answers.recv().await.unwrap()
}

fn secret(name: &str, team: &str) -> Secret {
    let secret = json!({ "metadata": { "name": name, "labels": { "team": team } }, "data": { "key": "YQ==" } });
    serde_json::from_value(secret).unwrap()
}

/// The names of the Secrets that a reconcile can read.
async fn names(ctx: &Context) -> Result<Value> {
    Ok(ctx.list::<Secret>().await?.iter().map(|secret| secret.name_any()).collect())
}

fn in_team(team: &str) -> Patch<Value> {
    Patch::Merge(json!({ "metadata": { "labels": { "team": team } } }))
}

#[tokio::test(start_paused = true)]
async fn own_writes_enter_and_leave_a_selection_at_once() {
    let world = World::start().await;
    let blue = Selection::default().labels(Expression::Equal("team".into(), "blue".into()));
    let seen = once(
        &world,
        move |controller| controller.select::<Secret>(blue).reads::<Secret>(),
        async |ctx| {
            let secrets: Api<Secret> = Api::namespaced(ctx.client(), "default");
            let mut seen = Vec::new();
            let mut look = async || names(&ctx).await.map(|names| seen.push(names));
            secrets.create(&PostParams::default(), &secret("blue", "blue")).await?;
            secrets.create(&PostParams::default(), &secret("red", "red")).await?;
            look().await?;
            secrets.patch("blue", &Default::default(), &in_team("red")).await?;
            look().await?;
            secrets.patch("red", &Default::default(), &in_team("blue")).await?;
            look().await?;
            pass(Duration::from_secs(60)).await;
            look().await?;
            Ok(json!(seen))
        },
    )
    .await;
    assert_eq!(seen, json!([["blue"], [], ["red"], ["red"]]));
}

#[tokio::test(start_paused = true)]
async fn a_transform_keeps_out_of_the_cache_what_nobody_reads() {
    let world = World::start().await;
    world.create(secret("before", "blue")).await;
    let nameless = Selection::default().transform(|secret| drop(secret.as_object_mut().unwrap().remove("data")));
    let seen = once(
        &world,
        move |controller| controller.reads::<Secret>().select::<Secret>(nameless),
        async |ctx| {
            let secrets: Api<Secret> = Api::namespaced(ctx.client(), "default");
            secrets.create(&PostParams::default(), &secret("own", "blue")).await?;
            let secrets = ctx.list::<Secret>().await?;
            Ok(json!(
                secrets
                    .iter()
                    .map(|secret| (secret.name_any(), secret.data.is_some()))
                    .collect::<Vec<_>>()
            ))
        },
    )
    .await;
    assert_eq!(seen, json!([["before", false], ["own", false]]));
}

#[tokio::test(start_paused = true)]
async fn objects_are_found_by_an_index_that_follows_them() {
    let world = World::start().await;
    world.create(secret("before", "blue")).await;
    let team = |secret: &Secret| secret.labels().get("team").cloned().into_iter().collect();
    let declare = move |controller: Controller<ConfigMap>| controller.index::<Secret>("team", team);
    let seen = once(&world, declare, async |ctx| {
        let secrets: Api<Secret> = Api::namespaced(ctx.client(), "default");
        let mut seen = Vec::new();
        let mut look = async || -> Result<()> {
            for team in ["blue", "red"] {
                let found = ctx.by_index::<Secret>("team", team).await?;
                seen.push(json!(found.iter().map(|secret| secret.name_any()).collect::<Vec<_>>()));
            }
            Ok(())
        };
        secrets.create(&PostParams::default(), &secret("own", "blue")).await?;
        look().await?;
        secrets.patch("own", &Default::default(), &in_team("red")).await?;
        look().await?;
        secrets.delete("before", &Default::default()).await?;
        look().await?;
        let refusal = ctx.by_index::<Secret>("town", "x").await.unwrap_err().to_string();
        Ok(json!([seen, refusal, ctx.cache().by_index::<Secret>("team", "red")?.len()]))
    })
    .await;
    let found = json!([["before", "own"], [], ["before"], ["own"], [], ["own"]]);
    assert_eq!(
        seen,
        json!([
            found,
            "Secret has no index \"town\": declare it with `.index::<Secret>(…)`",
            1
        ])
    );
}

#[tokio::test(start_paused = true)]
async fn a_kind_may_be_listed_by_its_watch_and_a_server_that_cannot_is_asked_for_pages() {
    for refused in [false, true] {
        let world = World::start().await;
        world.create(config_map("ada", "a", "1")).await;
        if refused {
            world.break_with(|request| {
                let streamed = request.uri().query().is_some_and(|query| query.contains("sendInitialEvents"));
                streamed.then(|| crate::watching::refusal(422, "Invalid"))
            });
        }
        let (controller, mut names) = telling();
        let running = world.run(&Operator::new("streamer").streaming_lists().controller(controller)).await;
        assert_eq!(told(&mut names).await, set(["default/ada"]));
        world.create(config_map("bob", "a", "1")).await;
        assert_eq!(told(&mut names).await, set(["default/bob"]));
        let watch = &running.cache().watches()[0];
        assert!(watch.synced && watch.last_error.is_none() && watch.lists == 1, "{watch:?}");
        let pages = world.requests().iter().filter(|request| request.contains("limit=")).count();
        assert_eq!(pages, usize::from(refused));
    }
}

#[tokio::test(start_paused = true)]
async fn a_kind_that_is_known_at_run_time_only_is_confined_too_or_refused() {
    let world = World::start().await;
    namespaces(&world).await;
    let (sender, mut names) = mpsc::unbounded_channel();
    let tell = move |object: Arc<DynamicObject>, _: Context| {
        let sender = sender.clone();
        async move {
            sender.send(format!("{}/{}", object.namespace().unwrap_or_default(), object.name_any()))?;
            Ok(Action::await_change())
        }
    };
    let controller = Controller::of(ApiResource::erase::<ConfigMap>(&()), tell);
    let operator = Operator::new("confined").namespaces(["blue"]);
    let refusal = operator
        .clone()
        .controller(controller.clone())
        .start(world.client.clone())
        .await
        .unwrap_err();
    assert_eq!(
        refusal.to_string(),
        "operator \"confined\": the operator is confined to namespaces, and the scope of ConfigMap is not known: say \
         `.namespaced()` or `.cluster_wide()` after `Controller::of`"
    );
    let _running = world.run(&operator.controller(controller.namespaced())).await;
    for namespace in ["default", "blue", "red"] {
        in_namespace(&world, namespace, "ada").await;
    }
    assert_eq!(told(&mut names).await, set(["blue/ada"]));
    let requests = world.requests();
    assert!(requests.iter().all(|request| !request.contains("/api/v1/configmaps")), "{requests:?}");
}

/// No watch of Secrets tells anything; the first ends when the answer is notified, and its version is then expired.
fn without_news(world: &World) -> Arc<Notify> {
    let cut = Arc::new(Notify::new());
    let (first, mut watches) = (cut.clone(), 0);
    world.break_with(move |request| {
        let uri = request.uri();
        let watch = uri.path().ends_with("/secrets") && uri.query().is_some_and(|query| query.contains("watch="));
        watches += u32::from(watch);
        let cut = first.clone();
        match watches {
            _ if !watch => None,
            1 => Some(Answer::silence_until(async move { cut.notified().await })),
            2 => Some(crate::watching::refusal(410, "Expired")),
            _ => Some(Answer::silence()),
        }
    });
    cut
}

#[tokio::test(start_paused = true)]
async fn an_object_that_leaves_a_selection_and_returns_is_read_also_after_a_list_anew() {
    let world = World::start().await;
    let (cut, blue) = (without_news(&world), Expression::Equal("team".into(), "blue".into()));
    let (blue, other) = (Selection::default().labels(blue), world.clone());
    let seen = once(
        &world,
        move |controller| controller.select::<Secret>(blue).reads::<Secret>(),
        move |ctx| {
            let (cut, other) = (cut.clone(), other.clone());
            async move {
                let secrets: Api<Secret> = Api::namespaced(ctx.client(), "default");
                let mut seen = Vec::new();
                let mut look = async || names(&ctx).await.map(|names| seen.push(names));
                secrets.create(&PostParams::default(), &secret("ada", "blue")).await?;
                secrets.create(&PostParams::default(), &secret("bob", "blue")).await?;
                secrets.patch("ada", &Default::default(), &in_team("red")).await?;
                secrets.patch("bob", &Default::default(), &in_team("red")).await?;
                look().await?;
                secrets.patch("ada", &Default::default(), &in_team("blue")).await?;
                look().await?;
                other
                    .merge::<Secret>("bob", json!({ "metadata": { "labels": { "team": "blue" } } }))
                    .await;
                cut.notify_one();
                pass(Duration::from_secs(60)).await;
                look().await?;
                Ok(json!(seen))
            }
        },
    )
    .await;
    assert_eq!(seen, json!([[], ["ada"], ["ada", "bob"]]));
}

#[tokio::test(start_paused = true)]
async fn metadata_of_a_pod_that_is_selected_by_its_node_is_read_after_a_write_of_metadata() {
    let world = World::start().await;
    let pod = json!({ "metadata": { "name": "ada" }, "spec": { "nodeName": "n", "containers": [{ "name": "a", "image": "b" }] } });
    world.create::<Pod>(serde_json::from_value(pod).unwrap()).await;
    world.break_with(|request| crate::claiming::silence(request, "/pods", "watch="));
    let labels = once(
        &world,
        |controller| controller.owns::<Pod>().select::<Pod>(Selection::default().fields("spec.nodeName=n")),
        async |ctx| {
            let pods: Api<Pod> = Api::namespaced(ctx.client(), "default");
            ctx.list::<PartialObjectMeta<Pod>>().await?;
            pods.patch_metadata("ada", &PatchParams::default(), &in_team("blue")).await?;
            let pod = ctx.get::<PartialObjectMeta<Pod>>("ada").await?;
            Ok(json!(pod.map(|pod| pod.labels().clone())))
        },
    )
    .await;
    assert_eq!(labels, json!({ "team": "blue" }));
}

#[tokio::test(start_paused = true)]
async fn two_indexes_of_one_name_are_refused() {
    let world = World::start().await;
    let (one, _told) = telling();
    let (other, _told_too) = telling();
    let one = one.index("team", |secret: &Secret| secret.labels().get("team").cloned().into_iter().collect());
    let same = Operator::new("same").controller(one.clone()).controller(one.clone().named("again"));
    world.run(&same).await.stop().await;
    let other = other.named("other").index("team", |_: &Secret| vec!["none".into()]);
    let refused = Operator::new("other").controller(one).controller(other).start(world.client.clone()).await;
    let refusal = refused.unwrap_err().to_string();
    assert!(refusal.contains(r#"two indexes of Secret are called "team""#), "{refusal}");
}
