//! The plugins of storage: DefaultStorageClass, StorageObjectInUseProtection and PersistentVolumeClaimResize; and
//! DefaultIngressClass, which chooses a class as DefaultStorageClass does.
// plugin/pkg/admission/storage, plugin/pkg/admission/network/defaultingressclass

use crate::admission::chain::Plugin;
use crate::admission::{Attributes, Operation};
use crate::kinds::core::{PERSISTENT_VOLUME, PERSISTENT_VOLUME_CLAIM};
use crate::kinds::networking::INGRESS;
use crate::kinds::spec::ResourceSpec;
use crate::kinds::storage::VOLUME_ATTRIBUTES_CLASS;
use crate::registry::object;
use crate::status::Result;
use flyball_schema::builtin::volume;
use flyball_schema::quantity::Quantity;
use futures::future::{BoxFuture, FutureExt, ready};
use serde_json::Value;
use std::cmp::Reverse;

/// Annotations that make a StorageClass the default.
const DEFAULT_STORAGE: [&str; 2] = [
    "storageclass.kubernetes.io/is-default-class",
    "storageclass.beta.kubernetes.io/is-default-class",
];
/// Annotates the IngressClass that is the default.
const DEFAULT_INGRESS: [&str; 1] = ["ingressclass.kubernetes.io/is-default-class"];
/// Names the class of an Ingress, as the field does that replaced it.
const INGRESS_CLASS: &str = "kubernetes.io/ingress.class";

/// A new claim without a class gets the default one.
pub(super) struct DefaultStorageClass;

impl Plugin for DefaultStorageClass {
    fn handles(&self, attributes: &Attributes<'_>) -> bool {
        attributes.creates(&PERSISTENT_VOLUME_CLAIM)
    }

    fn admit<'a>(&'a self, attributes: &'a mut Attributes<'_>) -> BoxFuture<'a, Result<()>> {
        async move {
            if volume::claim_class(&attributes.object).is_some() {
                return Ok(());
            }
            if let Some(class) = default_class(attributes, "storage.k8s.io/storageclasses/", &DEFAULT_STORAGE).await? {
                attributes.object["spec"]["storageClassName"] = class.into();
            }
            Ok(())
        }
        .boxed()
    }
}

/// A new Ingress without a class gets the default one.
pub(super) struct DefaultIngressClass;

impl Plugin for DefaultIngressClass {
    fn handles(&self, attributes: &Attributes<'_>) -> bool {
        attributes.creates(&INGRESS)
    }

    fn admit<'a>(&'a self, attributes: &'a mut Attributes<'_>) -> BoxFuture<'a, Result<()>> {
        async move {
            let ingress = &attributes.object;
            let is_annotated = ingress["metadata"]["annotations"].get(INGRESS_CLASS).is_some();
            if is_annotated || !ingress["spec"]["ingressClassName"].is_null() {
                return Ok(());
            }
            let prefix = "networking.k8s.io/ingressclasses/";
            if let Some(class) = default_class(attributes, prefix, &DEFAULT_INGRESS).await? {
                object::field_mut(&mut attributes.object, "spec").insert("ingressClassName".into(), class.into());
            }
            Ok(())
        }
        .boxed()
    }
}

/// The name of the newest class with one of these annotations; of equally old ones, the first by name.
// pkg/volume/util/storageclass.go, GetDefaultClass
async fn default_class(attributes: &Attributes<'_>, prefix: &str, annotations: &[&str]) -> Result<Option<String>> {
    let classes = attributes.list(prefix.into()).await?;
    let is_default = |class: &&Value| annotations.iter().any(|one| class["metadata"]["annotations"][one] == "true");
    let age = |class: &&Value| {
        let created = object::text(class, "creationTimestamp").to_owned();
        (created, Reverse(object::name(class).to_owned()))
    };
    let newest = classes.iter().filter(is_default).max_by_key(age);
    Ok(newest.map(|class| object::name(class).to_owned()))
}

/// Volumes, claims and attribute classes have a finalizer, which is removed when nothing uses them.
pub(super) struct StorageObjectInUseProtection;

/// The finalizer of each kind.
static PROTECTED: [(&ResourceSpec, &str); 3] = [
    (&PERSISTENT_VOLUME, "kubernetes.io/pv-protection"),
    (&PERSISTENT_VOLUME_CLAIM, "kubernetes.io/pvc-protection"),
    (&VOLUME_ATTRIBUTES_CLASS, "kubernetes.io/vac-protection"),
];

impl Plugin for StorageObjectInUseProtection {
    fn handles(&self, attributes: &Attributes<'_>) -> bool {
        PROTECTED.iter().any(|(kind, _)| attributes.creates(kind))
    }

    fn admit<'a>(&'a self, attributes: &'a mut Attributes<'_>) -> BoxFuture<'a, Result<()>> {
        let finalizer = PROTECTED.iter().find(|(kind, _)| attributes.creates(kind));
        if let Some((_, finalizer)) = finalizer {
            volume::protect(&mut attributes.object, finalizer);
        }
        ready(Ok(())).boxed()
    }
}

/// Only a bound claim grows, and only if its class permits that.
pub(super) struct PersistentVolumeClaimResize;

impl Plugin for PersistentVolumeClaimResize {
    fn handles(&self, attributes: &Attributes<'_>) -> bool {
        attributes.operation == Operation::Update && attributes.writes(&PERSISTENT_VOLUME_CLAIM)
    }

    fn validate<'a>(&'a self, attributes: &'a mut Attributes<'_>) -> BoxFuture<'a, Result<()>> {
        async move {
            let Some(old) = attributes.old else { return Ok(()) };
            if size(&attributes.object) <= size(old) {
                return Ok(());
            }
            if old["status"]["phase"] != "Bound" {
                return Err(attributes.forbidden("Only bound persistent volume claims can be expanded"));
            }
            if !permits_growth(attributes, old).await? {
                let why = "only dynamically provisioned pvc can be resized and the storageclass that provisions the pvc \
                           must support resize";
                return Err(attributes.forbidden(why));
            }
            Ok(())
        }
        .boxed()
    }
}

/// The storage that a claim requests; none is less than any.
fn size(claim: &Value) -> Option<Quantity> {
    claim["spec"]["resources"]["requests"]["storage"].as_str()?.parse().ok()
}

// allowResize
async fn permits_growth(attributes: &Attributes<'_>, old: &Value) -> Result<bool> {
    let class = volume::claim_class(&attributes.object).unwrap_or_default();
    if class.is_empty() || Some(class) != volume::claim_class(old) {
        return Ok(false);
    }
    let entry = attributes.get(format!("storage.k8s.io/storageclasses/{class}")).await?;
    Ok(entry.is_some_and(|entry| object::decode(&entry.value)["allowVolumeExpansion"] == true))
}
