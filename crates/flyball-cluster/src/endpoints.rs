//! Publishes which pods serve a Service: as EndpointSlices, and as Endpoints for older clients.

mod legacy;
mod ports;
mod slices;

pub(crate) use legacy::{controller as endpoints, orphans};
pub(crate) use slices::controller as slices;

use crate::{
    lookup::{self, CHILDREN},
    pod,
};
use flyball::{Cache, Context, Controller, Key, Result};
use k8s_openapi::{
    api::core::v1::{ObjectReference, Pod, Service},
    apimachinery::pkg::apis::meta::v1::LabelSelector,
};
use kube::{Resource, ResourceExt};
use std::sync::Arc;

/// What both controllers read.
fn reading(controller: Controller<Service>) -> Controller<Service> {
    controller.reads::<Pod>().watches(services_of)
}

/// The selector of a Service; none if its endpoints are the user's own.
fn selector(service: &Service) -> Option<LabelSelector> {
    let labels = service.spec.as_ref()?.selector.clone().filter(|labels| !labels.is_empty())?;
    Some(LabelSelector { match_labels: Some(labels), match_expressions: None })
}

fn services_of(pod: Arc<Pod>, cache: Cache) -> Result<Vec<Key>> {
    let services = lookup::selecting::<Service>(&pod.metadata, &cache)?;
    let selects = |service: &&Arc<Service>| {
        let wanted = service.spec.iter().flat_map(|spec| spec.selector.iter().flatten());
        wanted.into_iter().all(|(name, value)| pod.labels().get(name) == Some(value))
    };
    Ok(services.iter().filter(selects).map(|service| Key::of(&**service)).collect())
}

/// The pods of a Service that have an address and have not ended, in order of name.
// k8s.io/endpointslice/util/controller_utils.go, ShouldPodBeInEndpoints
async fn pods_of(service: &Service, ctx: &Context) -> Result<Vec<Arc<Pod>>> {
    let Some(selector) = selector(service) else {
        return Ok(Vec::new());
    };
    let value = lookup::labelled(&lookup::anchor(service.metadata.namespace.as_deref(), &selector));
    let mut pods = ctx.by_index::<Pod>(CHILDREN, &value).await?;
    let wanted = selector.match_labels.unwrap_or_default();
    pods.retain(|pod| {
        let selected = wanted.iter().all(|(name, value)| pod.labels().get(name) == Some(value));
        selected && !pod::has_ended(pod) && address(pod).is_some()
    });
    Ok(pods)
}

fn address(pod: &Pod) -> Option<&str> {
    pod.status.as_ref()?.pod_ip.as_deref().filter(|address| !address.is_empty())
}

/// The host name under which a pod is found in a Service's domain.
fn hostname(pod: &Pod, service: &Service) -> Option<String> {
    let spec = pod.spec.as_ref()?;
    let is_within = spec.subdomain.as_deref() == Some(&*service.name_any());
    spec.hostname.clone().filter(|_| is_within)
}

fn reference(pod: &Pod) -> ObjectReference {
    ObjectReference {
        api_version: None,
        resource_version: None,
        ..pod.object_ref(&())
    }
}

fn publishes_unready(service: &Service) -> bool {
    service
        .spec
        .as_ref()
        .and_then(|spec| spec.publish_not_ready_addresses)
        .unwrap_or_default()
}

fn is_headless(service: &Service) -> bool {
    service.spec.as_ref().and_then(|spec| spec.cluster_ip.as_deref()) == Some("None")
}

fn is_external(service: &Service) -> bool {
    service.spec.as_ref().and_then(|spec| spec.type_.as_deref()) == Some("ExternalName")
}
