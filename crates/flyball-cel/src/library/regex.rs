//! Patterns in RE2's notation, matched in linear time.

use crate::eval::EvalError;
use regex::{Regex, RegexBuilder};

/// How large a compiled pattern may be, in bytes.
const MAX_COMPILED: usize = 16 << 20;

/// Compiles a pattern.
pub(crate) fn compile(pattern: &str) -> Result<Regex, EvalError> {
    let built = RegexBuilder::new(pattern).size_limit(MAX_COMPILED).build();
    built.map_err(|_| EvalError::new(format!("error parsing regexp: `{pattern}`")))
}
