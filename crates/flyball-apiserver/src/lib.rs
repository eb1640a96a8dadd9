//! The Kubernetes API over a store, as a tower service.

pub mod status;
