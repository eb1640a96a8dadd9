//! Functions on lists: cel-go's lists extension, and those that Kubernetes adds.

use super::add;
use crate::decl::{Entry, Function, Native, Overload, entry};
use crate::env::Env;
use crate::eval::EvalError;
use crate::value::{List, Value, equal, order};
use std::cmp::Ordering;
use std::sync::Arc;

type Outcome<'a> = Result<Value<'a>, EvalError>;

/// cel-go's `ext.Lists`.
pub(super) fn install(env: &mut Env, version: u32) {
    add(env, &[entry("slice", "list_slice", "list(T).(int, int) -> list(T)", slice)]);
    if version >= 1 {
        singleton(env, "flatten", flatten, &FLATTEN);
    }
    if version >= 2 {
        singleton(env, "sort", sort, &SORT);
        singleton(env, "@sortByAssociatedKeys", sort_by, &SORT_BY);
        add(env, &SECOND_VERSION);
    }
}

/// Kubernetes' list library.
pub(super) fn install_kubernetes(env: &mut Env) {
    for (function, overloads, native) in AGGREGATES {
        for (id, signature) in overloads {
            env.add(function, Overload::read(id, signature, Some(native)));
        }
    }
    for (id, signature, native) in SUMS {
        env.add("sum", Overload::read(id, signature, Some(native)));
    }
    add(env, &KUBERNETES);
}

fn singleton(env: &mut Env, name: &'static str, native: Native, overloads: &[(&'static str, &'static str)]) {
    for (id, signature) in overloads {
        env.add(name, Overload::read(id, signature, None));
    }
    let functions = Arc::make_mut(&mut env.functions);
    let function = functions
        .entry(name)
        .or_insert_with(|| Function { name, overloads: Vec::new(), singleton: None });
    function.singleton = Some(native);
}

const FLATTEN: [(&str, &str); 2] = [
    ("list_flatten", "list(list(T)).() -> list(T)"),
    ("list_flatten_int", "list(dyn).(int) -> list(dyn)"),
];

const SORT: [(&str, &str); 8] = [
    ("list_int_sort", "list(int).() -> list(int)"),
    ("list_uint_sort", "list(uint).() -> list(uint)"),
    ("list_double_sort", "list(double).() -> list(double)"),
    ("list_bool_sort", "list(bool).() -> list(bool)"),
    ("list_google.protobuf.Duration_sort", "list(duration).() -> list(duration)"),
    ("list_google.protobuf.Timestamp_sort", "list(timestamp).() -> list(timestamp)"),
    ("list_string_sort", "list(string).() -> list(string)"),
    ("list_bytes_sort", "list(bytes).() -> list(bytes)"),
];

const SORT_BY: [(&str, &str); 8] = [
    ("list_int_sortByAssociatedKeys", "list(T).(list(int)) -> list(T)"),
    ("list_uint_sortByAssociatedKeys", "list(T).(list(uint)) -> list(T)"),
    ("list_double_sortByAssociatedKeys", "list(T).(list(double)) -> list(T)"),
    ("list_bool_sortByAssociatedKeys", "list(T).(list(bool)) -> list(T)"),
    (
        "list_google.protobuf.Duration_sortByAssociatedKeys",
        "list(T).(list(duration)) -> list(T)",
    ),
    (
        "list_google.protobuf.Timestamp_sortByAssociatedKeys",
        "list(T).(list(timestamp)) -> list(T)",
    ),
    ("list_string_sortByAssociatedKeys", "list(T).(list(string)) -> list(T)"),
    ("list_bytes_sortByAssociatedKeys", "list(T).(list(bytes)) -> list(T)"),
];

const SECOND_VERSION: [Entry; 3] = [
    entry("lists.range", "lists_range", "(int) -> list(int)", |args| match args {
        [Value::Int(count)] => {
            super::check_size(usize::try_from((*count).max(0)).unwrap_or(usize::MAX))?;
            Ok(Value::list((0..*count).map(Value::Int).collect()))
        }
        _ => Err(EvalError::no_such_overload()),
    }),
    entry("reverse", "list_reverse", "list(T).() -> list(T)", |args| {
        let mut items = items(&args[0])?;
        items.reverse();
        Ok(Value::list(items))
    }),
    entry("distinct", "list_distinct", "list(T).() -> list(T)", |args| distinct(&args[0])),
];

type Aggregate = (&'static str, &'static [(&'static str, &'static str)], Native);

const AGGREGATES: [Aggregate; 3] = [
    (
        "isSorted",
        &[
            ("list_int_is_sorted_bool", "list(int).() -> bool"),
            ("list_uint_is_sorted_bool", "list(uint).() -> bool"),
            ("list_double_is_sorted_bool", "list(double).() -> bool"),
            ("list_bool_is_sorted_bool", "list(bool).() -> bool"),
            ("list_duration_is_sorted_bool", "list(duration).() -> bool"),
            ("list_timestamp_is_sorted_bool", "list(timestamp).() -> bool"),
            ("list_string_is_sorted_bool", "list(string).() -> bool"),
            ("list_bytes_is_sorted_bool", "list(bytes).() -> bool"),
        ],
        is_sorted,
    ),
    (
        "max",
        &[
            ("list_int_max_int", "list(int).() -> int"),
            ("list_uint_max_uint", "list(uint).() -> uint"),
            ("list_double_max_double", "list(double).() -> double"),
            ("list_bool_max_bool", "list(bool).() -> bool"),
            ("list_duration_max_duration", "list(duration).() -> duration"),
            ("list_timestamp_max_timestamp", "list(timestamp).() -> timestamp"),
            ("list_string_max_string", "list(string).() -> string"),
            ("list_bytes_max_bytes", "list(bytes).() -> bytes"),
        ],
        |args| extreme(args, "max", Ordering::Less),
    ),
    (
        "min",
        &[
            ("list_int_min_int", "list(int).() -> int"),
            ("list_uint_min_uint", "list(uint).() -> uint"),
            ("list_double_min_double", "list(double).() -> double"),
            ("list_bool_min_bool", "list(bool).() -> bool"),
            ("list_duration_min_duration", "list(duration).() -> duration"),
            ("list_timestamp_min_timestamp", "list(timestamp).() -> timestamp"),
            ("list_string_min_string", "list(string).() -> string"),
            ("list_bytes_min_bytes", "list(bytes).() -> bytes"),
        ],
        |args| extreme(args, "min", Ordering::Greater),
    ),
];

const SUMS: [(&str, &str, Native); 4] = [
    ("list_int_sum_int", "list(int).() -> int", |args| sum(args, Value::Int(0))),
    ("list_uint_sum_uint", "list(uint).() -> uint", |args| sum(args, Value::Uint(0))),
    ("list_double_sum_double", "list(double).() -> double", |args| {
        sum(args, Value::Double(0.0))
    }),
    ("list_duration_sum_duration", "list(duration).() -> duration", |args| {
        sum(args, Value::Duration(crate::value::Duration::from_nanoseconds(0)))
    }),
];

const KUBERNETES: [Entry; 2] = [
    entry("indexOf", "list_a_index_of_int", "list(A).(A) -> int", |args| match args {
        [Value::List(list), wanted] => place(list, wanted, 0..list.len()),
        _ => Err(EvalError::no_such_overload()),
    }),
    entry("lastIndexOf", "list_a_last_index_of_int", "list(A).(A) -> int", |args| match args {
        [Value::List(list), wanted] => place(list, wanted, (0..list.len()).rev()),
        _ => Err(EvalError::no_such_overload()),
    }),
];

fn place<'a>(list: &List<'a>, wanted: &Value<'a>, places: impl Iterator<Item = usize>) -> Outcome<'a> {
    for index in places {
        if let Some(Ok(item)) = list.get(index)
            && is_equal(&item, wanted)?
        {
            return Ok(Value::Int(index as i64));
        }
    }
    Ok(Value::Int(-1))
}

/// Whether two values are equal; what cannot be compared is not.
fn is_equal(one: &Value<'_>, other: &Value<'_>) -> Result<bool, EvalError> {
    match equal::equal(one, other) {
        Err(error) if !error.is_cancelled() => Ok(false),
        compared => compared,
    }
}

fn items<'a>(list: &Value<'a>) -> Result<Vec<Value<'a>>, EvalError> {
    match list {
        Value::List(list) => list.iter().collect(),
        _ => Err(EvalError::no_such_overload()),
    }
}

fn slice<'a>(args: &[Value<'a>]) -> Outcome<'a> {
    let [Value::List(list), Value::Int(start), Value::Int(end)] = args else {
        return Err(EvalError::no_such_overload());
    };
    let refuse = |why: String| Err(EvalError::new(format!("cannot slice({start}, {end}), {why}")));
    if *start < 0 || *end < 0 {
        return refuse("negative indexes not supported".into());
    }
    if start > end {
        return refuse("start index must be less than or equal to end index".into());
    }
    if (list.len() as i64) < *end {
        return refuse(format!("list is length {}", list.len()));
    }
    let (start, end) = (*start as usize, *end as usize);
    (start..end)
        .filter_map(|index| list.get(index))
        .collect::<Result<_, _>>()
        .map(Value::list)
}

fn flatten<'a>(args: &[Value<'a>]) -> Outcome<'a> {
    let depth = match args {
        [Value::List(_)] => 1,
        [Value::List(_), Value::Int(depth)] => *depth,
        _ => {
            let kinds: Vec<String> = args[1..].iter().map(|arg| arg.type_of().to_string()).collect();
            let message = format!("no such overload: {}.flatten({})", args[0].type_of(), kinds.join(", "));
            return Err(EvalError::of(crate::eval::ErrorKind::NoSuchOverload, message));
        }
    };
    if depth < 0 {
        return Err(EvalError::new("level must be non-negative"));
    }
    let mut flat = Vec::new();
    let mut open = vec![(items(&args[0])?.into_iter(), depth)];
    while let Some((rest, depth)) = open.last_mut() {
        let depth = *depth;
        match rest.next() {
            None => {
                open.pop();
            }
            Some(Value::List(list)) if depth > 0 => open.push((items(&Value::List(list))?.into_iter(), depth - 1)),
            Some(item) => {
                flat.push(item);
                super::check_size(flat.len())?;
            }
        }
    }
    Ok(Value::list(flat))
}

fn sort<'a>(args: &[Value<'a>]) -> Outcome<'a> {
    match &args[0] {
        Value::List(_) => {
            let keys = items(&args[0])?;
            sorted(&args[0], keys.clone(), keys)
        }
        _ => Err(EvalError::of(crate::eval::ErrorKind::NoSuchOverload, "no such overload: sort")),
    }
}

fn sort_by<'a>(args: &[Value<'a>]) -> Outcome<'a> {
    let (values, keys) = (items(&args[0])?, items(&args[1])?);
    if values.len() != keys.len() {
        let (values, keys) = (values.len(), keys.len());
        return Err(EvalError::new(format!(
            "@sortByAssociatedKeys() expected a list of the same size as the associated keys list, but got {values} and {keys} elements respectively"
        )));
    }
    sorted(&args[0], values, keys)
}

fn sorted<'a>(list: &Value<'a>, values: Vec<Value<'a>>, keys: Vec<Value<'a>>) -> Outcome<'a> {
    let Some(first) = keys.first() else {
        return Ok(list.clone());
    };
    let kind = first.type_of();
    if matches!(
        first,
        Value::Null | Value::List(_) | Value::Map(_) | Value::Optional(_) | Value::Type(_) | Value::Opaque(_)
    ) {
        return Err(EvalError::new("list elements must be comparable"));
    }
    if keys.iter().any(|key| key.type_of().runtime_name() != kind.runtime_name()) {
        return Err(EvalError::new("list elements must have the same type"));
    }
    let mut pairs: Vec<(Value<'a>, Value<'a>)> = keys.into_iter().zip(values).collect();
    pairs.sort_by(|(one, _), (other, _)| order::compare(one, other).unwrap_or(Ordering::Equal));
    Ok(Value::list(pairs.into_iter().map(|(_, value)| value).collect()))
}

fn distinct<'a>(list: &Value<'a>) -> Outcome<'a> {
    let mut unique: Vec<Value<'a>> = Vec::new();
    'items: for item in items(list)? {
        for known in &unique {
            if is_equal(&item, known)? {
                continue 'items;
            }
        }
        unique.push(item);
    }
    Ok(Value::list(unique))
}

fn is_sorted<'a>(args: &[Value<'a>]) -> Outcome<'a> {
    let items = items(&args[0])?;
    let descends = |pair: &[Value<'a>]| matches!(order::compare(&pair[0], &pair[1]), Ok(Ordering::Greater));
    Ok(Value::Bool(!items.windows(2).any(descends)))
}

fn extreme<'a>(args: &[Value<'a>], name: &str, replaced: Ordering) -> Outcome<'a> {
    let mut best: Option<Value<'a>> = None;
    for item in items(&args[0])? {
        if !order::is_ordered(&item) {
            return Err(item.held().err().unwrap_or_else(EvalError::no_such_overload));
        }
        best = match best {
            Some(known) if order::compare(&known, &item) != Ok(replaced) => Some(known),
            _ => Some(item),
        };
    }
    best.ok_or_else(|| EvalError::new(format!("{name} called on empty list")))
}

fn sum<'a>(args: &[Value<'a>], zero: Value<'a>) -> Outcome<'a> {
    let mut total = zero;
    for item in items(&args[0])? {
        total = super::standard::add_values(&[total, item])?;
    }
    Ok(total)
}
