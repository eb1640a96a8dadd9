//! Authentication: who sends a request, and the certificates by which that is known.

pub mod identity;
pub mod kubeconfig;
