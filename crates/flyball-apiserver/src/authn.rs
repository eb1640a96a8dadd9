//! Who sends a request: users, the certificates that prove them, and the kubeconfig that clients take both from.

pub mod identity;
pub mod kubeconfig;
pub mod user;
