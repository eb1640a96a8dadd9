//! The framework that an operator author imports.
//!
//! An [`Operator`] is a value made of [`Controller`]s. [`run`] makes a program of it; a test starts it on a cluster in its own
//! process. A reconcile is given an object and a [`Context`], and answers with an [`Action`] or an [`Error`].
//!
//! The feature `program`, on by default, is what makes a program of an operator: arguments, configuration, logs, ports and
//! manifests. An operator that is started by [`Operator::start`] inside another program can leave it out.
//!
//! Queue, cache and runner are Flyball's; the client, `Api` and `CustomResource` are kube's, and are not hidden.

#![cfg_attr(
    not(feature = "program"),
    allow(dead_code, reason = "ports, probes and manifests use it")
)]

mod cache;
mod clock;
mod context;
mod declare;
mod engine;
mod event;
mod leader;
pub mod metrics;
#[cfg(feature = "program")]
mod program;
pub mod webhook;

pub use cache::{Cache, WatchState};
pub use context::ready::Readiness;
pub use context::{Applied, Children, ConditionStatus, Conditions, Context, Diff, Difference, Objects, RelatedObject};
pub use declare::action::Action;
pub use declare::backoff::Backoff;
pub use declare::controller::Controller;
pub use declare::dynamic::DynamicKind;
pub use declare::error::{Error, Outcome, Result};
pub use declare::key::Key;
pub use declare::mapped::Mapped;
pub use declare::operator::Operator;
pub use declare::predicate::Predicate;
pub use declare::reconciler::Reconciler;
pub use declare::selection::Selection;
pub use declare::task::TaskContext;
pub use declare::timer::Timer;
pub use declare::trigger::Trigger;
pub use declare::why::{Related, Why};
pub use engine::dynamic_controller::DynamicController;
pub use engine::inspect::{Failing, QueueState, Queued};
pub use engine::queue::QueuePosition;
pub use engine::running::Running;
pub use engine::storage::{StorageMigration, migrate_storage};
pub use engine::work::MapperFailure;
pub use event::{Event, EventApi, EventFilter, EventPolicy, EventRecord, Events, Severity};
pub use leader::{Connection, Election, Leadership};
pub use metrics::Metrics;
#[cfg(feature = "program")]
pub use program::admin::Addresses;
#[cfg(feature = "program")]
pub use program::config;
#[cfg(feature = "program")]
pub use program::config::Config;
#[cfg(feature = "program")]
pub use program::manifests::Manifests;
#[cfg(feature = "program")]
pub use program::run::{NoFlags, NoSection, Program, Settings, run};
#[cfg(feature = "otel")]
pub use program::traces::Traces;
pub use webhook::{CelRule, Conversion, Defaulting, Review, Validation, Violations};

/// What [`Metrics::register`] takes.
pub use prometheus_client;
