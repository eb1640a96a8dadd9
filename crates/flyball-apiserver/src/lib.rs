//! The Kubernetes API over a store, as a tower service: every built-in kind, and every custom resource
//! from the moment its definition is written. It opens no port by itself; `serve` does that.

pub mod answer;
pub mod body;
pub mod clock;
pub mod discovery;
pub mod document;
pub mod gzip;
pub mod health;
pub mod negotiate;
pub mod nonresource;
pub mod openapi;
pub mod output;
pub mod registry;
pub mod request;
pub mod status;
pub mod table;
pub mod version;
pub mod yaml;

pub use body::Body;
pub use status::Status;
