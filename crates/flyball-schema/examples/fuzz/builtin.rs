//! What built-in kinds default, prepare, convert and check, each given whatever there is.

use crate::input::Input;
use flyball_schema::builtin::{
    admission_policy, autoscaler, batch, budget, config_map, definition, event, flow_control, lease, limit, namespace,
    network, node, pod, pod_security, priority, quota, role, secret, service, storage, typed, volume, warning, webhook,
    workload,
};
use flyball_schema::kinds;
use flyball_schema::policy::{CheckedType, type_check};
use flyball_schema::violation::Violation;
use serde_json::{Value, json};

/// Every function that warns.
const WARNINGS: [fn(&Value) -> Vec<String>; 7] = [
    warning::claim,
    warning::pod,
    warning::template,
    warning::cron_job,
    warning::service,
    warning::secret,
    warning::definition,
];

/// Every default, and every conversion between versions.
const CHANGES: [fn(&mut Value); 41] = [
    autoscaler::default,
    autoscaler::to_v1,
    autoscaler::to_v2,
    batch::default_cron_job,
    batch::default_job,
    definition::default,
    event::default,
    event::to_core,
    event::to_new,
    flow_control::default_flow,
    flow_control::default_level,
    limit::default,
    namespace::default,
    network::default_endpoints,
    network::default_ingress_class,
    network::default_policy,
    network::default_slice,
    node::default,
    node::taint,
    pod::default,
    pod::default_spec,
    pod::default_template,
    pod::tolerate,
    priority::default,
    role::default_binding,
    secret::default,
    service::default,
    storage::default_claim,
    storage::default_class,
    storage::default_driver,
    storage::default_node,
    volume::default_claim,
    volume::default_volume,
    webhook::default_mutating,
    admission_policy::default_binding,
    webhook::default_validating,
    workload::default_daemon_set,
    workload::default_deployment,
    workload::default_replica_set,
    workload::default_replication_controller,
    workload::default_stateful_set,
];

/// What is written or taken back before a write.
const PREPARES: [fn(&mut Value, Option<&Value>); 14] = [
    autoscaler::prepare,
    batch::prepare_job,
    definition::prepare,
    event::prepare,
    lease::prepare,
    namespace::prepare,
    pod::prepare,
    role::prepare,
    service::prepare,
    storage::prepare_node,
    volume::prepare_claim,
    volume::prepare_volume,
    workload::prepare_daemon_set,
    workload::prepare_stateful_set,
];

/// What is wrong with an object, in the place of another or of none.
type Rule = fn(&Value, Option<&Value>) -> Vec<Violation>;

/// The rules of objects.
const RULES: [Rule; 31] = [
    admission_policy::validate_mutating_binding,
    admission_policy::validate_validating_binding,
    autoscaler::validate,
    batch::validate_cron_job,
    batch::validate_job,
    budget::validate,
    config_map::validate,
    definition::validate,
    event::validate,
    flow_control::validate_flow,
    flow_control::validate_level,
    lease::validate,
    namespace::validate,
    network::validate_ingress,
    network::validate_policy,
    pod::validate,
    priority::validate,
    quota::validate,
    role::validate_binding,
    role::validate_cluster_binding,
    role::validate_cluster_role,
    role::validate_role,
    secret::validate,
    service::validate,
    volume::validate_claim,
    webhook::validate_mutating,
    webhook::validate_validating,
    workload::validate_daemon_set,
    workload::validate_deployment,
    workload::validate_replica_set,
    workload::validate_stateful_set,
];

/// The rules of statuses.
const STATUS_RULES: [fn(&Value, &Value) -> Vec<Violation>; 10] = [
    autoscaler::validate_status,
    batch::validate_job_status,
    budget::validate_status,
    network::validate_ingress_status,
    quota::validate_status,
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
    charges(input, &value, &live);
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

/// A write charged to a quota, and checked against the standards of a namespace.
fn charges(input: &mut Input<'_>, object: &Value, other: &Value) {
    let resources = [
        ("", "pods"),
        ("", "services"),
        ("", "persistentvolumeclaims"),
        ("", "secrets"),
        ("g", "r"),
    ];
    let (group, plural) = resources[input.below(resources.len())];
    let (resource, now) = (quota::Resource { group, plural }, jiff::Timestamp::UNIX_EPOCH);
    let hard = json!({"pods": "1", "cpu": "1", "requests.cpu": "1", "services": "1", "count/r.g": "1", "secrets": "1"});
    let counted = json!({"spec": object["spec"], "status": {"hard": hard, "used": hard}});
    for old in [None, Some(other)] {
        let write = quota::Write { resource, subresource: None, object, old, now };
        drop((write.is_measured(), quota::charge(&[counted.clone(), other.clone()], &write)));
    }
    let mut total: quota::Amounts = [("pods".to_owned(), "0".parse().expect("zero is a quantity"))].into();
    quota::add_usage(&mut total, resource, other, object, now);
    drop((quota::to_value(&total), quota::includes(resource, other, object)));
    drop((quota::matching(resource, total.keys()), volume::claim_class(object)));
    volume::protect(&mut object.clone(), "f");
    let (policy, _) = pod_security::Policy::of(other);
    let offences = policy.enforce.offences(object);
    drop((pod_security::details(&offences), pod_security::reasons(&offences)));
    for level in [pod_security::Level::Baseline, pod_security::Level::Restricted] {
        for version in [
            pod_security::Version::Minor(input.below(40) as u32),
            pod_security::Version::Latest,
        ] {
            drop(pod_security::Standard { level, version }.offences(object));
        }
    }
}

/// What the table of kinds alone says of a kind.
fn for_kind(input: &mut Input<'_>, object: &mut Value) {
    let kinds = kinds::builtin();
    let resource = &kinds.resources[input.below(kinds.resources.len())];
    for warnings in WARNINGS {
        drop(warnings(object));
    }
    if let Some(id) = resource.schema {
        let node = kinds.schemas.node(id);
        typed::fill_times(node, object);
        drop(typed::validate(node, object, ""));
        let (group, version, kind) = (&*resource.group, &*resource.version, &*resource.kind);
        drop(type_check(object, &[CheckedType { group, version, kind, node }], Some(node)));
    }
    std::hint::black_box(namespace::has_finalizers(object));
}
