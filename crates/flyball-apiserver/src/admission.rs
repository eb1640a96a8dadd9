//! Admission: plugins that change or refuse a write, between its decoding and its commit.

pub(crate) mod attributes;
mod certificates;
mod chain;
mod escalation;
mod limit_ranger;
pub(crate) mod matching;
mod namespace_lifecycle;
mod pod_defaults;
mod pod_security;
pub(crate) mod policy;
mod priority;
mod resource_quota;
mod runtime_class;
mod service_account;
mod storage;
pub(crate) mod webhook;

pub(crate) use attributes::{Attributes, Operation, Options};
pub(crate) use chain::{admit, check_names, validate};
pub(crate) use resource_quota::forget_quotas;
