//! Kubernetes' JSONPath: the dialect of client-go's `util/jsonpath` that printer columns and `scale` paths are written in.
//! `range … end` and text between braces belong to kubectl's templates and are not here.

mod parse;

use serde_json::Value;
use std::borrow::Cow;
use std::cmp::Ordering;

/// A path that was read once and can be followed many times.
#[derive(Clone, Debug, PartialEq)]
pub struct JsonPath {
    steps: Vec<Step>,
}

/// Why a text is no path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParseError(String);

/// Why a path could not be followed through a value, such as an index into something that is no list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FindError(String);

#[derive(Clone, Debug, PartialEq)]
enum Step {
    Field(String),
    Wildcard,
    Recursive,
    Slice(Slice),
    Union(Vec<Vec<Step>>),
    Filter(Filter),
    Constant(Value),
}

#[derive(Clone, Copy, Debug, PartialEq)]
struct Slice {
    start: i64,
    end: End,
    step: Option<i64>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum End {
    /// `[2]`: the item after the start.
    Next,
    /// `[2:]`: the end of the list.
    Last,
    /// `[2:5]`
    At(i64),
}

#[derive(Clone, Debug, PartialEq)]
struct Filter {
    left: Vec<Step>,
    /// The operator and its right side; without, the left side has to exist.
    comparison: Option<(String, Vec<Step>)>,
}

type Found<'a> = Vec<Cow<'a, Value>>;

/// The most values that a path may lead to; every `..` and every union may multiply them.
const MOST_FOUND: usize = 1_000_000;

impl JsonPath {
    /// Reads a path such as `.status.conditions[?(@.type=="Ready")].status`.
    pub fn parse(text: &str) -> Result<JsonPath, ParseError> {
        parse::steps(text).map(|steps| JsonPath { steps }).map_err(ParseError)
    }

    /// Everything that the path leads to; nothing where a field is missing.
    pub fn find<'a>(&self, value: &'a Value) -> Result<Vec<Cow<'a, Value>>, FindError> {
        walk(&self.steps, vec![Cow::Borrowed(value)]).map_err(FindError)
    }
}

impl std::fmt::Display for ParseError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for ParseError {}

impl std::fmt::Display for FindError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for FindError {}

fn walk<'a>(steps: &[Step], from: Found<'a>) -> Result<Found<'a>, String> {
    steps.iter().try_fold(from, |values, step| follow(step, values).and_then(bounded))
}

fn bounded(found: Found<'_>) -> Result<Found<'_>, String> {
    if found.len() > MOST_FOUND {
        Err(format!("the path leads to more than {MOST_FOUND} values"))
    } else {
        Ok(found)
    }
}

fn follow<'a>(step: &Step, values: Found<'a>) -> Result<Found<'a>, String> {
    match step {
        Step::Constant(constant) => Ok(values.iter().map(|_| Cow::Owned(constant.clone())).collect()),
        Step::Union(branches) => {
            let mut found = vec![];
            for steps in branches {
                found.extend(walk(steps, values.clone())?);
                found = bounded(found)?;
            }
            Ok(found)
        }
        _ => {
            let mut found = vec![];
            for value in values.into_iter().filter(|value| !value.is_null()) {
                follow_one(step, value, &mut found)?;
                found = bounded(found)?;
            }
            Ok(found)
        }
    }
}

fn follow_one<'a>(step: &Step, value: Cow<'a, Value>, found: &mut Found<'a>) -> Result<(), String> {
    match step {
        Step::Field(name) => found.extend(field(value, name)),
        Step::Wildcard => found.extend(children(value)),
        Step::Recursive => descend(value, found),
        Step::Slice(range) => found.extend(slice(range, value)?),
        Step::Filter(filter) => found.extend(select(filter, value)?),
        Step::Constant(_) | Step::Union(_) => unreachable!("followed for all values at once"),
    }
    Ok(())
}

fn field<'a>(value: Cow<'a, Value>, name: &str) -> Option<Cow<'a, Value>> {
    match value {
        Cow::Borrowed(value) => value.get(name).map(Cow::Borrowed),
        Cow::Owned(mut value) => value.get_mut(name).map(|value| Cow::Owned(value.take())),
    }
}

fn children(value: Cow<'_, Value>) -> Found<'_> {
    match value {
        Cow::Borrowed(Value::Array(items)) => items.iter().map(Cow::Borrowed).collect(),
        Cow::Borrowed(Value::Object(fields)) => fields.values().map(Cow::Borrowed).collect(),
        Cow::Owned(Value::Array(items)) => items.into_iter().map(Cow::Owned).collect(),
        Cow::Owned(Value::Object(fields)) => fields.into_iter().map(|(_, value)| Cow::Owned(value)).collect(),
        _ => vec![],
    }
}

fn descend<'a>(value: Cow<'a, Value>, found: &mut Found<'a>) {
    let children = children(value.clone());
    if !children.is_empty() {
        found.push(value);
        for child in children {
            descend(child, found);
        }
    }
}

fn items(value: Cow<'_, Value>) -> Result<Found<'_>, String> {
    match &*value {
        Value::Array(_) => Ok(children(value)),
        other => Err(format!("{other} is not array or slice")),
    }
}

fn slice<'a>(range: &Slice, value: Cow<'a, Value>) -> Result<Found<'a>, String> {
    let items = items(value)?;
    let length = items.len() as i64;
    let from_end = |index: i64| if index < 0 { index + length } else { index };
    let start = from_end(range.start);
    let end = match range.end {
        End::Next if range.start == -1 => length,
        End::Next => from_end(range.start + 1),
        End::Last => length,
        End::At(end) => from_end(end),
    };
    if start == end {
        return Ok(vec![]);
    }
    if !(0..length).contains(&start) || !(start..=length).contains(&end) {
        return Err(format!("array index out of bounds: {start} to {end}, length {length}"));
    }
    let step = match range.step {
        None => 1,
        Some(step) => usize::try_from(step).ok().filter(|step| *step > 0).ok_or("step must be > 0")?,
    };
    let (start, end) = (start as usize, end as usize);
    Ok(items.into_iter().take(end).skip(start).step_by(step).collect())
}

fn select<'a>(filter: &Filter, value: Cow<'a, Value>) -> Result<Found<'a>, String> {
    let mut selected = vec![];
    for item in items(value)? {
        if holds(filter, &item)? {
            selected.push(item);
        }
    }
    Ok(selected)
}

fn holds(filter: &Filter, item: &Value) -> Result<bool, String> {
    let at = || vec![Cow::Borrowed(item)];
    let Some((operator, right)) = &filter.comparison else {
        return Ok(walk(&filter.left, at()).is_ok_and(|found| !found.is_empty()));
    };
    match (&walk(&filter.left, at())?[..], &walk(right, at())?[..]) {
        ([], _) | (_, []) => Ok(false),
        ([left], [right]) => compare(operator, left, right),
        _ => Err("can only compare one element at a time".into()),
    }
}

/// Values of one basic type compare, others are an error, as in Go's text/template.
fn compare(operator: &str, left: &Value, right: &Value) -> Result<bool, String> {
    let ordering = match (left, right) {
        (Value::String(left), Value::String(right)) => left.cmp(right),
        (Value::Bool(left), Value::Bool(right)) if matches!(operator, "==" | "!=") => left.cmp(right),
        (Value::Number(left), Value::Number(right)) if left.is_f64() == right.is_f64() => number(left, right),
        _ => return Err("incompatible types for comparison".into()),
    };
    match operator {
        "==" => Ok(ordering.is_eq()),
        "!=" => Ok(ordering.is_ne()),
        "<" => Ok(ordering.is_lt()),
        "<=" => Ok(ordering.is_le()),
        ">" => Ok(ordering.is_gt()),
        ">=" => Ok(ordering.is_ge()),
        _ => Err(format!("unrecognized filter operator {operator}")),
    }
}

fn number(left: &serde_json::Number, right: &serde_json::Number) -> Ordering {
    match (left.as_i64(), right.as_i64()) {
        (Some(left), Some(right)) => left.cmp(&right),
        _ => left.as_f64().partial_cmp(&right.as_f64()).unwrap_or(Ordering::Equal),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn find(path: &str, value: &Value) -> Result<Vec<Value>, String> {
        let path = JsonPath::parse(path).map_err(|error| error.to_string())?;
        let found = path.find(value).map_err(|error| error.to_string())?;
        Ok(found.into_iter().map(Cow::into_owned).collect())
    }

    fn pod() -> Value {
        json!({
            "metadata": {"name": "web", "annotations": {"a.b/c": "dotted"}},
            "spec": {"ports": [80, 443, 8080], "replicas": 3, "load": 0.5},
            "status": {"conditions": [
                {"type": "Ready", "status": "True", "age": 1},
                {"type": "Scheduled", "status": "False", "age": 7, "note": {"x": 1}}
            ]}
        })
    }

    #[test]
    fn paths_lead_to_what_client_go_finds() {
        for (path, expected) in [
            (".metadata.name", json!(["web"])),
            ("metadata.name", json!("error")),
            ("$.metadata.name", json!(["web"])),
            (".missing.name", json!([])),
            ("['metadata'].name", json!(["web"])),
            (r".metadata.annotations.a\.b/c", json!(["dotted"])),
            (r".metadata.annotations['a\.b/c']", json!(["dotted"])),
            (".spec.ports[0]", json!([80])),
            (".spec.ports[-1]", json!([8080])),
            (".spec.ports[-1:]", json!([8080])),
            (".spec.ports[1:]", json!([443, 8080])),
            (".spec.ports[0:2]", json!([80, 443])),
            (".spec.ports[::2]", json!([80, 8080])),
            (".spec.ports[0,2]", json!([80, 8080])),
            (".spec.ports[*]", json!([80, 443, 8080])),
            (".spec.ports[5]", json!("error")),
            (".spec[0]", json!("error")),
            (".spec.*", json!([0.5, [80, 443, 8080], 3])),
            ("..age", json!([1, 7])),
            ("..", json!("skip")),
        ] {
            let found = find(path, &pod());
            match expected.as_str() {
                Some("error") => assert!(found.is_err(), "{path}: {found:?}"),
                Some(_) => assert!(found.is_ok(), "{path}"),
                None => assert_eq!(found.map(Value::Array), Ok(expected), "{path}"),
            }
        }
    }

    #[test]
    fn filters_select_items() {
        for (path, expected) in [
            (r#".status.conditions[?(@.type=="Ready")].status"#, json!(["True"])),
            (".status.conditions[?(@.type=='Ready')].status", json!(["True"])),
            (".status.conditions[?( @.type == 'Ready' )].status", json!(["True"])),
            (".status.conditions[?(@.type!='Ready')].status", json!(["False"])),
            (".status.conditions[?(@.age>2)].type", json!(["Scheduled"])),
            (".status.conditions[?(@.age<=1)].type", json!(["Ready"])),
            (".status.conditions[?(@.note)].type", json!(["Scheduled"])),
            (".status.conditions[?(@.note.x==1)].type", json!(["Scheduled"])),
            (".status.conditions[?(@.age>'x')].type", json!("error")),
            (".status.conditions[?(@.type==')')].type", json!([])),
        ] {
            let found = find(path, &pod());
            match expected.as_str() {
                Some(_) => assert!(found.is_err(), "{path}: {found:?}"),
                None => assert_eq!(found.map(Value::Array), Ok(expected), "{path}"),
            }
        }
    }

    #[test]
    fn what_is_no_path_is_refused() {
        for text in [
            "[0",
            "[x]",
            "[?(@.a==1]",
            "[?(@.a==1)",
            ".a{",
            "'open",
            "....",
            "range",
            "#",
        ] {
            assert!(JsonPath::parse(text).is_err(), "{text}");
        }
    }
}
