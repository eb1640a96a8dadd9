//! Evaluates programs: errors are values until something needs a value, and every step is charged.

mod attribute;
mod error;
mod fold;

pub use error::{ErrorKind, EvalError};

use crate::cost::{LIST_COST, MAP_COST, STRUCT_COST};
use crate::decl::Native;
use crate::program::{Activation, Call, Dispatch, ListNode, MapNode, MessageKind, Node, Program, StructNode};
use crate::typing::Type;
use crate::value::map::{Entries, Key};
use crate::value::{Map, Message, Value, equal};
use smallvec::SmallVec;
use std::sync::Arc;

/// How many list elements one evaluation may copy; adding to lists costs next to nothing in cel-go's units.
const MAX_COPIED: u64 = 1 << 22;

pub(crate) type Outcome<'a> = Result<Value<'a>, EvalError>;

/// The state of one evaluation.
pub(crate) struct Machine<'a, 'r> {
    program: &'a Program,
    activation: &'r dyn Activation<'a>,
    variables: SmallVec<[Option<Value<'a>>; 4]>,
    slots: SmallVec<[Slot<'a>; 4]>,
    cost: u64,
    limit: u64,
    copied: u64,
}

/// A local variable.
#[derive(Clone)]
enum Slot<'a> {
    Empty,
    /// An accumulator that nothing has looked at yet.
    Lazy(&'a Node),
    Set(Outcome<'a>),
}

impl<'a, 'r> Machine<'a, 'r> {
    pub(crate) fn new(program: &'a Program, activation: &'r dyn Activation<'a>, limit: u64) -> Machine<'a, 'r> {
        let variables = smallvec::smallvec![None; program.variables.len()];
        let slots = smallvec::smallvec![Slot::Empty; program.slots];
        Machine {
            program,
            activation,
            variables,
            slots,
            cost: 0,
            limit,
            copied: 0,
        }
    }

    pub(crate) fn cost(&self) -> u64 {
        self.cost
    }

    fn charge(&mut self, cost: u64) -> Result<(), EvalError> {
        self.cost = self.cost.saturating_add(cost);
        if self.cost > self.limit {
            Err(EvalError::cost_limit())
        } else {
            Ok(())
        }
    }

    pub(crate) fn eval(&mut self, node: &'a Node) -> Outcome<'a> {
        match node {
            Node::Const(value) => Ok(value.borrow()),
            Node::Attribute(attribute) => self.attribute(attribute),
            Node::Conditional(parts) => self.conditional(parts),
            Node::And(terms) => self.logical(terms, false),
            Node::Or(terms) => self.logical(terms, true),
            Node::Equal(operands) => self.equality(operands, "_==_"),
            Node::NotEqual(operands) => self.equality(operands, "_!=_"),
            Node::Call(call) => self.call(call),
            Node::InSet(parts) => self.membership(&parts.0, &parts.1),
            Node::List(list) => self.list(list),
            Node::Map(map) => self.map(map),
            Node::Struct(message) => self.message(message),
            Node::Fold(fold) => self.fold(fold),
            Node::Append(append) => self.append(append),
            Node::Insert(insert) => self.insert(insert),
            Node::NotStrictlyFalse(operand) => self.not_strictly_false(operand),
            Node::OptionalOr(operands) => self.optional_or(operands),
            Node::OptionalOrValue(operands) => self.optional_or_value(operands),
        }
    }

    /// `&&` and `||`: the decisive value wins over errors on either side.
    fn logical(&mut self, terms: &'a [Node; 2], decisive: bool) -> Outcome<'a> {
        let mut failed = None;
        for term in terms {
            match self.eval(term) {
                Ok(Value::Bool(value)) if value == decisive => return Ok(Value::Bool(decisive)),
                Ok(Value::Bool(_)) => {}
                Ok(_) => failed = failed.or_else(|| Some(EvalError::no_such_overload())),
                Err(error) if error.is_cancelled() => return Err(error),
                Err(error) => failed = failed.or(Some(error)),
            }
        }
        match failed {
            Some(error) => Err(error),
            None => Ok(Value::Bool(!decisive)),
        }
    }

    fn conditional(&mut self, parts: &'a [Node; 3]) -> Outcome<'a> {
        match self.eval(&parts[0])? {
            Value::Bool(true) => self.branch(&parts[1]),
            Value::Bool(false) => self.branch(&parts[2]),
            _ => Err(EvalError::no_such_overload()),
        }
    }

    /// A branch of a conditional, or an index: an attribute there is not charged for itself (planCallConditional).
    fn branch(&mut self, node: &'a Node) -> Outcome<'a> {
        match node {
            Node::Attribute(attribute) => self.resolve(attribute),
            other => self.eval(other).map(attribute::renewed_optional),
        }
    }

    fn both(&mut self, operands: &'a [Node; 2]) -> Result<[Outcome<'a>; 2], EvalError> {
        let one = self.eval(&operands[0]);
        if let Err(error) = &one
            && error.is_cancelled()
        {
            return Err(error.clone());
        }
        let other = self.eval(&operands[1]);
        match &other {
            Err(error) if error.is_cancelled() => Err(error.clone()),
            _ => Ok([one, other]),
        }
    }

    fn equality(&mut self, operands: &'a [Node; 2], function: &str) -> Outcome<'a> {
        let both = self.both(operands)?;
        let result = match &both {
            [Ok(one), Ok(other)] => equal::equal(one, other).map(|equal| Value::Bool(equal == (function == "_==_"))),
            [Err(error), _] | [_, Err(error)] => Err(error.clone()),
        };
        let result = match (result, function) {
            // What cannot be compared is not equal (evalNe.Eval).
            (Err(error), "_!=_") if !error.is_cancelled() && both.iter().all(Result::is_ok) => Ok(Value::Bool(true)),
            (result, _) => result,
        };
        let cost = crate::cost::equality_cost(&both, function);
        self.charge(cost)?;
        result
    }

    fn call(&mut self, call: &'a Call) -> Outcome<'a> {
        match &call.args[..] {
            [] => self.run(call, &[], None),
            [only] if !call.stops_early => {
                let only = self.eval(only);
                if only.as_ref().is_err_and(EvalError::is_cancelled) {
                    return only;
                }
                self.finish(call, [only])
            }
            [one, other] if !call.stops_early => {
                let one = self.eval(one);
                if one.as_ref().is_err_and(EvalError::is_cancelled) {
                    return one;
                }
                let other = self.eval(other);
                if other.as_ref().is_err_and(EvalError::is_cancelled) {
                    return other;
                }
                self.finish(call, [one, other])
            }
            many => self.call_in_order(call, many),
        }
    }

    /// Runs a call whose first failing argument ends it; only if that is the last one, the call is charged for.
    fn call_in_order(&mut self, call: &'a Call, nodes: &'a [Node]) -> Outcome<'a> {
        let mut args: SmallVec<[Value<'a>; 4]> = SmallVec::new();
        let mut failed = None;
        for (index, node) in nodes.iter().enumerate() {
            match self.eval(node) {
                Ok(value) => args.push(value),
                Err(error) if error.is_cancelled() || index + 1 < nodes.len() => return Err(error),
                Err(error) => {
                    args.push(Value::Null);
                    failed = Some(error);
                }
            }
        }
        self.run(call, &args, failed)
    }

    /// Runs a call of one or two arguments. Failed arguments are charged for as well.
    fn finish<const N: usize>(&mut self, call: &'a Call, args: [Outcome<'a>; N]) -> Outcome<'a> {
        call.cost.check(&args)?;
        let mut failed = None;
        let args = args.map(|arg| {
            arg.unwrap_or_else(|error| {
                failed.get_or_insert(error);
                Value::Null
            })
        });
        self.run(call, &args, failed)
    }

    /// Charges for a call and runs it, unless an argument failed. What does not depend on the result is charged for first, so
    /// that a call that is too expensive does not run.
    fn run(&mut self, call: &'a Call, args: &[Value<'a>], failed: Option<EvalError>) -> Outcome<'a> {
        if !call.cost.needs_result() {
            let cost = call.cost.actual(args, &Ok(Value::Null));
            self.charge(cost)?;
        }
        let result = match (failed, &call.dispatch) {
            (Some(error), _) => Err(error),
            (None, Dispatch::Add(native)) => self.add(*native, args),
            (None, _) => invoke(call, args),
        };
        if call.cost.needs_result() {
            let cost = call.cost.actual(args, &result);
            self.charge(cost)?;
        }
        result
    }

    fn add(&mut self, native: Native, args: &[Value<'a>]) -> Outcome<'a> {
        if let [Value::List(one), Value::List(other)] = args {
            self.copied += (one.len() + other.len()) as u64;
            if self.copied > MAX_COPIED {
                return Err(EvalError::cost_limit());
            }
        }
        native(args)
    }

    fn membership(&mut self, value: &'a Node, keys: &'a std::collections::HashSet<Key>) -> Outcome<'a> {
        let value = self.eval(value)?;
        Ok(Value::Bool(Key::of_any(&value)?.is_some_and(|key| keys.contains(&key))))
    }

    fn not_strictly_false(&mut self, operand: &'a Node) -> Outcome<'a> {
        let result = match self.eval(operand) {
            Ok(Value::Bool(value)) => Ok(Value::Bool(value)),
            Err(error) if error.is_cancelled() => return Err(error),
            _ => Ok(Value::Bool(true)),
        };
        self.charge(1)?;
        result
    }

    fn optional_or(&mut self, operands: &'a [Node; 2]) -> Outcome<'a> {
        match self.eval(&operands[0])? {
            Value::Optional(None) => self.eval(&operands[1]),
            other => Ok(other),
        }
    }

    fn optional_or_value(&mut self, operands: &'a [Node; 2]) -> Outcome<'a> {
        match self.eval(&operands[0])? {
            Value::Optional(None) => self.eval(&operands[1]),
            Value::Optional(Some(value)) => value.held(),
            other => Ok(other),
        }
    }

    fn list(&mut self, list: &'a ListNode) -> Outcome<'a> {
        let mut items = Vec::with_capacity(list.elements.len());
        let made = list.elements.iter().zip(&list.optional).try_for_each(|(element, optional)| {
            match (self.eval(element)?, optional) {
                (value, false) => items.push(value),
                (Value::Optional(value), true) => items.extend(value.map(|value| (*value).clone())),
                (value, true) => {
                    let message = format!("cannot initialize optional list element from non-optional value {value}");
                    return Err(EvalError::new(message));
                }
            }
            Ok(())
        });
        self.constructed(made, LIST_COST)?;
        Ok(Value::list(items))
    }

    /// Charges for a list, map or message, also if making it failed.
    fn constructed<T>(&mut self, made: Result<T, EvalError>, cost: u64) -> Result<T, EvalError> {
        match made {
            Err(error) if error.is_cancelled() => Err(error),
            made => self.charge(cost).and(made),
        }
    }

    fn map(&mut self, map: &'a MapNode) -> Outcome<'a> {
        let mut entries = Entries::default();
        let made = map.entries.iter().try_for_each(|(key, value, optional)| {
            let key = self.eval(key)?;
            match (self.eval(value)?, optional) {
                (value, false) => entries.insert(key, value),
                (Value::Optional(Some(value)), true) => entries.insert(key, (*value).clone()),
                (Value::Optional(None), true) => entries.remove(&key),
                (value, true) => {
                    let message = format!("cannot initialize optional entry '{key}' from non-optional value {value}");
                    Err(EvalError::new(message))
                }
            }
        });
        self.constructed(made, MAP_COST)?;
        Ok(Value::Map(Map::Entries(Arc::new(entries))))
    }

    fn message(&mut self, message: &'a StructNode) -> Outcome<'a> {
        let mut fields: Vec<(Arc<str>, Value<'a>)> = Vec::with_capacity(message.fields.len());
        let set = message.fields.iter().try_for_each(|(name, value, optional)| {
            let value = self.eval(value)?;
            fields.retain(|(known, _)| known != name);
            match (value, optional) {
                (value, false) => fields.push((name.clone(), value)),
                (Value::Optional(value), true) => fields.extend(value.map(|value| (name.clone(), (*value).clone()))),
                (value, true) => {
                    let message = format!("cannot initialize optional entry '{name}' from non-optional value {value}");
                    return Err(EvalError::new(message));
                }
            }
            Ok(())
        });
        let made = set.and_then(|()| self.make(&message.kind, fields));
        self.constructed(made, STRUCT_COST)
    }

    fn make(&mut self, kind: &MessageKind, fields: Vec<(Arc<str>, Value<'a>)>) -> Outcome<'a> {
        match kind {
            MessageKind::WellKnown(message) => {
                let mut left = MAX_COPIED.saturating_sub(self.copied);
                let made = message.make(fields, &mut left);
                self.copied = MAX_COPIED - left;
                made
            }
            MessageKind::Declared(name, declared) => {
                Message::new(name.clone(), declared.clone(), fields).map(|message| Value::Message(Arc::new(message)))
            }
            MessageKind::Received(name) => Err(EvalError::new(format!("unknown type '{name}'"))),
        }
    }
}

/// Runs the code of a call.
pub(crate) fn invoke<'a>(call: &Call, args: &[Value<'a>]) -> Outcome<'a> {
    match &call.dispatch {
        Dispatch::Unguarded(native) | Dispatch::Add(native) => native(args),
        Dispatch::Matches(pattern) => crate::library::regex::matched(call.function, pattern, args),
        Dispatch::Guarded(overloads) => {
            let fits = |kinds: &[Type]| {
                kinds.len() == args.len() && kinds.iter().zip(args).all(|(kind, arg)| admits(kind, arg))
            };
            match overloads.iter().find(|(kinds, _)| fits(kinds)) {
                Some((_, native)) => native(args),
                None => {
                    let kinds: Vec<String> = args.iter().map(|arg| arg.type_of().runtime_name().to_string()).collect();
                    let message = format!("no such overload: {}({})", call.function, kinds.join(", "));
                    Err(EvalError::of(ErrorKind::NoSuchOverload, message))
                }
            }
        }
    }
}

/// Whether a value may be an argument of this type; of a list or map the first element decides.
fn admits(kind: &Type, value: &Value<'_>) -> bool {
    match (kind, value) {
        (Type::Dyn | Type::Param(_), _) => true,
        (Type::Nullable(inner), value) => matches!(value, Value::Null) || admits(inner, value),
        (Type::List(element), Value::List(list)) => match list.get(0) {
            Some(Ok(first)) => admits(element, &first),
            _ => true,
        },
        (Type::Map(key, of), Value::Map(map)) => match map.entries().next() {
            Some(Ok((first, value))) => admits(key, &first) && admits(of, &value),
            _ => true,
        },
        (kind, value) => kind.runtime_name() == value.type_of().runtime_name(),
    }
}

#[cfg(test)]
mod tests;
