//! Secret.

use crate::kinds::spec::{
    Create, Delay, DeletionStrategy, Dependents, Enforcement, Generation, ResourceSpec, Rules, SelectableField,
    no_preparation,
};
use flyball_schema::builtin;
use flyball_schema::builtin::warning;
use flyball_schema::names::NameRule;

/// Secret.
pub static SECRET: ResourceSpec = ResourceSpec {
    group: "",
    plural: "secrets",
    stored_as: None,
    names: NameRule::Subdomain,
    create: Create::Store,
    create_on_update: false,
    unconditional_update: true,
    generation: Generation::Untracked,
    default: builtin::secret::default,
    prepare: no_preparation,
    validate: builtin::secret::validate,
    rules: Rules::Complete,
    warnings: warning::secret,
    resets: &[],
    status: None,
    subresources: &[],
    allocation: None,
    deletion: DeletionStrategy {
        returns_object: false,
        dependents: Dependents::Deleted,
        delay: Delay::None,
        warning: None,
    },
    conversion: None,
    fields: &[SelectableField::text("type", &["type"])],
    deprecation: None,
    enforcement: Enforcement::Enforced,
};
