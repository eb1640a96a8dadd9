//! Who controls an object: references between owners and dependents.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference};
use kube::Resource;

/// The reference to the owner that controls an object.
pub(crate) fn controller(meta: &ObjectMeta) -> Option<&OwnerReference> {
    meta.owner_references.iter().flatten().find(|owner| owner.controller == Some(true))
}

/// Whether the object with this uid controls another one.
pub(crate) fn is_controlled_by(meta: &ObjectMeta, uid: Option<&str>) -> bool {
    controller(meta).is_some_and(|owner| Some(owner.uid.as_str()) == uid)
}

/// A reference to `owner` as the one that controls an object and waits for its end.
pub(crate) fn reference<K: Resource<DynamicType = ()>>(owner: &K) -> OwnerReference {
    OwnerReference {
        block_owner_deletion: Some(true),
        ..owner.controller_owner_ref(&()).unwrap_or_default()
    }
}

/// Whether somebody wants an object gone.
pub(crate) fn is_terminating(meta: &ObjectMeta) -> bool {
    meta.deletion_timestamp.is_some()
}
