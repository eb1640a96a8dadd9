//! Requests that meet between the read and the commit of another one.

use crate::ask::Server;
use bytes::Bytes;
use flyball_store::{Backend, Committed, Entry, Health, Op, Page, Range, Result, Snapshot, Store, Watch};
use futures::future::BoxFuture;
use serde_json::{Value, json};
use std::sync::{Arc, Mutex};

/// A key, and what happens before its first commit.
type Interruption = (String, BoxFuture<'static, ()>);

/// A store that runs something else right before the first commit that writes a key.
#[derive(Clone)]
pub struct Interrupted {
    store: Store,
    before: Arc<Mutex<Option<Interruption>>>,
}

impl Interrupted {
    /// Two servers over one store; the first one's commits can be interrupted.
    pub async fn servers() -> (Interrupted, Server, Server) {
        let store = Store::memory();
        let other = Server::over(store.clone()).await;
        let interrupted = Interrupted { store, before: Arc::default() };
        let server = Server::over(Store::new(interrupted.clone())).await;
        (interrupted, server, other)
    }

    pub fn before(&self, key: &str, happens: impl Future<Output = ()> + Send + 'static) {
        *self.before.lock().unwrap() = Some((key.to_owned(), Box::pin(happens)));
    }

    fn interruption(&self, ops: &[Op]) -> Option<BoxFuture<'static, ()>> {
        let writes = |key: &str| {
            ops.iter()
                .any(|op| matches!(op, Op::Put { key: it, .. } | Op::Delete { key: it, .. } if it == key.as_bytes()))
        };
        let mut before = self.before.lock().unwrap();
        let (_, happens) = before.take_if(|(key, _)| writes(key))?;
        Some(happens)
    }
}

impl Backend for Interrupted {
    fn get<'a>(&'a self, key: &'a [u8]) -> BoxFuture<'a, Result<Option<Entry>>> {
        Box::pin(self.store.get(key))
    }

    fn range(&self, range: Range) -> BoxFuture<'_, Result<Page>> {
        Box::pin(self.store.range(range))
    }

    fn snapshot(&self) -> BoxFuture<'_, Result<Snapshot>> {
        Box::pin(self.store.snapshot())
    }

    fn commit(&self, ops: Vec<Op>) -> BoxFuture<'_, Result<Committed>> {
        Box::pin(async move {
            if let Some(happens) = self.interruption(&ops) {
                happens.await;
            }
            self.store.commit(ops).await
        })
    }

    fn watch(&self, prefix: Bytes, after: u64) -> BoxFuture<'_, Result<Watch>> {
        Box::pin(self.store.watch(prefix, after))
    }

    fn compact(&self, revision: u64) -> BoxFuture<'_, Result<()>> {
        Box::pin(self.store.compact(revision))
    }

    fn revision(&self) -> u64 {
        self.store.revision()
    }

    fn reached(&self, revision: u64) -> BoxFuture<'_, ()> {
        Box::pin(self.store.reached(revision))
    }

    fn health(&self) -> BoxFuture<'_, Health> {
        Box::pin(self.store.health())
    }

    fn close(&self) -> BoxFuture<'_, ()> {
        Box::pin(self.store.close())
    }
}

const MAP: &str = "/api/v1/namespaces/default/configmaps/a";

fn applied(field: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": {field: "x"}})
}

#[tokio::test(start_paused = true)]
async fn applies_that_create_the_same_object_are_merged() {
    let (store, server, other) = Interrupted::servers().await;
    store.before("core/configmaps/default/a", async move {
        let path = format!("{MAP}?fieldManager=two");
        assert_eq!(other.patch("apply-patch+yaml", &path, applied("two")).await.code, 201);
    });

    let path = format!("{MAP}?fieldManager=one");
    let answer = server.patch("apply-patch+yaml", &path, applied("one")).await;

    assert_eq!(answer.code, 200, "{}", answer.body);
    assert_eq!(answer.body["data"], json!({"one": "x", "two": "x"}));
}

#[tokio::test(start_paused = true)]
async fn puts_that_create_the_same_object_update_it() {
    let (store, server, other) = Interrupted::servers().await;
    const SERVICE: &str = "/api/v1/namespaces/default/services/a";
    let service = |port: u16| json!({"metadata": {"name": "a"}, "spec": {"ports": [{"port": port}]}});
    let first = service(1);
    store.before("core/services/default/a", async move {
        assert_eq!(other.put(SERVICE, first).await.code, 201);
    });

    let answer = server.put(SERVICE, service(2)).await;

    assert_eq!(answer.code, 200, "{}", answer.body);
    assert_eq!(answer.body["spec"]["ports"][0]["port"], 2);
}

#[tokio::test(start_paused = true)]
async fn nothing_is_created_in_a_namespace_that_is_deleted_meanwhile() {
    let (store, server, other) = Interrupted::servers().await;
    server.post("/api/v1/namespaces", json!({"metadata": {"name": "short"}})).await;
    store.before("core/configmaps/short/a", async move {
        assert_eq!(other.delete("/api/v1/namespaces/short", Value::Null).await.code, 200);
    });

    let maps = "/api/v1/namespaces/short/configmaps";
    let refused = server.post(maps, json!({"metadata": {"name": "a"}})).await;

    assert_eq!(refused.code, 403, "{}", refused.body);
    assert_eq!(refused.body["details"]["causes"][0]["reason"], "NamespaceTerminating");
    assert_eq!(server.get(&format!("{maps}/a")).await.code, 404);
}

#[tokio::test(start_paused = true)]
async fn a_namespace_that_changes_meanwhile_does_not_fail_a_create() {
    let (store, server, other) = Interrupted::servers().await;
    store.before("core/configmaps/default/a", async move {
        let labels = json!({"metadata": {"labels": {"a": "b"}}});
        let patched = other.patch("merge-patch+json", "/api/v1/namespaces/default", labels).await;
        assert_eq!(patched.code, 200);
    });

    let created = server
        .post("/api/v1/namespaces/default/configmaps", json!({"metadata": {"name": "a"}}))
        .await;

    assert_eq!(created.code, 201, "{}", created.body);
}

#[tokio::test(start_paused = true)]
async fn services_that_want_the_same_node_port_do_not_share_it() {
    let (store, server, other) = Interrupted::servers().await;
    const SERVICES: &str = "/api/v1/namespaces/default/services";
    let service = |name: &str| json!({"metadata": {"name": name}, "spec": {"type": "NodePort", "ports": [{"port": 1, "nodePort": 30001}]}});
    let first = service("first");
    store.before("flyball/ports/30001", async move {
        assert_eq!(other.post(SERVICES, first).await.code, 201);
    });

    let refused = server.post(SERVICES, service("second")).await;

    assert_eq!(refused.code, 422, "{}", refused.body);
    let why = "spec.ports[0].nodePort: Invalid value: 30001: provided port is already allocated";
    assert!(refused.body["message"].as_str().unwrap().ends_with(why), "{}", refused.body["message"]);
}

const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
const TOYS: &str = "/apis/example.dev/v1/namespaces/default/toys";

/// A definition whose objects have these fields below `spec`.
fn definition(fields: Value) -> Value {
    let spec = json!({"type": "object", "properties": fields});
    let schema = json!({"type": "object", "properties": {"spec": spec}});
    json!({
        "metadata": {"name": "toys.example.dev"},
        "spec": {
            "group": "example.dev",
            "scope": "Namespaced",
            "names": {"plural": "toys", "singular": "toy", "kind": "Toy"},
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": schema}}],
        },
    })
}

fn toy() -> Value {
    json!({"apiVersion": "example.dev/v1", "kind": "Toy", "metadata": {"name": "a"}, "spec": {"old": "x"}})
}

/// Two servers that serve toys with the field `old`. Before the first commit of a toy, the field is replaced by `new`.
async fn toys_that_change() -> (Interrupted, Server, Server) {
    let (store, server, other) = Interrupted::servers().await;
    let mut served = server.0.registry().changes();
    served.mark_unchanged();
    let first = definition(json!({"old": {"type": "string"}}));
    assert_eq!(other.post(DEFINITIONS, first).await.code, 201);
    served.changed().await.unwrap();
    (store, server, other)
}

fn change(store: &Interrupted, other: &Server) {
    let other = other.clone();
    store.before("example.dev/toys/default/a", async move {
        let fields = json!({"new": {"type": "string", "default": "y"}});
        let path = format!("{DEFINITIONS}/toys.example.dev");
        let changed = other.patch("merge-patch+json", &path, definition(fields)).await;
        assert_eq!(changed.code, 200, "{}", changed.body);
    });
}

#[tokio::test(start_paused = true)]
async fn a_definition_that_changes_meanwhile_decides_on_a_create() {
    let (store, server, other) = toys_that_change().await;
    change(&store, &other);

    let created = server.post(TOYS, toy()).await;

    assert_eq!(created.code, 201, "{}", created.body);
    assert_eq!(created.body["spec"], json!({"new": "y"}));
    for server in [server, other] {
        assert_eq!(server.get(&format!("{TOYS}/a")).await.body["spec"], json!({"new": "y"}));
    }
}

#[tokio::test(start_paused = true)]
async fn a_definition_that_changes_meanwhile_decides_on_an_update() {
    let (store, server, other) = toys_that_change().await;
    server.post(TOYS, toy()).await;
    change(&store, &other);

    let labels = json!({"metadata": {"labels": {"a": "b"}}, "spec": {"old": "z"}});
    let updated = server.patch("merge-patch+json", &format!("{TOYS}/a"), labels).await;

    assert_eq!(updated.code, 200, "{}", updated.body);
    assert_eq!(updated.body["metadata"]["labels"], json!({"a": "b"}));
    for server in [server, other] {
        assert_eq!(server.get(&format!("{TOYS}/a")).await.body["spec"], json!({"new": "y"}));
    }
}

#[tokio::test(start_paused = true)]
async fn a_status_of_a_definition_that_changes_meanwhile_does_not_fail_a_create() {
    let (store, server, other) = toys_that_change().await;
    store.before("example.dev/toys/default/a", async move {
        let labels = json!({"metadata": {"labels": {"a": "b"}}});
        let path = format!("{DEFINITIONS}/toys.example.dev");
        assert_eq!(other.patch("merge-patch+json", &path, labels).await.code, 200);
    });

    let created = server.post(TOYS, toy()).await;

    assert_eq!(created.code, 201, "{}", created.body);
    assert_eq!(created.body["spec"], json!({"old": "x"}));
}

#[tokio::test(start_paused = true)]
async fn nothing_is_created_of_a_definition_that_is_deleted_meanwhile() {
    let (store, server, other) = toys_that_change().await;
    let path = format!("{DEFINITIONS}/toys.example.dev");
    let deleted = path.clone();
    store.before("example.dev/toys/default/a", async move {
        assert_eq!(other.delete(&deleted, Value::Null).await.code, 200);
    });

    let refused = server.post(TOYS, toy()).await;

    assert_eq!(refused.code, 404, "{}", refused.body);
    assert_eq!(server.get(&path).await.code, 404);
    assert!(store.store.get("example.dev/toys/default/a").await.unwrap().is_none());
}
