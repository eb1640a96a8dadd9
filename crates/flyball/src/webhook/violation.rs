//! What is wrong with an object, field by field, as Kubernetes reports it.

use crate::{Error, Result};
use serde_json::{Value, json};
use std::fmt;

/// One field that is wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// The path of the field, as in `spec.ports[0].name`.
    pub field: String,
    /// Why, in Kubernetes' words: `FieldValueInvalid`, `FieldValueRequired`, ….
    pub reason: &'static str,
    /// What is wrong, without the field.
    pub message: String,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.field, self.message)
    }
}

/// Everything that is wrong with an object. A [`Validation`](crate::Validation) that fails with it is a refusal, and the API
/// server reports each field as a cause.
///
/// ```
/// use flyball::{Result, webhook::Violations};
///
/// fn check(replicas: i32, mode: &str) -> Result<()> {
///     let mut violations = Violations::default();
///     if replicas > 9 {
///         violations.invalid("spec.replicas", replicas, "must be at most 9");
///     }
///     if !["fast", "safe"].contains(&mode) {
///         violations.not_supported("spec.mode", mode, ["fast", "safe"]);
///     }
///     violations.check()
/// }
///
/// assert_eq!(
///     check(10, "slow").unwrap_err().to_string(),
///     "spec.replicas: Invalid value: 10: must be at most 9, \
///      spec.mode: Unsupported value: \"slow\": supported values: \"fast\", \"safe\""
/// );
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Violations {
    violations: Vec<Violation>,
}

impl Violations {
    /// The value of a field is not acceptable.
    pub fn invalid(&mut self, field: impl Into<String>, value: impl Into<Value>, detail: impl fmt::Display) {
        let message = format!("Invalid value: {}: {detail}", value.into());
        self.add(field, "FieldValueInvalid", message);
    }

    /// A field must be set.
    pub fn required(&mut self, field: impl Into<String>, detail: impl fmt::Display) {
        self.add(field, "FieldValueRequired", format!("Required value: {detail}"));
    }

    /// A field must not be set, or not be changed.
    pub fn forbidden(&mut self, field: impl Into<String>, detail: impl fmt::Display) {
        self.add(field, "FieldValueForbidden", format!("Forbidden: {detail}"));
    }

    /// The value of a field must be unique and is not.
    pub fn duplicate(&mut self, field: impl Into<String>, value: impl Into<Value>) {
        self.add(field, "FieldValueDuplicate", format!("Duplicate value: {}", value.into()));
    }

    /// The value of a field is none of those that are known.
    pub fn not_supported<'a>(
        &mut self,
        field: impl Into<String>,
        value: impl Into<Value>,
        supported: impl IntoIterator<Item = &'a str>,
    ) {
        let supported: Vec<_> = supported.into_iter().map(|value| format!("{value:?}")).collect();
        let message = format!("Unsupported value: {}: supported values: {}", value.into(), supported.join(", "));
        self.add(field, "FieldValueNotSupported", message);
    }

    fn add(&mut self, field: impl Into<String>, reason: &'static str, message: String) {
        self.violations.push(Violation { field: field.into(), reason, message });
    }

    /// The violations so far.
    pub fn iter(&self) -> impl Iterator<Item = &Violation> {
        self.violations.iter()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.violations.is_empty()
    }

    /// Fails if there are any.
    pub fn check(self) -> Result<()> {
        match self.violations.is_empty() {
            true => Ok(()),
            false => Err(Error::permanent(self)),
        }
    }

    /// As `details.causes` of a Status.
    pub(crate) fn causes(&self) -> Value {
        let cause = |violation: &Violation| json!({ "reason": violation.reason, "message": violation.message, "field": violation.field });
        self.violations.iter().map(cause).collect()
    }
}

impl fmt::Display for Violations {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (count, violation) in self.violations.iter().enumerate() {
            let between = if count == 0 { "" } else { ", " };
            write!(f, "{between}{violation}")?;
        }
        Ok(())
    }
}

impl std::error::Error for Violations {}
