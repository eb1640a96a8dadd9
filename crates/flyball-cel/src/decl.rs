//! Declarations of functions: their overloads, and the code that runs for each.

use crate::eval::EvalError;
use crate::typing::{Type, split};
use crate::value::Value;
use std::collections::BTreeSet;
use std::sync::Arc;

/// The code of a function. It sees its arguments, the receiver first.
pub type Native = for<'a> fn(&[Value<'a>]) -> Result<Value<'a>, EvalError>;

/// One signature of a function.
#[derive(Clone, Debug)]
pub struct Overload {
    /// The name of the signature, which costs refer to.
    pub id: &'static str,
    /// Whether it is called as a method of its first argument.
    pub member: bool,
    /// The types of the arguments, the receiver first.
    pub args: Vec<Type>,
    /// The type of the result.
    pub result: Type,
    /// The parameters among those types.
    pub(crate) params: Vec<Arc<str>>,
    pub(crate) native: Option<Native>,
}

impl Overload {
    /// Reads a signature: `string.(int, int) -> string` is a method, `(string) -> int` a function.
    pub(crate) fn read(id: &'static str, signature: &str, native: Option<Native>) -> Overload {
        let (parameters, result) = signature.split_once(" -> ").unwrap_or((signature, "dyn"));
        let (member, receiver, rest) = match parameters.split_once(".(") {
            Some((receiver, rest)) => (true, Some(receiver), rest),
            None => (false, None, parameters.trim_start_matches('(')),
        };
        let rest = rest.strip_suffix(')').unwrap_or(rest);
        let args: Vec<Type> = receiver.into_iter().chain(split(rest)).map(Type::read).collect();
        let result = Type::read(result);
        let mut names = BTreeSet::new();
        args.iter().chain([&result]).for_each(|kind| collect_params(kind, &mut names));
        Overload {
            id,
            member,
            args,
            result,
            params: names.into_iter().collect(),
            native,
        }
    }
}

fn collect_params(kind: &Type, names: &mut BTreeSet<Arc<str>>) {
    match kind {
        Type::Param(name) => {
            names.insert(name.clone());
        }
        Type::List(inner) | Type::Nullable(inner) | Type::Type(Some(inner)) => collect_params(inner, names),
        Type::Map(key, value) => {
            collect_params(key, names);
            collect_params(value, names);
        }
        Type::Opaque(_, params) => params.iter().for_each(|param| collect_params(param, names)),
        _ => {}
    }
}

/// A function with all its signatures.
#[derive(Clone, Debug)]
pub struct Function {
    /// The name, qualified.
    pub name: &'static str,
    /// The signatures, in the order in which they are tried.
    pub overloads: Vec<Overload>,
    /// Code that serves every signature and looks at its arguments itself.
    pub(crate) singleton: Option<Native>,
}

/// A library function as its table declares it.
pub(crate) struct Entry {
    pub function: &'static str,
    pub id: &'static str,
    pub signature: &'static str,
    pub native: Native,
}

/// Shorthand for the tables of libraries.
pub(crate) const fn entry(function: &'static str, id: &'static str, signature: &'static str, native: Native) -> Entry {
    Entry { function, id, signature, native }
}
