//! An API server in this process without controllers, operators whose requests are recorded, and objects to work with.

use flyball::{Config, Operator, Running};
use flyball_test::Cluster;
use k8s_openapi::{
    NamespaceResourceScope, api::core::v1::ConfigMap,
    apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition,
};
use kube::{
    Api, Client, Resource,
    api::{ApiResource, PostParams},
    core::GroupVersionKind,
    runtime::wait::{await_condition, conditions::is_crd_established},
};
use serde::{Serialize, de::DeserializeOwned};
use serde_json::json;
use std::{fmt::Debug, ops::Deref, sync::Arc, time::Duration};

/// A cluster without controllers, for one test; clones share it.
#[derive(Clone)]
pub struct World {
    /// Writes as a user would; its requests are not recorded.
    pub client: Client,
    cluster: Arc<Cluster>,
}

impl Deref for World {
    type Target = Cluster;

    fn deref(&self) -> &Cluster {
        &self.cluster
    }
}

/// What is asked of a kind in these tests.
pub trait Object:
    Resource<DynamicType = (), Scope = NamespaceResourceScope>
    + Clone
    + Debug
    + DeserializeOwned
    + Serialize
    + Send
    + Sync
    + 'static
{
}

impl<K> Object for K where
    K: Resource<DynamicType = (), Scope = NamespaceResourceScope>
        + Clone
        + Debug
        + DeserializeOwned
        + Serialize
        + Send
        + Sync
        + 'static
{
}

impl World {
    pub async fn start() -> World {
        let cluster = Arc::new(Cluster::without_controllers().await);
        World { client: cluster.client(), cluster }
    }

    /// Starts an operator whose requests are recorded and may be refused.
    pub async fn run(&self, operator: &Operator) -> Running {
        operator.start(self.recorded_client()).await.unwrap()
    }

    /// The same, with a configuration.
    pub async fn run_with(&self, operator: &Operator, config: &Config) -> Running {
        operator.clone().config(config).start(self.recorded_client()).await.unwrap()
    }

    pub fn api<K: Object>(&self) -> Api<K> {
        Api::namespaced(self.client.clone(), "default")
    }

    /// Installs the kind `Widget` of `example.dev/v1`, which takes whatever it is given, and says where it is served.
    pub async fn install_widgets(&self) -> ApiResource {
        let definition = json!({
            "metadata": { "name": "widgets.example.dev" },
            "spec": {
                "group": "example.dev",
                "names": { "kind": "Widget", "plural": "widgets" },
                "scope": "Namespaced",
                "versions": [{
                    "name": "v1",
                    "served": true,
                    "storage": true,
                    "schema": { "openAPIV3Schema": {
                        "type": "object",
                        "x-kubernetes-preserve-unknown-fields": true,
                        "properties": { "status": { "type": "object", "x-kubernetes-preserve-unknown-fields": true } },
                    } },
                    "subresources": { "status": {} },
                }],
            },
        });
        let definitions: Api<CustomResourceDefinition> = Api::all(self.client.clone());
        let definition = serde_json::from_value(definition).unwrap();
        definitions.create(&PostParams::default(), &definition).await.unwrap();
        let established = is_crd_established();
        await_condition(definitions, "widgets.example.dev", established).await.unwrap();
        widgets()
    }
}

/// A kind that no Rust type is of.
pub fn widgets() -> ApiResource {
    ApiResource::from_gvk(&GroupVersionKind::gvk("example.dev", "v1", "Widget"))
}

/// Lets that much time pass, and everything happen that happens meanwhile.
pub async fn pass(time: Duration) {
    tokio::time::sleep(time).await;
}

/// A ConfigMap with one entry: what these tests reconcile, unless the kind matters.
pub fn config_map(name: &str, key: &str, value: &str) -> ConfigMap {
    let object = json!({ "metadata": { "name": name }, "data": { key: value } });
    serde_json::from_value(object).unwrap()
}
