//! Conflicts of an apply, in the words of kube-apiserver.

use std::fmt;

/// One field that somebody else owns.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Conflict {
    /// Its owner as messages name it, such as `"kubectl" using apps/v1`.
    pub manager: String,
    /// The path of the field, such as `.spec.replicas`.
    pub field: String,
}

/// All conflicts of one apply, sorted by manager; its `Display` is the message of the Status.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Conflicts(pub Vec<Conflict>);

impl Conflict {
    /// The message of the cause, whose reason is `FieldManagerConflict`.
    pub fn message(&self) -> String {
        format!("conflict with {}", self.manager)
    }
}

// apimachinery, util/managedfields/internal/conflict.go, getConflictMessage
impl fmt::Display for Conflicts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let [conflict] = self.0.as_slice() {
            return write!(f, "Apply failed with 1 conflict: {}: {}", conflict.message(), conflict.field);
        }
        write!(f, "Apply failed with {} conflicts: ", self.0.len())?;
        let mut before = None;
        for conflict in &self.0 {
            if before != Some(&conflict.manager) {
                let newline = if before.is_some() { "\n" } else { "" };
                write!(f, "{newline}conflicts with {}:", conflict.manager)?;
                before = Some(&conflict.manager);
            }
            write!(f, "\n- {}", conflict.field)?;
        }
        Ok(())
    }
}
