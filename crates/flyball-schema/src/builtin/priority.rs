//! PriorityClasses.

use super::fill;
use super::rules::immutable;
use super::spot::Spot;
use crate::violation::Violation;
use serde_json::Value;

/// Sets the defaults of a PriorityClass.
pub fn default(class: &mut Value) {
    fill(class, "preemptionPolicy", "PreemptLowerPriority");
}

/// Validates a PriorityClass.
// pkg/apis/scheduling/validation/validation.go
pub fn validate(class: &Value, live: Option<&Value>) -> Vec<Violation> {
    const SYSTEM: [(&str, i64); 2] = [
        ("system-cluster-critical", 2_000_000_000),
        ("system-node-critical", 2_000_001_000),
    ];
    const HIGHEST: i64 = 1_000_000_000;
    let mut found = Vec::new();
    let root = Spot::root(class);
    let (name, value) = (class["metadata"]["name"].as_str().unwrap_or_default(), root.field("value"));
    if let Some(live) = live {
        let (old, policy) = (Spot::root(live), root.field("preemptionPolicy"));
        if value.int() != old.field("value").int() {
            value.forbidden(&mut found, "may not be changed in an update.");
        }
        immutable(&policy, &old.field("preemptionPolicy"), &mut found);
        return found;
    }
    if name.starts_with("system-") {
        let known = SYSTEM.iter().find(|(known, _)| *known == name);
        let wrong = match known {
            None => Some(format!("{name} is not a known system priority class")),
            Some((_, wanted)) if value.int() != *wanted => {
                Some(format!("value of {name} PriorityClass must be {wanted}"))
            }
            Some(_) if root.field("globalDefault").is_true() => {
                Some(format!("globalDefault of {name} PriorityClass must be false"))
            }
            Some(_) => None,
        };
        if let Some(wrong) = wrong {
            let why = "priority class names with 'system-' prefix are reserved for system use only. error:";
            root.field("metadata").field("name").forbidden(&mut found, &format!("{why} {wrong}"));
        }
    } else if value.int() > HIGHEST {
        value.forbidden(&mut found, &format!("maximum allowed value of a user defined priority is {HIGHEST}"));
    }
    found
}
