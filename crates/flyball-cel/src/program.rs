//! A compiled expression, and the values of its variables.

use crate::check::Checked;
use crate::cost::CallCost;
use crate::decl::Native;
use crate::env::ObjectType;
use crate::eval::{EvalError, Machine};
use crate::library::well_known::WellKnown;
use crate::typing::Type;
use crate::value::Value;
use crate::value::map::Key;
use std::collections::HashSet;
use std::sync::Arc;

/// What an evaluation may cost if its caller sets no limit.
pub const DEFAULT_COST_LIMIT: u64 = 100_000_000;

/// Where the values of variables come from.
pub trait Activation<'a> {
    /// The value of a variable, if it has one.
    fn resolve(&self, name: &str) -> Option<Result<Value<'a>, EvalError>>;

    /// The value of a field of a [`Value::lazy`] object, if it has such a field. It is asked for at each selection.
    fn resolve_field(&self, _type_name: &str, _field: &str) -> Option<Result<Value<'a>, EvalError>> {
        None
    }
}

/// Variables with their values.
#[derive(Clone, Debug, Default)]
pub struct Bindings<'a> {
    values: Vec<(&'a str, Value<'a>)>,
}

impl<'a> Bindings<'a> {
    /// No variables yet.
    pub fn new() -> Bindings<'a> {
        Bindings::default()
    }

    /// Gives a variable its value.
    #[must_use]
    pub fn bind(mut self, name: &'a str, value: Value<'a>) -> Bindings<'a> {
        self.values.push((name, value));
        self
    }
}

impl<'a> Activation<'a> for Bindings<'a> {
    fn resolve(&self, name: &str) -> Option<Result<Value<'a>, EvalError>> {
        let found = self.values.iter().rev().find(|(known, _)| *known == name);
        found.map(|(_, value)| Ok(value.clone()))
    }
}

/// What an evaluation came to, and what it cost.
#[derive(Clone, Debug)]
pub struct Evaluation<'a> {
    /// The value, or why there is none.
    pub result: Result<Value<'a>, EvalError>,
    /// The cost, in cel-go's units.
    pub cost: u64,
}

/// An expression that is ready to be evaluated, any number of times and from any thread.
#[derive(Debug)]
pub struct Program {
    pub(crate) root: Node,
    pub(crate) variables: Vec<Arc<str>>,
    pub(crate) slots: usize,
    pub(crate) checked: Checked,
    /// Whether `has` costs something by itself; it does not in Kubernetes.
    pub(crate) presence_cost: bool,
    /// Whether it is an error to ask for the presence of a field of something that has none.
    pub(crate) strict_presence: bool,
}

impl Program {
    /// The type of the result.
    pub fn result_type(&self) -> &Type {
        self.checked.result_type()
    }

    /// The checked expression that the program was made of.
    pub fn checked(&self) -> &Checked {
        &self.checked
    }

    /// The variables that the expression looks at.
    pub fn variables(&self) -> impl Iterator<Item = &str> {
        self.variables.iter().map(|name| &**name)
    }

    /// Evaluates the expression.
    ///
    /// # Errors
    /// What went wrong, in cel-go's words.
    pub fn evaluate<'a>(&'a self, activation: &dyn Activation<'a>) -> Result<Value<'a>, EvalError> {
        self.evaluate_within(activation, DEFAULT_COST_LIMIT).result
    }

    /// Evaluates the expression and stops as soon as its cost exceeds the limit.
    pub fn evaluate_within<'a>(&'a self, activation: &dyn Activation<'a>, limit: u64) -> Evaluation<'a> {
        let mut machine = Machine::new(self, activation, limit);
        let result = machine.eval(&self.root);
        Evaluation { result, cost: machine.cost() }
    }
}

/// One step of a program.
#[derive(Debug)]
pub(crate) enum Node {
    Const(Value<'static>),
    Attribute(Box<Attribute>),
    Conditional(Box<[Node; 3]>),
    And(Box<[Node; 2]>),
    Or(Box<[Node; 2]>),
    Equal(Box<[Node; 2]>),
    NotEqual(Box<[Node; 2]>),
    NotStrictlyFalse(Box<Node>),
    OptionalOr(Box<[Node; 2]>),
    OptionalOrValue(Box<[Node; 2]>),
    /// Membership in a constant list of scalars.
    InSet(Box<(Node, HashSet<Key>)>),
    Call(Box<Call>),
    List(Box<ListNode>),
    Map(Box<MapNode>),
    Struct(Box<StructNode>),
    Fold(Box<Fold>),
    /// The accumulator of the surrounding fold with elements added.
    Append(Box<Append>),
    /// The accumulator of the surrounding fold with an entry added.
    Insert(Box<Insert>),
}

/// A variable, a local or another value, and what is selected from it.
#[derive(Debug)]
pub(crate) struct Attribute {
    pub root: Root,
    pub qualifiers: Vec<Qualifier>,
}

#[derive(Debug)]
pub(crate) enum Root {
    Variable(usize),
    Local(usize),
    Operand(Node),
    Conditional([Node; 3]),
}

#[derive(Debug)]
pub(crate) struct Qualifier {
    pub key: QualifierKey,
    pub optional: bool,
}

#[derive(Debug)]
pub(crate) enum QualifierKey {
    Field(Arc<str>),
    /// Only whether the field is there.
    Test(Arc<str>),
    Const(Value<'static>),
    Computed(Node),
}

#[derive(Debug)]
pub(crate) struct Call {
    pub function: &'static str,
    pub dispatch: Dispatch,
    pub args: Vec<Node>,
    pub cost: CallCost,
    /// Whether the first argument that fails ends the call, without charge; otherwise all are evaluated and charged for.
    pub stops_early: bool,
}

#[derive(Debug)]
pub(crate) enum Dispatch {
    /// The one overload that applies; its code looks at the arguments itself.
    Unguarded(Native),
    /// Overloads with the types that their arguments must have at run time; the first that fits runs.
    Guarded(Vec<(Vec<Type>, Native)>),
    /// A constant pattern, compiled.
    Matches(Box<regex::Regex>),
    /// The addition of two values, metered.
    Add(Native),
}

#[derive(Debug)]
pub(crate) struct ListNode {
    pub elements: Vec<Node>,
    pub optional: Vec<bool>,
}

#[derive(Debug)]
pub(crate) struct MapNode {
    /// Key, value, and whether the entry is optional.
    pub entries: Vec<(Node, Node, bool)>,
}

#[derive(Debug)]
pub(crate) struct StructNode {
    pub kind: MessageKind,
    pub fields: Vec<(Arc<str>, Node, bool)>,
}

/// What a message literal makes.
#[derive(Debug)]
pub(crate) enum MessageKind {
    WellKnown(WellKnown),
    /// A message of the type with this name, and its fields unless it takes any.
    Declared(Arc<str>, Option<Arc<ObjectType>>),
    /// Nothing: expressions cannot make values of the type with this name.
    Received(Arc<str>),
}

#[derive(Debug)]
pub(crate) struct Fold {
    pub range: Node,
    pub first: usize,
    pub second: Option<usize>,
    pub accumulator: usize,
    pub init: Node,
    pub condition: Node,
    pub step: Node,
    pub result: Node,
}

#[derive(Debug)]
pub(crate) struct Append {
    pub slot: usize,
    pub elements: Vec<Node>,
    /// What making the list of new elements costs.
    pub list_cost: u64,
}

#[derive(Debug)]
pub(crate) struct Insert {
    pub slot: usize,
    /// A key and its value, or a map of them.
    pub args: Vec<Node>,
}
