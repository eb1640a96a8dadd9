//! What an operator needs in a cluster, read off the operator: its kinds, its rights, and the objects that run it.

mod rbac;
mod rules;
mod workload;

use crate::engine::crds;
use crate::webhook::{endpoint::Endpoint, policy, registration};
use crate::{Operator, Result};
use kube::api::DynamicObject;
use serde::Serialize;
use serde_json::{Value, json};

/// The manifests of an operator, in the order in which they are applied. The same operator always has the same.
///
/// Rights are derived from what its controllers declare: the kinds that they reconcile, own, watch and read, and whether they
/// clean up. What an author does beyond that through the client is declared with [`Controller::needs`](crate::Controller::needs)
/// or [`Operator::permission`].
#[derive(Clone, Debug)]
pub struct Manifests<'a> {
    operator: &'a Operator,
    namespace: String,
    watched: Vec<String>,
    replicas: u32,
    brings_namespace: bool,
    monitored: bool,
}

impl<'a> Manifests<'a> {
    /// An operator in a namespace called `<name>-system`, which watches all namespaces unless it says otherwise itself.
    pub fn of(operator: &'a Operator) -> Manifests<'a> {
        Manifests {
            operator,
            namespace: format!("{}-system", operator.name()),
            watched: Vec::new(),
            replicas: 2,
            brings_namespace: true,
            monitored: false,
        }
    }

    /// Runs the operator in this namespace.
    pub fn namespace(mut self, namespace: impl Into<String>) -> Manifests<'a> {
        self.namespace = namespace.into();
        self
    }

    /// Leaves the Namespace itself out: it exists already and is managed elsewhere.
    pub fn without_namespace(mut self) -> Manifests<'a> {
        self.brings_namespace = false;
        self
    }

    /// Lets the operator watch these namespaces only: it gets a Role in each, and no right to namespaced kinds elsewhere.
    pub fn watching(mut self, namespaces: impl IntoIterator<Item: Into<String>>) -> Manifests<'a> {
        self.watched = namespaces.into_iter().map(Into::into).collect();
        self
    }

    /// Runs this many replicas, of which one works; 2 unless set.
    pub fn replicas(mut self, replicas: u32) -> Manifests<'a> {
        self.replicas = replicas;
        self
    }

    /// Adds a ServiceMonitor. Its kind is Prometheus Operator's, and is not in every cluster.
    pub fn service_monitor(mut self) -> Manifests<'a> {
        self.monitored = true;
        self
    }

    /// The CustomResourceDefinitions.
    pub fn crds(&self) -> Result<Vec<DynamicObject>> {
        crds::annotated(self.operator, &self.endpoint())
            .map(|crd| Ok(object(serde_json::to_value(crd)?)))
            .collect()
    }

    /// The ServiceAccount, its Roles and ClusterRole, and what binds them.
    pub fn rbac(&self) -> Vec<DynamicObject> {
        rbac::objects(self).into_iter().map(object).collect()
    }

    /// The configurations of the operator's webhooks, and the policies of its rules. The operator adds its authority to the
    /// configurations when it runs.
    pub fn webhooks(&self) -> Vec<DynamicObject> {
        let configurations = registration::configurations(self.operator, &self.endpoint(), None);
        let policies = policy::objects(self.operator, &self.namespace);
        configurations.into_iter().chain(policies).map(object).collect()
    }

    fn endpoint(&self) -> Endpoint {
        self.operator.webhook_endpoint(&self.namespace)
    }

    /// Everything: the Namespace, the kinds, the rights, and the objects that run `image`.
    pub fn all(&self, image: &str) -> Result<Vec<DynamicObject>> {
        let namespace = self.brings_namespace.then(|| object(self.own_namespace()));
        let mut objects: Vec<_> = namespace.into_iter().collect();
        objects.extend(self.crds()?);
        objects.extend(self.rbac());
        objects.extend(workload::objects(self, image).into_iter().map(object));
        objects.extend(self.webhooks());
        Ok(objects)
    }

    fn name(&self) -> &'a str {
        self.operator.name()
    }

    /// The namespaces that are watched; empty for all.
    fn watched(&self) -> &[String] {
        if self.watched.is_empty() {
            self.operator.namespaces_watched()
        } else {
            &self.watched
        }
    }

    /// Labels of everything that belongs to the operator; they also select its pods.
    fn labels(&self) -> Value {
        json!({ "app.kubernetes.io/name": self.name() })
    }

    fn metadata(&self, name: &str, namespace: Option<&str>) -> Value {
        let mut metadata = json!({ "name": name, "labels": self.labels() });
        if let Some(namespace) = namespace {
            metadata["namespace"] = namespace.into();
        }
        metadata
    }

    fn own_namespace(&self) -> Value {
        let mut metadata = self.metadata(&self.namespace, None);
        metadata["labels"]["pod-security.kubernetes.io/enforce"] = "restricted".into();
        json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": metadata })
    }
}

/// Objects as one YAML stream.
pub(crate) fn to_yaml(objects: &[impl Serialize]) -> Result<String> {
    let mut text = String::new();
    for object in objects {
        text.push_str("---\n");
        // Through a value, so that the order of keys does not depend on the type.
        text.push_str(&serde_saphyr::to_string(&serde_json::to_value(object)?)?);
    }
    Ok(text)
}

fn object(value: Value) -> DynamicObject {
    serde_json::from_value(value).expect("every manifest has metadata")
}
