//! Binds volume claims to volumes, makes simulated volumes for those that ask for the default class, and keeps what is in use.

mod claim;
mod class;
mod protection;
mod volumes;

pub(crate) use claim::controller as claims;
pub(crate) use class::create_default_class;
pub(crate) use protection::{claim_protection, volume_protection};
pub(crate) use volumes::controller as volumes;

/// Who the events of claims and volumes are from.
const NAME: &str = "persistentvolume-controller";

/// The provisioner of simulated volumes.
const PROVISIONER: &str = "flyball.dev/simulated";

const BIND_COMPLETED: &str = "pv.kubernetes.io/bind-completed";
const BOUND_BY_CONTROLLER: &str = "pv.kubernetes.io/bound-by-controller";
const PROVISIONED_BY: &str = "pv.kubernetes.io/provisioned-by";
const STORAGE_PROVISIONER: &str = "volume.kubernetes.io/storage-provisioner";
const BETA_STORAGE_PROVISIONER: &str = "volume.beta.kubernetes.io/storage-provisioner";
const SELECTED_NODE: &str = "volume.kubernetes.io/selected-node";
