//! The first version of `Cache`, and how it is converted.

use crate::api;
use flyball::Result;
use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Runs a memcached of some size.
#[derive(CustomResource, Clone, Debug, Default, Deserialize, Serialize, JsonSchema)]
#[kube(group = "caching.example.io", version = "v1beta1", kind = "Cache", namespaced)]
#[kube(status = "api::CacheStatus", derive = "Default")]
pub struct CacheSpec {
    /// The version of memcached.
    #[schemars(length(min = 1))]
    pub version: String,
    /// The memory of each pod, in GiB.
    #[serde(default)]
    pub size: i32,
}

/// To v1, which counts memory in MiB.
pub fn up(cache: Cache) -> Result<api::Cache> {
    let Cache { metadata, spec, status } = cache;
    let memory_mb = spec.size.saturating_mul(1024).max(16);
    let spec = api::CacheSpec {
        version: spec.version,
        memory_mb,
        replicas: 1,
        ..Default::default()
    };
    Ok(api::Cache { metadata, spec, status })
}

/// From v1. What has no field here is kept by the framework.
pub fn down(cache: api::Cache) -> Result<Cache> {
    let api::Cache { metadata, spec, status } = cache;
    let spec = CacheSpec { version: spec.version, size: spec.memory_mb / 1024 };
    Ok(Cache { metadata, spec, status })
}
