//! The EndpointSlices of a Service.

use super::{
    address, hostname, is_external, is_headless, pods_of, ports, publishes_unready, reading, reference, selector,
};
use crate::{
    lookup::{self, CHILDREN},
    owner, pod, refusal,
};
use flyball::{Action, Context, Controller, Key, Result};
use k8s_openapi::{
    api::{
        core::v1::{Node, Pod, Service},
        discovery::v1::{Endpoint, EndpointConditions, EndpointPort, EndpointSlice},
    },
    apimachinery::pkg::apis::meta::v1::ObjectMeta,
};
use kube::{
    Api, ResourceExt,
    api::{DeleteParams, PartialObjectMeta, PostParams},
};
use ports::Port;
use std::{collections::BTreeMap, sync::Arc};

/// The most endpoints of one slice: kube-controller-manager's `--max-endpoints-per-slice`.
const MAX_ENDPOINTS: usize = 100;
const SERVICE_NAME: &str = "kubernetes.io/service-name";
const MANAGED_BY: &str = "endpointslice.kubernetes.io/managed-by";
const MANAGER: &str = "endpointslice-controller.k8s.io";
const HEADLESS: &str = "service.kubernetes.io/headless";
const TRIGGERED: &str = "endpoints.kubernetes.io/last-change-trigger-time";
const ZONE: &str = "topology.kubernetes.io/zone";

/// The controller of EndpointSlices. It also declares the index by which Services are found.
pub(crate) fn controller() -> Controller<Service> {
    let controller = Controller::new(reconcile)
        .named("endpointslice")
        .owns::<EndpointSlice>()
        .reads::<EndpointSlice>()
        .reads::<PartialObjectMeta<Node>>();
    let controller = lookup::index_children::<_, EndpointSlice>(controller);
    reading(lookup::index_selectors(controller, selector))
}

/// The slices that a Service should have, without their names.
type Wanted = Vec<(Vec<Port>, Vec<Endpoint>)>;

// k8s.io/endpointslice/reconciler.go, Reconcile
async fn reconcile(service: Arc<Service>, ctx: Context) -> Result {
    if selector(&service).is_none() || is_external(&service) {
        return Ok(Action::await_change());
    }
    let pods = pods_of(&service, &ctx).await?;
    let mut wanted = wanted(&service, &pods, &ctx).await?;
    let mut known = ctx
        .by_index::<EndpointSlice>(CHILDREN, &lookup::controlled_by(&service.uid().unwrap_or_default()))
        .await?;
    known.retain(|slice| slice.labels().get(MANAGED_BY).is_some_and(|by| by == MANAGER));
    // A slice of the same ports is changed; one more is made; the rest is deleted.
    let api: Api<EndpointSlice> = Api::namespaced(ctx.client(), &service.namespace().unwrap_or_default());
    wanted.sort_by(|one, other| one.0.cmp(&other.0));
    for (ports, endpoints) in wanted {
        let same = known.iter().position(|slice| slice_ports(slice) == ports);
        let place = same.or_else(|| (!known.is_empty()).then_some(0));
        let known = place.map(|place| known.remove(place));
        write(&service, known.as_deref(), &ports, endpoints, &api).await?;
    }
    for slice in known {
        match api.delete(&slice.name_any(), &DeleteParams::default()).await {
            Err(error) if refusal::is_not_found(&error) => {}
            deleted => drop(deleted?),
        }
    }
    Ok(Action::await_change())
}

async fn wanted(service: &Service, pods: &[Arc<Pod>], ctx: &Context) -> Result<Wanted> {
    let mut by_ports: BTreeMap<Vec<Port>, Vec<Endpoint>> = BTreeMap::new();
    for pod in pods {
        let mut found = ports::of(service, pod);
        found.sort();
        let has_ports = service.spec.as_ref().is_some_and(|spec| spec.ports.iter().flatten().next().is_some());
        if has_ports && found.is_empty() {
            continue;
        }
        let endpoint = endpoint(service, pod, ctx).await?;
        by_ports.entry(found).or_default().push(endpoint);
    }
    let mut wanted = Wanted::new();
    for (ports, endpoints) in by_ports {
        wanted.extend(endpoints.chunks(MAX_ENDPOINTS).map(|part| (ports.clone(), part.to_vec())));
    }
    if wanted.is_empty() {
        wanted.push((Vec::new(), Vec::new()));
    }
    Ok(wanted)
}

// k8s.io/endpointslice/utils.go, podToEndpoint
async fn endpoint(service: &Service, pod: &Pod, ctx: &Context) -> Result<Endpoint> {
    let terminating = pod.metadata.deletion_timestamp.is_some();
    let serving = pod::is_ready(pod);
    let ready = publishes_unready(service) || (serving && !terminating);
    let node = pod::node(pod);
    let zone = match node {
        Some(node) => ctx.get::<PartialObjectMeta<Node>>(Key::cluster(node)).await?,
        None => None,
    };
    Ok(Endpoint {
        addresses: vec![address(pod).unwrap_or_default().to_owned()],
        conditions: Some(EndpointConditions {
            ready: Some(ready),
            serving: Some(serving),
            terminating: Some(terminating),
        }),
        hostname: hostname(pod, service),
        node_name: node.map(str::to_owned),
        target_ref: Some(reference(pod)),
        zone: zone.and_then(|node| node.labels().get(ZONE).cloned()),
        ..Endpoint::default()
    })
}

fn slice_ports(slice: &EndpointSlice) -> Vec<Port> {
    let ports = slice.ports.iter().flatten().map(|port| Port {
        name: port.name.clone().unwrap_or_default(),
        protocol: port.protocol.clone().unwrap_or_default(),
        port: port.port.unwrap_or_default(),
        app_protocol: port.app_protocol.clone(),
    });
    let mut ports: Vec<_> = ports.collect();
    ports.sort();
    ports
}

async fn write(
    service: &Service,
    known: Option<&EndpointSlice>,
    ports: &[Port],
    endpoints: Vec<Endpoint>,
    api: &Api<EndpointSlice>,
) -> Result<()> {
    let mut labels = service.metadata.labels.clone().unwrap_or_default();
    labels.insert(SERVICE_NAME.into(), service.name_any());
    labels.insert(MANAGED_BY.into(), MANAGER.into());
    if is_headless(service) {
        labels.insert(HEADLESS.into(), String::new());
    }
    let ports = ports.iter().map(|port| EndpointPort {
        name: Some(port.name.clone()),
        port: Some(port.port),
        protocol: Some(port.protocol.clone()),
        app_protocol: port.app_protocol.clone(),
    });
    let ports: Vec<_> = ports.collect();
    let Some(known) = known else {
        let slice = EndpointSlice {
            metadata: ObjectMeta {
                generate_name: Some(format!("{}-", service.name_any())),
                namespace: service.namespace(),
                labels: Some(labels),
                owner_references: Some(vec![owner::reference(service)]),
                ..ObjectMeta::default()
            },
            address_type: "IPv4".into(),
            endpoints: Some(endpoints),
            ports: Some(ports),
        };
        return match api.create(&PostParams::default(), &slice).await {
            Err(error) if refusal::is_namespace_terminating(&error) => Ok(()),
            created => created.map(drop).map_err(Into::into),
        };
    };
    let mut next = known.clone();
    next.metadata.labels = Some(labels);
    next.endpoints = Some(endpoints);
    next.ports = Some(ports);
    next.metadata.annotations.get_or_insert_default().remove(TRIGGERED);
    next.metadata.annotations = next.metadata.annotations.filter(|annotations| !annotations.is_empty());
    let same = next.endpoints.iter().flatten().eq(known.endpoints.iter().flatten())
        && next.ports.iter().flatten().eq(known.ports.iter().flatten())
        && next.metadata.labels == known.metadata.labels;
    if !same {
        api.replace(&known.name_any(), &PostParams::default(), &next).await?;
    }
    Ok(())
}
