//! Checks the schema and the validation rules of a definition without a cluster.

use flyball_schema::builtin::definition;
use flyball_schema::violation::Violation;
use serde::Serialize;
use std::fmt;

/// Why an API server would refuse a CustomResourceDefinition.
#[derive(Debug)]
pub struct RefusedDefinition {
    /// Each field that is wrong, with its path.
    pub violations: Vec<Violation>,
}

impl fmt::Display for RefusedDefinition {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("an API server refuses this definition")?;
        self.violations.iter().try_for_each(|violation| write!(formatter, "\n{violation}"))
    }
}

impl std::error::Error for RefusedDefinition {}

/// Checks a CustomResourceDefinition as an API server does when it is installed: its schema, and the syntax, types and estimated
/// cost of its validation rules in CEL.
///
/// ```
/// use kube::{CustomResource, CustomResourceExt, KubeSchema};
/// use serde::{Deserialize, Serialize};
///
/// #[derive(CustomResource, Clone, Debug, Deserialize, Serialize, KubeSchema)]
/// #[kube(group = "example.dev", version = "v1", kind = "Disk", namespaced)]
/// #[x_kube(validation = ("self.size <= self.limit", "size exceeds limit"))]
/// struct DiskSpec {
///     size: i64,
///     limit: i64,
/// }
///
/// flyball_test::check_rules(&Disk::crd()).unwrap();
/// ```
///
/// # Errors
/// Everything that an API server would refuse the definition for.
pub fn check_rules(definition: &impl Serialize) -> Result<(), RefusedDefinition> {
    let mut definition = match serde_json::to_value(definition) {
        Ok(definition) => definition,
        Err(error) => {
            let violations = vec![Violation::internal("<nil>", &error.to_string())];
            return Err(RefusedDefinition { violations });
        }
    };
    definition::default(&mut definition);
    definition::prepare(&mut definition, None);
    let violations = definition::validate(&definition, None);
    if violations.is_empty() {
        Ok(())
    } else {
        Err(RefusedDefinition { violations })
    }
}
