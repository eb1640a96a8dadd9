//! The kind `Application`: what its users write, and what they are told.
#![allow(clippy::duplicated_attributes, reason = "columns of one type are no duplicates")]

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Runs an image as so many replicas behind one address.
#[derive(CustomResource, Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[kube(
    group = "cloudnative.elide.dev",
    version = "v1",
    kind = "Application",
    plural = "applications"
)]
#[kube(namespaced, status = "ApplicationStatus", shortname = "app")]
#[kube(scale(
    spec_replicas_path = ".spec.replicas",
    status_replicas_path = ".status.replicas",
    label_selector_path = ".status.selector"
))]
#[kube(printcolumn(name = "Phase", type_ = "string", json_path = ".status.phase"))]
#[kube(printcolumn(name = "Ready", type_ = "integer", json_path = ".status.readyReplicas"))]
#[kube(printcolumn(name = "Replicas", type_ = "integer", json_path = ".spec.replicas"))]
#[kube(printcolumn(name = "Image", type_ = "string", json_path = ".spec.image", priority = 1))]
#[kube(printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp"))]
#[serde(rename_all = "camelCase")]
pub struct ApplicationSpec {
    /// How many pods run, from 0 to 100.
    #[serde(default = "one")]
    #[schemars(range(min = 0, max = 100))]
    pub replicas: i32,
    /// The container image.
    #[schemars(length(min = 1))]
    pub image: String,
    /// How pods are replaced when the image or the configuration changes.
    #[serde(default)]
    pub strategy: Strategy,
    /// Environment variables for the container; a change rolls the pods.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub config: BTreeMap<String, String>,
}

fn one() -> i32 {
    1
}

/// How pods are replaced.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
pub enum Strategy {
    /// New pods become ready before old ones go.
    #[default]
    RollingUpdate,
    /// All old pods go before a new one comes.
    Recreate,
}

/// What is known of an Application.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ApplicationStatus {
    /// The generation that this status speaks of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// How many pods there are.
    #[serde(default)]
    pub replicas: i32,
    /// How many of them are ready.
    #[serde(default)]
    pub ready_replicas: i32,
    /// The selector of its pods, for `kubectl scale` and autoscalers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub selector: Option<String>,
    /// Where it is in its life.
    #[serde(default)]
    pub phase: Phase,
    /// `Ready` and `Progressing`.
    #[serde(default)]
    pub conditions: Vec<Condition>,
}

/// Where an Application is in its life.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
pub enum Phase {
    /// Not every replica is ready yet.
    #[default]
    Pending,
    /// Every replica runs what was asked for.
    Running,
    /// The rollout does not get on.
    Failed,
}
