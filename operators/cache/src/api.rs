//! The kinds `Cache` and `CacheUser`.

pub mod v1beta1;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Runs a memcached of some size.
#[derive(CustomResource, Clone, Debug, Default, Deserialize, Serialize, JsonSchema)]
#[kube(group = "caching.example.io", version = "v1", kind = "Cache", namespaced)]
#[kube(status = "CacheStatus", derive = "Default")]
#[kube(printcolumn(name = "Ready", type_ = "integer", json_path = ".status.readyReplicas"))]
#[serde(rename_all = "camelCase")]
pub struct CacheSpec {
    /// The version of memcached.
    #[schemars(length(min = 1))]
    pub version: String,
    /// The number of pods.
    #[serde(default = "one")]
    #[schemars(range(min = 0, max = 10))]
    pub replicas: i32,
    /// The memory of each pod, in MiB.
    #[serde(default = "small")]
    #[schemars(range(min = 16))]
    pub memory_mb: i32,
    /// How clients reach it.
    #[serde(default)]
    pub exposure: Exposure,
    /// A ConfigMap with `options`. A change of it replaces the pods.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub config: Option<String>,
    /// When to warm it up, in the syntax of cron.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub warm_up: Option<String>,
    /// Whether Prometheus scrapes it, where the Prometheus Operator is installed.
    #[serde(default)]
    pub monitored: bool,
}

fn one() -> i32 {
    1
}

fn small() -> i32 {
    128
}

/// How clients reach a Cache.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
pub enum Exposure {
    /// Without a Service.
    None,
    /// From inside the cluster.
    #[default]
    ClusterIP,
    /// From outside.
    LoadBalancer,
}

/// The state of a Cache.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CacheStatus {
    /// The generation of the spec that this status is about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// The number of ready pods.
    #[serde(default)]
    pub ready_replicas: i32,
    /// `Ready`, which the framework keeps, and `Exposed`.
    #[serde(default)]
    pub conditions: Vec<Condition>,
}

/// Gives a client the address of a Cache.
#[derive(CustomResource, Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[kube(group = "caching.example.io", version = "v1", kind = "CacheUser", namespaced)]
#[kube(status = "CacheUserStatus")]
pub struct CacheUserSpec {
    /// The name of the Cache, in the same namespace.
    #[schemars(length(min = 1))]
    pub cache: String,
}

/// The state of a CacheUser.
#[derive(Clone, Debug, Default, Deserialize, Serialize, JsonSchema)]
pub struct CacheUserStatus {
    /// `Ready`, which the framework keeps.
    #[serde(default)]
    pub conditions: Vec<Condition>,
}
