//! The Common Expression Language as Kubernetes runs it: parse, check, evaluate, estimate cost.
//!
//! [`Env`] says what an expression may use; [`Env::compile`] makes a [`Program`] of its text; [`Program::evaluate`] runs it
//! on values that borrow the JSON they look at. The reference is cel-go as Kubernetes 1.36 configures it: types, messages,
//! costs and limits are its own. Nothing here knows Kubernetes' objects, reads a clock, or does I/O.

pub mod ast;
pub mod check;
mod cost;
mod decl;
mod env;
mod eval;
mod library;
mod parse;
mod plan;
mod program;
pub mod source;
mod typing;
pub mod value;

pub use check::Checked;
pub use cost::estimate::{CostEstimate, Path, SizeEstimate, SizeEstimator, UnknownSizes};
pub use decl::{Function, Overload};
pub use env::{CompileError, Env, ObjectType};
pub use eval::{ErrorKind, EvalError};
pub use library::authorizer::{AccessCheck, Authorizer, Decision};
pub use library::{KUBERNETES, Library};
pub use parse::{MAX_CODE_POINTS, MAX_DEPTH, MAX_NODES};
pub use program::{Activation, Bindings, DEFAULT_COST_LIMIT, Evaluation, Program};
pub use source::{Issue, Issues, Location};
pub use typing::Type;
pub use value::shape::{FieldShape, ListKind, ObjectShape, Shape, ShapeKind};
pub use value::{List, Map, Message, Opaque, Value};
