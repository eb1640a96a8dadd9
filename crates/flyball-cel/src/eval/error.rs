//! Errors at run time, in cel-go's words.

use std::fmt;
use std::sync::Arc;

/// Why an evaluation has no value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EvalError {
    kind: ErrorKind,
    message: Arc<str>,
}

/// What kind of error it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ErrorKind {
    /// A function does not take these arguments.
    NoSuchOverload,
    /// A map has no such key.
    NoSuchKey,
    /// A list has no such index.
    IndexOutOfBounds,
    /// A variable has no value.
    NoSuchAttribute,
    /// The evaluation was stopped, because it cost too much.
    CostLimit,
    /// The evaluation was stopped where cel-go panics and reports that.
    Internal,
    /// Anything else.
    Other,
}

impl EvalError {
    /// An error with this message.
    pub fn new(message: impl Into<Arc<str>>) -> EvalError {
        EvalError { kind: ErrorKind::Other, message: message.into() }
    }

    pub(crate) fn of(kind: ErrorKind, message: impl Into<Arc<str>>) -> EvalError {
        EvalError { kind, message: message.into() }
    }

    pub(crate) fn no_such_overload() -> EvalError {
        EvalError::of(ErrorKind::NoSuchOverload, "no such overload")
    }

    pub(crate) fn cost_limit() -> EvalError {
        EvalError::of(ErrorKind::CostLimit, "operation cancelled: actual cost limit exceeded")
    }

    /// What cel-go answers where its own code panics.
    pub(crate) fn internal(message: impl fmt::Display) -> EvalError {
        EvalError::of(ErrorKind::Internal, format!("internal error: {message}"))
    }

    /// Whether the evaluation was stopped; such an error is never absorbed.
    pub fn is_cancelled(&self) -> bool {
        matches!(self.kind, ErrorKind::CostLimit | ErrorKind::Internal)
    }

    /// What kind of error it is.
    pub fn kind(&self) -> ErrorKind {
        self.kind
    }

    /// The message.
    pub fn message(&self) -> &str {
        &self.message
    }
}

impl fmt::Display for EvalError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for EvalError {}
