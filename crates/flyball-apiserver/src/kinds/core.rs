//! The kinds of the core group, a file each.

mod binding;
mod component_status;
mod config_map;
mod endpoints;
mod event;
mod limit_range;
mod namespace;
mod node;
mod persistent_volume;
mod persistent_volume_claim;
mod pod;
mod pod_template;
mod replication_controller;
mod resource_quota;
mod secret;
mod service;
mod service_account;

pub use binding::BINDING;
pub use component_status::COMPONENT_STATUS;
pub use config_map::CONFIG_MAP;
pub use endpoints::ENDPOINTS;
pub use event::EVENT;
pub use limit_range::LIMIT_RANGE;
pub use namespace::NAMESPACE;
pub use node::NODE;
pub use persistent_volume::PERSISTENT_VOLUME;
pub use persistent_volume_claim::PERSISTENT_VOLUME_CLAIM;
pub use pod::POD;
pub use pod_template::POD_TEMPLATE;
pub use replication_controller::REPLICATION_CONTROLLER;
pub use resource_quota::RESOURCE_QUOTA;
pub use secret::SECRET;
pub use service::SERVICE;
pub use service_account::SERVICE_ACCOUNT;
