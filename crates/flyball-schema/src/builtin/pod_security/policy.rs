//! The labels of a namespace: which standard is enforced, audited and warned of.
// api/helpers.go, PolicyToEvaluate

use super::{Level, Standard, Version};
use crate::violation::Violation;
use serde_json::Value;

const PREFIX: &str = "pod-security.kubernetes.io/";
const PRIVILEGED: Standard = Standard { level: Level::Privileged, version: Version::Latest };

/// The standards of a namespace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Policy {
    /// Pods that violate this one are refused.
    pub enforce: Standard,
    /// Violations of this one are noted in audit events.
    pub audit: Standard,
    /// Violations of this one are answered with a warning.
    pub warn: Standard,
}

impl Policy {
    /// Reads the labels of a namespace. A label that cannot be read stands for the strictest standard that is enforced, and
    /// for no audit and no warning.
    pub fn of(namespace: &Value) -> (Policy, Vec<Violation>) {
        let mut policy = Policy { enforce: PRIVILEGED, audit: PRIVILEGED, warn: PRIVILEGED };
        let mut found = Vec::new();
        let labels = &namespace["metadata"]["labels"];
        let label = |mode: &str| labels.get(format!("{PREFIX}{mode}")).and_then(Value::as_str);
        let mut is_enforced = false;
        for (mode, standard) in [
            ("enforce", &mut policy.enforce),
            ("audit", &mut policy.audit),
            ("warn", &mut policy.warn),
        ] {
            if let Some(text) = label(mode) {
                let level = level(text);
                is_enforced |= mode == "enforce" && level.is_some();
                let fallback = if mode == "enforce" {
                    Level::Restricted
                } else {
                    Level::Privileged
                };
                standard.level = level.unwrap_or(fallback);
                let why = "must be one of privileged, baseline, restricted";
                found.extend(level.is_none().then(|| invalid(mode, text, why)));
            }
            let mode = format!("{mode}-version");
            if let Some(text) = label(&mode) {
                let version = version(text);
                standard.version = version.unwrap_or(Version::Latest);
                let why = "must be \"latest\" or \"v1.x\"";
                found.extend(version.is_none().then(|| invalid(&mode, text, why)));
            }
        }
        if label("warn").is_none() && is_enforced && policy.enforce.level > policy.warn.level {
            policy.warn.level = policy.enforce.level;
            if label("warn-version").is_none() {
                policy.warn.version = policy.enforce.version;
            }
        }
        (policy, found)
    }

    /// Whether pods may do everything, without a remark.
    pub fn is_privileged(&self) -> bool {
        [self.enforce, self.audit, self.warn].iter().all(|one| one.level == Level::Privileged)
    }
}

fn invalid(mode: &str, text: &str, why: &str) -> Violation {
    Violation::invalid(format!("metadata.labels[{PREFIX}{mode}]"), text, why)
}

fn level(text: &str) -> Option<Level> {
    match text {
        "privileged" => Some(Level::Privileged),
        "baseline" => Some(Level::Baseline),
        "restricted" => Some(Level::Restricted),
        _ => None,
    }
}

fn version(text: &str) -> Option<Version> {
    if text == "latest" {
        return Some(Version::Latest);
    }
    let minor = text.strip_prefix("v1.")?;
    let is_plain = minor.bytes().all(|byte| byte.is_ascii_digit()) && (minor == "0" || !minor.starts_with('0'));
    minor.parse().ok().filter(|_| is_plain).map(Version::Minor)
}
