//! Admission: plugins that change or refuse a write, between its decoding and its commit.

mod attributes;
mod chain;
mod escalation;
mod limit_ranger;
mod namespace_lifecycle;
mod priority;
mod service_account;

pub(crate) use attributes::{Attributes, Operation, Options};
pub(crate) use chain::{admit, validate};
