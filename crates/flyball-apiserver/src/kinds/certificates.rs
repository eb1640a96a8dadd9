//! The kinds of the group `certificates.k8s.io`.

use crate::kinds::spec::{
    Create, Delay, DeletionStrategy, Dependents, Enforcement, Generation, KeptMetadata, ResourceSpec, Rules,
    SelectableField, StatusStrategy, SubresourceEndpoint, no_default, no_preparation, no_rules, no_status_preparation,
    no_status_rules, no_warnings,
};
use flyball_schema::names::NameRule;

/// CertificateSigningRequest.
pub static CERTIFICATE_SIGNING_REQUEST: ResourceSpec = ResourceSpec {
    group: "certificates.k8s.io",
    plural: "certificatesigningrequests",
    stored_as: None,
    names: NameRule::Subdomain,
    create: Create::Store,
    create_on_update: false,
    unconditional_update: true,
    generation: Generation::Untracked,
    default: no_default,
    prepare: no_preparation,
    validate: no_rules,
    rules: Rules::Partial,
    warnings: no_warnings,
    resets: &["spec", "status"],
    status: Some(StatusStrategy {
        keeps: KeptMetadata::Fields(&[]),
        resets: &["spec", "status.conditions"],
        prepare: no_status_preparation,
        validate: no_status_rules,
    }),
    subresources: &[
        ("approval", SubresourceEndpoint::Unsupported),
        ("status", SubresourceEndpoint::Status),
    ],
    allocation: None,
    deletion: DeletionStrategy {
        returns_object: false,
        dependents: Dependents::Deleted,
        delay: Delay::None,
        warning: None,
    },
    conversion: None,
    fields: &[SelectableField::text("spec.signerName", &["spec.signerName"])],
    deprecation: None,
    enforcement: Enforcement::Enforced,
};
