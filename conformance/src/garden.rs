//! An operator that uses what most operators use: a kind of its own, children, a status, and something outside to clean up.
//! Its reconcile is the same wherever it runs; groups and soaks watch what becomes of its objects.

use std::collections::BTreeMap;
use std::sync::Arc;

use flyball::{Action, Context, Controller, Operator, Result};
use k8s_openapi::api::core::v1::{ConfigMap, ResourceQuota, Secret};
use kube::api::{DeleteParams, ObjectMeta, Patch, PatchParams};
use kube::{Api, CustomResource, CustomResourceExt, ResourceExt};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// The collection of Gardens.
pub const GARDENS: &str = "/apis/conformance.flyball.dev/v1/namespaces/default/gardens";
/// The collection that each Garden's child is in, under the Garden's name.
pub const MAPS: &str = "/api/v1/namespaces/default/configmaps";
/// The collection of what each Garden has outside of itself, under the Garden's name: nobody owns it.
pub const TICKETS: &str = "/api/v1/namespaces/default/secrets";
/// Chooses this operator's children and tickets.
pub const OURS: &str = "labelSelector=app%3Dgardener";

/// Asks for something to grow.
#[derive(CustomResource, Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[kube(group = "conformance.flyball.dev", version = "v1", kind = "Garden")]
#[kube(namespaced, status = "GardenStatus")]
pub struct GardenSpec {
    /// What grows there.
    pub plants: u64,
}

/// What has grown.
#[derive(Clone, Debug, Default, Deserialize, Serialize, JsonSchema)]
pub struct GardenStatus {
    /// What grew there when it was last looked at.
    pub plants: u64,
}

/// The operator. It owns ResourceQuotas too, of which it makes none: a real server lists their metadata as `items: null`.
pub fn operator() -> Operator {
    let controller = Controller::new(reconcile).owns::<ConfigMap>().owns::<ResourceQuota>().cleanup(clean_up);
    Operator::new("gardener").crd(Garden::crd()).controller(controller)
}

/// A Garden, to be created.
pub fn garden(name: &str, plants: u64) -> Value {
    json!({
        "apiVersion": "conformance.flyball.dev/v1",
        "kind": "Garden",
        "metadata": {"name": name},
        "spec": {"plants": plants},
    })
}

async fn reconcile(garden: Arc<Garden>, ctx: Context) -> Result {
    let plants = garden.spec.plants;
    let metadata = ObjectMeta { labels: Some(labels()), ..Default::default() };
    let data = Some([("plants".into(), plants.to_string())].into());
    ctx.apply(ConfigMap { metadata, data, ..Default::default() }).await?;
    if garden.status.is_none() {
        let ticket = json!({
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": {"name": garden.name_any(), "labels": labels()},
        });
        let parameters = PatchParams::apply("gardener").force();
        tickets(&garden, &ctx)
            .patch(&garden.name_any(), &parameters, &Patch::Apply(&ticket))
            .await?;
    }
    ctx.set_status(GardenStatus { plants }).await?;
    Ok(Action::await_change())
}

async fn clean_up(garden: Arc<Garden>, ctx: Context) -> Result<()> {
    match tickets(&garden, &ctx).delete(&garden.name_any(), &DeleteParams::default()).await {
        Err(kube::Error::Api(status)) if status.code == 404 => Ok(()),
        deleted => Ok(deleted.map(drop)?),
    }
}

fn tickets(garden: &Garden, ctx: &Context) -> Api<Secret> {
    Api::namespaced(ctx.client(), &garden.namespace().unwrap_or_default())
}

fn labels() -> BTreeMap<String, String> {
    [("app".into(), "gardener".into())].into()
}
