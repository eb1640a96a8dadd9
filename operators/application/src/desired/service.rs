//! The Service through which an Application is reached.

use super::{labels, port};
use crate::api::Application;
use k8s_openapi::{
    api::core::v1::{Service, ServicePort, ServiceSpec},
    apimachinery::pkg::util::intstr::IntOrString,
};
use kube::api::ObjectMeta;

/// One address on port 80, whatever port the container listens on.
pub fn service(application: &Application) -> Service {
    let port = ServicePort {
        name: Some("http".into()),
        port: 80,
        protocol: Some("TCP".into()),
        target_port: Some(IntOrString::Int(port(application))),
        ..Default::default()
    };
    Service {
        metadata: ObjectMeta { labels: Some(labels(application)), ..Default::default() },
        spec: Some(ServiceSpec {
            selector: Some(labels(application)),
            ports: Some(vec![port]),
            ..Default::default()
        }),
        ..Default::default()
    }
}
