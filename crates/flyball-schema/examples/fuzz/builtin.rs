//! What built-in kinds default, prepare, convert and check, each given whatever there is.

use crate::input::Input;
use flyball_schema::builtin::{
    autoscaler, batch, budget, config_map, definition, event, lease, limit, namespace, network, node, pod, role,
    secret, service, storage, typed, volume, warning, webhook, workload,
};
use flyball_schema::kinds;
use flyball_schema::violation::Violation;
use serde_json::Value;

/// Every function that warns.
const WARNINGS: [fn(&Value) -> Vec<String>; 6] = [
    warning::pod,
    warning::template,
    warning::cron_job,
    warning::service,
    warning::secret,
    warning::definition,
];

/// Every default, and every conversion between versions.
const CHANGES: [fn(&mut Value); 39] = [
    autoscaler::default,
    autoscaler::to_v1,
    autoscaler::to_v2,
    batch::default_cron_job,
    batch::default_job,
    definition::default,
    event::default,
    event::to_core,
    event::to_new,
    limit::default,
    namespace::default,
    network::default_endpoints,
    network::default_ingress_class,
    network::default_policy,
    network::default_slice,
    node::default,
    pod::default,
    pod::default_spec,
    pod::default_template,
    role::default_binding,
    secret::default,
    service::default,
    storage::default_claim,
    storage::default_class,
    storage::default_driver,
    storage::default_flow,
    storage::default_level,
    storage::default_node,
    storage::default_priority,
    volume::default_claim,
    volume::default_volume,
    webhook::default_mutating,
    webhook::default_policy_binding,
    webhook::default_validating,
    workload::default_daemon_set,
    workload::default_deployment,
    workload::default_replica_set,
    workload::default_replication_controller,
    workload::default_stateful_set,
];

/// What is written or taken back before a write.
const PREPARES: [fn(&mut Value, Option<&Value>); 16] = [
    autoscaler::prepare,
    batch::prepare_job,
    definition::prepare,
    event::prepare,
    lease::prepare,
    namespace::prepare,
    node::prepare,
    pod::prepare,
    role::prepare,
    service::prepare,
    storage::prepare_node,
    volume::prepare_attributes,
    volume::prepare_claim,
    volume::prepare_volume,
    workload::prepare_daemon_set,
    workload::prepare_stateful_set,
];

/// What is wrong with an object, in the place of another or of none.
type Rule = fn(&Value, Option<&Value>) -> Vec<Violation>;

/// The rules of objects.
const RULES: [Rule; 23] = [
    autoscaler::validate,
    batch::validate_cron_job,
    batch::validate_job,
    budget::validate,
    config_map::validate,
    definition::validate,
    event::validate,
    lease::validate,
    namespace::validate,
    network::validate_ingress,
    network::validate_policy,
    pod::validate,
    role::validate_binding,
    role::validate_cluster_binding,
    role::validate_cluster_role,
    role::validate_role,
    secret::validate,
    service::validate,
    volume::validate_claim,
    workload::validate_daemon_set,
    workload::validate_deployment,
    workload::validate_replica_set,
    workload::validate_stateful_set,
];

/// The rules of statuses.
const STATUS_RULES: [fn(&Value, &Value) -> Vec<Violation>; 9] = [
    autoscaler::validate_status,
    batch::validate_job_status,
    budget::validate_status,
    network::validate_ingress_status,
    volume::validate_claim_status,
    workload::validate_daemon_set_status,
    workload::validate_deployment_status,
    workload::validate_replica_set_status,
    workload::validate_stateful_set_status,
];

/// A value and another in its place, through everything that is done to built-in kinds.
pub fn rules(input: &mut Input<'_>) {
    let (value, mut live) = (input.value(), input.value());
    if input.below(2) == 0 {
        live.clone_from(&value);
        input.alter(&mut live);
    }
    for change in CHANGES {
        change(&mut value.clone());
    }
    limit::fill_pod(&live, &mut value.clone());
    drop((limit::broken(&live, &value, false), limit::broken(&live, &value, true)));
    for prepare in PREPARES {
        prepare(&mut value.clone(), None);
        prepare(&mut value.clone(), Some(&live));
    }
    let mut object = value;
    CHANGES[input.below(CHANGES.len())](&mut object);
    for rule in RULES {
        drop((rule(&object, None), rule(&object, Some(&live))));
    }
    for rule in STATUS_RULES {
        drop(rule(&object, &live));
    }
    for_kind(input, &mut object);
}

/// What the table of kinds alone says of a kind.
fn for_kind(input: &mut Input<'_>, object: &mut Value) {
    let kinds = kinds::builtin();
    let resource = &kinds.resources[input.below(kinds.resources.len())];
    for warnings in WARNINGS {
        drop(warnings(object));
    }
    if let Some(id) = resource.schema {
        typed::fill_times(kinds.schemas.node(id), object);
        drop(typed::validate(kinds.schemas.node(id), object, ""));
    }
    std::hint::black_box(namespace::has_finalizers(object));
}
