//! Publishes the certificate of the cluster's authority to every namespace, in the ConfigMap that pods mount beside their
//! token.
// pkg/controller/certificates/rootcacertpublisher/publisher.go

use crate::refusal;
use flyball::{Action, Context, Controller, Key, Reconciler, Result};
use k8s_openapi::api::core::v1::{ConfigMap, Namespace};
use kube::{
    Api, ResourceExt,
    api::{PartialObjectMeta, PostParams},
};
use serde_json::json;
use std::{collections::BTreeMap, sync::Arc};

const NAME: &str = "kube-root-ca.crt";
const FIELD: &str = "ca.crt";
const DESCRIPTION: &str = "Contains a CA bundle that can be used to verify the kube-apiserver when using internal \
    endpoints such as the internal service IP or kubernetes.default.svc. No other usage is guaranteed across \
    distributions of Kubernetes clusters.";

/// The controller that publishes a certificate, in PEM.
pub(crate) fn controller(certificate: String) -> Controller<PartialObjectMeta<Namespace>> {
    Controller::new(Publisher { certificate })
        .named("root-ca-certificate-publisher")
        .reads::<ConfigMap>()
        .watches(|map: Arc<ConfigMap>, _| {
            let namespace = map.namespace().filter(|_| map.name_any() == NAME);
            namespace.map(Key::from)
        })
}

struct Publisher {
    certificate: String,
}

impl Reconciler<PartialObjectMeta<Namespace>> for Publisher {
    async fn reconcile(&self, namespace: Arc<PartialObjectMeta<Namespace>>, ctx: Context) -> Result {
        let namespace = namespace.name_any();
        let data = BTreeMap::from([(FIELD.to_owned(), self.certificate.clone())]);
        let published = ctx.get::<ConfigMap>(Key::namespaced(&*namespace, NAME)).await?;
        let maps: Api<ConfigMap> = Api::namespaced(ctx.client(), &namespace);
        let written = match published {
            Some(map) if map.data.as_ref() == Some(&data) => return Ok(Action::await_change()),
            Some(map) => {
                let map = ConfigMap { data: Some(data), ..(*map).clone() };
                maps.replace(NAME, &PostParams::default(), &map).await
            }
            None => {
                let annotations = json!({ "kubernetes.io/description": DESCRIPTION });
                let metadata = json!({ "name": NAME, "namespace": namespace, "annotations": annotations });
                let map = serde_json::from_value(json!({ "metadata": metadata, "data": data }));
                maps.create(&PostParams::default(), &map.expect("a ConfigMap is one")).await
            }
        };
        match written {
            Err(error) if !(refusal::is_conflict(&error) || refusal::is_namespace_terminating(&error)) => {
                Err(error.into())
            }
            _ => Ok(Action::await_change()),
        }
    }
}
