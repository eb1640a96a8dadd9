//! Patterns in RE2's notation, matched in linear time, and Kubernetes' functions that find them.

mod translate;

use super::strings::part;
use crate::decl::{Entry, entry};
use crate::eval::EvalError;
use crate::value::{Text, Value};
use regex::{Regex, RegexBuilder};

type Outcome<'a> = Result<Value<'a>, EvalError>;

/// How large a compiled pattern may be, in bytes.
const MAX_COMPILED: usize = 16 << 20;

pub(super) const FUNCTIONS: [Entry; 3] = [
    entry("find", "string_find_string", "string.(string) -> string", |args| match args {
        [Value::String(text), Value::String(pattern)] => Ok(find(text, &illegal(pattern)?)),
        _ => Err(EvalError::no_such_overload()),
    }),
    entry(
        "findAll",
        "string_find_all_string",
        "string.(string) -> list(string)",
        |args| match args {
            [Value::String(text), Value::String(pattern)] => Ok(find_all(text, &illegal(pattern)?, -1)),
            _ => Err(EvalError::no_such_overload()),
        },
    ),
    entry(
        "findAll",
        "string_find_all_string_int",
        "string.(string, int) -> list(string)",
        |args| match args {
            [Value::String(text), Value::String(pattern), Value::Int(limit)] => {
                Ok(find_all(text, &illegal(pattern)?, *limit))
            }
            _ => Err(EvalError::no_such_overload()),
        },
    ),
];

/// Runs a function whose pattern is compiled already.
pub(crate) fn matched<'a>(function: &str, pattern: &Regex, args: &[Value<'a>]) -> Outcome<'a> {
    match (function, args) {
        ("matches", [Value::String(text), _]) => Ok(Value::Bool(pattern.is_match(text))),
        ("find", [Value::String(text), _]) => Ok(find(text, pattern)),
        ("findAll", [Value::String(text), _]) => Ok(find_all(text, pattern, -1)),
        ("findAll", [Value::String(text), _, Value::Int(limit)]) => Ok(find_all(text, pattern, *limit)),
        _ => Err(EvalError::no_such_overload()),
    }
}

fn illegal(pattern: &str) -> Result<Regex, EvalError> {
    compile(pattern).map_err(|error| EvalError::new(format!("Illegal regex: {error}")))
}

fn find<'a>(text: &Text<'a>, pattern: &Regex) -> Value<'a> {
    pattern.find(text).map_or(Value::text(""), |found| part(text, found.as_str()))
}

fn find_all<'a>(text: &Text<'a>, pattern: &Regex, limit: i64) -> Value<'a> {
    let limit = usize::try_from(limit).unwrap_or(usize::MAX);
    Value::list(pattern.find_iter(text).take(limit).map(|found| part(text, found.as_str())).collect())
}

/// Compiles a pattern written for Go.
pub(crate) fn compile(pattern: &str) -> Result<Regex, EvalError> {
    let wrong = |why: &str, what: &str| EvalError::new(format!("error parsing regexp: {why}: `{what}`"));
    let translated = translate::translate(pattern).map_err(|(why, what)| wrong(why, &what))?;
    let built = RegexBuilder::new(&translated).size_limit(MAX_COMPILED).build();
    built.map_err(|error| match error {
        regex::Error::CompiledTooBig(_) => wrong("expression too large", pattern),
        _ => wrong("invalid pattern", pattern),
    })
}
