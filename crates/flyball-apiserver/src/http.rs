//! Transport: ports, TLS and connections. It knows no Kubernetes beyond the service that it serves.

pub mod body;
pub(crate) mod connection;
mod head_limits;
pub mod request_body;
pub mod serve;
pub mod tls;
mod write_timeout;
