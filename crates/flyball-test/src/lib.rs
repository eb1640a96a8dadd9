//! What a test imports: [`Cluster`], a whole Kubernetes cluster inside the test's process.
//!
//! It starts in milliseconds and opens no socket. Under `#[tokio::test(start_paused = true)]` its time is virtual: a grace
//! period of five minutes passes as soon as nothing else is left to do.

mod answer;
mod cluster;
mod conversion;
mod events;
mod faults;
mod generate;
mod journal;
mod log;
mod objects;
mod report;
mod rights;
mod rules;
mod wait;
mod webhooks;

pub use answer::Answer;
pub use cluster::Cluster;
pub use conversion::check_conversion;
pub use faults::Faults;
pub use flyball_cluster::{Behaviour, Builder, Exit, Rule, SimulatedNode, Usage, Window};
pub use objects::Objects;
pub use rules::{RefusedDefinition, check_rules};
