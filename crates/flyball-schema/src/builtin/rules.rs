//! Validation rules that many fields share.
// apimachinery/pkg/api/validation and pkg/util/validation

use super::spot::{Found, Spot};
use crate::names;
use crate::quantity::Quantity;
use crate::validate::format::address;
use serde_json::Value;

pub(super) const IMMUTABLE: &str = "field is immutable";

/// The largest number that many fields take.
const MOST: i64 = i32::MAX as i64;

pub(super) fn non_negative(spot: &Spot<'_>, found: &mut Found) {
    if spot.int() < 0 {
        spot.invalid(found, "must be greater than or equal to 0");
    }
}

/// `non_negative` for several fields of one object.
pub(super) fn none_negative(spot: &Spot<'_>, fields: &[&str], found: &mut Found) {
    fields.iter().for_each(|field| non_negative(&spot.field(field), found));
}

pub(super) fn within(spot: &Spot<'_>, least: i64, most: i64, found: &mut Found) {
    if !(least..=most).contains(&spot.int()) {
        spot.invalid_as(found, spot.int(), &format!("must be between {least} and {most}, inclusive"));
    }
}

/// A user or a group.
pub(super) fn id(spot: &Spot<'_>, found: &mut Found) {
    if spot.is_set() {
        within(spot, 0, MOST, found);
    }
}

pub(super) fn deadline(spot: &Spot<'_>, found: &mut Found) {
    if spot.is_set() {
        within(spot, 1, MOST, found);
    }
}

pub(super) fn port(spot: &Spot<'_>, found: &mut Found) {
    within(spot, 1, 65535, found);
}

pub(super) fn port_name(spot: &Spot<'_>, found: &mut Found) {
    named(spot, names::port_name, found);
}

pub(super) fn port_or_name(spot: &Spot<'_>, found: &mut Found) {
    if spot.value.is_string() {
        port_name(spot, found);
    } else {
        port(spot, found);
    }
}

/// Reports the messages of a name validation.
pub(super) fn named(spot: &Spot<'_>, check: impl Fn(&str) -> Vec<String>, found: &mut Found) {
    let text = spot.text();
    check(text).iter().for_each(|why| spot.invalid_as(found, text, why));
}

pub(super) fn label(spot: &Spot<'_>, found: &mut Found) {
    named(spot, names::dns1123_label, found);
}

pub(super) fn subdomain(spot: &Spot<'_>, found: &mut Found) {
    named(spot, names::dns1123_subdomain, found);
}

pub(super) fn qualified(spot: &Spot<'_>, found: &mut Found) {
    named(spot, names::qualified_name, found);
}

pub(super) fn config_key(spot: &Spot<'_>, found: &mut Found) {
    if !empty(spot, found) {
        named(spot, names::config_key, found);
    }
}

/// A rule for a text that may be left out.
pub(super) fn optional(spot: &Spot<'_>, rule: fn(&Spot<'_>, &mut Found), found: &mut Found) {
    if !spot.text().is_empty() {
        rule(spot, found);
    }
}

/// Requires a text; returns whether it is empty.
pub(super) fn empty(spot: &Spot<'_>, found: &mut Found) -> bool {
    let is_empty = spot.text().is_empty();
    if is_empty {
        spot.required(found, "");
    }
    is_empty
}

/// An enumerated text; the empty text is allowed only if it is listed.
pub(super) fn one_of(spot: &Spot<'_>, supported: &[&str], found: &mut Found) {
    if !supported.contains(&spot.text()) {
        spot.unsupported(found, supported);
    }
}

/// An enumerated text, optional.
pub(super) fn maybe_one_of(spot: &Spot<'_>, supported: &[&str], found: &mut Found) {
    if spot.is_set() {
        one_of(spot, supported, found);
    }
}

/// An enumerated text, required.
pub(super) fn surely_one_of(spot: &Spot<'_>, supported: &[&str], found: &mut Found) {
    if !empty(spot, found) {
        one_of(spot, supported, found);
    }
}

/// An IP address, in the legacy forms that upstream still accepts.
pub(super) fn address(spot: &Spot<'_>, found: &mut Found) {
    if !address::is_ip(spot.text()) {
        spot.invalid_as(found, spot.text(), "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)");
    }
}

/// A CIDR.
pub(super) fn network(spot: &Spot<'_>, found: &mut Found) -> bool {
    let is_network = address::is_cidr(spot.text());
    if !is_network {
        let why = "must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)";
        spot.invalid_as(found, spot.text(), why);
    }
    is_network
}

/// A field that an update may not change.
pub(super) fn immutable(new: &Spot<'_>, old: &Spot<'_>, found: &mut Found) {
    if new.value != old.value {
        new.invalid(found, IMMUTABLE);
    }
}

/// A non-negative number or percentage.
// pkg/apis/apps/validation/validation.go, ValidatePositiveIntOrPercent
pub(super) fn amount_or_share(spot: &Spot<'_>, found: &mut Found) {
    match spot.value {
        Value::String(text) if !is_share(text) => {
            let why = "a valid percent string must be a numeric string followed by an ending '%' \
                (e.g. '1%',  or '93%', regex used for validation is '[0-9]+%')";
            spot.invalid(found, why);
        }
        Value::String(_) => {}
        _ => non_negative(spot, found),
    }
}

pub(super) fn is_share(text: &str) -> bool {
    text.strip_suffix('%')
        .is_some_and(|digits| !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit()))
}

/// A percentage of at most 100%.
pub(super) fn at_most_all(spot: &Spot<'_>, found: &mut Found) {
    let share = spot.text().strip_suffix('%').and_then(|digits| digits.parse::<u64>().ok());
    if share.is_some_and(|share| share > 100) {
        spot.invalid(found, "must not be greater than 100%");
    }
}

/// The number, or the percentage; 0 for other values.
pub(super) fn amount(value: &Value) -> i64 {
    match value {
        Value::String(text) => text.strip_suffix('%').and_then(|digits| digits.parse().ok()).unwrap_or(0),
        other => other.as_i64().unwrap_or(0),
    }
}

/// A quantity, which JSON may write as a number.
pub(super) fn quantity(value: &Value) -> Option<Quantity> {
    match value {
        Value::String(text) => text.parse().ok(),
        Value::Number(number) => number.to_string().parse().ok(),
        _ => None,
    }
}

/// A relative path without `..`.
pub(super) fn descending_path(spot: &Spot<'_>, found: &mut Found) {
    if spot.text().starts_with('/') {
        spot.invalid(found, "must be a relative path");
    }
    no_backsteps(spot, found);
}

pub(super) fn no_backsteps(spot: &Spot<'_>, found: &mut Found) {
    if spot.text().split('/').any(|part| part == "..") {
        spot.invalid(found, "must not contain '..'");
    }
}

/// A relative path that does not begin with `..`, which the kubelet reserves for its own files.
pub(super) fn unreserved_path(spot: &Spot<'_>, found: &mut Found) {
    descending_path(spot, found);
    if spot.text().starts_with("..") && !spot.text().starts_with("../") {
        spot.invalid(found, "must not start with '..'");
    }
}

/// A set of labels.
pub(super) fn labels(spot: &Spot<'_>, found: &mut Found) {
    found.extend(crate::metadata::validate_labels(spot.value, &spot.path()));
}

/// A set of annotations.
pub(super) fn annotations(spot: &Spot<'_>, found: &mut Found) {
    found.extend(crate::metadata::validate_annotations(spot.value, &spot.path()));
}

/// `matchLabels` and `matchExpressions`.
// apimachinery/pkg/apis/meta/v1/validation/validation.go, ValidateLabelSelector
pub(super) fn selector(spot: &Spot<'_>, found: &mut Found) {
    labels(&spot.field("matchLabels"), found);
    for expression in spot.field("matchExpressions").items() {
        requirement(&expression, found);
    }
}

fn requirement(expression: &Spot<'_>, found: &mut Found) {
    let (operator, values) = (expression.field("operator"), expression.field("values"));
    match operator.text() {
        "In" | "NotIn" if values.len() == 0 => {
            values.required(found, "must be specified when `operator` is 'In' or 'NotIn'");
        }
        "Exists" | "DoesNotExist" if values.len() > 0 => {
            values.forbidden(found, "may not be specified when `operator` is 'Exists' or 'DoesNotExist'");
        }
        "In" | "NotIn" | "Exists" | "DoesNotExist" => {}
        other => operator.invalid_as(found, other, "not a valid selector operator"),
    }
    qualified(&expression.field("key"), found);
    for value in values.items() {
        named(&value, names::label_value, found);
    }
}
