//! Event.

use crate::kinds::spec::{
    Create, Delay, DeletionStrategy, Dependents, Enforcement, Generation, ResourceSpec, Rules, SelectableField,
    no_warnings,
};
use flyball_schema::builtin;
use flyball_schema::names::NameRule;

/// Event.
pub static EVENT: ResourceSpec = ResourceSpec {
    group: "",
    plural: "events",
    stored_as: None,
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
    conversion: None,
    fields: &[
        SelectableField::text("involvedObject.kind", &["involvedObject.kind"]),
        SelectableField::text("involvedObject.namespace", &["involvedObject.namespace"]),
        SelectableField::text("involvedObject.name", &["involvedObject.name"]),
        SelectableField::text("involvedObject.uid", &["involvedObject.uid"]),
        SelectableField::text("involvedObject.apiVersion", &["involvedObject.apiVersion"]),
        SelectableField::text("involvedObject.resourceVersion", &["involvedObject.resourceVersion"]),
        SelectableField::text("involvedObject.fieldPath", &["involvedObject.fieldPath"]),
        SelectableField::text("reason", &["reason"]),
        SelectableField::text("reportingComponent", &["reportingComponent"]),
        SelectableField::text("source", &["source.component", "reportingComponent"]),
        SelectableField::text("type", &["type"]),
    ],
    deprecation: None,
    enforcement: Enforcement::Enforced,
};
