//! The kinds of the group `batch`.

use crate::kinds::spec::{
    Create, Delay, DeletionStrategy, Dependents, Enforcement, Generation, KeptMetadata, ResourceSpec, Rules,
    SelectableField, StatusStrategy, SubresourceEndpoint, no_preparation, no_status_preparation, no_status_rules,
};
use flyball_schema::builtin;
use flyball_schema::builtin::warning;
use flyball_schema::names::NameRule;

/// CronJob.
pub static CRON_JOB: ResourceSpec = ResourceSpec {
    group: "batch",
    plural: "cronjobs",
    stored_as: None,
    names: NameRule::Subdomain,
    create: Create::Store,
    create_on_update: false,
    unconditional_update: true,
    generation: Generation::Spec,
    default: builtin::batch::default_cron_job,
    prepare: no_preparation,
    validate: builtin::batch::validate_cron_job,
    rules: Rules::Complete,
    warnings: warning::cron_job,
    resets: &["status"],
    status: Some(StatusStrategy {
        keeps: KeptMetadata::Fields(&[]),
        resets: &["spec"],
        prepare: no_status_preparation,
        validate: no_status_rules,
    }),
    subresources: &[("status", SubresourceEndpoint::Status)],
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

/// Job.
pub static JOB: ResourceSpec = ResourceSpec {
    group: "batch",
    plural: "jobs",
    stored_as: None,
    names: NameRule::Subdomain,
    create: Create::Store,
    create_on_update: false,
    unconditional_update: true,
    generation: Generation::Spec,
    default: builtin::batch::default_job,
    prepare: builtin::batch::prepare_job,
    validate: builtin::batch::validate_job,
    rules: Rules::Complete,
    warnings: warning::template,
    resets: &["status"],
    status: Some(StatusStrategy {
        keeps: KeptMetadata::Fields(&[]),
        resets: &["spec"],
        prepare: no_status_preparation,
        validate: builtin::batch::validate_job_status,
    }),
    subresources: &[("status", SubresourceEndpoint::Status)],
    allocation: None,
    deletion: DeletionStrategy {
        returns_object: false,
        dependents: Dependents::Orphaned,
        delay: Delay::None,
        warning: Some(
            "child pods are preserved by default when jobs are deleted; set propagationPolicy=Background to remove them or set propagationPolicy=Orphan to suppress this warning",
        ),
    },
    conversion: None,
    fields: &[SelectableField::number("status.successful", &["status.succeeded"])],
    deprecation: None,
    enforcement: Enforcement::Enforced,
};
