//! The libraries that an environment can have.

pub(crate) mod optional;
pub(crate) mod regex;
pub(crate) mod standard;

use crate::decl::{Entry, Overload};
use crate::env::Env;
use crate::parse::macros;
use crate::value::Value;
use std::sync::Arc;

/// A set of functions, macros and types, in the version that is given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Library {
    /// Operators, conversions, text, time, and the macros of the language.
    Standard,
    /// Optional values and their syntax.
    Optional(u32),
    /// Comprehensions of two variables.
    TwoVariables,
    /// `cel.bind`
    Bindings,
}

impl Library {
    pub(crate) fn install(self, env: &mut Env) {
        let macros = |env: &mut Env, added: &[macros::Macro]| {
            Arc::make_mut(&mut env.syntax).macros.extend_from_slice(added);
        };
        match self {
            Library::Standard => {
                macros(env, &macros::STANDARD);
                standard::install(env);
            }
            Library::Optional(version) => {
                Arc::make_mut(&mut env.syntax).optionals = true;
                macros(env, &macros::OPTIONAL[..if version >= 1 { 2 } else { 1 }]);
                optional::install(env, version);
            }
            Library::TwoVariables => {
                macros(env, &macros::TWO_VARIABLES);
                add(env, &optional::MAP_INSERT);
            }
            Library::Bindings => macros(env, &macros::BINDINGS),
        }
    }
}

/// Adds the functions of a table.
pub(crate) fn add(env: &mut Env, entries: &[Entry]) {
    for Entry { function, id, signature, native } in entries {
        env.add(function, Overload::read(id, signature, Some(*native)));
    }
}

/// How long the pattern behind a named format is, if the value is one.
pub(crate) fn pattern_size(_value: &Value<'_>) -> Option<u64> {
    None
}
