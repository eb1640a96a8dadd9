//! The Kubernetes API over a store, as a tower service: every built-in kind, and every custom resource
//! from the moment its definition is written. It opens no port by itself; `http::serve` does that.

pub(crate) mod admission;
pub mod audit;
pub mod authn;
pub(crate) mod authz;
pub(crate) mod bootstrap;
pub mod client;
pub mod clock;
pub(crate) mod crd;
pub mod discovery;
pub(crate) mod dispatch;
pub mod encoding;
pub(crate) mod endpoints;
pub mod filters;
pub(crate) mod flow_control;
pub mod health;
pub mod http;
pub(crate) mod internal;
pub mod kinds;
pub mod nonresource;
pub mod openapi;
pub mod options;
pub mod registry;
pub mod request;
pub mod response;
pub(crate) mod routing;
pub mod server;
pub mod status;
pub(crate) mod store_index;
pub(crate) mod subresources;
pub mod version;
pub(crate) mod watch_cache;
pub mod webhook;
pub(crate) mod writes;

pub use crate::http::body::Body;
pub use authn::user::User;
pub use options::ServerOptions;
pub use server::ApiServer;
pub use status::Status;
