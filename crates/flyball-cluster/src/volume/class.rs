//! Storage classes: the default one of the cluster, and which one a claim asks for.

use super::PROVISIONER;
use crate::refusal;
use flyball::{Context, Key, Result};
use k8s_openapi::api::{core::v1::PersistentVolumeClaim, storage::v1::StorageClass};
use kube::{Api, Client, ResourceExt, api::PostParams};
use serde_json::json;
use std::{cmp::Reverse, sync::Arc};

const IS_DEFAULT: &str = "storageclass.kubernetes.io/is-default-class";

/// Creates the class `standard`, which claims get that name none, unless there is one of that name.
pub(crate) async fn create_default_class(client: &Client) -> kube::Result<()> {
    let class = json!({
        "metadata": { "name": "standard", "annotations": { IS_DEFAULT: "true" } },
        "provisioner": PROVISIONER,
        "reclaimPolicy": "Delete",
        "volumeBindingMode": "Immediate",
        "allowVolumeExpansion": true,
    });
    let class: StorageClass = serde_json::from_value(class).expect("a storage class is one");
    match Api::all(client.clone()).create(&PostParams::default(), &class).await {
        Err(error) if !refusal::already_exists(&error) => Err(error),
        _ => Ok(()),
    }
}

/// The default class: the newest of those that say so.
// pkg/volume/util/storageclass.go, GetDefaultClass
pub(super) async fn default(ctx: &Context) -> Result<Option<Arc<StorageClass>>> {
    let mut classes = ctx.objects::<StorageClass>().list().await?;
    classes.retain(|class| class.annotations().get(IS_DEFAULT).is_some_and(|is| is == "true"));
    let age = |class: &Arc<StorageClass>| class.metadata.creation_timestamp.as_ref().map(|time| Reverse(time.0));
    Ok(classes.into_iter().min_by_key(|class| (age(class), class.name_any())))
}

/// The name of the class that a claim asks for; empty for none.
pub(super) fn name(claim: &PersistentVolumeClaim) -> Option<&str> {
    claim.spec.as_ref().and_then(|spec| spec.storage_class_name.as_deref())
}

/// The class that a claim asks for, if it exists.
pub(super) async fn of(claim: &PersistentVolumeClaim, ctx: &Context) -> Result<Option<Arc<StorageClass>>> {
    match name(claim).filter(|name| !name.is_empty()) {
        Some(name) => ctx.get::<StorageClass>(Key::cluster(name)).await,
        None => Ok(None),
    }
}
