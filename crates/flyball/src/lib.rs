//! The framework that an operator author imports.
//!
//! An [`Operator`] is a value made of [`Controller`]s. [`run`] makes a program of it; a test starts it on a cluster in its own
//! process. A reconcile is given an object and a [`Context`], and answers with an [`Action`] or an [`Error`].
//!
//! Queue, cache and runner are Flyball's; the client, `Api` and `CustomResource` are kube's, and are not hidden.

mod cache;
mod clock;
mod context;
mod declare;
mod engine;
mod event;
mod leader;
pub mod metrics;
mod program;

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
pub use engine::queue::QueuePosition;
pub use engine::running::Running;
pub use engine::work::MapperFailure;
pub use event::{Event, EventApi, EventFilter, EventPolicy, EventRecord, Events, Severity};
pub use leader::{Connection, Election, Leadership};
pub use metrics::Metrics;
pub use program::admin::Addresses;
pub use program::config;
pub use program::config::Config;
pub use program::inspect::{Failing, QueueState, Queued};
pub use program::manifests::Manifests;
pub use program::run::{NoFlags, NoSection, Program, Settings, run};
#[cfg(feature = "otel")]
pub use program::trace::Traces;

/// What [`Metrics::register`] takes.
pub use prometheus_client;
