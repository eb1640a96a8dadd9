//! Turns a checked expression into a program: names become places, overloads code, constants values.

use crate::ast::{Comprehension, ExprId, ExprKind, Literal};
use crate::check::{Checked, Reference};
use crate::cost::{CallCost, LIST_COST};
use crate::decl::Function;
use crate::env::Env;
use crate::library;
use crate::library::well_known::{self, WellKnown};
use crate::program::{
    Append, Attribute, Call, Dispatch, Fold, Insert, ListNode, MapNode, MessageKind, Node, Program, Qualifier,
    QualifierKey, Root, StructNode,
};
use crate::typing::Type;
use crate::value::map::Key;
use crate::value::{Map, Value};
use std::collections::HashSet;
use std::sync::Arc;

pub(crate) fn plan(checked: Checked, env: &Env) -> Result<Program, String> {
    let mut planner = Planner {
        checked: &checked,
        env,
        variables: Vec::new(),
        scopes: Vec::new(),
        slots: 0,
        folding: None,
    };
    let root = planner.plan(checked.tree.root)?;
    let (variables, slots) = (planner.variables, planner.slots);
    let presence_cost = !env.options.kubernetes_costs;
    let strict_presence = env.options.strict_presence;
    Ok(Program {
        root,
        variables,
        slots,
        checked,
        presence_cost,
        strict_presence,
    })
}

struct Planner<'a> {
    checked: &'a Checked,
    env: &'a Env,
    variables: Vec<Arc<str>>,
    scopes: Vec<(Arc<str>, usize)>,
    slots: usize,
    /// The accumulator of the fold whose step is being planned.
    folding: Option<usize>,
}

type Planned = Result<Node, String>;

/// Functions of one argument that are evaluated at once if it is constant.
const CONVERSIONS: [&str; 10] = [
    "bool",
    "bytes",
    "double",
    "duration",
    "dyn",
    "int",
    "string",
    "timestamp",
    "type",
    "uint",
];

impl Planner<'_> {
    fn plan(&mut self, id: ExprId) -> Planned {
        let checked = self.checked;
        match &checked.tree.expr(id).kind {
            ExprKind::Unspecified => Err("unsupported expr".into()),
            ExprKind::Literal(literal) => Ok(Node::Const(constant(literal))),
            ExprKind::Ident(_) => self.name(id),
            ExprKind::Select { operand, field, test_only } => self.select(id, *operand, field, *test_only),
            ExprKind::Call { function, target, args } => self.call(id, function, *target, args),
            ExprKind::List { elements, optional } => self.list(elements, optional),
            ExprKind::Map(entries) => self.map(entries),
            ExprKind::Struct { name, fields } => {
                let mut planned = Vec::with_capacity(fields.len());
                for field in fields {
                    planned.push((field.name.clone(), self.plan(field.value)?, field.optional));
                }
                let name = match &self.checked.references[id as usize] {
                    Some(Reference::Name(full)) => full,
                    _ => name,
                };
                let kind = self.message_kind(name)?;
                Ok(Node::Struct(Box::new(StructNode { kind, fields: planned })))
            }
            ExprKind::Comprehension(fold) => self.fold(fold),
        }
    }

    /// What a literal of the type with this name makes.
    fn message_kind(&self, name: &Arc<str>) -> Result<MessageKind, String> {
        match self.env.objects.get(name) {
            Some(declared) if declared.has_literals => {
                return Ok(MessageKind::Declared(name.clone(), Some(declared.clone())));
            }
            Some(_) => return Ok(MessageKind::Received(name.clone())),
            // Kubernetes takes the name for a type with literals, and fails to make one.
            None if &**name == "null_type" => return Ok(MessageKind::Received(name.clone())),
            None if self.env.is_open_message(name) => return Ok(MessageKind::Declared(name.clone(), None)),
            None => {}
        }
        WellKnown::named(name)
            .map(MessageKind::WellKnown)
            .ok_or_else(|| format!("unknown type: {name}"))
    }

    /// A variable, a local, or a type by its name.
    fn name(&mut self, id: ExprId) -> Planned {
        let Some(Reference::Name(name)) = &self.checked.references[id as usize] else {
            return Ok(Node::Const(Value::Null));
        };
        if let Some((_, slot)) = self.scopes.iter().rev().find(|(known, _)| known == name) {
            return Ok(attribute(Root::Local(*slot)));
        }
        if let (Type::Type(Some(kind)), false) =
            (&self.checked.types[id as usize], self.env.variables.contains_key(name))
        {
            let is_type = match self.env.objects.get(name) {
                Some(declared) => !declared.has_literals,
                None => !self.env.is_open_message(name) && &**name != well_known::ANY,
            };
            if !is_type || WellKnown::named(name).is_some_and(|message| !message.is_type()) {
                return Err(format!("reference to undefined type: {name}"));
            }
            return Ok(Node::Const(Value::Type(kind.clone())));
        }
        if &**name == well_known::NULL_VALUE && !self.env.variables.contains_key(name) {
            return Ok(Node::Const(Value::Int(0)));
        }
        let place = self.variables.iter().position(|known| known == name).unwrap_or_else(|| {
            self.variables.push(name.clone());
            self.variables.len() - 1
        });
        Ok(attribute(Root::Variable(place)))
    }

    fn select(&mut self, id: ExprId, operand: ExprId, field: &Arc<str>, test_only: bool) -> Planned {
        if self.checked.references[id as usize].is_some() {
            return self.name(id);
        }
        let operand = self.plan(operand)?;
        let key = match test_only {
            true => QualifierKey::Test(field.clone()),
            false => QualifierKey::Field(field.clone()),
        };
        Ok(qualified(operand, Qualifier { key, optional: false }))
    }

    fn call(&mut self, id: ExprId, written: &str, target: Option<ExprId>, args: &[ExprId]) -> Planned {
        let Some(Reference::Function { name, overloads, member }) = &self.checked.references[id as usize] else {
            return Err(format!("no such overload: {written}"));
        };
        if let Some(node) = self.accumulate(name, args)? {
            return Ok(node);
        }
        let ids = target.iter().filter(|_| *member).chain(args);
        let mut planned = ids.map(|arg| self.plan(*arg)).collect::<Result<Vec<Node>, String>>()?;
        if let ("_[_]" | "_[?_]", [_, Node::Const(key)]) = (*name, &planned[..])
            && !key.is_qualifier()
        {
            return Err(format!("invalid qualifier type: {}", key.go_type()));
        }
        if let Some(node) = special(name, overloads, &mut planned) {
            return Ok(node);
        }
        let function = self.env.functions.get(name).ok_or_else(|| format!("no such overload: {name}"))?;
        self.dispatch(function, overloads, planned)
    }

    /// The step of a fold that adds to its accumulator.
    fn accumulate(&mut self, function: &str, args: &[ExprId]) -> Result<Option<Node>, String> {
        let (Some(slot), Some(first)) = (self.folding, args.first()) else {
            return Ok(None);
        };
        let is_accumulator = matches!(&self.checked.references[*first as usize], Some(Reference::Name(name))
            if self.scopes.iter().rev().find(|(known, _)| known == name).is_some_and(|(_, found)| *found == slot));
        if !is_accumulator {
            return Ok(None);
        }
        match (function, args) {
            ("_+_", [_, addition]) => {
                let checked = self.checked;
                let ExprKind::List { elements, optional } = &checked.tree.expr(*addition).kind else {
                    return Ok(None);
                };
                if optional.contains(&true) {
                    return Ok(None);
                }
                let elements = elements.iter().map(|id| self.plan_inner(*id)).collect::<Result<Vec<Node>, String>>()?;
                let constant = elements.iter().all(|element| matches!(element, Node::Const(_)));
                let list_cost = if constant { 0 } else { LIST_COST };
                Ok(Some(Node::Append(Box::new(Append { slot, elements, list_cost }))))
            }
            ("cel.@mapInsert", [_, rest @ ..]) => {
                let args = rest.iter().map(|id| self.plan_inner(*id)).collect::<Result<Vec<Node>, String>>()?;
                Ok(Some(Node::Insert(Box::new(Insert { slot, args }))))
            }
            _ => Ok(None),
        }
    }

    /// Plans a part of a step that is not the accumulator itself.
    fn plan_inner(&mut self, id: ExprId) -> Planned {
        let folding = self.folding.take();
        let planned = self.plan(id);
        self.folding = folding;
        planned
    }

    fn dispatch(&self, function: &Function, overloads: &[&'static str], args: Vec<Node>) -> Planned {
        let name = function.name;
        let overload = if let [only] = overloads { only } else { "" };
        let cost = CallCost::of(name, overload, self.env.options);
        let dispatch = match function.singleton {
            Some(native) if name == "_+_" => Dispatch::Add(native),
            Some(native) => Dispatch::Unguarded(native),
            None => Dispatch::Guarded(guarded(function, overloads, args.len())),
        };
        let dispatch = match (name, args.get(1)) {
            ("matches" | "find" | "findAll", Some(Node::Const(Value::String(pattern)))) => Dispatch::Matches(Box::new(
                library::regex::compile(pattern).map_err(|error| error.message().to_string())?,
            )),
            _ => dispatch,
        };
        let stops_early = match &dispatch {
            Dispatch::Unguarded(_) | Dispatch::Add(_) => args.len() > 2,
            Dispatch::Guarded(candidates) => args.len() > 2 || candidates.len() != 1 || overload == "string_format",
            Dispatch::Matches(_) => true,
        };
        let call = Call { function: name, dispatch, args, cost, stops_early };
        if CONVERSIONS.contains(&name)
            && let [Node::Const(argument)] = &call.args[..]
        {
            let value = crate::eval::invoke(&call, std::slice::from_ref(argument));
            return value.map(Node::Const).map_err(|error| error.message().to_string());
        }
        Ok(Node::Call(Box::new(call)))
    }

    fn list(&mut self, elements: &[ExprId], optional: &[bool]) -> Planned {
        let elements = elements.iter().map(|id| self.plan(*id)).collect::<Result<Vec<Node>, String>>()?;
        let constants: Option<Vec<Value<'static>>> = elements.iter().map(as_constant).collect();
        match constants {
            Some(values) if !optional.contains(&true) => Ok(Node::Const(Value::list(values))),
            _ => Ok(Node::List(Box::new(ListNode { elements, optional: optional.to_vec() }))),
        }
    }

    fn map(&mut self, entries: &[crate::ast::Entry]) -> Planned {
        let mut planned = Vec::with_capacity(entries.len());
        for entry in entries {
            planned.push((self.plan(entry.key)?, self.plan(entry.value)?, entry.optional));
        }
        let pairs = planned.iter().map(|(key, value, optional)| {
            let constant = (as_constant(key)?, as_constant(value)?);
            (!optional).then_some(constant)
        });
        match pairs.collect::<Option<Vec<_>>>().map(Map::of) {
            Some(Ok(map)) => Ok(Node::Const(Value::Map(map))),
            _ => Ok(Node::Map(Box::new(MapNode { entries: planned }))),
        }
    }

    fn fold(&mut self, fold: &Comprehension) -> Planned {
        let range = self.plan_inner(fold.range)?;
        let init = self.plan_inner(fold.init)?;
        let depth = self.scopes.len();
        let accumulator = self.declare(&fold.accumulator);
        let first = self.declare(&fold.variable);
        let second = fold.second_variable.as_ref().map(|name| self.declare(name));
        let condition = self.plan_inner(fold.condition)?;
        let folding = self.folding.replace(accumulator);
        let step = self.plan(fold.step)?;
        self.folding = folding;
        self.scopes.truncate(depth + 1);
        let result = self.plan_inner(fold.result)?;
        self.scopes.truncate(depth);
        Ok(Node::Fold(Box::new(Fold {
            range,
            first,
            second,
            accumulator,
            init,
            condition,
            step,
            result,
        })))
    }

    fn declare(&mut self, name: &Arc<str>) -> usize {
        self.scopes.push((name.clone(), self.slots));
        self.slots += 1;
        self.slots - 1
    }
}

fn constant(literal: &Literal) -> Value<'static> {
    match literal {
        Literal::Null => Value::Null,
        Literal::Bool(value) => Value::Bool(*value),
        Literal::Int(value) => Value::Int(*value),
        Literal::Uint(value) => Value::Uint(*value),
        Literal::Double(value) => Value::Double(*value),
        Literal::String(text) => Value::string(text.clone()),
        Literal::Bytes(bytes) => Value::bytes(bytes.clone()),
    }
}

fn as_constant(node: &Node) -> Option<Value<'static>> {
    match node {
        Node::Const(value) => Some(value.clone()),
        _ => None,
    }
}

fn attribute(root: Root) -> Node {
    Node::Attribute(Box::new(Attribute { root, qualifiers: Vec::new() }))
}

/// A selection joins the attribute that it selects from.
fn qualified(operand: Node, qualifier: Qualifier) -> Node {
    let tested =
        |attribute: &Attribute| attribute.qualifiers.iter().any(|known| matches!(known.key, QualifierKey::Test(_)));
    let mut attribute = match operand {
        Node::Attribute(attribute) if !tested(&attribute) => attribute,
        Node::Conditional(parts) => Box::new(Attribute { root: Root::Conditional(*parts), qualifiers: Vec::new() }),
        operand => Box::new(Attribute { root: Root::Operand(operand), qualifiers: Vec::new() }),
    };
    attribute.qualifiers.push(qualifier);
    Node::Attribute(attribute)
}

fn pair(args: &mut Vec<Node>) -> Option<Box<[Node; 2]>> {
    match args.len() {
        2 => {
            let second = args.pop()?;
            Some(Box::new([args.pop()?, second]))
        }
        _ => None,
    }
}

/// Operators that are steps of their own, because they do not evaluate or do not propagate all of their operands.
fn special(function: &str, overloads: &[&'static str], args: &mut Vec<Node>) -> Option<Node> {
    match function {
        "_&&_" => pair(args).map(Node::And),
        "_||_" => pair(args).map(Node::Or),
        "_==_" => pair(args).map(Node::Equal),
        "_!=_" => pair(args).map(Node::NotEqual),
        "or" if overloads == ["optional_or_optional"] => pair(args).map(Node::OptionalOr),
        "orValue" if overloads == ["optional_orValue_value"] => pair(args).map(Node::OptionalOrValue),
        "@not_strictly_false" => args.pop().map(|arg| Node::NotStrictlyFalse(Box::new(arg))),
        "_?_:_" => {
            let (falsy, truthy) = (args.pop()?, args.pop()?);
            Some(Node::Conditional(Box::new([args.pop()?, truthy, falsy])))
        }
        "_[_]" | "_[?_]" | "_?._" => {
            let [operand, index] = *pair(args)?;
            let key = match index {
                Node::Const(value) => match (&value, function) {
                    (Value::String(field), "_?._") => QualifierKey::Field((**field).into()),
                    _ => QualifierKey::Const(value),
                },
                computed => QualifierKey::Computed(computed),
            };
            Some(qualified(operand, Qualifier { key, optional: function != "_[_]" }))
        }
        "@in" if overloads == ["in_list"] => membership(args),
        _ => None,
    }
}

/// Membership in a constant list of scalars becomes a lookup; in an empty one it is false.
fn membership(args: &mut Vec<Node>) -> Option<Node> {
    let [_, Node::Const(Value::List(list))] = &args[..] else {
        return None;
    };
    if list.is_empty() {
        return Some(Node::Const(Value::Bool(false)));
    }
    let mut keys = HashSet::new();
    for item in list.iter() {
        let item = item.ok()?;
        match &item {
            Value::Int(number) => {
                keys.insert(Key::of(&Value::Double(*number as f64))?);
                keys.extend(u64::try_from(*number).ok().map(Key::Uint));
            }
            Value::Uint(number) => {
                keys.insert(Key::of(&Value::Double(*number as f64))?);
                keys.extend(i64::try_from(*number).ok().map(Key::Int));
            }
            Value::Double(number) => {
                keys.extend(crate::value::equal::lossless_int(*number).map(Key::Int));
                keys.extend(crate::value::equal::lossless_uint(*number).map(Key::Uint));
            }
            Value::String(_) | Value::Bool(_) => {}
            _ => return None,
        }
        keys.insert(Key::of(&item)?);
    }
    let [value, _] = *pair(args)?;
    Some(Node::InSet(Box::new((value, keys))))
}

/// The overloads that may run, with the types that their arguments must have. All of the function's are tried if the
/// checker could not decide for one.
fn guarded(function: &Function, overloads: &[&'static str], count: usize) -> Vec<(Vec<Type>, crate::decl::Native)> {
    let only = overloads.len() == 1;
    let applies = |overload: &&crate::decl::Overload| {
        if only {
            overloads.contains(&overload.id)
        } else {
            overload.args.len() == count
        }
    };
    let fitting = function.overloads.iter().filter(applies);
    fitting.filter_map(|overload| Some((overload.args.clone(), overload.native?))).collect()
}
