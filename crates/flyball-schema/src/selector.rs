//! Which objects a request means: label selectors and field selectors, parsed and matched.

mod field;
mod label;

pub use field::{FieldRequirement, FieldSelector};
pub use label::{LabelOperator, LabelRequirement, LabelSelector};

/// Why a selector cannot be understood, in Kubernetes' words.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct ParseSelectorError(pub String);
