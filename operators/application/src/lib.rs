//! The Application operator: an image, a number of replicas and a configuration become a Deployment, a Service and a
//! ConfigMap. `http_api` offers the same over plain HTTP.

pub mod api;
pub mod application;
pub mod desired;
pub mod http_api;
pub mod status;

use api::Application;
use flyball::{Controller, Operator};
use k8s_openapi::api::{
    apps::v1::Deployment,
    core::v1::{ConfigMap, Service},
    rbac::v1::PolicyRule,
};
use kube::CustomResourceExt;

/// The operator, without its HTTP API.
pub fn operator() -> Operator {
    let controller = Controller::new(application::reconcile)
        .owns::<Deployment>()
        .reads::<Deployment>()
        .owns::<Service>()
        .owns::<ConfigMap>();
    Operator::new("application").crd(Application::crd()).controller(controller)
}

/// The operator with its HTTP API, and the rights that the API needs beyond those of the controller.
pub fn operator_with_http_api() -> Operator {
    operator()
        .task("http", http_api::run)
        .permission(rule("cloudnative.elide.dev", "applications", &["create", "update", "delete"]))
        .permission(rule("", "events", &["list"]))
        .permission(rule("", "namespaces", &["create"]))
}

fn rule(group: &str, resource: &str, verbs: &[&str]) -> PolicyRule {
    PolicyRule {
        api_groups: Some(vec![group.into()]),
        resources: Some(vec![resource.into()]),
        verbs: verbs.iter().map(|verb| (*verb).into()).collect(),
        ..PolicyRule::default()
    }
}
