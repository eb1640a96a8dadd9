//! The address of a Cache.

use super::{labelled, labels};
use crate::api::{Cache, Exposure};
use k8s_openapi::api::core::v1::{Service, ServicePort, ServiceSpec};

/// The port of memcached.
pub const PORT: i32 = 11211;

/// A Service of the type that the Cache asks for, if it does.
pub fn service(cache: &Cache) -> Option<Service> {
    let exposure = cache.spec.exposure;
    let port = ServicePort { name: Some("cache".into()), port: PORT, ..Default::default() };
    let spec = ServiceSpec {
        type_: Some(format!("{exposure:?}")),
        selector: Some(labels(cache)),
        ports: Some(vec![port]),
        ..Default::default()
    };
    let service = Service {
        metadata: labelled(cache),
        spec: Some(spec),
        ..Default::default()
    };
    (exposure != Exposure::None).then_some(service)
}
