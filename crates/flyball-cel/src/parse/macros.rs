//! The macros: what `has`, `all`, `map` and their kin expand to. Expanded nodes stand at the place of the call.

use super::{MAX_NODES, Parser};
use crate::ast::{ACCUMULATOR, Comprehension, Entry, Expr, ExprId, ExprKind, Field, Literal};
use std::sync::Arc;

/// The iteration variable of comprehensions that only bind a name.
const UNUSED: &str = "#unused";

/// Why a macro call does not expand.
pub(crate) enum MacroError {
    /// The tree is too large.
    Limit,
    /// The arguments are wrong: where, and why.
    Invalid(u32, String),
}

type Expanded = Result<Option<ExprId>, MacroError>;
type Expander = fn(&mut Expansion<'_, '_>, Option<ExprId>, &[ExprId]) -> Expanded;

/// A macro is found by its name, how many arguments it takes (any number if none is given), and whether it has a receiver.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Macro {
    pub name: &'static str,
    pub args: Option<usize>,
    pub receiver: bool,
    pub expand: Expander,
}

const fn receiver(name: &'static str, args: usize, expand: Expander) -> Macro {
    Macro { name, args: Some(args), receiver: true, expand }
}

/// The macros of the language itself.
pub(crate) const STANDARD: [Macro; 7] = [
    Macro { name: "has", args: Some(1), receiver: false, expand: has },
    receiver("all", 2, |e, target, args| e.quantifier(target, &args[..1], args[1], Quantifier::All)),
    receiver("exists", 2, |e, target, args| {
        e.quantifier(target, &args[..1], args[1], Quantifier::Exists)
    }),
    receiver("exists_one", 2, |e, target, args| {
        e.quantifier(target, &args[..1], args[1], Quantifier::ExistsOne)
    }),
    receiver("map", 2, |e, target, args| e.map(target, args[0], None, args[1])),
    receiver("map", 3, |e, target, args| e.map(target, args[0], Some(args[1]), args[2])),
    receiver("filter", 2, |e, target, args| e.map(target, args[0], Some(args[1]), args[0])),
];

/// The macros of the library of optional values.
pub(crate) const OPTIONAL: [Macro; 2] = [
    receiver("optMap", 2, |e, target, args| e.opt_map(target, args, OptMap::Wrapped)),
    receiver("optFlatMap", 2, |e, target, args| e.opt_map(target, args, OptMap::Flat)),
];

/// Comprehensions of two variables.
pub(crate) const TWO_VARIABLES: [Macro; 10] = [
    receiver("all", 3, |e, target, args| e.quantifier(target, &args[..2], args[2], Quantifier::All)),
    receiver("exists", 3, |e, target, args| {
        e.quantifier(target, &args[..2], args[2], Quantifier::Exists)
    }),
    receiver("existsOne", 3, |e, target, args| {
        e.quantifier(target, &args[..2], args[2], Quantifier::ExistsOne)
    }),
    receiver("exists_one", 3, |e, target, args| {
        e.quantifier(target, &args[..2], args[2], Quantifier::ExistsOne)
    }),
    receiver("transformList", 3, |e, target, args| e.transform(target, args, Transform::List)),
    receiver("transformList", 4, |e, target, args| e.transform(target, args, Transform::List)),
    receiver("transformMap", 3, |e, target, args| e.transform(target, args, Transform::Map)),
    receiver("transformMap", 4, |e, target, args| e.transform(target, args, Transform::Map)),
    receiver("transformMapEntry", 3, |e, target, args| e.transform(target, args, Transform::MapEntry)),
    receiver("transformMapEntry", 4, |e, target, args| e.transform(target, args, Transform::MapEntry)),
];

/// `cel.bind`
pub(crate) const BINDINGS: [Macro; 1] = [receiver("bind", 3, bind)];

/// `math.greatest` and `math.least`
pub(crate) const MATH: [Macro; 2] = [
    Macro {
        name: "greatest",
        args: None,
        receiver: true,
        expand: |e, target, args| e.extremum(target, args, "greatest"),
    },
    Macro {
        name: "least",
        args: None,
        receiver: true,
        expand: |e, target, args| e.extremum(target, args, "least"),
    },
];

/// `sortBy`
pub(crate) const LISTS: [Macro; 1] = [receiver("sortBy", 2, sort_by)];

pub(super) fn find(macros: &[Macro], name: &str, args: usize, receiver: bool) -> Option<Expander> {
    let named = |found: &&Macro| found.name == name && found.receiver == receiver;
    let exact = macros.iter().filter(named).find(|found| found.args == Some(args));
    exact
        .or_else(|| macros.iter().filter(named).find(|found| found.args.is_none()))
        .map(|found| found.expand)
}

enum Quantifier {
    All,
    Exists,
    ExistsOne,
}

enum OptMap {
    Wrapped,
    Flat,
}

enum Transform {
    List,
    Map,
    MapEntry,
}

/// Builds the nodes that one macro call expands to.
pub(crate) struct Expansion<'p, 'a> {
    parser: &'p mut Parser<'a>,
    offset: u32,
}

impl<'p, 'a> Expansion<'p, 'a> {
    pub(super) fn new(parser: &'p mut Parser<'a>, offset: usize) -> Self {
        Expansion { parser, offset: offset as u32 }
    }

    fn add_at(&mut self, offset: u32, kind: ExprKind) -> Result<ExprId, MacroError> {
        if self.parser.exprs.len() >= MAX_NODES {
            return Err(MacroError::Limit);
        }
        self.parser.exprs.push(Expr { kind, offset });
        self.parser.heights.push(0);
        Ok(self.parser.exprs.len() as ExprId - 1)
    }

    fn add(&mut self, kind: ExprKind) -> Result<ExprId, MacroError> {
        self.add_at(self.offset, kind)
    }

    fn literal(&mut self, literal: Literal) -> Result<ExprId, MacroError> {
        self.add(ExprKind::Literal(literal))
    }

    fn ident(&mut self, name: &str) -> Result<ExprId, MacroError> {
        self.add(ExprKind::Ident(name.into()))
    }

    fn accumulator(&mut self) -> Result<ExprId, MacroError> {
        self.ident(ACCUMULATOR)
    }

    fn call(&mut self, function: &str, args: Vec<ExprId>) -> Result<ExprId, MacroError> {
        self.add(ExprKind::Call { function: function.into(), target: None, args })
    }

    fn method(&mut self, function: &str, target: ExprId, args: Vec<ExprId>) -> Result<ExprId, MacroError> {
        self.add(ExprKind::Call { function: function.into(), target: Some(target), args })
    }

    fn list(&mut self, elements: Vec<ExprId>) -> Result<ExprId, MacroError> {
        let optional = vec![false; elements.len()];
        self.add(ExprKind::List { elements, optional })
    }

    fn invalid<T>(&self, id: ExprId, message: &str) -> Result<T, MacroError> {
        Err(MacroError::Invalid(self.parser.exprs[id as usize].offset, message.into()))
    }

    fn name(&self, id: ExprId, otherwise: &str) -> Result<Arc<str>, MacroError> {
        match &self.parser.exprs[id as usize].kind {
            ExprKind::Ident(name) => Ok(name.clone()),
            _ => self.invalid(id, otherwise),
        }
    }

    /// The names of one or two iteration variables.
    fn variables(&self, ids: &[ExprId], otherwise: &str) -> Result<(Arc<str>, Option<Arc<str>>), MacroError> {
        let first = self.name(ids[0], otherwise)?;
        let second = ids.get(1).map(|id| self.name(*id, otherwise)).transpose()?;
        if let Some(name) = second.as_ref().filter(|name| **name == first) {
            return self.invalid(ids[1], &format!("duplicate variable name: {name}"));
        }
        for (id, name) in ids.iter().zip([Some(&first), second.as_ref()].into_iter().flatten()) {
            if &**name == ACCUMULATOR || &**name == "__result__" {
                return self.invalid(*id, "iteration variable overwrites accumulator variable");
            }
        }
        Ok((first, second))
    }

    #[expect(clippy::too_many_arguments, reason = "they are the parts of a comprehension")]
    fn comprehension(
        &mut self,
        range: ExprId,
        (variable, second_variable): (Arc<str>, Option<Arc<str>>),
        accumulator: &str,
        init: ExprId,
        condition: ExprId,
        step: ExprId,
        result: ExprId,
    ) -> Expanded {
        let accumulator = accumulator.into();
        let comprehension = Comprehension {
            range,
            variable,
            second_variable,
            accumulator,
            init,
            condition,
            step,
            result,
        };
        self.add(ExprKind::Comprehension(Box::new(comprehension))).map(Some)
    }

    fn quantifier(
        &mut self,
        target: Option<ExprId>,
        variables: &[ExprId],
        predicate: ExprId,
        kind: Quantifier,
    ) -> Expanded {
        let Some(target) = target else { return Ok(None) };
        let variables = self.variables(variables, "argument must be a simple name")?;
        let accumulator = self.accumulator()?;
        let (init, condition, step) = match kind {
            Quantifier::All => {
                let init = self.literal(Literal::Bool(true))?;
                let seen = self.accumulator()?;
                (
                    init,
                    self.call("@not_strictly_false", vec![seen])?,
                    self.call("_&&_", vec![accumulator, predicate])?,
                )
            }
            Quantifier::Exists => {
                let init = self.literal(Literal::Bool(false))?;
                let seen = self.accumulator()?;
                let none = self.call("!_", vec![seen])?;
                (
                    init,
                    self.call("@not_strictly_false", vec![none])?,
                    self.call("_||_", vec![accumulator, predicate])?,
                )
            }
            Quantifier::ExistsOne => return self.exists_one(target, variables, predicate),
        };
        let result = self.accumulator()?;
        self.comprehension(target, variables, ACCUMULATOR, init, condition, step, result)
    }

    fn exists_one(&mut self, target: ExprId, variables: (Arc<str>, Option<Arc<str>>), predicate: ExprId) -> Expanded {
        let init = self.literal(Literal::Int(0))?;
        let condition = self.literal(Literal::Bool(true))?;
        let (counted, one) = (self.accumulator()?, self.literal(Literal::Int(1))?);
        let more = self.call("_+_", vec![counted, one])?;
        let same = self.accumulator()?;
        let step = self.call("_?_:_", vec![predicate, more, same])?;
        let (total, one) = (self.accumulator()?, self.literal(Literal::Int(1))?);
        let result = self.call("_==_", vec![total, one])?;
        self.comprehension(target, variables, ACCUMULATOR, init, condition, step, result)
    }

    fn map(&mut self, target: Option<ExprId>, variable: ExprId, filter: Option<ExprId>, item: ExprId) -> Expanded {
        let Some(target) = target else { return Ok(None) };
        let variables = self.variables(&[variable], "argument is not an identifier")?;
        let init = self.list(Vec::new())?;
        let accumulator = self.accumulator()?;
        let addition = self.list(vec![item])?;
        let step = self.call("_+_", vec![accumulator, addition])?;
        self.collect(target, variables, init, filter, step)
    }

    /// A comprehension over everything, its step under a filter if there is one.
    fn collect(
        &mut self,
        target: ExprId,
        variables: (Arc<str>, Option<Arc<str>>),
        init: ExprId,
        filter: Option<ExprId>,
        step: ExprId,
    ) -> Expanded {
        let condition = self.literal(Literal::Bool(true))?;
        let step = match filter {
            Some(filter) => {
                let same = self.accumulator()?;
                self.call("_?_:_", vec![filter, step, same])?
            }
            None => step,
        };
        let result = self.accumulator()?;
        self.comprehension(target, variables, ACCUMULATOR, init, condition, step, result)
    }

    fn transform(&mut self, target: Option<ExprId>, args: &[ExprId], kind: Transform) -> Expanded {
        let Some(target) = target else { return Ok(None) };
        let variables = self.variables(&args[..2], "argument must be a simple name")?;
        let (filter, item) = match args {
            [_, _, filter, item] => (Some(*filter), *item),
            _ => (None, args[2]),
        };
        let accumulator = self.accumulator()?;
        let (init, step) = match kind {
            Transform::List => {
                let addition = self.list(vec![item])?;
                (self.list(Vec::new())?, self.call("_+_", vec![accumulator, addition])?)
            }
            Transform::Map => {
                let key = self.ident(&variables.0)?;
                (
                    self.add(ExprKind::Map(Vec::new()))?,
                    self.call("cel.@mapInsert", vec![accumulator, key, item])?,
                )
            }
            Transform::MapEntry => (
                self.add(ExprKind::Map(Vec::new()))?,
                self.call("cel.@mapInsert", vec![accumulator, item])?,
            ),
        };
        self.collect(target, variables, init, filter, step)
    }

    /// A comprehension over nothing, for the sake of the name that its accumulator has in the result.
    fn binding(&mut self, name: Arc<str>, init: ExprId, result: ExprId) -> Result<ExprId, MacroError> {
        let range = self.list(Vec::new())?;
        let condition = self.literal(Literal::Bool(false))?;
        let step = self.ident(&name)?;
        let (variable, second_variable) = (UNUSED.into(), None);
        let accumulator = name;
        let comprehension = Comprehension {
            range,
            variable,
            second_variable,
            accumulator,
            init,
            condition,
            step,
            result,
        };
        self.add(ExprKind::Comprehension(Box::new(comprehension)))
    }

    fn opt_map(&mut self, target: Option<ExprId>, args: &[ExprId], kind: OptMap) -> Expanded {
        let Some(target) = target else { return Ok(None) };
        let (name, wanted) = match kind {
            OptMap::Wrapped => ("optional.of", "optMap() variable name must be a simple identifier"),
            OptMap::Flat => ("", "optFlatMap() variable name must be a simple identifier"),
        };
        let variable = self.name(args[0], wanted)?;
        let present = self.method("hasValue", target, Vec::new())?;
        let copy = self.copy(target)?;
        let value = self.method("value", copy, Vec::new())?;
        let mut mapped = self.binding(variable, value, args[1])?;
        if let OptMap::Wrapped = kind {
            mapped = self.call(name, vec![mapped])?;
        }
        let none = self.call("optional.none", Vec::new())?;
        self.call("_?_:_", vec![present, mapped, none]).map(Some)
    }

    /// A copy of an expression with all that it is made of.
    fn copy(&mut self, id: ExprId) -> Result<ExprId, MacroError> {
        let Expr { kind, offset } = self.parser.exprs[id as usize].clone();
        let kind = match kind {
            ExprKind::Unspecified | ExprKind::Literal(_) | ExprKind::Ident(_) => kind,
            ExprKind::Select { operand, field, test_only } => {
                ExprKind::Select { operand: self.copy(operand)?, field, test_only }
            }
            ExprKind::Call { function, target, args } => ExprKind::Call {
                function,
                target: target.map(|target| self.copy(target)).transpose()?,
                args: self.copies(&args)?,
            },
            ExprKind::List { elements, optional } => ExprKind::List { elements: self.copies(&elements)?, optional },
            ExprKind::Map(entries) => {
                let mut copies = Vec::with_capacity(entries.len());
                for entry in entries {
                    copies.push(Entry {
                        key: self.copy(entry.key)?,
                        value: self.copy(entry.value)?,
                        ..entry
                    });
                }
                ExprKind::Map(copies)
            }
            ExprKind::Struct { name, fields } => {
                let mut copies = Vec::with_capacity(fields.len());
                for field in fields {
                    copies.push(Field { value: self.copy(field.value)?, ..field });
                }
                ExprKind::Struct { name, fields: copies }
            }
            ExprKind::Comprehension(fold) => ExprKind::Comprehension(Box::new(Comprehension {
                range: self.copy(fold.range)?,
                init: self.copy(fold.init)?,
                condition: self.copy(fold.condition)?,
                step: self.copy(fold.step)?,
                result: self.copy(fold.result)?,
                ..*fold
            })),
        };
        self.add_at(offset, kind)
    }

    fn copies(&mut self, ids: &[ExprId]) -> Result<Vec<ExprId>, MacroError> {
        ids.iter().map(|id| self.copy(*id)).collect()
    }

    fn is_namespace(&self, target: Option<ExprId>, name: &str) -> bool {
        let kind = target.map(|target| &self.parser.exprs[target as usize].kind);
        matches!(kind, Some(ExprKind::Ident(found)) if &**found == name)
    }

    fn extremum(&mut self, target: Option<ExprId>, args: &[ExprId], name: &str) -> Expanded {
        if !self.is_namespace(target, "math") {
            return Ok(None);
        }
        let function = if name == "greatest" { "math.@max" } else { "math.@min" };
        match args {
            [] => Err(MacroError::Invalid(
                self.offset_of(target),
                format!("math.{name}() requires at least one argument"),
            )),
            [only] => {
                if !self.is_number_or_list(*only) {
                    return self.invalid(*only, &format!("math.{name}() invalid single argument value"));
                }
                self.call(function, vec![*only]).map(Some)
            }
            [first, second] => {
                self.simple_numbers(args, name)?;
                self.call(function, vec![*first, *second]).map(Some)
            }
            _ => {
                self.simple_numbers(args, name)?;
                let list = self.list(args.to_vec())?;
                self.call(function, vec![list]).map(Some)
            }
        }
    }

    fn offset_of(&self, target: Option<ExprId>) -> u32 {
        target.map_or(self.offset, |target| self.parser.exprs[target as usize].offset)
    }

    fn simple_numbers(&self, args: &[ExprId], name: &str) -> Result<(), MacroError> {
        match args.iter().find(|arg| !self.is_number(**arg)) {
            Some(arg) => self.invalid(*arg, &format!("math.{name}() simple literal arguments must be numeric")),
            None => Ok(()),
        }
    }

    fn is_number(&self, id: ExprId) -> bool {
        match &self.parser.exprs[id as usize].kind {
            ExprKind::Literal(literal) => matches!(literal, Literal::Int(_) | Literal::Uint(_) | Literal::Double(_)),
            ExprKind::List { .. } | ExprKind::Map(_) | ExprKind::Struct { .. } => false,
            _ => true,
        }
    }

    fn is_number_or_list(&self, id: ExprId) -> bool {
        match &self.parser.exprs[id as usize].kind {
            ExprKind::List { elements, .. } => {
                !elements.is_empty() && elements.iter().all(|element| self.is_number(*element))
            }
            _ => self.is_number(id),
        }
    }
}

fn has(expansion: &mut Expansion<'_, '_>, _target: Option<ExprId>, args: &[ExprId]) -> Expanded {
    match expansion.parser.exprs[args[0] as usize].kind.clone() {
        ExprKind::Select { operand, field, .. } => {
            expansion.add(ExprKind::Select { operand, field, test_only: true }).map(Some)
        }
        // What the parser made of a syntax error says nothing about the argument.
        _ if expansion.parser.recoveries > 0 => Ok(None),
        _ => expansion.invalid(args[0], "invalid argument to has() macro"),
    }
}

fn bind(expansion: &mut Expansion<'_, '_>, target: Option<ExprId>, args: &[ExprId]) -> Expanded {
    if !expansion.is_namespace(target, "cel") {
        return Ok(None);
    }
    let name = expansion.name(args[0], "cel.bind() variable names must be simple identifiers")?;
    expansion.binding(name, args[1], args[2]).map(Some)
}

/// `list.sortBy(x, key)`: the list is bound to a name, and sorted by the keys that `map` makes of it.
fn sort_by(expansion: &mut Expansion<'_, '_>, target: Option<ExprId>, args: &[ExprId]) -> Expanded {
    let Some(target) = target else { return Ok(None) };
    if !matches!(
        expansion.parser.exprs[target as usize].kind,
        ExprKind::Select { .. }
            | ExprKind::List { .. }
            | ExprKind::Comprehension(_)
            | ExprKind::Call { .. }
            | ExprKind::Ident(_)
    ) {
        return expansion.invalid(
            target,
            "sortBy can only be applied to a list, identifier, comprehension, call or select expression",
        );
    }
    let bound = "@__sortBy_input__";
    let range = expansion.ident(bound)?;
    let Some(keys) = expansion.map(Some(range), args[0], None, args[1])? else {
        return Ok(None);
    };
    let input = expansion.ident(bound)?;
    let call = expansion.method("@sortByAssociatedKeys", input, vec![keys])?;
    expansion.binding(bound.into(), target, call).map(Some)
}
