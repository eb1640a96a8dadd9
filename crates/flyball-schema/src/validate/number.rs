//! Numbers: their range by format, multiples, minimum and maximum.
// kube-openapi/pkg/validation/validate/validator.go, numberValidator

use super::keywords::{Checks, Outcome};
use crate::go_text;
use crate::place::Place;
use crate::schema::{Form, Node};
use crate::violation::Reason;
use serde_json::{Number, Value};

pub(super) fn check(node: Node<'_>, number: &Number, place: &Place<'_>, checks: &Checks<'_>, outcome: &mut Outcome) {
    let range = Range::of(node);
    if !range.holds(number) {
        checks.report_nowhere(range.complaint("Checked", place), outcome);
    }
    let Some(rules) = &node.rules else { return };
    let bounds = [
        (&rules.multiple_of, Bound::Multiple, "MultipleOf"),
        (&rules.minimum, Bound::Least { exclusive: rules.exclusive_minimum }, "Minimum boundary"),
        (&rules.maximum, Bound::Most { exclusive: rules.exclusive_maximum }, "Maximum boundary"),
    ];
    for (limit, bound, name) in bounds {
        let Some(limit) = limit else { continue };
        let fits = range.holds(limit);
        if !fits {
            checks.report_nowhere(range.complaint(name, place), outcome);
        }
        // Integers are compared as such, unless the limit is none.
        let integers = number.as_i64().filter(|_| fits).map(|number| (number, as_integer(limit)));
        let detail = match integers {
            Some((number, limit)) => bound.broken_by_integer(number, limit),
            None => bound.broken_by(as_float(number), as_float(limit)),
        };
        match detail {
            Some(Broken::Value(detail)) => {
                let shown = if fits {
                    Value::Number(number.clone())
                } else {
                    Value::from(as_float(number))
                };
                checks.report(Reason::Invalid, &shown, &detail, place, outcome);
            }
            Some(Broken::Factor(factor)) => checks.report_factor(&factor, place, outcome),
            None => {}
        }
    }
}

#[derive(Clone, Copy)]
enum Bound {
    Multiple,
    Least { exclusive: bool },
    Most { exclusive: bool },
}

enum Broken {
    /// The value is out of bounds.
    Value(String),
    /// The schema asks for a multiple of nothing.
    Factor(Value),
}

impl Bound {
    fn broken_by_integer(self, number: i64, limit: i64) -> Option<Broken> {
        let holds = match self {
            Bound::Multiple if limit <= 0 => return Some(Broken::Factor(limit.into())),
            Bound::Multiple => number % limit == 0,
            Bound::Least { exclusive } => number > limit || (!exclusive && number == limit),
            Bound::Most { exclusive } => number < limit || (!exclusive && number == limit),
        };
        (!holds).then(|| Broken::Value(self.detail(&limit.to_string())))
    }

    fn broken_by(self, number: f64, limit: f64) -> Option<Broken> {
        let holds = match self {
            Bound::Multiple if limit <= 0.0 => return Some(Broken::Factor(limit.into())),
            Bound::Multiple => {
                let multiple = if limit < 1.0 {
                    1.0 / limit * number
                } else {
                    number / limit
                };
                is_json_integer(multiple)
            }
            Bound::Least { exclusive } => number > limit || (!exclusive && number == limit),
            Bound::Most { exclusive } => number < limit || (!exclusive && number == limit),
        };
        (!holds).then(|| Broken::Value(self.detail(&go_text::float(limit))))
    }

    fn detail(self, limit: &str) -> String {
        match self {
            Bound::Multiple => format!("should be a multiple of {limit}"),
            Bound::Least { exclusive: true } => format!("should be greater than {limit}"),
            Bound::Least { exclusive: false } => format!("should be greater than or equal to {limit}"),
            Bound::Most { exclusive: true } => format!("should be less than {limit}"),
            Bound::Most { exclusive: false } => format!("should be less than or equal to {limit}"),
        }
    }
}

/// Whether a float is an integer that JSON can hold exactly, give or take a relative error. Conversions are those of Go
/// on amd64: a negative float wraps around.
// github.com/go-openapi/swag/convert.go, IsFloat64AJSONInteger
fn is_json_integer(float: f64) -> bool {
    const MAX: f64 = 9_007_199_254_740_991.0;
    const EPSILON: f64 = 1e-9;
    if !(-MAX..=MAX).contains(&float) {
        return false;
    }
    let integer = (float as i64) as u64 as f64;
    if float == integer || float == float.trunc() {
        return true;
    }
    integer != 0.0 && (float - integer).abs() / (float.abs() + integer) < EPSILON
}

/// The numbers that a type and its format can hold.
enum Range {
    Any,
    Integer { int32: bool, format: Option<&'static str> },
    Float,
}

impl Range {
    fn of(node: Node<'_>) -> Range {
        match (&node.form, node.format.as_deref()) {
            _ if node.any_type => Range::Any,
            (Form::Integer, Some("int32")) => Range::Integer { int32: true, format: Some("int32") },
            (Form::Integer, Some("int64")) => Range::Integer { int32: false, format: Some("int64") },
            (Form::Integer, _) => Range::Integer { int32: false, format: None },
            (Form::Number, Some("float")) => Range::Float,
            _ => Range::Any,
        }
    }

    fn holds(&self, number: &Number) -> bool {
        match self {
            Range::Any => true,
            Range::Float => as_float(number).abs() <= f64::from(f32::MAX),
            Range::Integer { int32, .. } => {
                let float = as_float(number);
                let integer =
                    number.as_i64().or((float.fract() == 0.0 && float.abs() < 9.2e18).then_some(float as i64));
                integer.is_some_and(|integer| !int32 || i32::try_from(integer).is_ok())
            }
        }
    }

    fn complaint(&self, name: &str, place: &Place<'_>) -> String {
        let path = place.dotted();
        match self {
            Range::Integer { format: Some(format), .. } => {
                format!("{name} value must be of type integer with format {format} in {path}")
            }
            Range::Integer { format: None, .. } => {
                format!("{name} value must be of type integer (default format) in {path}")
            }
            Range::Float | Range::Any => format!("{name} value must be of type number with format float in {path}"),
        }
    }
}

fn as_float(number: &Number) -> f64 {
    number.as_f64().unwrap_or_default()
}

/// As Go converts a float: the fraction is cut off.
fn as_integer(number: &Number) -> i64 {
    number.as_i64().unwrap_or_else(|| as_float(number) as i64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_multiple_is_an_integer_that_json_can_hold() {
        for (float, is_integer) in [
            (3.0, true),
            (-3.0, true),
            (0.0, true),
            (3.000_000_000_000_000_4, true),
            (2.999_999_999_999_999_6, false),
            (0.5, false),
            (1e301, false),
            (-1e301, false),
            (f64::INFINITY, false),
            (f64::NAN, false),
            (9_007_199_254_740_991.0, true),
            (9_007_199_254_740_992.0, false),
        ] {
            assert_eq!(is_json_integer(float), is_integer, "{float}");
        }
    }
}
