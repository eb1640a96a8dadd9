//! The kinds of the group `events.k8s.io`.

use crate::kinds::spec::{
    Conversion, Create, Delay, DeletionStrategy, Dependents, Enforcement, Generation, ResourceSpec, Rules,
    SelectableField, no_warnings,
};
use flyball_schema::builtin;
use flyball_schema::names::NameRule;

/// Event.
pub static EVENT: ResourceSpec = ResourceSpec {
    group: "events.k8s.io",
    plural: "events",
    stored_as: Some(("", "events")),
    names: NameRule::Subdomain,
    create: Create::Store,
    create_on_update: true,
    unconditional_update: true,
    generation: Generation::Untracked,
    default: builtin::event::default,
    prepare: builtin::event::prepare,
    validate: builtin::event::validate,
    rules: Rules::Partial,
    warnings: no_warnings,
    resets: &[],
    status: None,
    subresources: &[],
    allocation: None,
    deletion: DeletionStrategy {
        returns_object: false,
        dependents: Dependents::Unsupported,
        delay: Delay::None,
        warning: None,
    },
    conversion: Some(Conversion {
        version: "v1",
        from_storage: builtin::event::to_new,
        to_storage: builtin::event::to_core,
    }),
    fields: &[
        SelectableField::text("regarding.kind", &["regarding.kind"]),
        SelectableField::text("regarding.namespace", &["regarding.namespace"]),
        SelectableField::text("regarding.name", &["regarding.name"]),
        SelectableField::text("regarding.uid", &["regarding.uid"]),
        SelectableField::text("regarding.apiVersion", &["regarding.apiVersion"]),
        SelectableField::text("regarding.resourceVersion", &["regarding.resourceVersion"]),
        SelectableField::text("regarding.fieldPath", &["regarding.fieldPath"]),
        SelectableField::text("reason", &["reason"]),
        SelectableField::text("reportingController", &["reportingController"]),
        SelectableField::text("type", &["type"]),
    ],
    deprecation: None,
    enforcement: Enforcement::Enforced,
};
