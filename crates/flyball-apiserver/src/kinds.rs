//! The built-in kinds, one [`ResourceSpec`] each, and the one of all custom resources.

pub mod admission_registration;
pub mod api_extensions;
pub mod api_registration;
pub mod apps;
pub mod authentication;
pub mod authorization;
pub mod autoscaling;
pub mod batch;
pub mod certificates;
pub mod coordination;
pub mod core;
pub mod custom_resource;
pub mod discovery;
pub mod events;
pub mod flow_control;
pub mod networking;
pub mod node;
pub mod policy;
pub mod rbac;
pub mod resource;
pub mod scheduling;
pub mod spec;
pub mod storage;

use spec::ResourceSpec;

/// Every built-in kind.
// tidy: table
static ALL: &[&ResourceSpec] = &[
    &core::BINDING,
    &core::COMPONENT_STATUS,
    &core::CONFIG_MAP,
    &core::ENDPOINTS,
    &core::EVENT,
    &core::LIMIT_RANGE,
    &core::NAMESPACE,
    &core::NODE,
    &core::PERSISTENT_VOLUME,
    &core::PERSISTENT_VOLUME_CLAIM,
    &core::POD,
    &core::POD_TEMPLATE,
    &core::REPLICATION_CONTROLLER,
    &core::RESOURCE_QUOTA,
    &core::SECRET,
    &core::SERVICE,
    &core::SERVICE_ACCOUNT,
    &api_registration::API_SERVICE,
    &apps::CONTROLLER_REVISION,
    &apps::DAEMON_SET,
    &apps::DEPLOYMENT,
    &apps::REPLICA_SET,
    &apps::STATEFUL_SET,
    &events::EVENT,
    &authentication::SELF_SUBJECT_REVIEW,
    &authentication::TOKEN_REVIEW,
    &authorization::LOCAL_SUBJECT_ACCESS_REVIEW,
    &authorization::SELF_SUBJECT_ACCESS_REVIEW,
    &authorization::SELF_SUBJECT_RULES_REVIEW,
    &authorization::SUBJECT_ACCESS_REVIEW,
    &autoscaling::HORIZONTAL_POD_AUTOSCALER,
    &batch::CRON_JOB,
    &batch::JOB,
    &certificates::CERTIFICATE_SIGNING_REQUEST,
    &networking::INGRESS_CLASS,
    &networking::INGRESS,
    &networking::IP_ADDRESS,
    &networking::NETWORK_POLICY,
    &networking::SERVICE_CIDR,
    &policy::POD_DISRUPTION_BUDGET,
    &rbac::CLUSTER_ROLE_BINDING,
    &rbac::CLUSTER_ROLE,
    &rbac::ROLE_BINDING,
    &rbac::ROLE,
    &storage::CSI_DRIVER,
    &storage::CSI_NODE,
    &storage::CSI_STORAGE_CAPACITY,
    &storage::STORAGE_CLASS,
    &storage::VOLUME_ATTACHMENT,
    &storage::VOLUME_ATTRIBUTES_CLASS,
    &admission_registration::MUTATING_ADMISSION_POLICY,
    &admission_registration::MUTATING_ADMISSION_POLICY_BINDING,
    &admission_registration::MUTATING_WEBHOOK_CONFIGURATION,
    &admission_registration::VALIDATING_ADMISSION_POLICY,
    &admission_registration::VALIDATING_ADMISSION_POLICY_BINDING,
    &admission_registration::VALIDATING_WEBHOOK_CONFIGURATION,
    &api_extensions::CUSTOM_RESOURCE_DEFINITION,
    &scheduling::PRIORITY_CLASS,
    &coordination::LEASE,
    &node::RUNTIME_CLASS,
    &discovery::ENDPOINT_SLICE,
    &resource::DEVICE_CLASS,
    &resource::RESOURCE_CLAIM,
    &resource::RESOURCE_CLAIM_TEMPLATE,
    &resource::RESOURCE_SLICE,
    &flow_control::FLOW_SCHEMA,
    &flow_control::PRIORITY_LEVEL_CONFIGURATION,
];

/// The built-in kind of a group and a plural name.
pub(crate) fn find(group: &str, plural: &str) -> Option<&'static ResourceSpec> {
    ALL.iter().find(|spec| spec.group == group && spec.plural == plural).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_served_kind_has_a_spec_and_every_subresource_a_handler() {
        for resource in &flyball_schema::kinds::builtin().resources {
            let spec = find(&resource.group, &resource.plural)
                .unwrap_or_else(|| panic!("{} has no spec", resource.qualified()));
            let served: Vec<&str> = resource.subresources.iter().map(|it| &*it.name).collect();
            let handled: Vec<&str> = spec.subresources.iter().map(|(name, _)| *name).collect();
            assert_eq!(served, handled, "subresources of {}", resource.qualified());
            assert_eq!(spec.status.is_some(), served.contains(&"status"), "{}", resource.qualified());
        }
        assert!(
            ALL.iter()
                .all(|spec| ALL.iter().filter(|it| (it.group, it.plural) == (spec.group, spec.plural)).count() == 1)
        );
    }
}
