//! Match conditions: expressions that all have to hold before a policy or a webhook looks at a request.
// apiserver/pkg/admission/plugin/webhook/matchconditions/matcher.go

use super::{Compiler, Evaluator, Expression, Input, MAX_MATCH_CONDITIONS_COST};
use flyball_cel::{Type, Value as Cel};
use serde_json::Value;

/// What becomes of a request about which a policy or a webhook cannot decide.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FailurePolicy {
    /// The request is refused.
    #[default]
    Fail,
    /// The request is admitted.
    Ignore,
}

impl FailurePolicy {
    /// Reads the field `failurePolicy`.
    pub fn read(value: &Value) -> FailurePolicy {
        match value.as_str() {
            Some("Ignore") => FailurePolicy::Ignore,
            _ => FailurePolicy::Fail,
        }
    }
}

/// Match conditions that can be evaluated.
#[derive(Debug, Default)]
pub struct MatchConditions(Vec<Result<Expression, String>>);

impl MatchConditions {
    /// Compiles a list of conditions; one that is invalid is an error when it is evaluated.
    pub fn compile(compiler: &Compiler, conditions: &Value) -> MatchConditions {
        let texts = conditions.as_array().into_iter().flatten();
        let texts = texts.map(|condition| condition["expression"].as_str().unwrap_or_default());
        MatchConditions(texts.map(|text| compiler.compile(text, &[Type::Bool])).collect())
    }

    /// Whether all conditions hold. One that is false decides, whatever errors others have.
    ///
    /// # Errors
    /// Why it cannot be told, if requests fail then.
    pub fn match_input(
        &self,
        compiler: &Compiler,
        input: Input<'_>,
        failure_policy: FailurePolicy,
    ) -> Result<bool, String> {
        let undecided = |why: String| match failure_policy {
            FailurePolicy::Fail => Err(why),
            FailurePolicy::Ignore => Ok(false),
        };
        let mut evaluator = Evaluator::new(compiler, input, MAX_MATCH_CONDITIONS_COST);
        let mut results = Vec::with_capacity(self.0.len());
        for condition in &self.0 {
            match evaluator.evaluate_compiled(condition) {
                Ok(result) => results.push(result),
                Err(error) => return undecided(error.to_string()),
            }
        }
        let mut errors = Vec::new();
        for result in results {
            match result {
                Ok(Cel::Bool(false)) => return Ok(false),
                Ok(_) => {}
                Err(error) if errors.contains(&error) => {}
                Err(error) => errors.push(error),
            }
        }
        match errors.len() {
            0 => Ok(true),
            1 => undecided(errors.remove(0)),
            _ => undecided(format!("[{}]", errors.join(", "))),
        }
    }
}
