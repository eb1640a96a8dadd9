//! The libraries that an environment can have.

pub(crate) mod authorizer;
pub(crate) mod format_text;
mod lists;
mod math;
mod named_format;
mod network;
pub(crate) mod optional;
mod quantity;
pub(crate) mod regex;
mod semver;
mod sets;
pub(crate) mod standard;
pub(crate) mod strings;
mod url;
pub(crate) mod well_known;

use crate::decl::{Entry, Overload};
use crate::env::Env;
use crate::eval::EvalError;
use crate::parse::macros;
use crate::typing::Type;
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
    /// cel-go's `ext.Strings`.
    Strings(u32),
    /// cel-go's `ext.Lists`.
    Lists(u32),
    /// cel-go's `ext.Math`.
    Math(u32),
    /// cel-go's `ext.Sets`.
    Sets,
    /// cel-go's `ext.Encoders`: base64.
    Encoders,
    /// Kubernetes' functions on lists: `isSorted`, `sum`, `min`, `max`, `indexOf`, `lastIndexOf`.
    KubernetesLists,
    /// Kubernetes' `find` and `findAll`.
    Regex,
    /// Kubernetes' URLs.
    Urls,
    /// Kubernetes' IP addresses.
    Ip,
    /// Kubernetes' networks.
    Cidr,
    /// Kubernetes' quantities.
    Quantity,
    /// Kubernetes' named formats.
    Format,
    /// Kubernetes' semantic versions.
    Semver(u32),
    /// `jsonpatch.escapeKey`
    JsonPatch,
    /// Kubernetes' authorization checks, with selectors.
    Authorizer,
}

/// The libraries of Kubernetes 1.36's base environment.
pub const KUBERNETES: [Library; 15] = [
    Library::Standard,
    Library::Urls,
    Library::Regex,
    Library::KubernetesLists,
    Library::Authorizer,
    Library::Optional(u32::MAX),
    Library::Quantity,
    Library::Strings(2),
    Library::Sets,
    Library::Ip,
    Library::Cidr,
    Library::Format,
    Library::TwoVariables,
    Library::Semver(1),
    Library::Lists(3),
];

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
            Library::Strings(version) => {
                strings::install(env, version);
                env.options.validates_formats |= (1..4).contains(&version);
            }
            Library::Lists(version) => {
                if version >= 2 {
                    macros(env, &macros::LISTS);
                }
                lists::install(env, version);
                env.options.list_costs |= version >= 3;
            }
            Library::Math(version) => {
                macros(env, &macros::MATH);
                math::install(env, version);
            }
            other => other.install_table(env),
        }
    }

    /// The libraries that are nothing but functions and types.
    fn install_table(self, env: &mut Env) {
        let mut types = |name: &str| {
            env.type_names.insert(name.into(), Type::opaque(name));
        };
        match self {
            Library::Ip => types("net.IP"),
            Library::Cidr => types("net.CIDR"),
            _ => {}
        }
        match self {
            Library::Sets => add(env, &sets::SETS),
            Library::Encoders => add(env, &sets::ENCODERS),
            Library::KubernetesLists => lists::install_kubernetes(env),
            Library::Regex => add(env, &regex::FUNCTIONS),
            Library::Urls => add(env, &url::FUNCTIONS),
            Library::Ip => add(env, &network::IP),
            Library::Cidr => add(env, &network::CIDR),
            Library::Quantity => add(env, &quantity::FUNCTIONS),
            Library::Format => {
                add(env, &named_format::FUNCTIONS);
                add(env, &named_format::CONSTANTS);
            }
            Library::Semver(version) => {
                add(env, &semver::FUNCTIONS);
                if version >= 1 {
                    add(env, &semver::NORMALIZING);
                }
            }
            Library::JsonPatch => add(env, &strings::JSON_PATCH),
            _ => authorizer::install(env),
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
pub(crate) fn pattern_size(value: &Value<'_>) -> Option<u64> {
    value.downcast::<named_format::NamedFormat>().map(|format| format.pattern_size)
}

/// How many elements or bytes one call may make.
const MAX_SIZE: usize = 1 << 24;

/// Refuses to make something larger than any evaluation may need.
pub(crate) fn check_size(size: usize) -> Result<(), EvalError> {
    if size > MAX_SIZE {
        Err(EvalError::cost_limit())
    } else {
        Ok(())
    }
}
