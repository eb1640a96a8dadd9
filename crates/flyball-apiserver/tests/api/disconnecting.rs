//! Clients that close the connection in the middle of a write: the write is done as a whole, or not at all.

use crate::ask::Server;
use flyball_store::Store;
use flyball_store::fault::Faults;
use flyball_store::testing::Chance;
use http::Method;
use serde_json::{Value, json};
use std::time::Duration;
use tokio::time::{sleep, timeout};

const WRITES: usize = 1_000;
const MAPS: &str = "/api/v1/namespaces/default/configmaps";
const PODS: &str = "/api/v1/namespaces/default/pods";
const SERVICES: &str = "/api/v1/namespaces/default/services";
const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";

/// A server whose store takes up to a second for each operation, and clients that do not wait so long.
struct World {
    server: Server,
    chance: Chance,
}

impl World {
    async fn start() -> World {
        let mut chance = Chance::from_environment();
        let faults = Faults {
            seed: chance.below(1 << 30) as u64,
            delayed: 1,
            ..Faults::default()
        };
        World {
            server: Server::over(faults.on(Store::memory())).await,
            chance,
        }
    }

    /// Sends a request and drops it at some moment; returns when the server is done with it.
    async fn interrupt(&mut self, method: Method, path: &str, content_type: &str, body: Value) {
        let body = if body.is_null() {
            String::new()
        } else {
            body.to_string()
        };
        let moment = Duration::from_millis(self.chance.below(3_000) as u64);
        let _dropped = timeout(moment, self.server.send(method, path, content_type, &body)).await;
        self.server.0.finish_writes().await;
    }

    async fn create(&self, path: &str, object: Value) {
        let created = self.server.post(path, object).await;
        assert_eq!(created.code, 201, "{}", created.body);
    }

    /// The object at a path, if there is one; nothing may be left of its deletion.
    async fn object(&self, path: &str) -> Option<Value> {
        let found = self.server.get(path).await;
        assert!(matches!(found.code, 200 | 404), "{path}: {}", found.body);
        let metadata = &found.body["metadata"];
        assert!(metadata["deletionTimestamp"].is_null(), "{path} is half deleted: {}", found.body);
        (found.code == 200).then_some(found.body)
    }

    async fn names(&self, path: &str) -> Vec<String> {
        let list = self.server.get(path).await.body;
        let items = list["items"].as_array().unwrap_or_else(|| panic!("{path}: {list}"));
        items.iter().map(|item| item["metadata"]["name"].as_str().unwrap().to_owned()).collect()
    }
}

fn map(name: &str, data: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {"a": data, "b": data}})
}

fn definition(plural: &str) -> Value {
    let schema = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("{plural}.example.dev")},
        "spec": {"group": "example.dev", "scope": "Namespaced",
            "names": {"plural": plural, "kind": format!("K{plural}")},
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": schema}}]}
    })
}

fn service(name: &str, port: usize) -> Value {
    json!({"metadata": {"name": name}, "spec": {"type": "NodePort", "ports": [{"port": 80, "nodePort": port}]}})
}

async fn creates(world: &mut World, name: &str) {
    world.interrupt(Method::POST, MAPS, "application/json", map(name, "new")).await;

    let found = world.object(&format!("{MAPS}/{name}")).await;
    assert_eq!(world.names(MAPS).await.contains(&name.to_owned()), found.is_some());
    if let Some(found) = found {
        assert_eq!(found["data"], json!({"a": "new", "b": "new"}));
    }
}

/// A node port is taken if, and only if, the Service is there that has it.
async fn creates_a_service(world: &mut World, name: &str, number: usize) {
    let port = 30_000 + number;
    world.interrupt(Method::POST, SERVICES, "application/json", service(name, port)).await;

    let found = world.object(&format!("{SERVICES}/{name}")).await;
    let other = world.server.post(SERVICES, service(&format!("{name}-other"), port)).await;
    assert_eq!(other.code, if found.is_some() { 422 } else { 201 }, "{}", other.body);
}

async fn changes(world: &mut World, name: &str, method: Method, content_type: &str, body: Value) {
    let path = format!("{MAPS}/{name}");
    world.create(MAPS, map(name, "old")).await;
    let query = "fieldManager=tester&force=true";
    let query = if content_type == "application/apply-patch+yaml" {
        query
    } else {
        ""
    };
    world.interrupt(method, &format!("{path}?{query}"), content_type, body).await;

    let data = world.object(&path).await.expect("it was there before")["data"].clone();
    let (old, new) = (json!({"a": "old", "b": "old"}), json!({"a": "new", "b": "new"}));
    assert!(data == old || data == new, "{data}");
}

async fn deletes(world: &mut World, name: &str, path: &str, object: Value) {
    world.create(path, object).await;
    world
        .interrupt(Method::DELETE, &format!("{path}/{name}"), "application/json", Value::Null)
        .await;

    let found = world.object(&format!("{path}/{name}")).await;
    assert_eq!(world.names(path).await.contains(&name.to_owned()), found.is_some());
}

async fn deletes_a_collection(world: &mut World, name: &str) {
    for number in 0..4 {
        let mut object = map(&format!("{name}-{number}"), "new");
        object["metadata"]["labels"] = json!({"group": name});
        world.create(MAPS, object).await;
    }
    let path = format!("{MAPS}?labelSelector=group%3D{name}");
    world.interrupt(Method::DELETE, &path, "application/json", Value::Null).await;

    let left = world.names(&path).await;
    assert!(matches!(left.len(), 0 | 4), "{left:?}");
}

/// Waits until a definition is served, or gone, and its objects with it.
async fn is_served(world: &World, plural: &str) -> bool {
    let served = format!("/apis/example.dev/v1/namespaces/default/{plural}");
    for _ in 0..600 {
        let definition = world.server.get(&format!("{DEFINITIONS}/{plural}.example.dev")).await;
        let conditions = definition.body["status"]["conditions"].as_array().cloned().unwrap_or_default();
        let established = conditions.iter().any(|it| it["type"] == "Established" && it["status"] == "True");
        let terminating = !definition.body["metadata"]["deletionTimestamp"].is_null();
        match (definition.code, world.server.get(&served).await.code) {
            (200, 200) if established && !terminating => return true,
            (404, 404) => return false,
            _ => sleep(Duration::from_secs(1)).await,
        }
    }
    panic!("{plural} is neither served nor gone");
}

async fn defines(world: &mut World, plural: &str) {
    world.interrupt(Method::POST, DEFINITIONS, "application/json", definition(plural)).await;

    if is_served(world, plural).await {
        let objects = format!("/apis/example.dev/v1/namespaces/default/{plural}");
        let object = json!({"apiVersion": "example.dev/v1", "kind": format!("K{plural}"), "metadata": {"name": "a"}});
        world.create(&objects, object.clone()).await;
        world
            .interrupt(Method::DELETE, &format!("{objects}/a"), "application/json", Value::Null)
            .await;
        world.object(&format!("{objects}/a")).await;
    }
}

async fn removes_a_definition(world: &mut World, plural: &str) {
    world.create(DEFINITIONS, definition(plural)).await;
    assert!(is_served(world, plural).await);
    let objects = format!("/apis/example.dev/v1/namespaces/default/{plural}");
    for name in ["a", "b", "c"] {
        let object = json!({"apiVersion": "example.dev/v1", "kind": format!("K{plural}"), "metadata": {"name": name}});
        world.create(&objects, object).await;
    }
    let path = format!("{DEFINITIONS}/{plural}.example.dev");
    world.interrupt(Method::DELETE, &path, "application/json", Value::Null).await;

    if is_served(world, plural).await {
        assert_eq!(world.names(&objects).await, ["a", "b", "c"]);
        let deleted = world.server.delete(&path, Value::Null).await;
        assert_eq!(deleted.code, 200, "{}", deleted.body);
    }
}

// Over a second, because it makes some thousand requests.
#[tokio::test(start_paused = true)]
async fn a_write_whose_client_disconnects_is_done_as_a_whole_or_not_at_all() {
    let mut world = World::start().await;
    for number in 0..WRITES {
        let name = &format!("o{number}");
        match number % 10 {
            0 => creates(&mut world, name).await,
            1 => creates_a_service(&mut world, name, number).await,
            2 => changes(&mut world, name, Method::PUT, "application/json", map(name, "new")).await,
            3 => {
                let patch = json!({"data": {"a": "new", "b": "new"}});
                changes(&mut world, name, Method::PATCH, "application/merge-patch+json", patch).await;
            }
            4 => changes(&mut world, name, Method::PATCH, "application/apply-patch+yaml", map(name, "new")).await,
            5 => deletes(&mut world, name, MAPS, map(name, "new")).await,
            6 => {
                let spec = json!({"containers": [{"name": "c", "image": "a:1"}]});
                deletes(&mut world, name, PODS, json!({"metadata": {"name": name}, "spec": spec})).await;
            }
            7 => deletes_a_collection(&mut world, name).await,
            8 => defines(&mut world, name).await,
            _ => removes_a_definition(&mut world, name).await,
        }
    }
}
