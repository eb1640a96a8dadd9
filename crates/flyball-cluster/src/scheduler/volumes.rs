//! The volumes of a pod that is to be placed: whether its claims are bound, and where their volumes can be reached.

use super::node_affinity;
use flyball::{Context, Key, Result};
use k8s_openapi::api::{
    core::v1::{Node, NodeSelector, PersistentVolume, PersistentVolumeClaim, Pod},
    storage::v1::StorageClass,
};
use kube::ResourceExt;
use std::sync::Arc;

/// What a pod's claims demand of its node.
#[derive(Debug, Default)]
pub(super) struct Volumes {
    /// The node affinity of each bound volume.
    required: Vec<NodeSelector>,
    /// Claims that are bound only when their pod has a node.
    pub(super) delayed: Vec<Arc<PersistentVolumeClaim>>,
}

impl Volumes {
    /// Looks at a pod's claims; an error says why the pod cannot be placed at all for now.
    // pkg/scheduler/framework/plugins/volumebinding/volume_binding.go, PreFilter
    pub(super) async fn of(pod: &Pod, ctx: &Context) -> Result<std::result::Result<Volumes, String>> {
        let mut volumes = Volumes::default();
        for name in claim_names(pod) {
            let key = Key::namespaced(pod.namespace().unwrap_or_default(), &*name);
            let Some(claim) = ctx.get::<PersistentVolumeClaim>(key).await? else {
                return Ok(Err(format!("persistentvolumeclaim {name:?} not found")));
            };
            if claim.metadata.deletion_timestamp.is_some() {
                return Ok(Err(format!("persistentvolumeclaim {name:?} is being deleted")));
            }
            let spec = claim.spec.clone().unwrap_or_default();
            match spec.volume_name.filter(|name| !name.is_empty()) {
                Some(volume) => {
                    let volume = ctx.get::<PersistentVolume>(Key::cluster(&*volume)).await?;
                    let affinity = volume.and_then(|volume| volume.spec.clone()?.node_affinity?.required);
                    volumes.required.extend(affinity);
                }
                None if is_delayed(spec.storage_class_name.as_deref(), ctx).await? => volumes.delayed.push(claim),
                None => return Ok(Err("pod has unbound immediate PersistentVolumeClaims".into())),
            }
        }
        Ok(Ok(volumes))
    }

    /// Why a node cannot reach the volumes.
    pub(super) fn obstacle(&self, node: &Node) -> Option<&'static str> {
        let reachable = self.required.iter().all(|required| node_affinity::selects(required, node));
        (!reachable).then_some("node(s) didn't match PersistentVolume's node affinity")
    }
}

async fn is_delayed(class: Option<&str>, ctx: &Context) -> Result<bool> {
    let Some(class) = class.filter(|class| !class.is_empty()) else {
        return Ok(false);
    };
    let class = ctx.get::<StorageClass>(Key::cluster(class)).await?;
    Ok(class.is_some_and(|class| class.volume_binding_mode.as_deref() == Some("WaitForFirstConsumer")))
}

/// The claims of a pod's volumes; an ephemeral volume's claim is named after the pod and the volume.
pub(crate) fn claim_names(pod: &Pod) -> Vec<String> {
    let volumes = pod.spec.iter().flat_map(|spec| spec.volumes.iter().flatten());
    let named = volumes.filter_map(|volume| match (&volume.persistent_volume_claim, &volume.ephemeral) {
        (Some(claim), _) => Some(claim.claim_name.clone()),
        (None, Some(_)) => Some(format!("{}-{}", pod.name_any(), volume.name)),
        (None, None) => None,
    });
    named.collect()
}
