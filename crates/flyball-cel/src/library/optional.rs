//! Optional values, and insertion into maps for comprehensions of two variables.

use super::add;
use crate::decl::{Entry, Overload, entry};
use crate::env::Env;
use crate::eval::EvalError;
use crate::typing::Type;
use crate::value::map::Entries;
use crate::value::{Map, Value};
use std::sync::Arc;

type Outcome<'a> = Result<Value<'a>, EvalError>;

pub(super) fn install(env: &mut Env, version: u32) {
    env.type_names.insert("optional_type".into(), Type::optional(Type::Param("V".into())));
    add(env, &FUNCTIONS);
    if version >= 2 {
        add(env, &SECOND_VERSION);
    }
    for (function, id, signature) in OPERATORS {
        env.add(function, Overload::read(id, signature, None));
    }
}

const FUNCTIONS: [Entry; 5] = [
    entry("optional.of", "optional_of", "(V) -> optional(V)", |args| {
        Ok(Value::some(args[0].clone()))
    }),
    entry("optional.ofNonZeroValue", "optional_ofNonZeroValue", "(V) -> optional(V)", |args| {
        Ok(if args[0].is_zero() {
            Value::Optional(None)
        } else {
            Value::some(args[0].clone())
        })
    }),
    entry("optional.none", "optional_none", "() -> optional(V)", |_| Ok(Value::Optional(None))),
    entry("value", "optional_value", "optional(V).() -> V", |args| match &args[0] {
        Value::Optional(Some(value)) => value.held(),
        Value::Optional(None) => Err(EvalError::new("optional.none() dereference")),
        _ => Err(EvalError::no_such_overload()),
    }),
    entry("hasValue", "optional_hasValue", "optional(V).() -> bool", |args| {
        Ok(Value::Bool(matches!(args[0], Value::Optional(Some(_)))))
    }),
];

const SECOND_VERSION: [Entry; 4] = [
    entry("last", "list_last", "list(V).() -> optional(V)", |args| edge(&args[0], true)),
    entry("first", "list_first", "list(V).() -> optional(V)", |args| edge(&args[0], false)),
    entry("optional.unwrap", "optional_unwrap", "(list(optional(V))) -> list(V)", |args| {
        unwrap(&args[0])
    }),
    entry("unwrapOpt", "optional_unwrapOpt", "list(optional(V)).() -> list(V)", |args| {
        unwrap(&args[0])
    }),
];

/// What the evaluator does itself.
const OPERATORS: [(&str, &str, &str); 9] = [
    ("or", "optional_or_optional", "optional(V).(optional(V)) -> optional(V)"),
    ("orValue", "optional_orValue_value", "optional(V).(V) -> V"),
    ("_?._", "select_optional_field", "(dyn, string) -> optional(V)"),
    ("_[?_]", "list_optindex_optional_int", "(list(V), int) -> optional(V)"),
    ("_[?_]", "optional_list_optindex_optional_int", "(optional(list(V)), int) -> optional(V)"),
    ("_[?_]", "map_optindex_optional_value", "(map(K, V), K) -> optional(V)"),
    ("_[?_]", "optional_map_optindex_optional_value", "(optional(map(K, V)), K) -> optional(V)"),
    ("_[_]", "optional_list_index_int", "(optional(list(V)), int) -> optional(V)"),
    ("_[_]", "optional_map_index_value", "(optional(map(K, V)), K) -> optional(V)"),
];

fn edge<'a>(list: &Value<'a>, last: bool) -> Outcome<'a> {
    let Value::List(list) = list else {
        return Err(EvalError::no_such_overload());
    };
    let index = if last { list.len().saturating_sub(1) } else { 0 };
    match list.get(index) {
        Some(item) => item.map(Value::some),
        None => Ok(Value::Optional(None)),
    }
}

fn unwrap<'a>(list: &Value<'a>) -> Outcome<'a> {
    let Value::List(list) = list else {
        return Err(EvalError::no_such_overload());
    };
    let mut items = Vec::new();
    for item in list.iter() {
        match item? {
            Value::Optional(value) => items.extend(value.map(|value| (*value).clone())),
            other => return Err(EvalError::new(format!("value {other} is not optional"))),
        }
    }
    Ok(Value::list(items))
}

/// What `transformMap` and `transformMapEntry` expand to.
pub(super) const MAP_INSERT: [Entry; 2] = [
    entry("cel.@mapInsert", "@mapInsert_map_key_value", "(map(K, V), K, V) -> map(K, V)", |args| {
        insert(&args[0], [Ok((args[1].clone(), args[2].clone()))].into_iter())
    }),
    entry(
        "cel.@mapInsert",
        "@mapInsert_map_map",
        "(map(K, V), map(K, V)) -> map(K, V)",
        |args| match &args[1] {
            Value::Map(added) => insert(&args[0], added.entries()),
            _ => Err(EvalError::no_such_overload()),
        },
    ),
];

fn insert<'a>(map: &Value<'a>, added: impl Iterator<Item = Result<(Value<'a>, Value<'a>), EvalError>>) -> Outcome<'a> {
    let Value::Map(map) = map else {
        return Err(EvalError::no_such_overload());
    };
    let mut entries = Entries::default();
    for entry in map.entries() {
        let (key, value) = entry?;
        entries.insert(key, value)?;
    }
    for entry in added {
        let (key, value) = entry?;
        if entries.find(&key)?.is_some() {
            return Err(EvalError::new(format!("insert failed: key {key} already exists")));
        }
        entries.insert(key, value)?;
    }
    Ok(Value::Map(Map::Entries(Arc::new(entries))))
}
