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
