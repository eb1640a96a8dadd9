//! The options of a delete, from its body or, if there is none, from the query.

use super::{check_dry_run, integer, refuse};
use crate::call::Call;
use crate::request::Query;
use crate::status::{Result, Status};
use flyball_schema::violation::Violation;
use serde::Deserialize;

/// How to delete.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct DeleteOptions {
    /// After how many seconds a pod goes.
    pub grace_period_seconds: Option<i64>,
    /// What the object has to be for the delete to go ahead.
    pub preconditions: Option<Preconditions>,
    orphan_dependents: Option<bool>,
    propagation_policy: Option<String>,
    dry_run: Vec<String>,
    #[serde(rename = "ignoreStoreReadErrorWithClusterBreakingPotential")]
    ignore_store_read_error: Option<bool>,
    kind: Option<String>,
    api_version: Option<String>,
}

/// What an object has to be for a delete to go ahead.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Preconditions {
    /// Its uid.
    pub uid: Option<String>,
    /// Its resource version.
    pub resource_version: Option<String>,
}

/// What becomes of an object's dependents.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Propagation {
    /// They stay, without their owner.
    Orphan,
    /// They go after it.
    Background,
    /// They go before it.
    Foreground,
}

impl DeleteOptions {
    /// Reads the options: from the body if there is one, else from the query.
    pub fn read(call: &Call) -> Result<DeleteOptions> {
        let options = match call.body.is_empty() {
            true => DeleteOptions::of_query(&call.query)?,
            false => DeleteOptions::of_body(&call.body)?,
        };
        refuse("DeleteOptions", options.check())?;
        Ok(options)
    }

    fn of_body(body: &[u8]) -> Result<DeleteOptions> {
        let options: DeleteOptions =
            serde_json::from_slice(body).map_err(|error| Status::bad_request(error.to_string()))?;
        if options.kind.as_deref().is_some_and(|kind| kind != "DeleteOptions") {
            return Err(Status::bad_request("decoded object cannot be converted to DeleteOptions"));
        }
        Ok(options)
    }

    fn of_query(query: &Query) -> Result<DeleteOptions> {
        Ok(DeleteOptions {
            grace_period_seconds: integer(query, "gracePeriodSeconds")?,
            orphan_dependents: query.all("orphanDependents").next().map(|_| query.flag("orphanDependents")),
            propagation_policy: query.get("propagationPolicy").map(str::to_owned),
            dry_run: query.all("dryRun").map(str::to_owned).collect(),
            ..DeleteOptions::default()
        })
    }

    // apimachinery/pkg/apis/meta/v1/validation/validation.go, ValidateDeleteOptions
    fn check(&self) -> Vec<Violation> {
        let mut violations = Vec::new();
        if let Some(policy) = self.propagation_policy.as_deref() {
            if self.orphan_dependents.is_some() {
                let why = "orphanDependents and deletionPropagation cannot be both set";
                violations.push(Violation::invalid("propagationPolicy", policy, why));
            }
            if self.propagation().is_none() {
                let supported = ["Foreground", "Background", "Orphan", "nil"];
                violations.push(Violation::not_supported("propagationPolicy", policy, &supported));
            }
        }
        violations.extend(check_dry_run(&self.dry_run));
        violations
    }

    /// Everything but the deletion itself.
    pub fn dry_run(&self) -> bool {
        !self.dry_run.is_empty()
    }

    /// What is to become of the dependents; none if the kind's own policy is to decide.
    pub fn propagation(&self) -> Option<Propagation> {
        match (self.propagation_policy.as_deref(), self.orphan_dependents) {
            (Some("Orphan"), _) | (None, Some(true)) => Some(Propagation::Orphan),
            (Some("Background"), _) | (None, Some(false)) => Some(Propagation::Background),
            (Some("Foreground"), _) => Some(Propagation::Foreground),
            _ => None,
        }
    }

    /// Whether `orphanDependents=false` was said, which makes a deletion that takes its time a 202.
    pub fn says_accepted(&self) -> bool {
        self.orphan_dependents == Some(false)
    }
}
