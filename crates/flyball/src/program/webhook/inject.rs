//! Registers an operator's webhooks with the API server, with the certificates that it has to trust: by server-side apply,
//! and only where something differs.

use crate::engine::crds::covers;
use crate::webhook::endpoint::Endpoint;
use crate::webhook::registration::{self, CONFIGURATIONS};
use crate::{Operator, Result};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::{
    Api, Client,
    api::{ApiResource, DynamicObject, GroupVersionKind, Patch, PatchParams},
};
use serde_json::{Value, json};

/// Where webhooks are registered, and by whom.
pub(crate) struct Registrar<'a> {
    pub(crate) client: &'a Client,
    pub(crate) operator: &'a Operator,
    pub(crate) endpoint: &'a Endpoint,
    /// Whether the configurations are the operator's to install.
    pub(crate) install: bool,
}

impl Registrar<'_> {
    /// Registers the webhooks; none of `bundle` leaves the trust to others. What is missing is named.
    pub(crate) async fn register(&self, bundle: Option<&str>) -> Result<Vec<String>> {
        let mut missing = Vec::new();
        for (purpose, kind, plural) in CONFIGURATIONS {
            let Some(wanted) = registration::configuration(self.operator, purpose, self.endpoint, bundle) else {
                continue;
            };
            let resource = ApiResource::from_gvk_with_plural(
                &GroupVersionKind::gvk("admissionregistration.k8s.io", "v1", kind),
                plural,
            );
            let api: Api<DynamicObject> = Api::all_with(self.client.clone(), &resource);
            let current = api.get_opt(self.operator.name()).await?;
            let current = current.map(serde_json::to_value).transpose()?;
            match (current, self.install) {
                (current, true) => {
                    if !current.is_some_and(|current| covers(&current, &wanted)) {
                        apply(&api, self.operator.name(), self.operator.name(), &wanted).await?;
                    }
                }
                (Some(current), false) => self.inject(&api, &current, &wanted).await?,
                (None, false) => missing.push(format!("{kind} {}", self.operator.name())),
            }
        }
        missing.extend(self.definitions(bundle).await?);
        Ok(missing)
    }

    /// Adds the bundle to a configuration that others manage, under a field manager of its own.
    async fn inject(&self, api: &Api<DynamicObject>, current: &Value, wanted: &Value) -> Result<()> {
        let webhooks = wanted["webhooks"].as_array().into_iter().flatten();
        let there = |name: &Value| {
            let mut webhooks = current["webhooks"].as_array().into_iter().flatten();
            webhooks.any(|webhook| webhook["name"] == *name)
        };
        let bundles = webhooks.filter(|webhook| there(&webhook["name"])).filter_map(|webhook| {
            let bundle = webhook["clientConfig"].get("caBundle")?;
            Some(json!({ "name": webhook["name"], "clientConfig": { "caBundle": bundle } }))
        });
        let bundles: Vec<_> = bundles.collect();
        let trusted = |bundle: &Value| {
            let mut webhooks = current["webhooks"].as_array().into_iter().flatten();
            webhooks.any(|webhook| covers(webhook, bundle))
        };
        if bundles.iter().all(trusted) {
            return Ok(());
        }
        let patch = json!({
            "apiVersion": wanted["apiVersion"],
            "kind": wanted["kind"],
            "metadata": { "name": wanted["metadata"]["name"] },
            "webhooks": bundles,
        });
        apply(api, self.operator.name(), &self.manager(), &patch).await
    }

    /// Adds the bundle to the definitions whose objects the operator converts.
    async fn definitions(&self, bundle: Option<&str>) -> Result<Vec<String>> {
        let mut missing = Vec::new();
        let api: Api<CustomResourceDefinition> = Api::all(self.client.clone());
        for crd in self.operator.crds() {
            let name = crd.metadata.name.as_deref().unwrap_or_default();
            if !self.operator.conversions().iter().any(|conversion| conversion.is_of(crd)) {
                continue;
            }
            let wanted = registration::conversion(self.endpoint, bundle);
            let current = api.get_opt(name).await?.and_then(|crd| crd.spec.conversion);
            let Some(current) = current.map(serde_json::to_value).transpose()? else {
                missing.push(format!("CustomResourceDefinition {name}"));
                continue;
            };
            if current["strategy"] != "Webhook" {
                missing.push(format!("spec.conversion of CustomResourceDefinition {name}"));
            } else if !covers(&current, &wanted) {
                let patch = json!({
                    "apiVersion": "apiextensions.k8s.io/v1",
                    "kind": "CustomResourceDefinition",
                    "metadata": { "name": name },
                    "spec": { "conversion": wanted },
                });
                apply(&api, name, &self.manager(), &patch).await?;
            }
        }
        Ok(missing)
    }

    fn manager(&self) -> String {
        format!("{}-ca", self.operator.name())
    }
}

async fn apply<K>(api: &Api<K>, name: &str, manager: &str, patch: &Value) -> Result<()>
where
    K: Clone + serde::de::DeserializeOwned + std::fmt::Debug,
{
    api.patch(name, &PatchParams::apply(manager).force(), &Patch::Apply(patch)).await?;
    tracing::info!(name, kind = patch["kind"].as_str().unwrap_or_default(), "webhooks are registered");
    Ok(())
}
