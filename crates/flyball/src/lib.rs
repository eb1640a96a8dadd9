//! The framework that an operator author imports.
//!
//! An [`Operator`] is a value made of [`Controller`]s. [`run`] makes a program of it; a test starts it on a cluster in its own
//! process. A reconcile is given an object and a [`Context`], and answers with an [`Action`] or an [`Error`].
//!
//! Queue, cache and runner are Flyball's; the client, `Api` and `CustomResource` are kube's, and are not hidden.

mod action;
mod admin;
mod args;
mod backoff;
mod cache;
mod client;
mod clock;
pub mod config;
mod connect;
mod context;
mod controlled;
mod controller;
mod crds;
mod error;
mod event;
mod finalizer;
mod inspect;
mod key;
mod kind;
mod leader;
mod log;
mod manifests;
pub mod metrics;
mod object;
mod operator;
mod predicate;
mod queue;
mod ready;
mod reconciler;
mod run;
mod runner;
mod running;
mod selection;
mod shared;
mod trace;
mod trigger;
mod watch;
mod why;
mod work;

pub use action::Action;
pub use admin::Addresses;
pub use backoff::Backoff;
pub use cache::{Cache, WatchState};
pub use config::Config;
pub use context::{Applied, ConditionStatus, Context, Relative};
pub use controlled::Controlled;
pub use controller::Controller;
pub use error::{Error, Outcome, Result};
pub use event::{Event, EventApi, EventFilter, EventPolicy, EventRecord, Events, Severity};
pub use inspect::{Failing, QueueState, Queued, Standing};
pub use key::Key;
pub use leader::{Election, Leadership};
pub use manifests::Manifests;
pub use metrics::Metrics;
pub use operator::Operator;
pub use predicate::Predicate;
pub use ready::Readiness;
pub use reconciler::Reconciler;
pub use run::run;
pub use running::Running;
pub use selection::Selection;
#[cfg(feature = "otel")]
pub use trace::Traces;
pub use trigger::Trigger;
pub use why::{Related, Why};

/// What [`Metrics::register`] takes.
pub use prometheus_client;
