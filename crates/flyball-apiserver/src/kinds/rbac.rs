//! The kinds of the group `rbac.authorization.k8s.io`.

use crate::kinds::spec::{
    Create, Delay, DeletionStrategy, Dependents, Enforcement, Generation, ResourceSpec, Rules, no_default,
    no_preparation, no_warnings,
};
use flyball_schema::builtin;
use flyball_schema::names::NameRule;

/// ClusterRoleBinding.
pub static CLUSTER_ROLE_BINDING: ResourceSpec = ResourceSpec {
    group: "rbac.authorization.k8s.io",
    plural: "clusterrolebindings",
    stored_as: None,
    names: NameRule::PathSegment,
    create: Create::Store,
    create_on_update: true,
    unconditional_update: true,
    generation: Generation::Untracked,
    default: builtin::role::default_binding,
    prepare: no_preparation,
    validate: builtin::role::validate_cluster_binding,
    rules: Rules::Complete,
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

/// ClusterRole.
pub static CLUSTER_ROLE: ResourceSpec = ResourceSpec {
    group: "rbac.authorization.k8s.io",
    plural: "clusterroles",
    stored_as: None,
    names: NameRule::PathSegment,
    create: Create::Store,
    create_on_update: true,
    unconditional_update: true,
    generation: Generation::Untracked,
    default: no_default,
    prepare: builtin::role::prepare,
    validate: builtin::role::validate_cluster_role,
    rules: Rules::Complete,
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

/// RoleBinding.
pub static ROLE_BINDING: ResourceSpec = ResourceSpec {
    group: "rbac.authorization.k8s.io",
    plural: "rolebindings",
    stored_as: None,
    names: NameRule::PathSegment,
    create: Create::Store,
    create_on_update: true,
    unconditional_update: true,
    generation: Generation::Untracked,
    default: builtin::role::default_binding,
    prepare: no_preparation,
    validate: builtin::role::validate_binding,
    rules: Rules::Complete,
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

/// Role.
pub static ROLE: ResourceSpec = ResourceSpec {
    group: "rbac.authorization.k8s.io",
    plural: "roles",
    stored_as: None,
    names: NameRule::PathSegment,
    create: Create::Store,
    create_on_update: true,
    unconditional_update: true,
    generation: Generation::Untracked,
    default: no_default,
    prepare: builtin::role::prepare,
    validate: builtin::role::validate_role,
    rules: Rules::Complete,
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
