//! The ports of a Service as one of its pods has them: a target port may be a name.

use k8s_openapi::{
    api::core::v1::{Container, Pod, Service, ServicePort},
    apimachinery::pkg::util::intstr::IntOrString,
};

/// A port of a Service on a pod.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Port {
    pub(super) name: String,
    pub(super) protocol: String,
    pub(super) port: i32,
    pub(super) app_protocol: Option<String>,
}

/// The ports of a Service on a pod; those whose target the pod does not have are left out.
// k8s.io/endpointslice/utils.go, getEndpointPorts
pub(super) fn of(service: &Service, pod: &Pod) -> Vec<Port> {
    let ports = service.spec.iter().flat_map(|spec| spec.ports.iter().flatten());
    let found = ports.filter_map(|port| {
        Some(Port {
            name: port.name.clone().unwrap_or_default(),
            protocol: port.protocol.clone().unwrap_or_else(|| "TCP".into()),
            port: target(port, pod)?,
            app_protocol: port.app_protocol.clone(),
        })
    });
    found.collect()
}

// pkg/api/v1/pod/util.go, FindPort
fn target(port: &ServicePort, pod: &Pod) -> Option<i32> {
    let name = match &port.target_port {
        Some(IntOrString::Int(0)) | None => return Some(port.port),
        Some(IntOrString::Int(number)) => return Some(*number),
        Some(IntOrString::String(name)) => name,
    };
    let protocol = port.protocol.as_deref().unwrap_or("TCP");
    let spec = pod.spec.as_ref()?;
    let is_sidecar = |container: &&Container| container.restart_policy.as_deref() == Some("Always");
    let sidecars = spec.init_containers.iter().flatten().filter(is_sidecar);
    let ports = spec
        .containers
        .iter()
        .chain(sidecars)
        .flat_map(|container| container.ports.iter().flatten());
    let mut named = ports
        .filter(|found| found.name.as_ref() == Some(name) && found.protocol.as_deref().unwrap_or("TCP") == protocol);
    named.next().map(|found| found.container_port)
}
