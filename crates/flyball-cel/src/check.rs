//! Gives every expression a type and every call its overloads, or says what does not fit.

mod assign;
mod call;
mod literal;

use crate::ast::{Comprehension, ExprId, ExprKind, Literal, Tree};
use crate::env::Env;
use crate::library::well_known::{self, WellKnown};
use crate::source::Issues;
use crate::typing::Type;
use assign::Substitution;
use std::sync::Arc;

/// What a name or a call stands for.
#[derive(Clone, Debug)]
pub(crate) enum Reference {
    /// A variable, or a type as a value.
    Name(Arc<str>),
    /// The overloads of a function that may apply, and its full name.
    Function {
        name: &'static str,
        overloads: Vec<&'static str>,
        member: bool,
    },
}

/// A checked expression.
#[derive(Clone, Debug)]
pub struct Checked {
    pub(crate) tree: Tree,
    pub(crate) types: Vec<Type>,
    pub(crate) references: Vec<Option<Reference>>,
}

impl Checked {
    /// The type of the whole expression.
    pub fn result_type(&self) -> &Type {
        &self.types[self.tree.root as usize]
    }

    /// The syntax tree.
    pub fn tree(&self) -> &Tree {
        &self.tree
    }

    /// Whether the expression contains a name that stands for a variable of this name, also one of a comprehension.
    pub fn refers_to(&self, variable: &str) -> bool {
        let names = self.references.iter().flatten();
        names
            .into_iter()
            .any(|reference| matches!(reference, Reference::Name(name) if &**name == variable))
    }

    /// The type of one expression of the tree.
    pub fn type_of(&self, id: ExprId) -> &Type {
        &self.types[id as usize]
    }
}

pub(crate) fn check(tree: Tree, env: &Env) -> Result<Checked, Issues> {
    let count = tree.exprs.len();
    let mut checker = Checker {
        issues: Issues::new(tree.source.clone()),
        types: vec![Type::Error; count],
        references: vec![None; count],
        scopes: Vec::new(),
        substitution: Substitution::default(),
        in_comprehension: false,
        tree: &tree,
        env,
    };
    checker.expr(tree.root);
    let Checker { issues, mut types, references, substitution, .. } = checker;
    if !issues.is_empty() {
        return Err(issues.sorted());
    }
    types.iter_mut().for_each(|kind| *kind = substitution.resolve(kind, true));
    let checked = Checked { tree, types, references };
    let issues = literal::issues(&checked, env.options);
    if issues.is_empty() {
        Ok(checked)
    } else {
        Err(issues.sorted())
    }
}

struct Checker<'a> {
    tree: &'a Tree,
    env: &'a Env,
    issues: Issues,
    types: Vec<Type>,
    references: Vec<Option<Reference>>,
    /// The variables of comprehensions around this place.
    scopes: Vec<(Arc<str>, Type)>,
    substitution: Substitution,
    in_comprehension: bool,
}

impl Checker<'_> {
    fn expr(&mut self, id: ExprId) {
        let tree = self.tree;
        match &tree.expr(id).kind {
            ExprKind::Unspecified => self.set(id, Type::Error),
            ExprKind::Literal(literal) => self.set(id, literal_type(literal)),
            ExprKind::Ident(name) => self.ident(id, name),
            ExprKind::Select { operand, field, test_only } => self.select(id, *operand, field, *test_only),
            ExprKind::Call { function, target, args } => self.call(id, function, *target, args),
            ExprKind::List { elements, optional } => self.list(id, elements, optional),
            ExprKind::Map(entries) => self.map(id, entries),
            ExprKind::Struct { name, fields } => self.message(id, name, fields),
            ExprKind::Comprehension(comprehension) => self.comprehension(id, comprehension),
        }
    }

    fn set(&mut self, id: ExprId, kind: Type) {
        self.types[id as usize] = kind;
    }

    fn type_of(&self, id: ExprId) -> Type {
        self.types[id as usize].clone()
    }

    fn report(&mut self, id: ExprId, message: String) {
        self.report_at(self.tree.expr(id).offset, message);
    }

    fn report_at(&mut self, offset: u32, message: String) {
        self.issues.report(self.tree.source.location(offset), message);
    }

    fn undeclared(&mut self, id: ExprId, name: &str) {
        let container = &self.env.container;
        self.report(id, format!("undeclared reference to '{name}' (in container '{container}')"));
        self.set(id, Type::Error);
    }

    fn mismatch(&mut self, id: ExprId, expected: &Type, found: &Type) {
        self.report(id, format!("expected type '{expected}' but found '{found}'"));
    }

    fn assignable(&mut self, to: &Type, from: &Type) -> bool {
        self.substitution.assign(to, from)
    }

    fn fresh(&mut self) -> Type {
        self.substitution.fresh()
    }

    /// What a name stands for: its full name and its type.
    fn lookup(&self, name: &str) -> Option<(Arc<str>, Type)> {
        for candidate in self.env.candidates(name) {
            let local = self.scopes.iter().rev().find(|(known, _)| *known == candidate);
            let variable = || self.env.variables.get(&candidate).cloned();
            let object = || {
                let known = self.env.is_object(&candidate) || &*candidate == well_known::ANY;
                known.then(|| Type::of_type(Type::Struct(candidate.clone())))
            };
            let message = || WellKnown::named(&candidate).map(|message| Type::of_type(message.result()));
            let constant = || (&*candidate == well_known::NULL_VALUE).then_some(Type::Int);
            let type_name = || self.env.type_names.get(&candidate).map(|kind| Type::of_type(kind.clone()));
            let found = local.map(|(_, kind)| kind.clone()).or_else(variable).or_else(object).or_else(message);
            if let Some(kind) = found.or_else(type_name).or_else(constant) {
                return Some((candidate, kind));
            }
        }
        None
    }

    fn ident(&mut self, id: ExprId, name: &str) {
        match self.lookup(name) {
            Some((full, kind)) => {
                self.set(id, kind);
                self.references[id as usize] = Some(Reference::Name(full));
            }
            None => self.undeclared(id, name),
        }
    }

    fn select(&mut self, id: ExprId, operand: ExprId, field: &str, test_only: bool) {
        if let Some(name) = self.tree.qualified_name(id)
            && let Some((full, kind)) = self.lookup(&name)
        {
            self.set(id, kind);
            self.references[id as usize] = Some(Reference::Name(full));
            return;
        }
        let kind = self.field(id, operand, field, false);
        let kind = if test_only {
            Type::Bool
        } else {
            self.substitution.resolve(&kind, false)
        };
        self.set(id, kind);
    }

    /// The type of a field of the operand; optional if the operand is, or if the selection is.
    fn field(&mut self, id: ExprId, operand: ExprId, field: &str, optional: bool) -> Type {
        self.expr(operand);
        let operand = self.substitution.resolve(&self.type_of(operand), false);
        let (target, is_optional) = match operand.optional_inner() {
            Some(inner) => (inner.clone(), true),
            None => (operand, optional),
        };
        let result = match &target {
            Type::Map(_, value) => (**value).clone(),
            Type::Struct(name) => self.object_field(self.tree.expr(id).offset, name, field),
            Type::Var(_) | Type::Param(_) => {
                self.assignable(&Type::Dyn, &target);
                Type::Dyn
            }
            Type::Dyn | Type::Error => Type::Dyn,
            other => {
                self.report(id, format!("type '{other}' does not support field selection"));
                Type::Dyn
            }
        };
        if is_optional { Type::optional(result) } else { result }
    }

    fn object_field(&mut self, offset: u32, object: &str, field: &str) -> Type {
        let message = WellKnown::named(object);
        let found = match (self.env.objects.get(object), message) {
            (Some(found), _) => found.fields.get(field).cloned(),
            (None, Some(message)) => message.field(field),
            (None, None) if self.env.is_open_message(object) || object == well_known::ANY => Some(Type::Dyn),
            (None, None) => {
                self.report_at(offset, format!("unexpected failed resolution of '{object}'"));
                return Type::Error;
            }
        };
        match found {
            Some(kind) => kind,
            None => {
                self.report_at(offset, format!("undefined field '{field}'"));
                Type::Error
            }
        }
    }

    fn comprehension(&mut self, id: ExprId, fold: &Comprehension) {
        self.expr(fold.range);
        self.expr(fold.init);
        let range = self.substitution.resolve(&self.type_of(fold.range), false);
        let accumulator = self.type_of(fold.init);
        let scope = self.scopes.len();
        self.scopes.push((fold.accumulator.clone(), accumulator.clone()));
        let (first, second) = self.iteration_types(fold, &range);
        let outer = std::mem::replace(&mut self.in_comprehension, true);
        self.scopes.push((fold.variable.clone(), first));
        if let Some(variable) = &fold.second_variable {
            self.scopes.push((variable.clone(), second));
        }
        self.expr(fold.condition);
        self.assert_type(fold.condition, &Type::Bool);
        self.expr(fold.step);
        self.assert_type(fold.step, &accumulator);
        self.scopes.truncate(scope + 1);
        self.expr(fold.result);
        self.scopes.truncate(scope);
        // Once the scope of a comprehension was left, cel-go compares numbers of all types (Env.exitScope).
        self.in_comprehension = outer || self.in_comprehension;
        let result = self.substitution.resolve(&self.type_of(fold.result), false);
        self.set(id, result);
    }

    /// The types of the iteration variables.
    fn iteration_types(&mut self, fold: &Comprehension, range: &Type) -> (Type, Type) {
        let two = fold.second_variable.is_some();
        match range {
            Type::List(element) if two => (Type::Int, (**element).clone()),
            Type::List(element) => ((**element).clone(), Type::Dyn),
            Type::Map(key, value) => ((**key).clone(), (**value).clone()),
            Type::Dyn | Type::Error | Type::Var(_) | Type::Param(_) => {
                self.assignable(&Type::Dyn, range);
                (Type::Dyn, Type::Dyn)
            }
            other => {
                let message = format!(
                    "expression of type '{other}' cannot be range of a comprehension (must be list, map, or dynamic)"
                );
                self.report(fold.range, message);
                (Type::Error, Type::Error)
            }
        }
    }

    fn assert_type(&mut self, id: ExprId, expected: &Type) {
        let found = self.type_of(id);
        if !self.assignable(expected, &found) {
            self.mismatch(id, expected, &found);
        }
    }
}

fn literal_type(literal: &Literal) -> Type {
    match literal {
        Literal::Null => Type::Null,
        Literal::Bool(_) => Type::Bool,
        Literal::Int(_) => Type::Int,
        Literal::Uint(_) => Type::Uint,
        Literal::Double(_) => Type::Double,
        Literal::String(_) => Type::String,
        Literal::Bytes(_) => Type::Bytes,
    }
}

#[cfg(test)]
mod tests;
