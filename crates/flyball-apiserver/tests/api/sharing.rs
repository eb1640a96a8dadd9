//! Two API servers over one store.

use crate::ask::Server;
use flyball_store::Store;
use serde_json::{Value, json};
use std::time::Duration;
use tokio::{sync::watch, time::timeout};

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
    let one = Server::over(store.clone()).await;
    let other = Server::over(store).await;
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
