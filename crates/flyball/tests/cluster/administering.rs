//! Probes, metrics, the leader and `/debug`, asked as a service: no socket is opened.

use crate::world::{World, config_map, pass};
use axum::{Router, body::Body};
use flyball::{Action, Config, Context, Controller, Election, Error, Event, Operator, Result};
use flyball_test::Answer;
use http::{Request, StatusCode, header};
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use serde_json::{Value, json};
use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::Duration,
};
use tower::ServiceExt;

const SECOND: Duration = Duration::from_secs(1);

/// Succeeds or fails as the map's entry says.
async fn fare(map: Arc<ConfigMap>, _: Context) -> Result {
    match map.data.as_ref().unwrap().get("how").map(String::as_str) {
        Some("badly") => Err(Error::retry_after(60 * SECOND, "no luck")),
        Some("slowly") => std::future::pending().await,
        _ => Ok(Action::await_change()),
    }
}

/// As it is on a developer's machine: nobody else can ask.
fn loopback() -> Config {
    let mut config = Config::default();
    config.metrics.address = "127.0.0.1".parse().unwrap();
    config
}

async fn ask(service: &Router, method: &str, uri: &str, token: Option<&str>, body: &str) -> (StatusCode, String) {
    let mut request = Request::builder().method(method).uri(uri);
    if let Some(token) = token {
        request = request.header(header::AUTHORIZATION, format!("Bearer {token}"));
    }
    let request = request.body(Body::from(body.to_owned())).unwrap();
    let response = service.clone().oneshot(request).await.unwrap();
    let code = response.status();
    let bytes = axum::body::to_bytes(response.into_body(), usize::MAX).await.unwrap();
    (code, String::from_utf8(bytes.into()).unwrap())
}

async fn get(service: &Router, uri: &str) -> (StatusCode, String) {
    ask(service, "GET", uri, None, "").await
}

async fn json_of(service: &Router, uri: &str) -> Value {
    serde_json::from_str(&get(service, uri).await.1).unwrap()
}

#[tokio::test(start_paused = true)]
async fn an_operator_is_ready_once_every_kind_is_listed() {
    let world = World::start().await;
    let up = Arc::new(AtomicBool::new(false));
    let asked = up.clone();
    let operator = Operator::new("prober").controller(Controller::new(fare).reads::<Secret>()).ready_check(
        "webhooks",
        move || {
            let up = asked.load(Ordering::SeqCst);
            up.then_some(()).ok_or_else(|| "not listening".to_owned())
        },
    );
    world.break_with(|request| {
        let secrets = request.uri().path().ends_with("/secrets");
        secrets.then(|| Answer::refusal(403, "secrets are forbidden"))
    });
    let running = world.run(&operator).await;
    let service = running.admin(&loopback());
    pass(SECOND).await;
    for probe in ["/livez", "/healthz"] {
        assert_eq!(get(&service, probe).await, (StatusCode::OK, "ok".into()), "{probe}");
    }
    let (code, text) = get(&service, "/readyz").await;
    assert_eq!(code, StatusCode::INTERNAL_SERVER_ERROR);
    assert!(text.contains("[+]cache-configmaps ok\n"), "{text}");
    assert!(
        text.contains("[-]cache-secrets failed: ") && text.contains("secrets are forbidden"),
        "{text}"
    );
    assert!(text.contains("[-]webhooks failed: not listening\n"), "{text}");
    assert!(text.ends_with("readyz check failed\n"), "{text}");

    world.mend();
    up.store(true, Ordering::SeqCst);
    pass(60 * SECOND).await;
    assert_eq!(get(&service, "/readyz").await, (StatusCode::OK, "ok".into()));
    assert_eq!(get(&service, "/readyz/webhooks").await, (StatusCode::OK, "ok".into()));
    assert_eq!(get(&service, "/readyz/none").await.0, StatusCode::NOT_FOUND);
    let (_, text) = get(&service, "/readyz?verbose&exclude=webhooks").await;
    assert!(
        text.contains("[+]webhooks excluded: ok\n") && text.ends_with("readyz check passed\n"),
        "{text}"
    );
}

#[tokio::test(start_paused = true)]
async fn leaders_and_followers_are_both_ready_and_say_what_they_are() {
    let world = World::start().await;
    let operator = |name: &str| {
        let election = Election::new("probed").identity(name);
        Operator::new("probed").controller(Controller::new(fare)).election(election)
    };
    let ada = world.run(&operator("ada")).await;
    pass(SECOND).await;
    let bob = world.run(&operator("bob")).await;
    pass(SECOND).await;
    let (ada, bob) = (ada.admin(&loopback()), bob.admin(&loopback()));
    assert!(get(&ada, "/readyz?verbose").await.1.contains("[+]lease-probed ok: leader\n"));
    assert!(get(&bob, "/readyz?verbose").await.1.contains("[+]lease-probed ok: follower of ada\n"));
    let elections = json!([{ "lease": "probed", "identity": "bob", "leads": false, "leader": "ada" }]);
    assert_eq!(json_of(&bob, "/leader").await, json!({ "operator": "probed", "elections": elections }));
    world.create(config_map("eve", "a", "1")).await;
    pass(SECOND).await;
    let queues = json_of(&bob, "/debug/queues").await;
    assert_eq!(queues[0]["held"], "this process does not lead probed");
}

#[tokio::test(start_paused = true)]
async fn a_stop_does_not_wait_for_whoever_holds_the_admin_service() {
    let world = World::start().await;
    let running = world.run(&Operator::new("held").controller(Controller::new(fare))).await;
    let service = running.admin(&loopback());
    tokio::time::timeout(60 * SECOND, running.stop()).await.unwrap();
    assert!(get(&service, "/readyz").await.1.contains("[-]shutdown failed: stopping\n"));
}

#[tokio::test(start_paused = true)]
async fn metrics_are_served_in_the_format_that_is_asked_for() {
    let world = World::start().await;
    let running = world.run(&Operator::new("meter").controller(Controller::new(fare))).await;
    let service = running.admin(&loopback());
    for (accept, content_type) in [
        ("*/*", "text/plain; version=0.0.4; charset=utf-8"),
        (
            "application/openmetrics-text",
            "application/openmetrics-text; version=1.0.0; charset=utf-8",
        ),
    ] {
        let request = Request::get("/metrics").header(header::ACCEPT, accept).body(Body::empty()).unwrap();
        let response = service.clone().oneshot(request).await.unwrap();
        assert_eq!(response.headers()[header::CONTENT_TYPE], content_type);
    }
}

#[tokio::test(start_paused = true)]
async fn debug_tells_what_waits_and_why_and_what_fails() {
    let world = World::start().await;
    let running = world
        .run(&Operator::new("debugged").controller(Controller::new(fare).concurrency(2)))
        .await;
    world.create(config_map("ada", "how", "badly")).await;
    pass(SECOND).await;
    for name in ["bob", "eve", "fay"] {
        world.create(config_map(name, "how", "slowly")).await;
    }
    pass(SECOND).await;
    let service = running.admin(&loopback());
    let queues = json_of(&service, "/debug/queues?controller=configmap").await;
    let queue = &queues[0];
    assert_eq!((&queue["ready"], &queue["waiting"], &queue["running"]), (&json!(1), &json!(1), &json!(2)));
    let states: Vec<_> = queue["objects"].as_array().unwrap().iter().map(|object| &object["state"]).collect();
    assert_eq!(states, ["running", "running", "ready", "waiting"]);
    assert!(queue["objects"][3]["seconds"].as_f64().unwrap() > 50.0, "{queue}");
    assert!(queue["objects"][0]["why"].as_str().is_some_and(|why| !why.is_empty()), "{queue}");

    let errors = json_of(&service, "/debug/errors").await;
    assert_eq!((&errors[0]["object"], &errors[0]["error"]), (&json!("default/ada"), &json!("no luck")));
    assert_eq!(errors[0]["failures"], 1);

    let caches = json_of(&service, "/debug/caches").await;
    assert_eq!((&caches[0]["kind"], &caches[0]["listed"]), (&json!("ConfigMap"), &json!(true)));
    assert!(
        caches[0]["objects"].as_u64().unwrap() >= 4 && caches[0]["bytes"].as_u64().unwrap() > 400,
        "{caches}"
    );
    for path in ["/debug", "/debug/"] {
        assert!(get(&service, path).await.1.contains("POST /debug/reconcile"), "{path}");
    }
    assert_eq!(get(&service, "/debug/queues?color=red").await.0, StatusCode::BAD_REQUEST);
}

#[tokio::test(start_paused = true)]
async fn a_reconcile_of_one_object_or_of_all_can_be_asked_for() {
    let world = World::start().await;
    let runs = Arc::new(AtomicUsize::new(0));
    let counted = runs.clone();
    let count = move |_: Arc<Secret>, _: Context| {
        counted.fetch_add(1, Ordering::SeqCst);
        async { Ok(Action::await_change()) }
    };
    let running = world.run(&Operator::new("asked").controller(Controller::new(count))).await;
    for name in ["ada", "bob"] {
        let secret = json!({ "metadata": { "name": name } });
        world.create::<Secret>(serde_json::from_value(secret).unwrap()).await;
    }
    pass(SECOND).await;
    let service = running.admin(&loopback());
    let after = async |uri: &str| {
        let before = runs.load(Ordering::SeqCst);
        let (code, text) = ask(&service, "POST", uri, None, "").await;
        pass(SECOND).await;
        (code.as_u16(), text, runs.load(Ordering::SeqCst) - before)
    };
    let one = after("/debug/reconcile?controller=secret&object=default/ada").await;
    assert_eq!(one, (202, "1 to be reconciled\n".into(), 1));
    assert_eq!(
        after("/debug/reconcile?controller=secret&all").await,
        (202, "2 to be reconciled\n".into(), 2)
    );
    let none = after("/debug/reconcile?controller=secret&object=default/eve").await;
    assert_eq!(none, (404, "default/eve is not cached\n".into(), 0));
    let (code, text, _) = after("/debug/reconcile?controller=pod&all").await;
    assert_eq!((code, &*text), (400, "there is no controller \"pod\"; there are secret\n"));
    assert_eq!(after("/debug/reconcile?controller=secret").await.0, 400);
    assert_eq!(get(&service, "/debug/reconcile").await.0, StatusCode::METHOD_NOT_ALLOWED);
}

#[tokio::test(start_paused = true)]
async fn who_is_not_known_or_not_allowed_is_refused_where_others_can_ask() {
    let world = World::start().await;
    let running = world.run(&Operator::new("gated").controller(Controller::new(fare))).await;
    let service = running.admin(&Config::default());
    pass(SECOND).await;
    assert_eq!(get(&service, "/readyz").await.0, StatusCode::OK, "probes are for everybody");
    for path in ["/metrics", "/leader", "/debug/queues"] {
        let (code, text) = get(&service, path).await;
        assert_eq!(code, StatusCode::UNAUTHORIZED, "{path}");
        assert!(text.contains("send a token"), "{text}");
    }
    let (code, text) = ask(&service, "GET", "/metrics", Some("forged"), "").await;
    assert_eq!((code, &*text), (StatusCode::UNAUTHORIZED, "the cluster does not know this token\n"));
}

/// This server knows no tokens, so what a TokenReview would say of `a`'s and `b`'s is said in its place.
#[tokio::test(start_paused = true)]
async fn decisions_of_the_api_server_are_kept_to_and_remembered() {
    let world = World::start().await;
    let running = world.run(&Operator::new("gated").controller(Controller::new(fare))).await;
    let mut reviewed = 0;
    world.break_with(move |request| {
        let of_tokens = request.uri().path().ends_with("/tokenreviews");
        reviewed += usize::from(of_tokens);
        let groups = if reviewed == 1 {
            json!(["system:masters"])
        } else {
            json!(["people"])
        };
        let user = json!({ "username": "ada", "groups": groups });
        let review = json!({ "kind": "TokenReview", "status": { "authenticated": true, "user": user } });
        of_tokens.then(|| Answer::json(201, &review))
    });
    let service = running.admin(&Config::default());
    for _ in 0..3 {
        assert_eq!(ask(&service, "GET", "/metrics", Some("a"), "").await.0, StatusCode::OK);
    }
    let (code, text) = ask(&service, "POST", "/debug/reconcile?controller=configmap&all", Some("b"), "").await;
    assert_eq!(code, StatusCode::FORBIDDEN);
    assert_eq!(text, "user \"ada\" cannot post path \"/debug/reconcile\"\n");
    let reviews = |world: &World, kind: &str| world.requests().iter().filter(|line| line.contains(kind)).count();
    assert_eq!((reviews(&world, "/tokenreviews"), reviews(&world, "/subjectaccessreviews")), (2, 2));
    pass(61 * SECOND).await;
    ask(&service, "GET", "/metrics", Some("a"), "").await;
    assert_eq!(reviews(&world, "/tokenreviews"), 3, "a token may be revoked");
}

#[tokio::test(start_paused = true)]
async fn published_events_can_be_asked_for() {
    async fn announce(map: Arc<ConfigMap>, ctx: Context) -> Result {
        ctx.event(Event::normal("Seen", format!("{:?}", map.metadata.name)));
        Ok(Action::await_change())
    }
    let world = World::start().await;
    let running = world.run(&Operator::new("teller").controller(Controller::new(announce))).await;
    for name in ["ada", "bob"] {
        world.create(config_map(name, "a", "1")).await;
    }
    pass(SECOND).await;
    let service = running.admin(&loopback());
    let objects = |events: Value| -> Vec<String> {
        events
            .as_array()
            .unwrap()
            .iter()
            .map(|event| event["object"].as_str().unwrap().to_owned())
            .collect()
    };
    assert_eq!(objects(json_of(&service, "/debug/events").await), ["default/ada", "default/bob"]);
    assert_eq!(objects(json_of(&service, "/debug/events?object=default/ada").await), ["default/ada"]);
    assert_eq!(objects(json_of(&service, "/debug/events?limit=1").await), ["default/bob"]);
    assert_eq!(objects(json_of(&service, "/debug/events?reason=Lost").await), Vec::<String>::new());
    let event = &json_of(&service, "/debug/events?kind=ConfigMap").await[0];
    assert_eq!(
        (&event["type"], &event["reason"], &event["count"]),
        (&json!("Normal"), &json!("Seen"), &json!(1))
    );
}
