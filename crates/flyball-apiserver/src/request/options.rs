//! The options of requests, from the query or the body of a DELETE: `CreateOptions`, `UpdateOptions`, `PatchOptions`,
//! `DeleteOptions` and `ListOptions`, parsed and validated as apimachinery does.

pub mod delete;
pub mod list;
pub mod write;

use crate::request::info::Query;
use crate::status::{Cause, Result, Status};
use flyball_schema::violation::Violation;

pub use delete::{DeleteOptions, Propagation};
pub use list::{ListOptions, ResourceVersionMatch};
pub use write::{FieldValidation, PatchType, WriteOptions};

fn integer(query: &Query, key: &str) -> Result<Option<i64>> {
    let Some(text) = query.all(key).next() else {
        return Ok(None);
    };
    match text.parse() {
        Ok(number) => Ok(Some(number)),
        Err(error) => Err(Status::bad_request(parse_error("ParseInt", text, &error))),
    }
}

/// The error of Go's `strconv` for a number that does not parse.
pub(crate) fn parse_error(function: &str, text: &str, error: &std::num::ParseIntError) -> String {
    let why = match error.kind() {
        std::num::IntErrorKind::PosOverflow | std::num::IntErrorKind::NegOverflow => "value out of range",
        _ => "invalid syntax",
    };
    format!("strconv.{function}: parsing {text:?}: {why}")
}

fn refuse(kind: &str, violations: Vec<Violation>) -> Result<()> {
    if violations.is_empty() {
        return Ok(());
    }
    Err(Status::invalid("meta.k8s.io", kind, "", causes(violations)))
}

/// Violations as the causes of a Status.
pub(crate) fn causes(violations: Vec<Violation>) -> Vec<Cause> {
    let cause = |violation: Violation| Cause {
        reason: violation.reason.to_string(),
        message: violation.message,
        field: violation.path,
    };
    violations.into_iter().map(cause).collect()
}

fn check_dry_run(values: &[String]) -> Vec<Violation> {
    if values.iter().all(|value| value == "All") {
        return Vec::new();
    }
    vec![Violation::not_supported("dryRun", values.to_vec(), &["All"])]
}
