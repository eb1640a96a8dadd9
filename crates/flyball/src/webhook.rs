//! Webhooks of an operator: admission over typed objects, conversion between versions, and the objects that register them.
//! All of it is values and pure services; sockets and certificates are in `program/webhook`.

pub(crate) mod admission;
pub(crate) mod conversion;
pub(crate) mod endpoint;
mod patch;
pub(crate) mod policy;
pub(crate) mod registration;
mod review;
mod rule;
pub(crate) mod service;
mod violation;

pub use admission::{Defaulting, Review, Validation};
pub use conversion::Conversion;
pub use kube::core::admission::{AdmissionRequest, AdmissionResponse, Operation};
pub use policy::CelRule;
pub use rule::{FailurePolicy, MatchPolicy, Scope, SideEffects, WebhookRule};
pub use service::WebhookService;
pub use violation::{Violation, Violations};
