//! Custom resources: served from the moment they are defined, until they are no more.

use crate::ask::Server;
use serde_json::{Value, json};

const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
const GREETINGS: &str = "/apis/example.dev/v1/namespaces/default/greetings";

fn definition(properties: Value) -> Value {
    let schema = json!({"type": "object", "properties": {
        "spec": {"type": "object", "properties": properties}, "status": {"type": "object", "properties": {"greeted": {"type": "string"}}}}});
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "greetings.example.dev"},
        "spec": {"group": "example.dev", "scope": "Namespaced", "names": {"plural": "greetings", "kind": "Greeting", "shortNames": ["gr"]},
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": schema},
                "subresources": {"status": {}, "scale": {"specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas"}}}]}
    })
}

fn who() -> Value {
    json!({"who": {"type": "string", "default": "world"}, "replicas": {"type": "integer", "maximum": 10}})
}

async fn defined() -> Server {
    let server = Server::start().await;
    let created = server.post(DEFINITIONS, definition(who())).await;
    assert_eq!(created.code, 201, "{}", created.body);
    server
}

fn greeting(name: &str, spec: Value) -> Value {
    json!({"apiVersion": "example.dev/v1", "kind": "Greeting", "metadata": {"name": name}, "spec": spec})
}

#[tokio::test(start_paused = true)]
async fn a_kind_is_served_when_its_definition_is_answered() {
    let server = defined().await;

    let definition = server.get(&format!("{DEFINITIONS}/greetings.example.dev")).await.body;
    let conditions = definition["status"]["conditions"].as_array().unwrap();
    let words: Vec<String> = conditions.iter().map(|it| format!("{} {}", it["type"], it["status"])).collect();
    assert_eq!(words, ["\"NamesAccepted\" \"True\"", "\"Established\" \"True\""]);

    let created = server.post(GREETINGS, greeting("a", json!({"colour": "red"}))).await;
    assert_eq!(created.code, 201, "{}", created.body);
    assert_eq!(created.body["spec"], json!({"who": "world"}));
    assert_eq!(created.body["metadata"]["generation"], 1);
    assert_eq!(created.headers["warning"], "299 - \"unknown field \\\"spec.colour\\\"\"");
}

#[tokio::test(start_paused = true)]
async fn an_object_that_breaks_its_schema_is_refused() {
    let server = defined().await;

    let refused = server.post(GREETINGS, greeting("a", json!({"replicas": 11}))).await;

    assert_eq!(refused.code, 422);
    let why = "spec.replicas: Invalid value: 11: spec.replicas in body should be less than or equal to 10";
    assert_eq!(refused.body["message"], format!("Greeting.example.dev \"a\" is invalid: {why}"));
}

#[tokio::test(start_paused = true)]
async fn status_and_spec_are_written_apart() {
    let server = defined().await;
    let mut object = server.post(GREETINGS, greeting("a", json!({"who": "Ada"}))).await.body;
    object["status"] = json!({"greeted": "no"});
    object["spec"]["who"] = json!("Bob");

    let whole = server.put(&format!("{GREETINGS}/a"), object.clone()).await;
    assert_eq!((whole.code, &whole.body["status"]), (200, &Value::Null));
    assert_eq!(whole.body["metadata"]["generation"], 2);

    object = whole.body;
    object["status"] = json!({"greeted": "hello Bob"});
    object["spec"]["who"] = json!("Eve");
    object["metadata"]["labels"] = json!({"a": "b"});
    let status = server.put(&format!("{GREETINGS}/a/status"), object).await;
    assert_eq!((status.code, &status.body["status"]["greeted"]), (200, &json!("hello Bob")));
    assert_eq!(
        (&status.body["spec"]["who"], &status.body["metadata"]["labels"]),
        (&json!("Bob"), &Value::Null)
    );
    assert_eq!(status.body["metadata"]["generation"], 2);
}

#[tokio::test(start_paused = true)]
async fn a_new_schema_holds_at_once_for_what_is_stored() {
    let server = defined().await;
    server.post(GREETINGS, greeting("a", json!({"who": "Ada"}))).await;
    let mut definition = server.get(&format!("{DEFINITIONS}/greetings.example.dev")).await.body;
    let properties =
        &mut definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"];
    *properties = json!({"whom": {"type": "string", "default": "everybody"}});

    let replaced = server.put(&format!("{DEFINITIONS}/greetings.example.dev"), definition).await;
    assert_eq!(replaced.code, 200, "{}", replaced.body);

    assert_eq!(server.get(&format!("{GREETINGS}/a")).await.body["spec"], json!({"whom": "everybody"}));
    let list = server.get(GREETINGS).await.body;
    assert_eq!(list["items"][0]["spec"], json!({"whom": "everybody"}));
}

#[tokio::test(start_paused = true)]
async fn a_definition_takes_its_objects_with_it() {
    let server = defined().await;
    server.post(GREETINGS, greeting("a", json!({}))).await;
    let mut held = greeting("b", json!({}));
    held["metadata"]["finalizers"] = json!(["example.dev/wait"]);
    server.post(GREETINGS, held).await;
    let mut watch = server.watch(&format!("{GREETINGS}?watch=true")).await;
    for expected in ["ADDED a", "ADDED b"] {
        assert_eq!(watch.words().await, expected);
    }

    let deleted = server.delete(&format!("{DEFINITIONS}/greetings.example.dev"), json!(null)).await;
    assert_eq!(deleted.code, 200);
    assert_eq!(server.get(&format!("{GREETINGS}/a")).await.code, 404);
    let late = server.post(GREETINGS, greeting("c", json!({}))).await;
    assert_eq!(late.code, 403, "{}", late.body);

    let path = format!("{GREETINGS}/b");
    let let_go = server.patch("merge-patch+json", &path, json!({"metadata": {"finalizers": null}})).await;
    assert_eq!(let_go.code, 200, "{}", let_go.body);
    assert_eq!(server.get(&format!("{DEFINITIONS}/greetings.example.dev")).await.code, 404);
    assert_eq!(server.get(GREETINGS).await.code, 404);
    for expected in ["DELETED a", "MODIFIED b", "DELETED b", "end"] {
        assert_eq!(watch.words().await, expected);
    }
}

#[tokio::test(start_paused = true)]
async fn scale_shows_and_sets_the_replicas_of_a_custom_resource() {
    let server = defined().await;
    server.post(GREETINGS, greeting("a", json!({"replicas": 1}))).await;
    let path = format!("{GREETINGS}/a/scale");

    let scale = server.get(&path).await.body;
    assert_eq!((&scale["kind"], &scale["spec"]["replicas"]), (&json!("Scale"), &json!(1)));
    let scaled = server.patch("merge-patch+json", &path, json!({"spec": {"replicas": 3}})).await;

    assert_eq!((scaled.code, &scaled.body["spec"]["replicas"]), (200, &json!(3)));
    assert_eq!(server.get(&format!("{GREETINGS}/a")).await.body["spec"]["replicas"], 3);
}

#[tokio::test(start_paused = true)]
async fn a_name_that_is_taken_is_not_accepted() {
    let server = defined().await;
    let mut other = definition(who());
    other["metadata"]["name"] = json!("hellos.example.dev");
    other["spec"]["names"] = json!({"plural": "hellos", "kind": "Greeting"});

    assert_eq!(server.post(DEFINITIONS, other).await.code, 201);

    let refused = server.get(&format!("{DEFINITIONS}/hellos.example.dev")).await.body;
    let condition = &refused["status"]["conditions"][0];
    assert_eq!(
        (&condition["status"], &condition["reason"]),
        (&json!("False"), &json!("ListKindConflict"))
    );
    assert_eq!(server.get("/apis/example.dev/v1/hellos").await.code, 404);
}

#[tokio::test(start_paused = true)]
async fn versions_of_a_kind_show_the_same_object() {
    let server = Server::start().await;
    let mut two = definition(who());
    let mut second = two["spec"]["versions"][0].clone();
    second["name"] = json!("v2");
    second["storage"] = json!(false);
    second["deprecated"] = json!(true);
    second["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]["more"] = json!({"type": "string"});
    two["spec"]["versions"].as_array_mut().unwrap().push(second);
    assert_eq!(server.post(DEFINITIONS, two).await.code, 201);

    let other = GREETINGS.replace("/v1/", "/v2/");
    let mut object = greeting("a", json!({"who": "Ada", "more": "lost"}));
    object["apiVersion"] = json!("example.dev/v2");
    let created = server.post(&other, object).await;

    assert_eq!(
        (created.code, &created.body["apiVersion"]),
        (201, &json!("example.dev/v2")),
        "{}",
        created.body
    );
    assert_eq!(created.headers["warning"], "299 - \"example.dev/v2 Greeting is deprecated\"");
    assert_eq!(created.body["spec"], json!({"who": "Ada"}), "the stored version has no such field");
    let shown = server.get(&format!("{GREETINGS}/a")).await.body;
    assert_eq!((&shown["apiVersion"], &shown["spec"]), (&json!("example.dev/v1"), &json!({"who": "Ada"})));
    let mut watch = server.watch(&format!("{other}?watch=true")).await;
    assert_eq!(watch.next().await.unwrap()["object"]["apiVersion"], "example.dev/v2");
}

#[tokio::test(start_paused = true)]
async fn selectors_may_name_the_fields_that_a_definition_lists() {
    let server = Server::start().await;
    let mut selectable = definition(who());
    selectable["spec"]["versions"][0]["selectableFields"] = json!([{"jsonPath": ".spec.who"}]);
    assert_eq!(server.post(DEFINITIONS, selectable).await.code, 201);
    for (name, who) in [("a", "Ada"), ("b", "Bob")] {
        server.post(GREETINGS, greeting(name, json!({"who": who}))).await;
    }

    let list = server.get(&format!("{GREETINGS}?fieldSelector=spec.who%3DBob")).await.body;
    let other = server.get(&format!("{GREETINGS}?fieldSelector=spec.replicas%3D1")).await;

    assert_eq!(
        (list["items"].as_array().unwrap().len(), &list["items"][0]["metadata"]["name"]),
        (1, &json!("b"))
    );
    assert_eq!(
        (other.code, other.body["message"].as_str()),
        (400, Some("field label not supported: spec.replicas"))
    );
}

#[tokio::test(start_paused = true)]
async fn the_address_of_a_conversion_webhook_is_validated() {
    let server = Server::start().await;
    let mut webhook = definition(who());
    let config = json!({"url": "http://example.dev/convert"});
    webhook["spec"]["conversion"] =
        json!({"strategy": "Webhook", "webhook": {"clientConfig": config, "conversionReviewVersions": ["v1"]}});

    let refused = server.post(DEFINITIONS, webhook).await;

    assert_eq!(refused.code, 422);
    let cause = &refused.body["details"]["causes"][0];
    assert_eq!(cause["field"], "spec.conversion.webhookClientConfig.url");
}

#[tokio::test(start_paused = true)]
async fn definitions_are_served_again_after_a_restart() {
    let store = flyball_store::Store::memory();
    let server = Server::over(store.clone()).await;
    server.post(DEFINITIONS, definition(who())).await;
    server.post(GREETINGS, greeting("a", json!({"who": "Ada"}))).await;

    let again = Server::over(store).await;

    assert_eq!(again.get(&format!("{GREETINGS}/a")).await.body["spec"]["who"], "Ada");
}
