//! What evaluation costs, in cel-go's units: as it happens here, and estimated beforehand in `estimate`.

pub(crate) mod estimate;

use crate::env::Options;
use crate::eval::EvalError;
use crate::value::Value;

/// The cost of making a list.
pub(crate) const LIST_COST: u64 = 10;
/// The cost of making a map.
pub(crate) const MAP_COST: u64 = 30;
/// The cost of making a message.
pub(crate) const STRUCT_COST: u64 = 40;
/// The cost of looking at one code point of a text.
pub(crate) const TEXT_FACTOR: f64 = 0.1;
/// The cost of one code point of a pattern, for each unit of text.
pub(crate) const PATTERN_FACTOR: f64 = 0.25;

/// How a call is charged for (interpreter/runtimecost.go, and Kubernetes' library/cost.go).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CallCost {
    Fixed(u64),
    /// The text of this argument, looked at so many times.
    Traverse(u8, u8),
    /// The elements of a list.
    InList,
    /// The shorter of two texts.
    Compare,
    /// Both texts.
    Concat,
    /// A text and a pattern.
    Match,
    /// A text and another that may be in it.
    Contains,
    /// Everything in a list.
    Elements,
    /// The text that results, twice.
    Joined,
    /// A selector.
    Selector,
    ContainsIp(bool),
    ContainsCidr(bool),
    Validate,
    /// The product of the sizes of two lists.
    Sets(bool),
    /// The elements of a list that is made.
    MadeList,
    /// The elements of a list, once for each level.
    Flattened,
    /// Each element of this argument with each other.
    SelfCompare(u8),
}

impl CallCost {
    pub(crate) fn of(function: &str, overload: &str, options: Options) -> CallCost {
        let lists = || options.list_costs.then(|| of_list(overload)).flatten();
        let kubernetes = || options.kubernetes_costs.then(|| of_kubernetes(function, overload)).flatten();
        if let Some(cost) = of_set(overload).or_else(lists).or_else(kubernetes) {
            return cost;
        }
        match overload {
            "starts_with_string" | "ends_with_string" | "string_to_bytes" | "bytes_to_string" | "strings_quote"
            | "string_format" => CallCost::Traverse(0, 1),
            "in_list" => CallCost::InList,
            "less_string"
            | "greater_string"
            | "less_equals_string"
            | "greater_equals_string"
            | "less_bytes"
            | "greater_bytes"
            | "less_equals_bytes"
            | "greater_equals_bytes" => CallCost::Compare,
            "add_string" | "add_bytes" => CallCost::Concat,
            "matches_string" => CallCost::Match,
            "contains_string" => CallCost::Contains,
            _ => CallCost::Fixed(1),
        }
    }

    /// Whether the cost is known only once the result is.
    pub(crate) fn needs_result(self) -> bool {
        matches!(self, CallCost::Joined | CallCost::MadeList)
    }

    /// Refuses arguments on which cel-go's trackers panic: they convert what they measure, even if it is an error.
    pub(crate) fn check(self, args: &[Result<Value<'_>, EvalError>]) -> Result<(), EvalError> {
        let measured = match self {
            CallCost::SelfCompare(place) => args.get(usize::from(place)),
            CallCost::Flattened => args.get(1),
            _ => None,
        };
        let message = match (self, measured) {
            (_, None) | (CallCost::SelfCompare(_), Some(Ok(Value::List(_)))) => return Ok(()),
            (CallCost::SelfCompare(_), Some(other)) => {
                let name = other.as_ref().map_or("*types.Err", Value::go_type);
                let method = if other.as_ref().is_ok_and(can_add) {
                    "Contains"
                } else {
                    "Add"
                };
                format!("interface conversion: {name} is not traits.Lister: missing method {method}")
            }
            (_, Some(Ok(Value::Int(_)))) => return Ok(()),
            (_, Some(other)) => {
                let name = other.as_ref().map_or("*types.Err", Value::go_type);
                format!("interface conversion: ref.Val is {name}, not types.Int")
            }
        };
        Err(EvalError::internal(message))
    }

    /// What one call cost.
    pub(crate) fn actual(self, args: &[Value<'_>], result: &Result<Value<'_>, EvalError>) -> u64 {
        let size = |place: usize| args.get(place).map_or(1, actual_size);
        let text = |size: u64, factor: f64| (size as f64 * factor).ceil() as u64;
        match self {
            CallCost::Fixed(cost) => cost,
            CallCost::Traverse(place, times) => text(size(place.into()), f64::from(times) * TEXT_FACTOR),
            CallCost::InList => size(1),
            CallCost::Compare => text(size(0).min(size(1)), TEXT_FACTOR),
            CallCost::Concat => text(size(0) + size(1), TEXT_FACTOR),
            CallCost::Match => text(1 + size(0), TEXT_FACTOR) * text(size(1), PATTERN_FACTOR),
            CallCost::Contains => text(size(0), TEXT_FACTOR) * text(size(1), TEXT_FACTOR),
            CallCost::Elements => args.first().map_or(0, |list| traversal(list, &mut MAX_TRAVERSED.clone())),
            CallCost::Joined => text(result.as_ref().map_or(1, actual_size), 2.0 * TEXT_FACTOR),
            CallCost::Selector => selector(size(1)),
            CallCost::ContainsIp(parses) => {
                let parsed = if parses { text(size(1), TEXT_FACTOR) } else { 0 };
                text(size(0) * 2, TEXT_FACTOR) + parsed
            }
            CallCost::ContainsCidr(parses) => {
                let parsed = if parses { text(size(1), TEXT_FACTOR) } else { 0 };
                text(size(0) * 2, TEXT_FACTOR) + text(size(0), TEXT_FACTOR) + 1 + parsed
            }
            CallCost::Validate => {
                let pattern = args.first().and_then(crate::library::pattern_size).unwrap_or(1);
                text(1 + size(1), TEXT_FACTOR) * text(pattern, PATTERN_FACTOR)
            }
            CallCost::Sets(twice) => {
                let product = size(0).saturating_mul(size(1));
                1 + if twice { product.saturating_mul(2) } else { product }
            }
            CallCost::MadeList => result.as_ref().map_or(1, actual_size) + 1 + LIST_COST,
            CallCost::Flattened => {
                let depth = match args.get(1) {
                    Some(Value::Int(depth)) => *depth as f64,
                    _ => 1.0,
                };
                // A negative product wraps around, as in Go.
                let product = size(0) as f64 * depth;
                let product = if product < 0.0 {
                    product as i64 as u64
                } else {
                    product as u64
                };
                product.wrapping_add(1 + LIST_COST)
            }
            CallCost::SelfCompare(place) => self_compare(args.get(usize::from(place))),
        }
    }
}

/// Whether cel-go's type of the value has a method to add.
fn can_add(value: &Value<'_>) -> bool {
    use Value::{Bytes, Double, Duration, Int, List, String, Timestamp, Uint};
    matches!(
        value,
        Int(_) | Uint(_) | Double(_) | String(_) | Bytes(_) | Duration(_) | Timestamp(_) | List(_)
    )
}

/// Parsing a selector: its text, and half a requirement for each code point.
fn selector(length: u64) -> u64 {
    let text = (length as f64 * TEXT_FACTOR).ceil() as u64;
    let requirements = (length as f64 * 0.5).ceil();
    LIST_COST + text + (requirements * (LIST_COST + STRUCT_COST) as f64).ceil() as u64
}

/// Comparing each element of a list with each other; text is looked at as well.
fn self_compare(list: Option<&Value<'_>>) -> u64 {
    let Some(Value::List(list)) = list else {
        return 1 + LIST_COST;
    };
    let text = matches!(list.get(0), Some(Ok(Value::String(_) | Value::Bytes(_))));
    let factor = if text { 2.0 + TEXT_FACTOR } else { 2.0 };
    let size = list.len() as u64;
    (size.saturating_mul(size) as f64 * factor) as u64 + 1 + LIST_COST
}

/// The lists extension brings its own costs.
fn of_list(overload: &str) -> Option<CallCost> {
    Some(match overload {
        "list_slice" | "lists_range" | "list_reverse" => CallCost::MadeList,
        "list_flatten" | "list_flatten_int" => CallCost::Flattened,
        "list_distinct" => CallCost::SelfCompare(0),
        other if other.ends_with("_sort") => CallCost::SelfCompare(0),
        other if other.ends_with("_sortByAssociatedKeys") => CallCost::SelfCompare(1),
        _ => return None,
    })
}

/// So does the sets extension.
fn of_set(overload: &str) -> Option<CallCost> {
    Some(match overload {
        "list_sets_contains_list" | "list_sets_intersects_list" => CallCost::Sets(false),
        "list_sets_equivalent_list" => CallCost::Sets(true),
        _ => return None,
    })
}

fn of_kubernetes(function: &str, overload: &str) -> Option<CallCost> {
    Some(match function {
        "check" => CallCost::Fixed(350_000),
        "fieldSelector" | "labelSelector" => CallCost::Selector,
        "isSorted" | "sum" | "max" | "min" | "indexOf" | "lastIndexOf" => CallCost::Elements,
        "url" | "lowerAscii" | "upperAscii" | "substring" | "trim" | "jsonpatch.escapeKey" => CallCost::Traverse(0, 1),
        "replace" | "split" => CallCost::Traverse(0, 2),
        "join" => CallCost::Joined,
        "find" | "findAll" => CallCost::Match,
        "ip" if overload == "cidr_ip" => CallCost::Fixed(1),
        "cidr" | "isIP" | "isCIDR" | "ip" => CallCost::Traverse(0, 1),
        "ip.isCanonical" => CallCost::Traverse(0, 2),
        "containsIP" => CallCost::ContainsIp(overload == "cidr_contains_ip_string"),
        "containsCIDR" => CallCost::ContainsCidr(overload == "cidr_contains_cidr_string"),
        "quantity" | "isQuantity" | "semver" | "isSemver" => CallCost::Traverse(0, 1),
        "validate" => CallCost::Validate,
        "serviceAccount"
        | "path"
        | "group"
        | "resource"
        | "subresource"
        | "namespace"
        | "name"
        | "allowed"
        | "reason"
        | "error"
        | "errored"
        | "masked"
        | "prefixLength"
        | "family"
        | "isUnspecified"
        | "isLoopback"
        | "isLinkLocalMulticast"
        | "isLinkLocalUnicast"
        | "isGlobalUnicast"
        | "format.named"
        | "sign"
        | "asInteger"
        | "isInteger"
        | "asApproximateFloat"
        | "isGreaterThan"
        | "isLessThan"
        | "compareTo"
        | "add"
        | "sub"
        | "major"
        | "minor"
        | "patch"
        | "getScheme"
        | "getHostname"
        | "getHost"
        | "getPort"
        | "getEscapedPath"
        | "getQuery" => CallCost::Fixed(1),
        _ => return None,
    })
}

/// The size of a value for the purpose of cost; one if it has none.
pub(crate) fn actual_size(value: &Value<'_>) -> u64 {
    match value {
        Value::Optional(Some(value)) => actual_size(value),
        other => other.size().map_or(1, |size| size as u64),
    }
}

/// What comparing two values costs. Kubernetes charges one for `==` if the left value is of one of its own types.
pub(crate) fn equality_cost(operands: &[Result<Value<'_>, EvalError>; 2], function: &str) -> u64 {
    if let (Ok(Value::Opaque(_)), "_==_") = (&operands[0], function) {
        return 1;
    }
    let size = |operand: &Result<Value<'_>, EvalError>| operand.as_ref().map_or(1, actual_size);
    let shorter = size(&operands[0]).min(size(&operands[1]));
    (shorter as f64 * TEXT_FACTOR).ceil() as u64
}

/// How many elements the cost of a traversal looks at; more than these cost more than any limit.
const MAX_TRAVERSED: u32 = 1 << 22;

/// The text in a value and in what it holds.
fn traversal(value: &Value<'_>, left: &mut u32) -> u64 {
    match left.checked_sub(1) {
        Some(less) => *left = less,
        None => return u64::MAX,
    }
    match value {
        Value::String(text) => (text.len() as f64 * TEXT_FACTOR) as u64,
        Value::Bytes(bytes) => (bytes.len() as f64 * TEXT_FACTOR) as u64,
        Value::List(list) => {
            let mut total = 0_u64;
            for item in list.iter().flatten() {
                total = total.saturating_add(traversal(&item, left));
                if total == u64::MAX {
                    break;
                }
            }
            total
        }
        Value::Map(map) => {
            let mut total = 0_u64;
            for (key, value) in map.entries().flatten() {
                total = total.saturating_add(traversal(&key, left)).saturating_add(traversal(&value, left));
                if total == u64::MAX {
                    break;
                }
            }
            total
        }
        _ => 1,
    }
}
