//! The Kubernetes API over a store, as a tower service: every built-in kind, and every custom resource
//! from the moment its definition is written. It opens no port by itself; `serve` does that.

pub(crate) mod allocate;
pub mod answer;
pub mod body;
pub(crate) mod bootstrap;
pub(crate) mod call;
pub mod clock;
pub(crate) mod convert;
pub(crate) mod definition;
pub mod discovery;
pub mod document;
pub(crate) mod duration;
pub(crate) mod frames;
pub mod gzip;
pub(crate) mod handle;
pub mod health;
pub mod identity;
pub mod kubeconfig;
pub mod negotiate;
pub mod nonresource;
pub mod object;
pub mod openapi;
pub(crate) mod options;
pub mod output;
pub(crate) mod present;
pub mod registry;
pub mod request;
pub(crate) mod resolve;
pub(crate) mod respond;
pub mod serve;
pub mod server;
pub mod status;
pub mod strategy;
pub mod tls;
pub mod version;
pub mod wire;
mod yaml;

pub use body::Body;
pub use server::ApiServer;
pub use status::Status;
