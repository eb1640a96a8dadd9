//! Whether a value of one type may stand where another is wanted, and what that says of types still to be found.

use crate::typing::Type;
use std::sync::Arc;

/// The types that were found for type variables, with what is needed to take findings back.
#[derive(Debug, Default)]
pub(super) struct Substitution {
    found: Vec<Option<Type>>,
    undo: Vec<(u32, Option<Type>)>,
}

impl Substitution {
    pub(super) fn fresh(&mut self) -> Type {
        self.found.push(None);
        Type::Var(self.found.len() as u32 - 1)
    }

    /// Whether the one type is assignable to the other. What is learnt of variables is kept only if it is.
    pub(super) fn assign(&mut self, one: &Type, other: &Type) -> bool {
        self.attempt(|this| this.is_assignable(one, other))
    }

    /// The same for all pairs.
    pub(super) fn assign_all(&mut self, ones: &[Type], others: &[Type]) -> bool {
        self.attempt(|this| this.are_assignable(ones, others))
    }

    fn attempt(&mut self, check: impl FnOnce(&mut Self) -> bool) -> bool {
        self.undo.clear();
        let fits = check(self);
        if !fits {
            while let Some((variable, before)) = self.undo.pop() {
                self.found[variable as usize] = before;
            }
        }
        fits
    }

    fn learn(&mut self, variable: u32, kind: Type) {
        let before = self.found[variable as usize].replace(kind);
        self.undo.push((variable, before));
    }

    /// The type with all variables replaced that are known; the others become `dyn` if asked for.
    pub(super) fn resolve(&self, kind: &Type, unknown_to_dyn: bool) -> Type {
        let inner = |kind: &Type| Arc::new(self.resolve(kind, unknown_to_dyn));
        match kind {
            Type::Var(variable) => match &self.found[*variable as usize] {
                Some(found) => self.resolve(found, unknown_to_dyn),
                None if unknown_to_dyn => Type::Dyn,
                None => kind.clone(),
            },
            Type::Param(_) if unknown_to_dyn => Type::Dyn,
            Type::List(element) => Type::List(inner(element)),
            Type::Map(key, value) => Type::Map(inner(key), inner(value)),
            Type::Type(Some(of)) => Type::Type(Some(inner(of))),
            Type::Opaque(name, params) => {
                let params = params.iter().map(|param| self.resolve(param, unknown_to_dyn));
                Type::Opaque(name.clone(), params.collect())
            }
            _ => kind.clone(),
        }
    }

    fn is_assignable(&mut self, one: &Type, other: &Type) -> bool {
        if let Type::Var(variable) = other {
            match self.substitute(one, *variable) {
                (true, _) => return true,
                (false, true) => return false,
                (false, false) => {}
            }
        }
        if let Type::Var(variable) = one {
            return self.substitute(other, *variable).0;
        }
        if is_dyn_or_error(one) || is_dyn_or_error(other) {
            return true;
        }
        match (one, other) {
            (Type::Null, kind) | (kind, Type::Null) => is_nullable(kind),
            (Type::Type(_), other) => matches!(other, Type::Type(_)),
            (Type::List(one), Type::List(other)) => self.is_assignable(one, other),
            (Type::Map(key, value), Type::Map(other_key, other_value)) => {
                self.is_assignable(key, other_key) && self.is_assignable(value, other_value)
            }
            (Type::Opaque(name, params), Type::Opaque(other_name, others)) => {
                name == other_name && self.are_assignable(&params.clone(), &others.clone())
            }
            (one, other) => one.is_exact(other),
        }
    }

    fn are_assignable(&mut self, ones: &[Type], others: &[Type]) -> bool {
        ones.len() == others.len() && ones.iter().zip(others).all(|(one, other)| self.is_assignable(one, other))
    }

    /// Whether the variable may be this type, and whether it was known before.
    fn substitute(&mut self, kind: &Type, variable: u32) -> (bool, bool) {
        if *kind == Type::Var(variable) {
            return (true, true);
        }
        if let Some(known) = self.found[variable as usize].clone() {
            if kind.is_exact(&known) {
                return (true, true);
            }
            if !self.is_assignable(kind, &known) {
                return (false, true);
            }
            let general = most_general(kind, &known);
            if self.is_free_in(variable, general) {
                let general = general.clone();
                self.learn(variable, general);
            }
            return (true, true);
        }
        if self.is_free_in(variable, kind) {
            self.learn(variable, kind.clone());
            return (true, false);
        }
        (false, false)
    }

    /// Whether the variable does not occur in the type.
    fn is_free_in(&self, variable: u32, kind: &Type) -> bool {
        match kind {
            Type::Var(found) if *found == variable => false,
            Type::Var(found) => match &self.found[*found as usize] {
                Some(known) => self.is_free_in(variable, known),
                None => true,
            },
            Type::List(inner) | Type::Type(Some(inner)) => self.is_free_in(variable, inner),
            Type::Map(key, value) => self.is_free_in(variable, key) && self.is_free_in(variable, value),
            Type::Opaque(_, params) => params.iter().all(|param| self.is_free_in(variable, param)),
            _ => true,
        }
    }
}

pub(super) fn is_dyn_or_error(kind: &Type) -> bool {
    matches!(kind, Type::Dyn | Type::Error)
}

fn is_nullable(kind: &Type) -> bool {
    use Type::{Duration, Null, Nullable, Opaque, Struct, Timestamp};
    matches!(kind, Null | Nullable(_) | Opaque(..) | Struct(_) | Duration | Timestamp)
}

/// The one of two assignable types that admits more.
pub(super) fn most_general<'t>(one: &'t Type, other: &'t Type) -> &'t Type {
    if is_equal_or_less_specific(one, other) {
        one
    } else {
        other
    }
}

fn is_equal_or_less_specific(one: &Type, other: &Type) -> bool {
    match (one, other) {
        (Type::Dyn | Type::Var(_) | Type::Param(_), _) => true,
        (_, Type::Dyn | Type::Var(_) | Type::Param(_)) => false,
        (Type::Opaque(name, params), Type::Opaque(other_name, others)) => {
            name == other_name
                && params.len() == others.len()
                && params.iter().zip(others.iter()).all(|(one, other)| is_equal_or_less_specific(one, other))
        }
        (Type::List(one), Type::List(other)) => is_equal_or_less_specific(one, other),
        (Type::Map(key, value), Type::Map(other_key, other_value)) => {
            is_equal_or_less_specific(key, other_key) && is_equal_or_less_specific(value, other_value)
        }
        (Type::Type(_), Type::Type(_)) => true,
        (one, other) => one.is_exact(other),
    }
}
