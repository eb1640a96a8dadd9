//! kube-controller-manager: every controller of the cluster that is not the scheduler or a kubelet.

use crate::{
    autoscaler, collector, cron_job, daemon_set, deployment, disruption, endpoints, event_ttl, job, kinds::Kinds,
    namespace, node::Nodes, node_lifecycle, pod_gc, policy_status, replica_set, replication_controller, resource_quota,
    role_aggregation, root_ca, service_account, stateful_set, taint_eviction, volume,
};
use flyball::{Operator, Trigger};
use flyball_apiserver::ApiServer;

/// The controllers, under the name that users know from their objects' managed fields.
pub(crate) fn operator(server: &ApiServer, nodes: &Nodes) -> Operator {
    let kinds = Kinds::of(server.clone());
    let (store, freed) = (server.store().clone(), Trigger::new("objects use less"));
    let operator = Operator::new("kube-controller-manager")
        .controller(pod_gc::controller())
        .controller(deployment::controller())
        .controller(replica_set::controller())
        .controller(stateful_set::controller())
        .controller(job::controller())
        .controller(job::orphans())
        .controller(job::ttl())
        .controller(cron_job::controller())
        .controller(daemon_set::controller())
        .controller(replication_controller::controller())
        .controller(disruption::controller(&kinds))
        .controller(endpoints::slices())
        .controller(endpoints::endpoints())
        .controller(endpoints::orphans())
        .controller(node_lifecycle::controller())
        .controller(taint_eviction::controller())
        .controller(autoscaler::controller(&kinds, nodes, server.clock()))
        .controller(volume::claims())
        .controller(volume::volumes())
        .controller(volume::claim_protection())
        .controller(volume::volume_protection())
        .controller(namespace::controller(&kinds))
        .controller(service_account::controller())
        .controller(policy_status::controller(&kinds))
        .controller(event_ttl::controller())
        .controller(role_aggregation::controller())
        .controller(resource_quota::controller(&kinds, &freed))
        .task("resourcequota-monitor", move |_client| {
            resource_quota::follow(store.clone(), freed.clone())
        })
        .controller(collector::definitions(&kinds));
    let operator = match server.root_ca() {
        Some(certificate) => operator.controller(root_ca::controller(certificate.to_owned())),
        None => operator,
    };
    collector::controllers(&kinds).fold(operator, Operator::controller)
}
