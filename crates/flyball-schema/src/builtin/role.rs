//! RoleBindings and ClusterRoleBindings.

use super::{at, fill_zero, items};
use crate::violation::Violation;
use serde_json::{Value, json};

const GROUP: &str = "rbac.authorization.k8s.io";

/// Fills in the groups of what a binding refers to.
// pkg/apis/rbac/v1/defaults.go
pub fn default_binding(binding: &mut Value) {
    fill_zero(at(binding, "roleRef"), "apiGroup", GROUP);
    for subject in items(binding, "subjects").filter(|subject| subject["kind"] != "ServiceAccount") {
        fill_zero(subject, "apiGroup", GROUP);
    }
}

/// Finds what is wrong with a binding: its role never changes.
// pkg/apis/rbac/validation/validation.go
pub fn validate_binding(binding: &Value, live: Option<&Value>) -> Vec<Violation> {
    let (new, Some(old)) = (&binding["roleRef"], live.map(|live| &live["roleRef"])) else {
        return Vec::new();
    };
    if new == old {
        return Vec::new();
    }
    let shown = json!({"APIGroup": new["apiGroup"], "Kind": new["kind"], "Name": new["name"]});
    vec![Violation::invalid("roleRef", shown, "cannot change roleRef")]
}
