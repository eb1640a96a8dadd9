//! Conversion between versions: reviews as an API server sends them, round trips, and what a version cannot express.

use crate::world::pass;
use flyball::webhook::WebhookService;
use flyball::{Action, Context, Controller, Conversion, Manifests, Operator, Result, migrate_storage};
use flyball_store::{Range, Store};
use flyball_test::{Cluster, check_conversion};
use futures::{StreamExt, TryStreamExt};
use http::{Request, StatusCode};
use http_body_util::{BodyExt, Full};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::{
    Api, ResourceExt,
    api::{DynamicObject, WatchEvent, WatchParams},
    core::ApiResource,
};
use serde_json::{Value, json};
use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

mod first {
    use kube::CustomResource;
    use schemars::JsonSchema;
    use serde::{Deserialize, Serialize};

    #[derive(CustomResource, Clone, Debug, Deserialize, Serialize, JsonSchema)]
    #[kube(
        group = "example.dev",
        version = "v1",
        kind = "Disk",
        namespaced,
        status = "DiskStatus"
    )]
    pub struct DiskSpec {
        pub gigabytes: i64,
        /// Removed in v2.
        pub legacy: Option<String>,
        #[serde(default)]
        pub mounts: Vec<Mount>,
    }

    #[derive(Clone, Debug, Default, Deserialize, Serialize, JsonSchema)]
    pub struct Mount {
        pub name: String,
    }

    #[derive(Clone, Debug, Default, Deserialize, Serialize, JsonSchema)]
    pub struct DiskStatus {
        pub ready: Option<bool>,
    }
}

mod second {
    use kube::CustomResource;
    use schemars::JsonSchema;
    use serde::{Deserialize, Serialize};
    use std::collections::BTreeMap;

    #[derive(CustomResource, Clone, Debug, Deserialize, Serialize, JsonSchema)]
    #[kube(
        group = "example.dev",
        version = "v2",
        kind = "Disk",
        namespaced,
        status = "DiskStatus"
    )]
    pub struct DiskSpec {
        pub megabytes: i64,
        #[serde(default)]
        pub class: Class,
        #[serde(default)]
        pub mounts: Vec<Mount>,
        #[serde(default)]
        pub options: BTreeMap<String, String>,
    }

    #[derive(Clone, Copy, Debug, Default, Deserialize, Serialize, JsonSchema)]
    pub enum Class {
        #[default]
        Slow,
        Fast,
    }

    #[derive(Clone, Debug, Default, Deserialize, Serialize, JsonSchema)]
    #[serde(rename_all = "camelCase")]
    pub struct Mount {
        pub name: String,
        pub read_only: Option<bool>,
    }

    #[derive(Clone, Debug, Default, Deserialize, Serialize, JsonSchema)]
    pub struct DiskStatus {
        pub phase: Option<String>,
    }
}

mod third {
    use kube::CustomResource;
    use schemars::JsonSchema;
    use serde::{Deserialize, Serialize};

    #[derive(CustomResource, Clone, Debug, Deserialize, Serialize, JsonSchema)]
    #[kube(group = "example.dev", version = "v3", kind = "Disk", namespaced)]
    pub struct DiskSpec {
        pub size: String,
    }
}

fn to_v2(disk: first::Disk) -> Result<second::Disk> {
    let mount = |mount: first::Mount| second::Mount { name: mount.name, read_only: None };
    let spec = second::DiskSpec {
        megabytes: disk.spec.gigabytes.saturating_mul(1024),
        class: second::Class::Slow,
        mounts: disk.spec.mounts.into_iter().map(mount).collect(),
        options: Default::default(),
    };
    let phase =
        |status: first::DiskStatus| second::DiskStatus { phase: status.ready.map(|ready| format!("ready={ready}")) };
    Ok(second::Disk {
        metadata: Default::default(),
        spec,
        status: disk.status.map(phase),
    })
}

fn to_v1(disk: second::Disk) -> Result<first::Disk> {
    let spec = first::DiskSpec {
        gigabytes: disk.spec.megabytes / 1024,
        legacy: None,
        mounts: disk.spec.mounts.into_iter().map(|mount| first::Mount { name: mount.name }).collect(),
    };
    let ready =
        |status: second::DiskStatus| first::DiskStatus { ready: status.phase.map(|phase| phase == "ready=true") };
    Ok(first::Disk {
        metadata: Default::default(),
        spec,
        status: disk.status.map(ready),
    })
}

fn to_v3(disk: second::Disk) -> Result<third::Disk> {
    Ok(third::Disk::new("", third::DiskSpec { size: format!("{}Mi", disk.spec.megabytes) }))
}

fn from_v3(disk: third::Disk) -> Result<second::Disk> {
    let megabytes = disk.spec.size.strip_suffix("Mi").and_then(|size| size.parse().ok()).unwrap_or_default();
    let spec = second::DiskSpec {
        megabytes,
        class: second::Class::Fast,
        mounts: Vec::new(),
        options: Default::default(),
    };
    Ok(second::Disk::new("", spec))
}

fn two_versions() -> Operator {
    Operator::new("disks").converts(Conversion::of::<first::Disk>().then::<second::Disk>(to_v2, to_v1))
}

fn three_versions() -> Operator {
    let conversion = Conversion::of::<first::Disk>()
        .then::<second::Disk>(to_v2, to_v1)
        .then::<third::Disk>(to_v3, from_v3);
    Operator::new("disks").converts(conversion)
}

fn disk(version: &str, spec: Value) -> Value {
    let metadata = json!({ "name": "ada", "namespace": "default", "uid": "1" });
    json!({ "apiVersion": format!("example.dev/{version}"), "kind": "Disk", "metadata": metadata, "spec": spec })
}

#[test]
fn ten_thousand_random_objects_survive_their_round_trips() {
    check_conversion(&two_versions(), 10_000);
    check_conversion(&three_versions(), 1_000);
}

#[test]
fn what_a_version_cannot_express_is_put_back_unless_it_was_changed() {
    let mounts = json!([{ "name": "a", "readOnly": true }, { "name": "b" }]);
    let new = disk(
        "v2",
        json!({ "megabytes": 1500, "class": "Fast", "mounts": mounts, "options": { "x": "y" } }),
    );
    let mut old = two_versions().convert(&new, "example.dev/v1").unwrap();
    assert_eq!(old["spec"], json!({ "gigabytes": 1, "mounts": [{ "name": "a" }, { "name": "b" }] }));
    assert!(old["metadata"]["annotations"]["conversion.flyball.dev/v2"].is_string(), "{old}");
    assert_eq!(two_versions().convert(&old, "example.dev/v2").unwrap(), new);

    // A client of the old version makes it larger, and removes a mount.
    old["spec"]["gigabytes"] = 3.into();
    old["spec"]["mounts"] = json!([{ "name": "b" }, { "name": "a" }]);
    let edited = two_versions().convert(&old, "example.dev/v2").unwrap();
    assert_eq!(
        edited["spec"],
        json!({ "megabytes": 3072, "class": "Fast", "options": { "x": "y" },
            "mounts": [{ "name": "b" }, { "name": "a", "readOnly": true }] })
    );
    assert_eq!(edited["metadata"].get("annotations"), None, "nothing of v1 is lost in v2");
}

/// The answer to a POST of a body to the operator's own webhook for conversions.
async fn converted(body: Value) -> (StatusCode, Value) {
    let refuse = |_: Request<kube::client::Body>| async {
        Err::<http::Response<kube::client::Body>, _>(std::io::Error::other("no cluster"))
    };
    let service = WebhookService::new(&two_versions(), kube::Client::new(tower::service_fn(refuse), "default"));
    let request = Request::post("/convert").header("content-type", "application/json");
    let request = request.body(Full::new(bytes::Bytes::from(body.to_string()))).unwrap();
    let response = service.respond(request).await;
    let status = response.status();
    let body = response.into_body().collect().await.unwrap().to_bytes();
    (status, serde_json::from_slice::<Value>(&body).unwrap_or_default()["response"].take())
}

fn review(objects: &Value, to: &str) -> Value {
    let request = json!({ "uid": "705ab4f5", "desiredAPIVersion": to, "objects": objects });
    json!({ "apiVersion": "apiextensions.k8s.io/v1", "kind": "ConversionReview", "request": request })
}

#[tokio::test]
async fn a_conversion_review_is_answered_in_order() {
    let objects = json!([
        disk("v1", json!({ "gigabytes": 1 })),
        disk("v2", json!({ "megabytes": 5 }))
    ]);
    let (status, answer) = converted(review(&objects, "example.dev/v2")).await;
    assert_eq!(
        (status, &answer["uid"], &answer["result"]["status"]),
        (StatusCode::OK, &"705ab4f5".into(), &"Success".into())
    );
    let disks = answer["convertedObjects"].as_array().unwrap().iter();
    let sizes: Vec<_> = disks.map(|disk| disk["spec"]["megabytes"].clone()).collect();
    assert_eq!(sizes, [json!(1024), json!(5)]);
}

#[tokio::test]
async fn objects_that_cannot_be_converted_and_malformed_reviews_are_refused() {
    let gigabyte = json!({ "gigabytes": 1 });
    let (pod, foreign) = (json!({ "apiVersion": "v1", "kind": "Pod" }), "this operator does not convert its kind");
    for (object, to, why) in [
        (disk("v1", gigabyte.clone()), "example.dev/v9", "Disk has no version \"example.dev/v9\""),
        (disk("v0", gigabyte), "example.dev/v2", "Disk has no version \"example.dev/v0\""),
        (disk("v1", json!({})), "example.dev/v2", "missing field `gigabytes`"),
        (pod.clone(), "v2", foreign),
        (json!(7), "example.dev/v2", foreign),
    ] {
        let (status, answer) = converted(review(&json!([object]), to)).await;
        let result = &answer["result"];
        assert_eq!((status, &result["status"]), (StatusCode::OK, &"Failure".into()));
        assert!(result["message"].as_str().unwrap().contains(why), "{result}");
    }
    for body in [json!([]), pod, review(&Value::Null, "v1")] {
        assert_eq!(converted(body).await.0, StatusCode::BAD_REQUEST);
    }
}

#[test]
fn the_definition_has_all_versions_and_names_the_service_that_converts() {
    let conversion = Conversion::of::<first::Disk>()
        .then::<second::Disk>(to_v2, to_v1)
        .stored("v1")
        .unserved("v2");
    let operator = Operator::new("disks").converts(conversion);
    let crds = Manifests::of(&operator).crds().unwrap();
    let crd = serde_json::to_value(&crds[0]).unwrap();
    let versions: Vec<_> = crd["spec"]["versions"]
        .as_array()
        .unwrap()
        .iter()
        .map(|version| (version["name"].as_str().unwrap(), version["served"] == true, version["storage"] == true))
        .collect();
    assert!(
        versions.contains(&("v1", true, true)) && versions.contains(&("v2", false, false)),
        "{versions:?}"
    );
    assert_eq!(
        crd["spec"]["conversion"],
        json!({ "strategy": "Webhook", "webhook": { "conversionReviewVersions": ["v1"], "clientConfig": { "service": {
            "namespace": "disks-system", "name": "disks-webhook", "path": "/convert", "port": 443 } } } })
    );
}

async fn nothing<K>(_: Arc<K>, _: Context) -> Result {
    Ok(Action::await_change())
}

/// Watches disks in a version, and collects the sizes that it sees.
fn watched<K>(cluster: &Cluster, size: fn(&K) -> i64) -> Arc<Mutex<Vec<i64>>>
where
    K: kube::Resource<DynamicType = (), Scope = kube::core::NamespaceResourceScope>,
    K: Clone + std::fmt::Debug + serde::de::DeserializeOwned + Send + 'static,
{
    let (api, seen) = (Api::<K>::default_namespaced(cluster.client()), Arc::new(Mutex::new(Vec::new())));
    let sizes = seen.clone();
    tokio::spawn(async move {
        let mut events = api.watch(&WatchParams::default(), "0").await.unwrap().boxed();
        while let Some(event) = events.try_next().await.unwrap() {
            if let WatchEvent::Added(disk) | WatchEvent::Modified(disk) = event {
                sizes.lock().unwrap().push(size(&disk));
            }
        }
    });
    seen
}

#[tokio::test(start_paused = true)]
async fn clients_of_both_versions_read_write_and_watch_the_same_objects() {
    let cluster = Cluster::with(two_versions().controller(Controller::new(nothing::<second::Disk>))).await;
    let old = watched(&cluster, |disk: &first::Disk| disk.spec.gigabytes);
    let new = watched(&cluster, |disk: &second::Disk| disk.spec.megabytes);
    let spec = first::DiskSpec { gigabytes: 1, legacy: Some("x".into()), mounts: Vec::new() };
    cluster.create(first::Disk::new("ada", spec)).await;
    let stored: second::Disk = cluster.get("ada").await;
    assert_eq!(
        (stored.spec.megabytes, stored.annotations().len()),
        (1024, 1),
        "v2 cannot express `legacy`"
    );
    cluster
        .edit("ada", |disk: &mut second::Disk| disk.spec.options = [("x".into(), "y".into())].into())
        .await;
    let read: first::Disk = cluster.get("ada").await;
    assert_eq!((read.spec.gigabytes, read.spec.legacy.as_deref()), (1, Some("x")));

    cluster.edit("ada", |disk: &mut first::Disk| disk.spec.gigabytes = 2).await;
    let edited: second::Disk = cluster.get("ada").await;
    assert_eq!((edited.spec.megabytes, edited.spec.options["x"].as_str()), (2048, "y"));
    cluster.merge::<second::Disk>("ada", json!({ "spec": { "megabytes": 3500 } })).await;
    let read: first::Disk = cluster.get("ada").await;
    assert_eq!((read.spec.gigabytes, read.spec.legacy.as_deref()), (3, Some("x")));
    assert_eq!(cluster.list::<first::Disk>().await.len(), 1);
    pass(Duration::from_secs(1)).await;
    assert_eq!(*old.lock().unwrap(), [1, 1, 2, 3]);
    assert_eq!(*new.lock().unwrap(), [1024, 1024, 2048, 3500]);
}

fn definition(versions: &[(&str, Value)], stored: &str) -> CustomResourceDefinition {
    let version = |(name, spec): &(&str, Value)| {
        json!({ "name": name, "served": true, "storage": *name == stored, "schema": { "openAPIV3Schema": {
            "type": "object", "properties": { "spec": { "type": "object", "properties": spec } } } } })
    };
    let names = json!({ "kind": "Tape", "plural": "tapes", "singular": "tape" });
    let versions: Vec<_> = versions.iter().map(version).collect();
    let spec = json!({ "group": "example.dev", "scope": "Namespaced", "names": names, "versions": versions });
    serde_json::from_value(json!({ "metadata": { "name": "tapes.example.dev" }, "spec": spec })).unwrap()
}

fn tapes(version: &str) -> ApiResource {
    let kind = kube::core::GroupVersionKind::gvk("example.dev", version, "Tape");
    ApiResource::from_gvk_with_plural(&kind, "tapes")
}

fn tape(name: &str, version: &str, spec: Value) -> DynamicObject {
    DynamicObject::new(name, &tapes(version)).data(json!({ "spec": spec }))
}

/// An operator that brings a definition, and reads its objects.
fn keeper(crd: CustomResourceDefinition) -> Operator {
    let storage = crd.spec.versions.iter().find(|version| version.storage).unwrap().name.clone();
    Operator::new("tapes")
        .crd(crd)
        .controller(Controller::of(tapes(&storage), nothing::<DynamicObject>).namespaced())
}

#[tokio::test(start_paused = true)]
async fn a_definition_that_would_lose_a_stored_field_is_refused_with_its_path() {
    let (number, text) = (json!({ "type": "integer" }), json!({ "type": "string" }));
    let old = definition(&[("v1", json!({ "length": number, "label": text }))], "v1");
    let mut cluster = Cluster::with(keeper(old)).await;
    cluster.dynamic(&tapes("v1")).create(tape("ada", "v1", json!({ "length": 1 }))).await;
    cluster
        .dynamic(&tapes("v1"))
        .create(tape("bob", "v1", json!({ "length": 1, "label": "b" })))
        .await;
    cluster.stop("tapes").await;

    let new = keeper(definition(&[("v1", json!({ "length": number }))], "v1"));
    let refused = new.start(cluster.client()).await.unwrap_err().to_string();
    let why = "spec.label of v1 is not in v1 of this operator, and Tape default/bob has it: its value would be lost";
    assert!(refused.contains(why), "{refused}");
    let next = keeper(definition(
        &[
            ("v1", json!({ "length": number, "label": text })),
            ("v2", json!({ "length": number })),
        ],
        "v2",
    ));
    let refused = next.start(cluster.client()).await.unwrap_err().to_string();
    assert!(refused.contains("spec.label of v1 is not in v2 of this operator"), "{refused}");

    cluster
        .dynamic(&tapes("v1"))
        .edit("bob", |tape| drop(tape.data["spec"].as_object_mut().unwrap().remove("label")))
        .await;
    let running = new.start(cluster.client()).await.unwrap();
    running.stop().await;
}

/// The versions that Tapes are stored in.
async fn stored_as(store: &Store) -> Vec<String> {
    let page = store.range(Range::prefix("")).await.unwrap();
    let objects = page.entries.iter().filter_map(|entry| serde_json::from_slice::<Value>(&entry.value).ok());
    let tapes = objects.filter(|object| object["kind"] == "Tape");
    let mut versions: Vec<_> = tapes.map(|tape| tape["apiVersion"].as_str().unwrap().to_owned()).collect();
    versions.sort();
    versions.dedup();
    versions
}

#[tokio::test(start_paused = true)]
async fn a_migration_that_is_killed_goes_on_and_ends_with_one_stored_version() {
    let number = json!({ "length": { "type": "integer" } });
    let store = Store::memory();
    let mut cluster = Cluster::on(store.clone()).await;
    cluster.run(keeper(definition(&[("v1", number.clone())], "v1"))).await;
    for name in 0..250 {
        let tape = tape(&format!("tape-{name:04}"), "v1", json!({ "length": name }));
        cluster.dynamic(&tapes("v1")).create(tape).await;
    }
    cluster.stop("tapes").await;
    let both = keeper(definition(&[("v1", number.clone()), ("v2", number.clone())], "v2"));
    cluster.run(both.clone().version("2.0.0")).await;
    let stored = async |cluster: &Cluster| {
        let crd: CustomResourceDefinition = cluster.get("tapes.example.dev").await;
        let annotations = crd.annotations().keys().any(|key| key.contains("storage-migration"));
        (crd.status.unwrap().stored_versions.unwrap(), annotations)
    };
    assert_eq!(stored(&cluster).await.0, ["v1", "v2"]);

    let client = cluster.recorded_client();
    let killed = tokio::spawn({
        let (client, both) = (client.clone(), both.clone());
        async move {
            let mut pages = 0;
            migrate_storage(&client, &both, |_| {
                pages += 1;
                assert!(pages < 2, "killed after its second page");
            })
            .await
        }
    });
    assert!(killed.await.is_err());
    assert_eq!(stored(&cluster).await, (vec!["v1".into(), "v2".into()], true));
    assert_eq!(stored_as(&store).await, ["example.dev/v1", "example.dev/v2"]);
    let patches = |requests: Vec<String>| requests.iter().filter(|request| request.contains("/tapes/tape-")).count();
    let before = patches(cluster.requests());
    assert_eq!(before, 200);

    let mut reports = Vec::new();
    migrate_storage(&client, &both, |progress| reports.push(progress.clone())).await.unwrap();
    assert_eq!(patches(cluster.requests()) - before, 50, "what was rewritten is not rewritten again");
    let last = reports.last().unwrap();
    assert_eq!((last.done, last.migrated, last.version.as_str()), (true, 250, "v2"));
    assert_eq!(stored(&cluster).await, (vec!["v2".into()], false));
    assert_eq!(stored_as(&store).await, ["example.dev/v2"]);

    // The old version can be dropped now, by a newer release.
    cluster.stop("tapes").await;
    let new = keeper(definition(&[("v2", number)], "v2")).version("3.0.0");
    cluster.run(new).await;
    let crd: CustomResourceDefinition = cluster.get("tapes.example.dev").await;
    assert_eq!(crd.spec.versions.len(), 1);
    let tapes = cluster.dynamic(&tapes("v2")).list().await;
    assert_eq!(tapes.len(), 250);
    assert!(tapes.iter().enumerate().all(|(name, tape)| tape.data["spec"]["length"] == name));
}
