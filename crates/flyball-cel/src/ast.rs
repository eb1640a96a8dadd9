//! The syntax tree: expressions in one arena, each with its place in the source.

use crate::source::Source;
use std::sync::Arc;

/// The place of an expression in its tree.
pub type ExprId = u32;

/// The accumulator of the comprehensions that macros expand to; no source text can name it.
pub const ACCUMULATOR: &str = "@result";

/// A constant in the source text.
#[derive(Clone, Debug, PartialEq)]
pub enum Literal {
    /// `null`
    Null,
    /// `true`, `false`
    Bool(bool),
    /// `-7`
    Int(i64),
    /// `7u`
    Uint(u64),
    /// `7.5`
    Double(f64),
    /// `'seven'`
    String(Arc<str>),
    /// `b'seven'`
    Bytes(Arc<[u8]>),
}

/// One expression.
#[derive(Clone, Debug)]
pub struct Expr {
    /// What it is, and what it is made of.
    pub kind: ExprKind,
    /// Where it begins, in code points from the beginning of the source.
    pub offset: u32,
}

/// The forms of an expression after macro expansion.
#[derive(Clone, Debug)]
pub enum ExprKind {
    /// What replaces an expression that did not parse.
    Unspecified,
    /// A constant.
    Literal(Literal),
    /// A name; a leading dot is kept.
    Ident(Arc<str>),
    /// `operand.field`, or `has(operand.field)`.
    Select {
        /// What the field is selected from.
        operand: ExprId,
        /// The name of the field.
        field: Arc<str>,
        /// Whether only its presence is asked for.
        test_only: bool,
    },
    /// A function, an operator (`_+_`) or a method.
    Call {
        /// The name, qualified where the source qualifies it.
        function: Arc<str>,
        /// The receiver of a method.
        target: Option<ExprId>,
        /// The arguments without the receiver.
        args: Vec<ExprId>,
    },
    /// `[a, ?b]`
    List {
        /// The elements in order.
        elements: Vec<ExprId>,
        /// For each element, whether it is marked with `?`.
        optional: Vec<bool>,
    },
    /// `{key: value, ?key: value}`
    Map(Vec<Entry>),
    /// `Name{field: value}`
    Struct {
        /// The name of the type.
        name: Arc<str>,
        /// The fields in order.
        fields: Vec<Field>,
    },
    /// What the macros `all`, `map` and so on expand to.
    Comprehension(Box<Comprehension>),
}

/// One entry of a map literal.
#[derive(Clone, Debug)]
pub struct Entry {
    /// The key.
    pub key: ExprId,
    /// The value.
    pub value: ExprId,
    /// Whether the entry is marked with `?`.
    pub optional: bool,
    /// Where its colon is.
    pub offset: u32,
}

/// One field of a message literal.
#[derive(Clone, Debug)]
pub struct Field {
    /// The name of the field.
    pub name: Arc<str>,
    /// The value.
    pub value: ExprId,
    /// Whether the field is marked with `?`.
    pub optional: bool,
    /// Where its colon is.
    pub offset: u32,
}

/// A fold over a list or a map.
#[derive(Clone, Debug)]
pub struct Comprehension {
    /// What is iterated over.
    pub range: ExprId,
    /// The element of a list, the key of a map; the index of a list if there is a second variable.
    pub variable: Arc<str>,
    /// The element or value, in a comprehension of two variables.
    pub second_variable: Option<Arc<str>>,
    /// The name of the accumulator.
    pub accumulator: Arc<str>,
    /// What the accumulator is at first.
    pub init: ExprId,
    /// Whether to go on, asked before each step.
    pub condition: ExprId,
    /// What the accumulator becomes.
    pub step: ExprId,
    /// What the comprehension is worth.
    pub result: ExprId,
}

/// A parsed expression, with macros expanded.
#[derive(Clone, Debug)]
pub struct Tree {
    pub(crate) exprs: Vec<Expr>,
    pub(crate) root: ExprId,
    pub(crate) source: Source,
}

impl Tree {
    /// The outermost expression.
    pub fn root(&self) -> ExprId {
        self.root
    }

    /// One expression of the tree.
    pub fn expr(&self, id: ExprId) -> &Expr {
        &self.exprs[id as usize]
    }

    /// How many expressions there are.
    pub fn len(&self) -> usize {
        self.exprs.len()
    }

    /// Whether there is no expression.
    pub fn is_empty(&self) -> bool {
        self.exprs.is_empty()
    }

    /// The text that was parsed.
    pub fn source(&self) -> &Source {
        &self.source
    }

    /// `a.b.c` as one name, if the expression is nothing but names and dots.
    pub(crate) fn qualified_name(&self, id: ExprId) -> Option<String> {
        match &self.expr(id).kind {
            ExprKind::Ident(name) => Some(name.to_string()),
            ExprKind::Select { operand, field, test_only: false } => {
                let mut name = self.qualified_name(*operand)?;
                name.push('.');
                name.push_str(field);
                Some(name)
            }
            _ => None,
        }
    }
}
