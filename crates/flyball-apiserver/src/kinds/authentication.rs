//! The kinds of the group `authentication.k8s.io`.

use crate::kinds::spec::{
    Create, Delay, DeletionStrategy, Dependents, Enforcement, Generation, ResourceSpec, Rules, no_default,
    no_preparation, no_rules, no_warnings,
};
use flyball_schema::names::NameRule;

/// SelfSubjectReview.
pub static SELF_SUBJECT_REVIEW: ResourceSpec = ResourceSpec {
    group: "authentication.k8s.io",
    plural: "selfsubjectreviews",
    stored_as: None,
    names: NameRule::Subdomain,
    create: Create::Review,
    create_on_update: false,
    unconditional_update: true,
    generation: Generation::Untracked,
    default: no_default,
    prepare: no_preparation,
    validate: no_rules,
    rules: Rules::Partial,
    warnings: no_warnings,
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
    fields: &[],
    deprecation: None,
    enforcement: Enforcement::Enforced,
};

/// TokenReview.
pub static TOKEN_REVIEW: ResourceSpec = ResourceSpec {
    group: "authentication.k8s.io",
    plural: "tokenreviews",
    stored_as: None,
    names: NameRule::Subdomain,
    create: Create::Review,
    create_on_update: false,
    unconditional_update: true,
    generation: Generation::Untracked,
    default: no_default,
    prepare: no_preparation,
    validate: no_rules,
    rules: Rules::Partial,
    warnings: no_warnings,
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
    fields: &[],
    deprecation: None,
    enforcement: Enforcement::Enforced,
};
