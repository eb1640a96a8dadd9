//! The functions that every environment has (cel-go's stdlib).
// tidy: table

use crate::decl::{Function, Native, Overload};
use crate::env::Env;
use crate::eval::EvalError;
use crate::typing::Type;
use crate::value::time::Civil;
use crate::value::{Duration, Value, convert, order};
use std::cmp::Ordering;
use std::sync::Arc;

type Outcome<'a> = Result<Value<'a>, EvalError>;

pub(super) fn install(env: &mut Env) {
    for name in ["bool", "bytes", "double", "int", "string", "type", "uint"] {
        env.type_names.insert(name.into(), Type::read(name));
    }
    env.type_names.insert("list".into(), Type::list(Type::Param("A".into())));
    env.type_names
        .insert("map".into(), Type::map(Type::Param("A".into()), Type::Param("B".into())));
    env.type_names.insert("null_type".into(), Type::Null);
    env.type_names.insert("google.protobuf.Duration".into(), Type::Duration);
    env.type_names.insert("google.protobuf.Timestamp".into(), Type::Timestamp);
    for (name, singleton, overloads) in OPERATORS {
        add(env, name, Some(singleton), overloads);
    }
    for (place, (name, native)) in COMPARISONS.into_iter().enumerate() {
        add(env, name, Some(native), &[]);
        for (ids, signature) in COMPARED {
            env.add(name, Overload::read(ids[place], signature, None));
        }
    }
    for (name, overloads) in CONVERSIONS {
        for (id, signature, native) in overloads {
            env.add(name, Overload::read(id, signature, Some(*native)));
        }
    }
    for (name, id, signature, native) in TIMES {
        env.add(name, Overload::read(id, signature, Some(native)));
    }
}

fn add(env: &mut Env, name: &'static str, singleton: Option<Native>, overloads: &[(&'static str, &'static str)]) {
    for (id, signature) in overloads {
        env.add(name, Overload::read(id, signature, None));
    }
    let functions = Arc::make_mut(&mut env.functions);
    let function = functions
        .entry(name)
        .or_insert_with(|| Function { name, overloads: Vec::new(), singleton: None });
    function.singleton = singleton;
}

type Singleton = (&'static str, Native, &'static [(&'static str, &'static str)]);

/// Functions whose code looks at its arguments itself.
const OPERATORS: [Singleton; 22] = [
    ("_?_:_", none, &[("conditional", "(bool, A, A) -> A")]),
    ("_&&_", none, &[("logical_and", "(bool, bool) -> bool")]),
    ("_||_", none, &[("logical_or", "(bool, bool) -> bool")]),
    ("!_", not, &[("logical_not", "(bool) -> bool")]),
    ("@not_strictly_false", none, &[("not_strictly_false", "(bool) -> bool")]),
    ("_==_", none, &[("equals", "(A, A) -> bool")]),
    ("_!=_", none, &[("not_equals", "(A, A) -> bool")]),
    (
        "_+_",
        add_values,
        &[
            ("add_bytes", "(bytes, bytes) -> bytes"),
            ("add_double", "(double, double) -> double"),
            ("add_duration_duration", "(duration, duration) -> duration"),
            ("add_duration_timestamp", "(duration, timestamp) -> timestamp"),
            ("add_timestamp_duration", "(timestamp, duration) -> timestamp"),
            ("add_int64", "(int, int) -> int"),
            ("add_list", "(list(A), list(A)) -> list(A)"),
            ("add_string", "(string, string) -> string"),
            ("add_uint64", "(uint, uint) -> uint"),
        ],
    ),
    (
        "_/_",
        divide,
        &[
            ("divide_double", "(double, double) -> double"),
            ("divide_int64", "(int, int) -> int"),
            ("divide_uint64", "(uint, uint) -> uint"),
        ],
    ),
    (
        "_%_",
        modulo,
        &[
            ("modulo_int64", "(int, int) -> int"),
            ("modulo_uint64", "(uint, uint) -> uint"),
        ],
    ),
    (
        "_*_",
        multiply,
        &[
            ("multiply_double", "(double, double) -> double"),
            ("multiply_int64", "(int, int) -> int"),
            ("multiply_uint64", "(uint, uint) -> uint"),
        ],
    ),
    (
        "-_",
        negate,
        &[
            ("negate_double", "(double) -> double"),
            ("negate_int64", "(int) -> int"),
        ],
    ),
    (
        "_-_",
        subtract,
        &[
            ("subtract_double", "(double, double) -> double"),
            ("subtract_duration_duration", "(duration, duration) -> duration"),
            ("subtract_int64", "(int, int) -> int"),
            ("subtract_timestamp_duration", "(timestamp, duration) -> timestamp"),
            ("subtract_timestamp_timestamp", "(timestamp, timestamp) -> duration"),
            ("subtract_uint64", "(uint, uint) -> uint"),
        ],
    ),
    (
        "_[_]",
        none,
        &[
            ("index_list", "(list(A), int) -> A"),
            ("index_map", "(map(A, B), A) -> B"),
        ],
    ),
    (
        "@in",
        contains_element,
        &[
            ("in_list", "(A, list(A)) -> bool"),
            ("in_map", "(A, map(A, B)) -> bool"),
        ],
    ),
    (
        "size",
        size,
        &[
            ("size_bytes", "(bytes) -> int"),
            ("bytes_size", "bytes.() -> int"),
            ("size_list", "(list(A)) -> int"),
            ("list_size", "list(A).() -> int"),
            ("size_map", "(map(A, B)) -> int"),
            ("map_size", "map(A, B).() -> int"),
            ("size_string", "(string) -> int"),
            ("string_size", "string.() -> int"),
        ],
    ),
    (
        "type",
        |args| convert::convert(&args[0], &Type::Type(None)),
        &[("type", "(A) -> type(A)")],
    ),
    ("dyn", |args| Ok(args[0].clone()), &[("to_dyn", "(A) -> dyn")]),
    (
        "matches",
        matches,
        &[
            ("matches", "(string, string) -> bool"),
            ("matches_string", "string.(string) -> bool"),
        ],
    ),
    (
        "contains",
        |args| text_pair(args, |text, part| text.contains(part)),
        &[("contains_string", "string.(string) -> bool")],
    ),
    (
        "endsWith",
        |args| text_pair(args, |text, part| text.ends_with(part)),
        &[("ends_with_string", "string.(string) -> bool")],
    ),
    (
        "startsWith",
        |args| text_pair(args, |text, part| text.starts_with(part)),
        &[("starts_with_string", "string.(string) -> bool")],
    ),
];

/// What orders values, and the types that can be ordered.
const COMPARISONS: [(&str, Native); 4] = [
    ("_<_", |args| compare("_<_", args, Ordering::is_lt)),
    ("_<=_", |args| compare("_<=_", args, Ordering::is_le)),
    ("_>_", |args| compare("_>_", args, Ordering::is_gt)),
    ("_>=_", |args| compare("_>=_", args, Ordering::is_ge)),
];

/// For each pair of types, the overloads of the four comparisons in the same order.
const COMPARED: [([&str; 4], &str); 14] = [
    (
        ["less_bool", "less_equals_bool", "greater_bool", "greater_equals_bool"],
        "(bool, bool) -> bool",
    ),
    (
        [
            "less_int64",
            "less_equals_int64",
            "greater_int64",
            "greater_equals_int64",
        ],
        "(int, int) -> bool",
    ),
    (
        [
            "less_int64_double",
            "less_equals_int64_double",
            "greater_int64_double",
            "greater_equals_int64_double",
        ],
        "(int, double) -> bool",
    ),
    (
        [
            "less_int64_uint64",
            "less_equals_int64_uint64",
            "greater_int64_uint64",
            "greater_equals_int64_uint64",
        ],
        "(int, uint) -> bool",
    ),
    (
        [
            "less_uint64",
            "less_equals_uint64",
            "greater_uint64",
            "greater_equals_uint64",
        ],
        "(uint, uint) -> bool",
    ),
    (
        [
            "less_uint64_double",
            "less_equals_uint64_double",
            "greater_uint64_double",
            "greater_equals_uint64_double",
        ],
        "(uint, double) -> bool",
    ),
    (
        [
            "less_uint64_int64",
            "less_equals_uint64_int64",
            "greater_uint64_int64",
            "greater_equals_uint64_int64",
        ],
        "(uint, int) -> bool",
    ),
    (
        [
            "less_double",
            "less_equals_double",
            "greater_double",
            "greater_equals_double",
        ],
        "(double, double) -> bool",
    ),
    (
        [
            "less_double_int64",
            "less_equals_double_int64",
            "greater_double_int64",
            "greater_equals_double_int64",
        ],
        "(double, int) -> bool",
    ),
    (
        [
            "less_double_uint64",
            "less_equals_double_uint64",
            "greater_double_uint64",
            "greater_equals_double_uint64",
        ],
        "(double, uint) -> bool",
    ),
    (
        [
            "less_string",
            "less_equals_string",
            "greater_string",
            "greater_equals_string",
        ],
        "(string, string) -> bool",
    ),
    (
        [
            "less_bytes",
            "less_equals_bytes",
            "greater_bytes",
            "greater_equals_bytes",
        ],
        "(bytes, bytes) -> bool",
    ),
    (
        [
            "less_timestamp",
            "less_equals_timestamp",
            "greater_timestamp",
            "greater_equals_timestamp",
        ],
        "(timestamp, timestamp) -> bool",
    ),
    (
        [
            "less_duration",
            "less_equals_duration",
            "greater_duration",
            "greater_equals_duration",
        ],
        "(duration, duration) -> bool",
    ),
];

type Conversion = (&'static str, &'static str, Native);

const TO_BOOL: Native = |args| convert::convert(&args[0], &Type::Bool);
const TO_BYTES: Native = |args| convert::convert(&args[0], &Type::Bytes);
const TO_DOUBLE: Native = |args| convert::convert(&args[0], &Type::Double);
const TO_DURATION: Native = |args| convert::convert(&args[0], &Type::Duration);
const TO_INT: Native = |args| convert::convert(&args[0], &Type::Int);
const TO_STRING: Native = |args| convert::convert(&args[0], &Type::String);
const TO_TIMESTAMP: Native = |args| convert::convert(&args[0], &Type::Timestamp);
const TO_UINT: Native = |args| convert::convert(&args[0], &Type::Uint);

const CONVERSIONS: [(&str, &[Conversion]); 8] = [
    (
        "bool",
        &[
            ("bool_to_bool", "(bool) -> bool", TO_BOOL),
            ("string_to_bool", "(string) -> bool", TO_BOOL),
        ],
    ),
    (
        "bytes",
        &[
            ("bytes_to_bytes", "(bytes) -> bytes", TO_BYTES),
            ("string_to_bytes", "(string) -> bytes", TO_BYTES),
        ],
    ),
    (
        "double",
        &[
            ("double_to_double", "(double) -> double", TO_DOUBLE),
            ("int64_to_double", "(int) -> double", TO_DOUBLE),
            ("string_to_double", "(string) -> double", TO_DOUBLE),
            ("uint64_to_double", "(uint) -> double", TO_DOUBLE),
        ],
    ),
    (
        "duration",
        &[
            ("duration_to_duration", "(duration) -> duration", TO_DURATION),
            ("int64_to_duration", "(int) -> duration", TO_DURATION),
            ("string_to_duration", "(string) -> duration", TO_DURATION),
        ],
    ),
    (
        "int",
        &[
            ("int64_to_int64", "(int) -> int", TO_INT),
            ("double_to_int64", "(double) -> int", TO_INT),
            ("duration_to_int64", "(duration) -> int", TO_INT),
            ("string_to_int64", "(string) -> int", TO_INT),
            ("timestamp_to_int64", "(timestamp) -> int", TO_INT),
            ("uint64_to_int64", "(uint) -> int", TO_INT),
        ],
    ),
    (
        "string",
        &[
            ("string_to_string", "(string) -> string", TO_STRING),
            ("bool_to_string", "(bool) -> string", TO_STRING),
            ("bytes_to_string", "(bytes) -> string", TO_STRING),
            ("double_to_string", "(double) -> string", TO_STRING),
            ("duration_to_string", "(duration) -> string", TO_STRING),
            ("int64_to_string", "(int) -> string", TO_STRING),
            ("timestamp_to_string", "(timestamp) -> string", TO_STRING),
            ("uint64_to_string", "(uint) -> string", TO_STRING),
        ],
    ),
    (
        "timestamp",
        &[
            ("timestamp_to_timestamp", "(timestamp) -> timestamp", TO_TIMESTAMP),
            ("int64_to_timestamp", "(int) -> timestamp", TO_TIMESTAMP),
            ("string_to_timestamp", "(string) -> timestamp", TO_TIMESTAMP),
        ],
    ),
    (
        "uint",
        &[
            ("uint64_to_uint64", "(uint) -> uint", TO_UINT),
            ("double_to_uint64", "(double) -> uint", TO_UINT),
            ("int64_to_uint64", "(int) -> uint", TO_UINT),
            ("string_to_uint64", "(string) -> uint", TO_UINT),
        ],
    ),
];

const TIMES: [(&str, &str, &str, Native); 24] = [
    ("getFullYear", "timestamp_to_year", "timestamp.() -> int", |args| {
        civil(args, |time| time.year)
    }),
    ("getFullYear", "timestamp_to_year_with_tz", "timestamp.(string) -> int", |args| {
        civil(args, |time| time.year)
    }),
    ("getMonth", "timestamp_to_month", "timestamp.() -> int", |args| {
        civil(args, |time| time.month - 1)
    }),
    ("getMonth", "timestamp_to_month_with_tz", "timestamp.(string) -> int", |args| {
        civil(args, |time| time.month - 1)
    }),
    ("getDayOfYear", "timestamp_to_day_of_year", "timestamp.() -> int", |args| {
        civil(args, |time| time.day_of_year)
    }),
    ("getDayOfYear", "timestamp_to_day_of_year_with_tz", "timestamp.(string) -> int", |args| {
        civil(args, |time| time.day_of_year)
    }),
    ("getDayOfMonth", "timestamp_to_day_of_month", "timestamp.() -> int", |args| {
        civil(args, |time| time.day - 1)
    }),
    (
        "getDayOfMonth",
        "timestamp_to_day_of_month_with_tz",
        "timestamp.(string) -> int",
        |args| civil(args, |time| time.day - 1),
    ),
    ("getDate", "timestamp_to_day_of_month_1_based", "timestamp.() -> int", |args| {
        civil(args, |time| time.day)
    }),
    (
        "getDate",
        "timestamp_to_day_of_month_1_based_with_tz",
        "timestamp.(string) -> int",
        |args| civil(args, |time| time.day),
    ),
    ("getDayOfWeek", "timestamp_to_day_of_week", "timestamp.() -> int", |args| {
        civil(args, |time| time.weekday)
    }),
    ("getDayOfWeek", "timestamp_to_day_of_week_with_tz", "timestamp.(string) -> int", |args| {
        civil(args, |time| time.weekday)
    }),
    ("getHours", "timestamp_to_hours", "timestamp.() -> int", |args| {
        civil(args, |time| time.hour)
    }),
    ("getHours", "timestamp_to_hours_with_tz", "timestamp.(string) -> int", |args| {
        civil(args, |time| time.hour)
    }),
    ("getHours", "duration_to_hours", "duration.() -> int", |args| {
        span(args, 3_600_000_000_000)
    }),
    ("getMinutes", "timestamp_to_minutes", "timestamp.() -> int", |args| {
        civil(args, |time| time.minute)
    }),
    ("getMinutes", "timestamp_to_minutes_with_tz", "timestamp.(string) -> int", |args| {
        civil(args, |time| time.minute)
    }),
    ("getMinutes", "duration_to_minutes", "duration.() -> int", |args| {
        span(args, 60_000_000_000)
    }),
    ("getSeconds", "timestamp_to_seconds", "timestamp.() -> int", |args| {
        civil(args, |time| time.second)
    }),
    ("getSeconds", "timestamp_to_seconds_tz", "timestamp.(string) -> int", |args| {
        civil(args, |time| time.second)
    }),
    ("getSeconds", "duration_to_seconds", "duration.() -> int", |args| {
        span(args, 1_000_000_000)
    }),
    ("getMilliseconds", "timestamp_to_milliseconds", "timestamp.() -> int", |args| {
        civil(args, |time| time.millisecond)
    }),
    (
        "getMilliseconds",
        "timestamp_to_milliseconds_with_tz",
        "timestamp.(string) -> int",
        |args| civil(args, |time| time.millisecond),
    ),
    ("getMilliseconds", "duration_to_milliseconds", "duration.() -> int", |args| {
        span(args, 1_000_000)
    }),
];

fn none<'a>(_args: &[Value<'a>]) -> Outcome<'a> {
    Err(EvalError::no_such_overload())
}

/// The error of a first argument that does not know the operation. Text and times report it without its name, because
/// cel-go asks them for a method first.
fn unsupported<'a>(function: &str, value: &Value<'a>) -> Outcome<'a> {
    Err(match value {
        Value::String(_) | Value::Duration(_) | Value::Timestamp(_) => EvalError::no_such_overload(),
        _ => EvalError::of(crate::eval::ErrorKind::NoSuchOverload, format!("no such overload: {function}")),
    })
}

fn overload<'a>() -> Outcome<'a> {
    Err(EvalError::no_such_overload())
}

fn int<'a>(number: Option<i64>) -> Outcome<'a> {
    number.map(Value::Int).ok_or_else(|| EvalError::new("integer overflow"))
}

fn uint<'a>(number: Option<u64>) -> Outcome<'a> {
    number.map(Value::Uint).ok_or_else(|| EvalError::new("unsigned integer overflow"))
}

fn duration<'a>(nanoseconds: Option<i64>) -> Outcome<'a> {
    let span = nanoseconds.map(|nanoseconds| Value::Duration(Duration::from_nanoseconds(nanoseconds)));
    span.ok_or_else(|| EvalError::new("integer overflow"))
}

fn not<'a>(args: &[Value<'a>]) -> Outcome<'a> {
    match args {
        [Value::Bool(value)] => Ok(Value::Bool(!value)),
        _ => overload(),
    }
}

pub(super) fn add_values<'a>(args: &[Value<'a>]) -> Outcome<'a> {
    match args {
        [Value::Int(one), Value::Int(other)] => int(one.checked_add(*other)),
        [Value::Uint(one), Value::Uint(other)] => uint(one.checked_add(*other)),
        [Value::Double(one), Value::Double(other)] => Ok(Value::Double(one + other)),
        [Value::String(one), Value::String(other)] => {
            let mut text = String::with_capacity(one.len() + other.len());
            text.push_str(one);
            text.push_str(other);
            Ok(Value::string(text))
        }
        [Value::Bytes(one), Value::Bytes(other)] => Ok(Value::bytes([&**one, &**other].concat())),
        [Value::List(one), Value::List(other)] => one.concat(other).map(Value::List),
        [Value::Duration(one), Value::Duration(other)] => duration(one.nanoseconds().checked_add(other.nanoseconds())),
        [Value::Timestamp(point), Value::Duration(span)] | [Value::Duration(span), Value::Timestamp(point)] => {
            point.add(*span).map(Value::Timestamp)
        }
        [
            Value::Null | Value::Bool(_) | Value::Map(_) | Value::Optional(_) | Value::Type(_) | Value::Opaque(_),
            _,
        ] => unsupported("_+_", &args[0]),
        _ => overload(),
    }
}

fn subtract<'a>(args: &[Value<'a>]) -> Outcome<'a> {
    match args {
        [Value::Int(one), Value::Int(other)] => int(one.checked_sub(*other)),
        [Value::Uint(one), Value::Uint(other)] => uint(one.checked_sub(*other)),
        [Value::Double(one), Value::Double(other)] => Ok(Value::Double(one - other)),
        [Value::Duration(one), Value::Duration(other)] => duration(one.nanoseconds().checked_sub(other.nanoseconds())),
        [Value::Timestamp(point), Value::Duration(span)] => match span.nanoseconds().checked_neg() {
            Some(negative) => point.add(Duration::from_nanoseconds(negative)).map(Value::Timestamp),
            None => Err(EvalError::new("integer overflow")),
        },
        [Value::Timestamp(one), Value::Timestamp(other)] => one.since(*other).map(Value::Duration),
        [
            Value::Int(_) | Value::Uint(_) | Value::Double(_) | Value::Duration(_) | Value::Timestamp(_),
            _,
        ] => overload(),
        _ => unsupported("_-_", &args[0]),
    }
}

fn multiply<'a>(args: &[Value<'a>]) -> Outcome<'a> {
    match args {
        [Value::Int(one), Value::Int(other)] => int(one.checked_mul(*other)),
        [Value::Uint(one), Value::Uint(other)] => uint(one.checked_mul(*other)),
        [Value::Double(one), Value::Double(other)] => Ok(Value::Double(one * other)),
        [Value::Int(_) | Value::Uint(_) | Value::Double(_), _] => overload(),
        _ => unsupported("_*_", &args[0]),
    }
}

fn divide<'a>(args: &[Value<'a>]) -> Outcome<'a> {
    match args {
        [Value::Int(_), Value::Int(0)] | [Value::Uint(_), Value::Uint(0)] => Err(EvalError::new("division by zero")),
        [Value::Int(one), Value::Int(other)] => int(one.checked_div(*other)),
        [Value::Uint(one), Value::Uint(other)] => uint(one.checked_div(*other)),
        [Value::Double(one), Value::Double(other)] => Ok(Value::Double(one / other)),
        [Value::Int(_) | Value::Uint(_) | Value::Double(_), _] => overload(),
        _ => unsupported("_/_", &args[0]),
    }
}

fn modulo<'a>(args: &[Value<'a>]) -> Outcome<'a> {
    match args {
        [Value::Int(_), Value::Int(0)] | [Value::Uint(_), Value::Uint(0)] => Err(EvalError::new("modulus by zero")),
        [Value::Int(one), Value::Int(other)] => int(one.checked_rem(*other)),
        [Value::Uint(one), Value::Uint(other)] => uint(one.checked_rem(*other)),
        [Value::Int(_) | Value::Uint(_), _] => overload(),
        _ => unsupported("_%_", &args[0]),
    }
}

fn negate<'a>(args: &[Value<'a>]) -> Outcome<'a> {
    match args {
        [Value::Int(number)] => int(number.checked_neg()),
        [Value::Double(number)] => Ok(Value::Double(-number)),
        [Value::Duration(span)] => duration(span.nanoseconds().checked_neg()),
        [Value::Bool(_)] => overload(),
        _ => unsupported("-_", &args[0]),
    }
}

fn compare<'a>(function: &str, args: &[Value<'a>], holds: fn(Ordering) -> bool) -> Outcome<'a> {
    match args {
        [
            Value::Null | Value::List(_) | Value::Map(_) | Value::Optional(_) | Value::Type(_) | Value::Opaque(_),
            _,
        ] => unsupported(function, &args[0]),
        [Value::Double(number), other] if number.is_nan() && !matches!(other, Value::Null) => {
            Err(EvalError::new("NaN values cannot be ordered"))
        }
        [one, other] => order::compare(one, other).map(|order| Value::Bool(holds(order))),
        _ => overload(),
    }
}

fn contains_element<'a>(args: &[Value<'a>]) -> Outcome<'a> {
    match args {
        [value, Value::List(list)] => list.contains(value).map(Value::Bool),
        [key, Value::Map(map)] => map.find(key).map(|found| Value::Bool(found.is_some())),
        _ => overload(),
    }
}

fn size<'a>(args: &[Value<'a>]) -> Outcome<'a> {
    match &args[0] {
        Value::Opaque(value) => unsupported("size", &Value::Opaque(value.clone())),
        value => match value.size() {
            Some(size) => Ok(Value::Int(size as i64)),
            None => unsupported("size", value),
        },
    }
}

fn matches<'a>(args: &[Value<'a>]) -> Outcome<'a> {
    match args {
        [Value::String(text), Value::String(pattern)] => {
            super::regex::compile(pattern).map(|pattern| Value::Bool(pattern.is_match(text)))
        }
        [Value::String(_), _] => overload(),
        _ => unsupported("matches", &args[0]),
    }
}

fn text_pair<'a>(args: &[Value<'a>], holds: fn(&str, &str) -> bool) -> Outcome<'a> {
    match args {
        [Value::String(text), Value::String(part)] => Ok(Value::Bool(holds(text, part))),
        _ => overload(),
    }
}

fn civil<'a>(args: &[Value<'a>], part: fn(Civil) -> i64) -> Outcome<'a> {
    match args {
        [Value::Timestamp(point)] => point.civil("UTC").map(|time| Value::Int(part(time))),
        [Value::Timestamp(point), Value::String(zone)] => point.civil(zone).map(|time| Value::Int(part(time))),
        _ => overload(),
    }
}

fn span<'a>(args: &[Value<'a>], unit: i64) -> Outcome<'a> {
    match args {
        [Value::Duration(span)] => Ok(Value::Int(span.nanoseconds() / unit)),
        _ => overload(),
    }
}
