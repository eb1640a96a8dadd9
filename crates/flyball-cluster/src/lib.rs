//! An API server plus the controllers that make it a cluster, and simulated nodes.
//!
//! [`Cluster::start`] brings it up inside the process, on a store in memory or on disk. Its controllers are Flyball controllers:
//! they know the API server only by a client.

mod autoscaler;
mod behaviour;
mod builder;
mod claim;
mod cluster;
mod collector;
mod controllers;
mod cron_job;
mod daemon_set;
mod deployment;
mod disruption;
mod endpoints;
mod event_ttl;
mod history;
mod job;
mod kinds;
mod kubelet;
mod lookup;
mod namespace;
mod node;
mod node_lifecycle;
mod owner;
mod pod;
mod pod_gc;
mod policy_status;
mod refusal;
mod replica_set;
mod replication_controller;
mod resource_quota;
mod resources;
mod role_aggregation;
mod root_ca;
mod scheduler;
mod service_account;
mod stateful_set;
mod taint_eviction;
mod template;
mod template_hash;
mod volume;

pub use behaviour::{ANNOTATION as BEHAVIOUR_ANNOTATION, Behaviour, BehaviourError, Exit, Rule, Usage, Window};
pub use builder::Builder;
pub use cluster::{Cluster, StartError};
pub use node::SimulatedNode;
