//! What is told of the kinds served, and in which clothes objects come: discovery, OpenAPI, Table, YAML, gzip.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use bytes::Bytes;
use flyball_apiserver::{ApiServer, User};
use flyball_store::Store;
use http::{HeaderMap, Method, Request};
use http_body_util::{BodyExt, Full};
use serde_json::{Value, json};
use std::io::Read;
use std::time::Duration;

const AGGREGATED: &str = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";
const TABLE: &str = "application/json;as=Table;v=v1;g=meta.k8s.io";
const MAPS: &str = "/api/v1/namespaces/default/configmaps";
const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";

struct Answer {
    code: u16,
    headers: HeaderMap,
    bytes: Bytes,
}

impl Answer {
    fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", |value| value.to_str().unwrap())
    }

    fn json(&self) -> Value {
        serde_json::from_slice(&self.bytes).unwrap_or_else(|_| panic!("{}: {:?}", self.code, self.bytes))
    }

    fn text(&self) -> &str {
        std::str::from_utf8(&self.bytes).unwrap()
    }
}

async fn start() -> ApiServer {
    ApiServer::start(Store::memory()).await.unwrap()
}

async fn ask(server: &ApiServer, path: &str, headers: &[(&str, &str)]) -> Answer {
    send(server, Method::GET, path, headers, Value::Null).await
}

async fn send(server: &ApiServer, method: Method, path: &str, headers: &[(&str, &str)], body: Value) -> Answer {
    let body = if body.is_null() {
        String::new()
    } else {
        body.to_string()
    };
    let mut request = Request::new(Full::new(Bytes::from(body)));
    *request.method_mut() = method;
    *request.uri_mut() = path.parse().unwrap();
    for (name, value) in headers {
        let name: http::HeaderName = name.parse().unwrap();
        request.headers_mut().insert(name, value.parse().unwrap());
    }
    let (head, body) = server.as_user(User::admin()).respond(request).await.into_parts();
    let bytes = body.collect().await.unwrap().to_bytes();
    Answer { code: head.status.as_u16(), headers: head.headers, bytes }
}

async fn create(server: &ApiServer, path: &str, object: Value) {
    let answer = send(server, Method::POST, path, &[], object).await;
    assert_eq!(answer.code, 201, "{}", answer.text());
}

fn map(name: &str, data: Value) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data})
}

fn widgets() -> Value {
    let schema = json!({
        "type": "object", "description": "Turns.",
        "properties": {"spec": {"type": "object", "properties": {
            "size": {"type": "integer", "description": "How big."}, "port": {"x-kubernetes-int-or-string": true}
        }}}
    });
    let columns = json!([{"name": "Size", "type": "integer", "jsonPath": ".spec.size"}]);
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "widgets.example.dev"},
        "spec": {
            "group": "example.dev", "scope": "Namespaced",
            "names": {"plural": "widgets", "kind": "Widget", "shortNames": ["wd"], "categories": ["all"]},
            "versions": [{
                "name": "v1", "served": true, "storage": true, "subresources": {"status": {}},
                "additionalPrinterColumns": columns, "schema": {"openAPIV3Schema": schema}
            }]
        }
    })
}

#[tokio::test(start_paused = true)]
async fn groups_are_told_one_by_one() {
    let server = start().await;
    create(&server, DEFINITIONS, widgets()).await;

    let groups = ask(&server, "/apis", &[]).await.json();
    let names: Vec<&str> = groups["groups"]
        .as_array()
        .unwrap()
        .iter()
        .map(|it| it["name"].as_str().unwrap())
        .collect();
    assert_eq!(names[..3], ["apiregistration.k8s.io", "apps", "events.k8s.io"]);
    assert_eq!(names.last(), Some(&"example.dev"));
    let autoscaling = ask(&server, "/apis/autoscaling", &[]).await.json();
    assert_eq!(autoscaling["preferredVersion"]["version"], "v2");
    let list = ask(&server, "/apis/example.dev/v1", &[]).await.json();
    assert_eq!(list["groupVersion"], "example.dev/v1");
    let verbs = json!([
        "delete",
        "deletecollection",
        "get",
        "list",
        "patch",
        "create",
        "update",
        "watch"
    ]);
    let widget = json!({
        "name": "widgets", "singularName": "widget", "namespaced": true, "kind": "Widget", "verbs": verbs,
        "shortNames": ["wd"], "categories": ["all"], "storageVersionHash": "dGliDuVrUiQ="
    });
    assert_eq!(list["resources"][0], widget);
    assert_eq!(list["resources"][1]["name"], "widgets/status");
}

#[tokio::test(start_paused = true)]
async fn groups_are_told_all_at_once_and_only_to_who_does_not_know() {
    let server = start().await;
    let accept = format!("{AGGREGATED},application/json");

    let all = ask(&server, "/apis", &[("accept", &accept)]).await;
    let etag = all.header("etag").to_owned();
    let known = ask(&server, "/apis", &[("accept", &accept), ("if-none-match", &etag)]).await;
    create(&server, DEFINITIONS, widgets()).await;
    let changed = ask(&server, "/apis", &[("accept", &accept), ("if-none-match", &etag)]).await;
    let legacy = ask(&server, "/apis", &[("accept", &format!("application/json,{AGGREGATED}"))]).await;
    let old = ask(&server, "/apis", &[("accept", &AGGREGATED.replace("v2", "v2beta1"))]).await;

    assert_eq!((all.header("content-type"), all.header("vary")), (AGGREGATED, "Accept"));
    assert_eq!(all.header("cache-control"), "public");
    assert_eq!(all.json()["kind"], "APIGroupDiscoveryList");
    assert_eq!((known.code, known.bytes.len()), (304, 0));
    let last = changed.json()["items"].as_array().unwrap().last().unwrap().clone();
    assert_eq!(last["metadata"]["name"], "example.dev");
    let kind = json!({"group": "example.dev", "version": "v1", "kind": "Widget"});
    assert_eq!(last["versions"][0]["resources"][0]["responseKind"], kind);
    assert_eq!(legacy.json()["kind"], "APIGroupList");
    assert_eq!(old.code, 406);
}

#[tokio::test(start_paused = true)]
async fn open_api_follows_the_definitions() {
    let server = start().await;
    create(&server, DEFINITIONS, widgets()).await;

    let index = ask(&server, "/openapi/v3", &[]).await.json();
    let groups = ask(&server, "/apis", &[]).await.json();
    for version in groups["groups"]
        .as_array()
        .unwrap()
        .iter()
        .flat_map(|group| group["versions"].as_array().unwrap())
    {
        let path = format!("apis/{}", version["groupVersion"].as_str().unwrap());
        assert!(index["paths"].get(&path).is_some(), "{path}");
    }
    let url = index["paths"]["apis/example.dev/v1"]["serverRelativeURL"].as_str().unwrap();
    let document = ask(&server, url, &[]).await;

    assert_eq!(document.header("cache-control"), "public, immutable");
    let schema = &document.json()["components"]["schemas"]["dev.example.v1.Widget"];
    let kind = json!([{"group": "example.dev", "version": "v1", "kind": "Widget"}]);
    assert_eq!(schema["x-kubernetes-group-version-kind"], kind);
    assert_eq!(schema["description"], "Turns.");
    let port = &schema["properties"]["spec"]["properties"]["port"];
    assert_eq!(port["anyOf"], json!([{"type": "integer"}, {"type": "string"}]));
    let paths = &document.json()["paths"];
    let patch = &paths["/apis/example.dev/v1/namespaces/{namespace}/widgets/{name}"]["patch"];
    assert_eq!(patch["x-kubernetes-group-version-kind"], kind[0]);
    let parameters = patch["parameters"].as_array().unwrap().iter();
    assert!(parameters.map(|it| &it["name"]).any(|name| name == "fieldValidation"));
    let moved = ask(&server, "/openapi/v3/apis/example.dev/v1?hash=OLD", &[]).await;
    assert_eq!((moved.code, moved.header("location")), (301, url));
}

#[tokio::test(start_paused = true)]
async fn open_api_says_how_built_in_types_merge() {
    let server = start().await;

    let document = ask(&server, "/openapi/v3/api/v1", &[]).await.json();

    let schemas = &document["components"]["schemas"];
    let ports = &schemas["io.k8s.api.core.v1.ServiceSpec"]["properties"]["ports"];
    assert_eq!(ports["x-kubernetes-list-type"], "map");
    assert_eq!(ports["x-kubernetes-list-map-keys"], json!(["port", "protocol"]));
    assert_eq!(
        (&ports["x-kubernetes-patch-merge-key"], &ports["x-kubernetes-patch-strategy"]),
        (&json!("port"), &json!("merge"))
    );
    let time = &schemas["io.k8s.apimachinery.pkg.apis.meta.v1.Time"];
    assert_eq!(*time, json!({"type": "string", "format": "date-time"}));
    let references = document.to_string();
    for reference in references.split("#/components/schemas/").skip(1) {
        let name = reference.split('"').next().unwrap();
        assert!(schemas.get(name).is_some(), "{name} is referred to and missing");
    }
}

#[tokio::test(start_paused = true)]
async fn a_list_is_a_table_for_who_asks() {
    let server = start().await;
    create(&server, MAPS, map("a", json!({"k": "v"}))).await;
    tokio::time::advance(Duration::from_secs(200)).await;

    let table = ask(&server, &format!("{MAPS}?includeObject=None"), &[("accept", TABLE)]).await.json();
    let one = ask(&server, &format!("{MAPS}/a"), &[("accept", TABLE)]).await.json();

    assert_eq!((&table["kind"], &table["apiVersion"]), (&json!("Table"), &json!("meta.k8s.io/v1")));
    assert_eq!(table["rows"], json!([{"cells": ["a", 1, "3m20s"], "object": null}]));
    let names: Vec<&Value> = table["columnDefinitions"].as_array().unwrap().iter().map(|it| &it["name"]).collect();
    assert_eq!(names, ["Name", "Data", "Age"]);
    assert_eq!(one["rows"][0]["object"]["kind"], "PartialObjectMetadata");
    assert_eq!(one["rows"][0]["object"]["metadata"]["name"], "a");
}

#[tokio::test(start_paused = true)]
async fn a_watch_names_its_columns_once() {
    let server = start().await;
    create(&server, MAPS, map("a", json!({}))).await;
    create(&server, MAPS, map("b", json!({}))).await;

    let watch = ask(&server, &format!("{MAPS}?watch=1&timeoutSeconds=1"), &[("accept", TABLE)]).await;

    let events: Vec<Value> = watch.text().lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let cells: Vec<&Value> = events.iter().map(|event| &event["object"]["rows"][0]["cells"][0]).collect();
    assert_eq!(cells, ["a", "b"]);
    assert!(events[0]["object"]["columnDefinitions"].is_array());
    assert!(events[1]["object"]["columnDefinitions"].is_null());
}

#[tokio::test(start_paused = true)]
async fn metadata_alone_is_enough_for_some() {
    let server = start().await;
    create(&server, MAPS, map("a", json!({"k": "v"}))).await;
    let partial = "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io";
    let list = partial.replace("Metadata;", "MetadataList;");

    let one = ask(&server, &format!("{MAPS}/a"), &[("accept", partial)]).await.json();
    let many = ask(&server, MAPS, &[("accept", &list)]).await.json();
    let wrong = ask(&server, MAPS, &[("accept", partial)]).await;

    assert_eq!((one.get("data"), &one["metadata"]["name"]), (None, &json!("a")));
    assert_eq!(many["kind"], "PartialObjectMetadataList");
    assert_eq!(many["items"][0]["kind"], "PartialObjectMetadata");
    assert_eq!((wrong.code, &wrong.json()["reason"]), (406, &json!("NotAcceptable")));
}

#[tokio::test(start_paused = true)]
async fn objects_and_refusals_come_as_yaml_too() {
    let server = start().await;
    create(&server, MAPS, map("a", json!({"k": "yes"}))).await;
    let yaml = [("accept", "application/yaml")];

    let object = ask(&server, &format!("{MAPS}/a"), &yaml).await;
    let refusal = ask(&server, &format!("{MAPS}/b"), &yaml).await;

    assert_eq!(object.header("content-type"), "application/yaml");
    assert!(object.text().contains("data:\n  k: \"yes\"\n"), "{}", object.text());
    assert!(refusal.text().contains("reason: NotFound\n"), "{}", refusal.text());
}

#[tokio::test(start_paused = true)]
async fn large_answers_are_compressed_and_small_ones_are_not() {
    let server = start().await;
    create(&server, MAPS, map("large", json!({"k": "x".repeat(200_000)}))).await;
    let gzip = [("accept-encoding", "deflate, gzip")];

    let large = ask(&server, &format!("{MAPS}/large"), &gzip).await;
    let small = ask(&server, "/api/v1/namespaces/default", &gzip).await;

    assert_eq!((large.header("content-encoding"), large.header("vary")), ("gzip", "Accept-Encoding"));
    let mut text = String::new();
    flate2::read::GzDecoder::new(&*large.bytes).read_to_string(&mut text).unwrap();
    assert_eq!(serde_json::from_str::<Value>(&text).unwrap()["metadata"]["name"], "large");
    assert_eq!(small.header("content-encoding"), "");
}

#[tokio::test(start_paused = true)]
async fn every_answer_can_be_found_in_a_log() {
    let server = start().await;

    let echoed = ask(&server, "/version", &[("audit-id", "my-request")]).await;
    let given = ask(&server, "/nowhere", &[]).await;

    assert_eq!(echoed.header("audit-id"), "my-request");
    assert_eq!(given.header("audit-id").len(), 36);
    assert_eq!(given.header("cache-control"), "no-cache, private");
}

#[tokio::test(start_paused = true)]
async fn what_is_not_there_is_said_as_kubernetes_says_it() {
    let server = start().await;

    for path in [
        "/nowhere",
        "/apis/nowhere.dev",
        "/apis/nowhere.dev/v1/things",
        "/healthz/nothing",
    ] {
        let answer = ask(&server, path, &[]).await;
        assert_eq!((answer.code, answer.text()), (404, "404 page not found\n"), "{path}");
    }
    for path in ["/api/v2", "/apis/apps/v2", "/apis/apps/v1/things", "/api/v1/things"] {
        let answer = ask(&server, path, &[]).await;
        assert_eq!(answer.json()["message"], "the server could not find the requested resource", "{path}");
    }
    let refused = send(&server, Method::POST, "/version", &[], Value::Null).await;
    assert_eq!((refused.code, &refused.json()["reason"]), (405, &json!("MethodNotAllowed")));
}

#[tokio::test(start_paused = true)]
async fn health_is_told_in_a_word_or_in_detail() {
    let server = start().await;

    assert_eq!(ask(&server, "/livez", &[]).await.text(), "ok");
    assert_eq!(ask(&server, "/livez/ping", &[]).await.text(), "ok");
    let detail = ask(&server, "/readyz?verbose&exclude=store&exclude=etcd", &[]).await;
    let warning = "warn: some health checks cannot be excluded: no matches for \"etcd\"";
    assert_eq!(
        detail.text(),
        format!("[+]ping ok\n[+]store excluded: ok\n[+]shutdown ok\n{warning}\nreadyz check passed\n")
    );
}

/// Go clients that prefer protobuf accept it first everywhere.
#[tokio::test(start_paused = true)]
async fn paths_without_resources_are_json_also_for_clients_that_prefer_protobuf() {
    let server = start().await;
    let accept = [("accept", "application/vnd.kubernetes.protobuf,application/json")];

    let version = ask(&server, "/version", &accept).await;
    let health = ask(&server, "/readyz", &accept).await;

    assert_eq!((version.code, version.header("content-type")), (200, "application/json"));
    assert!(version.json()["gitVersion"].is_string());
    assert_eq!((health.code, health.text()), (200, "ok"));
}
