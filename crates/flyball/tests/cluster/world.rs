//! An API server in this process, a client of it whose requests can be read and refused, and objects to work with.

use flyball::{Config, Operator, Running};
use flyball_apiserver::{ApiServer, Body as Answer, User};
use flyball_store::Store;
use http::{Request, Response};
use k8s_openapi::{
    NamespaceResourceScope, api::core::v1::ConfigMap,
    apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition,
};
use kube::{
    Api, Client, Resource,
    api::{ApiResource, DeleteParams, Patch, PatchParams, PostParams},
    client::Body,
    core::GroupVersionKind,
    runtime::wait::{await_condition, conditions::is_crd_established},
};
use serde::{Serialize, de::DeserializeOwned};
use serde_json::{Value, json};
use std::{
    fmt::Debug,
    sync::{Arc, Mutex},
    time::Duration,
};
use tokio::time::timeout;

/// Longer than anything takes on a paused clock, unless it never happens.
const PATIENCE: Duration = Duration::from_secs(3_600);

/// A cluster for one test.
#[derive(Clone)]
pub struct World {
    /// Writes as a user would; what it does is not recorded.
    pub client: Client,
    server: ApiServer,
    requests: Arc<Mutex<Vec<String>>>,
    fault: Arc<Mutex<Option<Fault>>>,
}

/// Answers a request in the server's place.
type Fault = Box<dyn FnMut(&Request<Body>) -> Option<Response<Answer>> + Send>;

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
        let server = ApiServer::start(Store::memory()).await.unwrap();
        let client = Client::new(server.as_user(User::admin()), "default");
        World {
            client,
            server,
            requests: Arc::default(),
            fault: Arc::default(),
        }
    }

    /// Starts an operator whose requests are recorded and may be refused.
    pub async fn run(&self, operator: &Operator) -> Running {
        operator.start(self.operators_client()).await.unwrap()
    }

    /// The same, as a configuration says.
    pub async fn run_with(&self, operator: &Operator, config: &Config) -> Running {
        operator.clone().config(config).start(self.operators_client()).await.unwrap()
    }

    fn operators_client(&self) -> Client {
        let world = self.clone();
        let service = tower::service_fn(move |request: Request<Body>| {
            let world = world.clone();
            async move {
                world.requests.lock().unwrap().push(format!("{} {}", request.method(), request.uri()));
                let refused = world.fault.lock().unwrap().as_mut().and_then(|fault| fault(&request));
                match refused {
                    Some(response) => Ok::<_, kube::Error>(response),
                    None => Ok(world.server.as_user(User::admin()).respond(request).await),
                }
            }
        });
        Client::new(service, "default")
    }

    pub fn api<K: Object>(&self) -> Api<K> {
        Api::namespaced(self.client.clone(), "default")
    }

    pub async fn create<K: Object>(&self, object: K) -> K {
        self.api().create(&PostParams::default(), &object).await.unwrap()
    }

    pub async fn merge<K: Object>(&self, name: &str, patch: Value) -> K {
        self.api().patch(name, &PatchParams::default(), &Patch::Merge(patch)).await.unwrap()
    }

    pub async fn delete<K: Object>(&self, name: &str) {
        self.api::<K>().delete(name, &DeleteParams::default()).await.unwrap();
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

    /// Waits until the object of that name is as it should be.
    pub async fn until<K: Object>(&self, name: &str, holds: impl Fn(&K) -> bool) -> K {
        let condition = |object: Option<&K>| object.is_some_and(&holds);
        let waited = timeout(PATIENCE, await_condition(self.api::<K>(), name, condition)).await;
        match waited {
            Ok(object) => object.unwrap().unwrap(),
            Err(_) => panic!("{name} is not as it should be: {:#?}", self.api::<K>().get_opt(name).await.unwrap()),
        }
    }

    pub async fn until_gone<K: Object>(&self, name: &str) {
        let condition = |object: Option<&K>| object.is_none();
        timeout(PATIENCE, await_condition(self.api::<K>(), name, condition))
            .await
            .unwrap()
            .unwrap();
    }

    /// What the operator has asked for since this was called last, reads and watches left out.
    pub fn writes(&self) -> Vec<String> {
        let requests = std::mem::take(&mut *self.requests.lock().unwrap());
        requests.into_iter().filter(|request| !request.starts_with("GET")).collect()
    }

    /// Every request of the operator so far.
    pub fn requests(&self) -> Vec<String> {
        self.requests.lock().unwrap().clone()
    }

    /// Answers the operator's requests by `fault` for as long as it answers at all.
    pub fn break_with(&self, fault: impl FnMut(&Request<Body>) -> Option<Response<Answer>> + Send + 'static) {
        *self.fault.lock().unwrap() = Some(Box::new(fault));
    }

    pub fn mend(&self) {
        *self.fault.lock().unwrap() = None;
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
