//! The Endpoints object of a Service.

use super::{
    address, hostname, is_external, is_headless, pods_of, ports, publishes_unready, reading, reference, selector,
};
use crate::{pod, refusal};
use flyball::{Action, Context, Controller, Key, Result};
use k8s_openapi::{
    api::core::v1::{EndpointAddress, EndpointPort, EndpointSubset, Endpoints, Pod, Service},
    apimachinery::pkg::apis::meta::v1::ObjectMeta,
};
use kube::{
    Api, ResourceExt,
    api::{DeleteParams, PartialObjectMeta, PostParams},
};
use ports::Port;
use std::{collections::BTreeMap, sync::Arc};

/// The most addresses of one object.
const MAX_ADDRESSES: usize = 1000;
const OVER_CAPACITY: &str = "endpoints.kubernetes.io/over-capacity";
const MANAGED_BY: &str = "endpoints.kubernetes.io/managed-by";
const MANAGER: &str = "endpoint-controller";
const HEADLESS: &str = "service.kubernetes.io/headless";

/// The controller of Endpoints.
pub(crate) fn controller() -> Controller<Service> {
    reading(Controller::new(reconcile).named("endpoints").reads::<Endpoints>())
        .watches(|endpoints: Arc<PartialObjectMeta<Endpoints>>, _| Some(Key::of(&*endpoints)))
}

/// The controller of Endpoints whose Service is gone.
pub(crate) fn orphans() -> Controller<PartialObjectMeta<Endpoints>> {
    Controller::new(remove_orphan)
        .named("endpoints-orphans")
        .reads::<PartialObjectMeta<Service>>()
        .watches(|service: Arc<PartialObjectMeta<Service>>, _| Some(Key::of(&*service)))
}

// pkg/controller/endpoint/endpoints_controller.go, syncService
async fn reconcile(service: Arc<Service>, ctx: Context) -> Result {
    if selector(&service).is_none() || is_external(&service) {
        return Ok(Action::await_change());
    }
    let pods = pods_of(&service, &ctx).await?;
    let (subsets, truncated) = subsets(&service, &pods);
    let name = service.name_any();
    let known = ctx.get::<Endpoints>(&*name).await?;
    let mut next = known.as_deref().cloned().unwrap_or_else(|| Endpoints {
        metadata: ObjectMeta {
            name: Some(name.clone()),
            namespace: service.namespace(),
            ..ObjectMeta::default()
        },
        subsets: None,
    });
    let mut labels = service.metadata.labels.clone().unwrap_or_default();
    labels.insert(MANAGED_BY.into(), MANAGER.into());
    if is_headless(&service) {
        labels.insert(HEADLESS.into(), String::new());
    }
    next.metadata.labels = Some(labels);
    let annotations = next.metadata.annotations.get_or_insert_default();
    annotations.remove(OVER_CAPACITY);
    if truncated {
        annotations.insert(OVER_CAPACITY.into(), "truncated".into());
    }
    if annotations.is_empty() {
        next.metadata.annotations = None;
    }
    next.subsets = (!subsets.is_empty()).then_some(subsets);
    if known.as_deref() == Some(&next) {
        return Ok(Action::await_change());
    }
    let api: Api<Endpoints> = Api::namespaced(ctx.client(), &service.namespace().unwrap_or_default());
    let written = match known {
        Some(_) => api.replace(&name, &PostParams::default(), &next).await,
        None => api.create(&PostParams::default(), &next).await,
    };
    match written {
        Err(error) if refusal::is_namespace_terminating(&error) => {}
        written => drop(written?),
    }
    Ok(Action::await_change())
}

/// The addresses by port, ready or not; and whether there are more.
fn subsets(service: &Service, pods: &[Arc<Pod>]) -> (Vec<EndpointSubset>, bool) {
    let mut by_ports: BTreeMap<Vec<Port>, (Vec<EndpointAddress>, Vec<EndpointAddress>)> = BTreeMap::new();
    let unready_too = publishes_unready(service);
    let counted = pods.iter().filter(|pod| unready_too || pod.metadata.deletion_timestamp.is_none());
    let counted: Vec<_> = counted.collect();
    for pod in counted.iter().take(MAX_ADDRESSES) {
        let mut found = ports::of(service, pod);
        found.sort();
        let (ready, unready) = by_ports.entry(found).or_default();
        let address = EndpointAddress {
            ip: address(pod).unwrap_or_default().into(),
            hostname: hostname(pod, service),
            node_name: pod::node(pod).map(str::to_owned),
            target_ref: Some(reference(pod)),
        };
        match unready_too || pod::is_ready(pod) {
            true => ready.push(address),
            false => unready.push(address),
        }
    }
    let some = |addresses: Vec<EndpointAddress>| (!addresses.is_empty()).then_some(addresses);
    let subsets = by_ports.into_iter().map(|(ports, (mut ready, mut unready))| {
        ready.sort_by(|one, other| one.ip.cmp(&other.ip));
        unready.sort_by(|one, other| one.ip.cmp(&other.ip));
        let ports = ports.into_iter().map(|port| EndpointPort {
            name: Some(port.name).filter(|name| !name.is_empty()),
            port: port.port,
            protocol: Some(port.protocol),
            app_protocol: port.app_protocol,
        });
        let ports: Vec<_> = ports.collect();
        EndpointSubset {
            addresses: some(ready),
            not_ready_addresses: some(unready),
            ports: (!ports.is_empty()).then_some(ports),
        }
    });
    (subsets.collect(), counted.len() > MAX_ADDRESSES)
}

async fn remove_orphan(endpoints: Arc<PartialObjectMeta<Endpoints>>, ctx: Context) -> Result {
    let is_ours = endpoints.labels().get(MANAGED_BY).is_some_and(|by| by == MANAGER);
    if !is_ours || ctx.get::<PartialObjectMeta<Service>>(endpoints.name_any()).await?.is_some() {
        return Ok(Action::await_change());
    }
    let namespace = endpoints.namespace().unwrap_or_default();
    let services: Api<Service> = Api::namespaced(ctx.client(), &namespace);
    if services.get_metadata_opt(&endpoints.name_any()).await?.is_some() {
        return Ok(Action::await_change());
    }
    let api: Api<Endpoints> = Api::namespaced(ctx.client(), &namespace);
    match api.delete(&endpoints.name_any(), &DeleteParams::default()).await {
        Err(error) if !refusal::is_not_found(&error) => Err(error.into()),
        _ => Ok(Action::await_change()),
    }
}
