//! The kinds of the group `autoscaling`.

use crate::kinds::spec::{
    Conversion, Create, Delay, DeletionStrategy, Dependents, Enforcement, Generation, KeptMetadata, ResourceSpec,
    Rules, StatusStrategy, SubresourceEndpoint, no_status_preparation, no_warnings,
};
use flyball_schema::builtin;
use flyball_schema::names::NameRule;

/// HorizontalPodAutoscaler.
pub static HORIZONTAL_POD_AUTOSCALER: ResourceSpec = ResourceSpec {
    group: "autoscaling",
    plural: "horizontalpodautoscalers",
    stored_as: None,
    names: NameRule::Subdomain,
    create: Create::Store,
    create_on_update: false,
    unconditional_update: true,
    generation: Generation::Untracked,
    default: builtin::autoscaler::default,
    prepare: builtin::autoscaler::prepare,
    validate: builtin::autoscaler::validate,
    rules: Rules::Complete,
    warnings: no_warnings,
    resets: &["status"],
    status: Some(StatusStrategy {
        keeps: KeptMetadata::Fields(&[]),
        resets: &["spec"],
        prepare: no_status_preparation,
        validate: builtin::autoscaler::validate_status,
    }),
    subresources: &[("status", SubresourceEndpoint::Status)],
    allocation: None,
    deletion: DeletionStrategy {
        returns_object: false,
        dependents: Dependents::Deleted,
        delay: Delay::None,
        warning: None,
    },
    conversion: Some(Conversion {
        version: "v1",
        from_storage: builtin::autoscaler::to_v1,
        to_storage: builtin::autoscaler::to_v2,
    }),
    fields: &[],
    deprecation: None,
    enforcement: Enforcement::Enforced,
};
