//! Types of calls and of list, map and message literals.

use super::assign::{is_dyn_or_error, most_general};
use super::{Checker, Reference};
use crate::ast::{Entry, ExprId, ExprKind, Field, Literal};
use crate::decl::{Function, Overload};
use crate::library::well_known::{self, WellKnown};
use crate::typing::Type;
use std::collections::HashMap;
use std::sync::Arc;

impl Checker<'_> {
    pub(super) fn call(&mut self, id: ExprId, function: &str, target: Option<ExprId>, args: &[ExprId]) {
        if function == "_?._" {
            return self.optional_select(id, args);
        }
        args.iter().for_each(|arg| self.expr(*arg));
        let Some(target) = target else {
            return match self.function(function) {
                Some(found) => self.resolve(id, found, None, args),
                None => self.undeclared(id, function),
            };
        };
        let qualified = self.tree.qualified_name(target).map(|prefix| format!("{prefix}.{function}"));
        if let Some(found) = qualified.and_then(|name| self.function(&name)) {
            return self.resolve(id, found, None, args);
        }
        self.expr(target);
        match self.function(function) {
            Some(found) => self.resolve(id, found, Some(target), args),
            None => self.undeclared(id, function),
        }
    }

    fn function(&self, name: &str) -> Option<Function> {
        let mut candidates = self.env.candidates(name).into_iter();
        candidates.find_map(|candidate| self.env.functions.get(&*candidate).cloned())
    }

    fn optional_select(&mut self, id: ExprId, args: &[ExprId]) {
        let &[operand, field] = args else { return };
        let ExprKind::Literal(Literal::String(name)) = &self.tree.expr(field).kind else {
            return;
        };
        self.set(field, Type::String);
        let kind = self.field(id, operand, name, true);
        let kind = self.substitution.resolve(&kind, false);
        self.set(id, kind);
        let overloads = vec!["select_optional_field"];
        self.references[id as usize] = Some(Reference::Function { name: "_?._", overloads, member: false });
    }

    fn resolve(&mut self, id: ExprId, function: Function, target: Option<ExprId>, args: &[ExprId]) {
        let kinds: Vec<Type> = target.iter().chain(args).map(|arg| self.type_of(*arg)).collect();
        let resolved = match function.name {
            "_&&_" | "_||_" => self.logical(&function, args, &kinds),
            _ => self.overloads(id, &function, &kinds, target.is_some()),
        };
        let Some((overloads, result)) = resolved else {
            return self.set(id, Type::Error);
        };
        self.set(id, result);
        let member = target.is_some();
        self.references[id as usize] = Some(Reference::Function { name: function.name, overloads, member });
    }

    fn logical(&mut self, function: &Function, args: &[ExprId], kinds: &[Type]) -> Option<(Vec<&'static str>, Type)> {
        let mut fits = true;
        for (arg, kind) in args.iter().zip(kinds) {
            if !self.assignable(kind, &Type::Bool) {
                self.mismatch(*arg, &Type::Bool, kind);
                fits = false;
            }
        }
        fits.then(|| (function.overloads.iter().map(|overload| overload.id).take(1).collect(), Type::Bool))
    }

    fn overloads(
        &mut self,
        id: ExprId,
        function: &Function,
        kinds: &[Type],
        member: bool,
    ) -> Option<(Vec<&'static str>, Type)> {
        let (mut overloads, mut result): (Vec<&'static str>, Option<Type>) = (Vec::new(), None);
        for overload in function.overloads.iter().filter(|overload| overload.member == member) {
            if self.is_disabled(overload) {
                continue;
            }
            let (args, of) = self.instantiate(overload);
            if !self.substitution.assign_all(kinds, &args) {
                continue;
            }
            overloads.push(overload.id);
            let of = self.substitution.resolve(&of, false);
            result = Some(match result {
                Some(known) if known != Type::Dyn && known != of => Type::Dyn,
                Some(known) => known,
                None => of,
            });
        }
        if result.is_none() {
            let kinds: Vec<Type> = kinds.iter().map(|kind| self.substitution.resolve(kind, true)).collect();
            let signature = signature(&kinds, member);
            let name = function.name;
            self.report(id, format!("found no matching overload for '{name}' applied to '{signature}'"));
        }
        result.map(|result| (overloads, result))
    }

    /// Whether the overload compares numbers of two types where only one is allowed.
    fn is_disabled(&self, overload: &Overload) -> bool {
        let number = |kind: &Type| matches!(kind, Type::Int | Type::Uint | Type::Double);
        self.env.options.same_type_comparisons
            && !self.in_comprehension
            && (overload.id.starts_with("less_") || overload.id.starts_with("greater_"))
            && matches!(&overload.args[..], [one, other] if one != other && number(one) && number(other))
    }

    /// The types of an overload with fresh variables for its parameters.
    fn instantiate(&mut self, overload: &Overload) -> (Vec<Type>, Type) {
        if overload.params.is_empty() {
            return (overload.args.clone(), overload.result.clone());
        }
        let fresh: HashMap<Arc<str>, Type> =
            overload.params.iter().map(|param| (param.clone(), self.substitution.fresh())).collect();
        let args = overload.args.iter().map(|kind| replace(kind, &fresh)).collect();
        (args, replace(&overload.result, &fresh))
    }

    pub(super) fn list(&mut self, id: ExprId, elements: &[ExprId], optional: &[bool]) {
        let mut joined = None;
        for (element, optional) in elements.iter().zip(optional) {
            self.expr(*element);
            let kind = self.entry_type(*element, *optional);
            joined = Some(self.join(*element, joined, kind));
        }
        let element = joined.unwrap_or_else(|| self.fresh());
        self.set(id, Type::list(element));
    }

    pub(super) fn map(&mut self, id: ExprId, entries: &[Entry]) {
        let (mut keys, mut values) = (None, None);
        for entry in entries {
            self.expr(entry.key);
            let kind = self.type_of(entry.key);
            keys = Some(self.join(entry.key, keys, kind));
            self.expr(entry.value);
            let kind = self.entry_type(entry.value, entry.optional);
            values = Some(self.join(entry.value, values, kind));
        }
        let key = keys.unwrap_or_else(|| self.fresh());
        let value = values.unwrap_or_else(|| self.fresh());
        self.set(id, Type::map(key, value));
    }

    /// The type of an element; what is in the optional if the element is marked as one.
    fn entry_type(&mut self, id: ExprId, optional: bool) -> Type {
        let kind = self.type_of(id);
        if !optional {
            return kind;
        }
        match kind.optional_inner() {
            Some(inner) => inner.clone(),
            None => {
                if kind != Type::Dyn {
                    self.mismatch(id, &Type::optional(kind.clone()), &kind);
                }
                kind
            }
        }
    }

    fn join(&mut self, id: ExprId, previous: Option<Type>, current: Type) -> Type {
        let Some(previous) = previous else { return current };
        if self.assignable(&previous, &current) {
            return most_general(&previous, &current).clone();
        }
        if !self.env.options.homogeneous_literals {
            return Type::Dyn;
        }
        self.mismatch(id, &previous, &current);
        Type::Error
    }

    pub(super) fn message(&mut self, id: ExprId, name: &str, fields: &[Field]) {
        let Some((full, kind)) = self.lookup(name) else {
            return self.undeclared(id, name);
        };
        self.references[id as usize] = Some(Reference::Name(full.clone()));
        if &*full == well_known::ANY {
            self.report(id, format!("literals of '{full}' are not supported"));
        }
        let result = match kind {
            Type::Type(Some(of)) => match &*of {
                Type::Struct(_) | Type::Null => (*of).clone(),
                _ if WellKnown::named(&full).is_some() => (*of).clone(),
                other => {
                    self.report(id, format!("'{}' is not a message type", other.runtime_name()));
                    Type::Error
                }
            },
            other => {
                self.report(id, format!("'{}' is not a type", other.runtime_name()));
                Type::Error
            }
        };
        self.set(id, result.clone());
        for field in fields {
            self.expr(field.value);
            let wanted = match &result {
                Type::Error => self.field_of_no_message(field.offset, &full, &field.name),
                Type::Null => self.object_field(field.offset, "google.protobuf.NullValue", &field.name),
                _ => self.object_field(field.offset, &full, &field.name),
            };
            let found = self.entry_type(field.value, field.optional);
            if !is_dyn_or_error(&wanted) && !self.assignable(&wanted, &found) {
                let name = &field.name;
                let message = format!("expected type of field '{name}' is '{wanted}' but provided type is '{found}'");
                self.report_at(field.offset, message);
            }
        }
    }
}

impl Checker<'_> {
    /// Reports a field of a literal whose type has no literals. Kubernetes knows scalars by their names, but none of their
    /// fields.
    fn field_of_no_message(&mut self, offset: u32, name: &str, field: &str) -> Type {
        let scalars = ["bool", "bytes", "double", "int", "list", "map", "string", "uint"];
        self.report_at(
            offset,
            match scalars.contains(&name) {
                true => format!("undefined field '{field}'"),
                false => format!("unexpected failed resolution of '{name}'"),
            },
        );
        Type::Error
    }
}

fn replace(kind: &Type, fresh: &HashMap<Arc<str>, Type>) -> Type {
    match kind {
        Type::Param(name) => fresh.get(name).cloned().unwrap_or(Type::Dyn),
        Type::List(element) => Type::list(replace(element, fresh)),
        Type::Map(key, value) => Type::map(replace(key, fresh), replace(value, fresh)),
        Type::Type(Some(of)) => Type::of_type(replace(of, fresh)),
        Type::Opaque(name, params) => {
            Type::Opaque(name.clone(), params.iter().map(|param| replace(param, fresh)).collect())
        }
        other => other.clone(),
    }
}

/// The types of arguments as messages show them: `(int, string)`, or `string.(int)` of a method.
fn signature(kinds: &[Type], member: bool) -> String {
    let shown: Vec<String> = kinds.iter().map(Type::to_string).collect();
    match (member, &shown[..]) {
        (true, [target, args @ ..]) => format!("{target}.({})", args.join(", ")),
        (_, args) => format!("({})", args.join(", ")),
    }
}
