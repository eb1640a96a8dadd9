//! The conditions of a status.
// apimachinery/pkg/apis/meta/v1/validation/validation.go, ValidateConditions

use super::rules::{empty, one_of, qualified};
use super::spot::{Found, Spot};
use std::collections::HashSet;

const MAX_REASON_BYTES: usize = 1024;
const MAX_MESSAGE_BYTES: usize = 32 * 1024;

/// Validates a list of conditions.
pub(super) fn validate(list: &Spot<'_>, found: &mut Found) {
    let mut seen = HashSet::new();
    for condition in list.items() {
        let kind = condition.field("type");
        if !seen.insert(kind.text().to_owned()) {
            kind.duplicate(found, kind.text());
        }
        qualified(&kind, found);
        one_of(&condition.field("status"), &["False", "True", "Unknown"], found);
        let generation = condition.field("observedGeneration");
        if generation.int() < 0 {
            generation.invalid(found, "must be greater than or equal to zero");
        }
        empty(&condition.field("lastTransitionTime"), found);
        reason(&condition.field("reason"), found);
        let message = condition.field("message");
        if message.len() > MAX_MESSAGE_BYTES {
            message.too_long(found, MAX_MESSAGE_BYTES as u64);
        }
    }
}

fn reason(reason: &Spot<'_>, found: &mut Found) {
    if empty(reason, found) {
        return;
    }
    let text = reason.text();
    let is_inner = |letter: char| letter.is_ascii_alphanumeric() || "_,:".contains(letter);
    let is_reason = text.starts_with(|letter: char| letter.is_ascii_alphabetic())
        && text.chars().all(is_inner)
        && text.ends_with(|letter: char| letter.is_ascii_alphanumeric() || letter == '_');
    if !is_reason {
        let why = "a condition reason must start with alphabetic character, optionally followed by a string of alphanumeric \
                   characters or '_,:', and must end with an alphanumeric character or '_' (e.g. 'my_name',  or 'MY_NAME',  or \
                   'MyName',  or 'ReasonA,ReasonB',  or 'ReasonA:ReasonB', regex used for validation is \
                   '[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?')";
        reason.invalid(found, why);
    }
    if text.len() > MAX_REASON_BYTES {
        reason.too_long(found, MAX_REASON_BYTES as u64);
    }
}
