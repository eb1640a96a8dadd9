//! Two API servers over one store, as on etcd.

use crate::ask::Server;
use bytes::Bytes;
use flyball_store::{Backend, Committed, Entry, Health, Op, Page, Range, Result, Snapshot, Store, Watch};
use futures::future::BoxFuture;
use serde_json::{Value, json};
use std::time::Duration;
use tokio::{sync::watch, time::timeout};

/// A store in memory that says, as etcd's does, that others write to it too.
struct Shared(Store);

impl Backend for Shared {
    fn get<'a>(&'a self, key: &'a [u8]) -> BoxFuture<'a, Result<Option<Entry>>> {
        Box::pin(self.0.get(key))
    }

    fn range(&self, range: Range) -> BoxFuture<'_, Result<Page>> {
        Box::pin(self.0.range(range))
    }

    fn snapshot(&self) -> BoxFuture<'_, Result<Snapshot>> {
        Box::pin(self.0.snapshot())
    }

    fn commit(&self, ops: Vec<Op>) -> BoxFuture<'_, Result<Committed>> {
        Box::pin(self.0.commit(ops))
    }

    fn watch(&self, prefix: Bytes, after: u64) -> BoxFuture<'_, Result<Watch>> {
        Box::pin(self.0.watch(prefix, after))
    }

    fn compact(&self, revision: u64) -> BoxFuture<'_, Result<()>> {
        Box::pin(self.0.compact(revision))
    }

    fn revision(&self) -> u64 {
        self.0.revision()
    }

    fn reached(&self, revision: u64) -> BoxFuture<'_, ()> {
        Box::pin(self.0.reached(revision))
    }

    fn health(&self) -> BoxFuture<'_, Health> {
        Box::pin(self.0.health())
    }

    fn is_shared(&self) -> bool {
        true
    }

    fn close(&self) -> BoxFuture<'_, ()> {
        Box::pin(self.0.close())
    }
}

fn definition() -> Value {
    let schema = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "toys.example.dev"},
        "spec": {
            "group": "example.dev",
            "scope": "Namespaced",
            "names": {"plural": "toys", "singular": "toy", "kind": "Toy"},
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": schema}}],
        },
    })
}

async fn told(changes: &mut watch::Receiver<u64>) {
    let minute = Duration::from_secs(60);
    timeout(minute, changes.changed())
        .await
        .expect("a server hears of the other's definitions")
        .unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_kind_defined_at_one_server_is_served_and_withdrawn_by_the_other() {
    let store = Store::memory();
    let one = Server::over(Store::new(Shared(store.clone()))).await;
    let other = Server::over(Store::new(Shared(store))).await;
    let mut changes = other.0.registry().changes();
    changes.mark_unchanged();

    one.post("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", definition()).await;
    told(&mut changes).await;
    assert_eq!(other.get("/apis/example.dev/v1/toys").await.code, 200);

    let toys = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/toys.example.dev";
    one.delete(toys, Value::Null).await;
    while other.get("/apis/example.dev/v1/toys").await.code == 200 {
        told(&mut changes).await;
    }
    assert_eq!(other.get("/apis/example.dev/v1/toys").await.code, 404);
}
