//! An API server plus the controllers that make it a cluster, and a simulated node.
//!
//! [`Cluster::start`] brings it up inside the process, on a store in memory or on disk. Its controllers are Flyball controllers:
//! they know the API server only by a client.

mod claim;
mod cluster;
mod collector;
mod deployment;
mod event_ttl;
mod kinds;
mod kubelet;
mod namespace;
mod node;
mod owner;
mod pod;
mod refusal;
mod replica_set;
mod scheduler;
mod service_account;
mod template_hash;

pub use cluster::{Cluster, StartError};
