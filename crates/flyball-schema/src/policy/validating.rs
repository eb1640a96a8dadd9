//! A ValidatingAdmissionPolicy that is compiled, and what it says of one request.
// apiserver/pkg/admission/plugin/policy/validating: plugin.go, compilePolicy; validator.go, Validate

use super::{
    Compiler, Evaluator, Expression, FailurePolicy, Input, MAX_POLICY_COST, MatchConditions, OutOfBudget, compiler_of,
};
use flyball_cel::{Type, Value as Cel};
use serde_json::Value;

/// The most bytes of a message that an expression makes.
const MAX_MESSAGE_BYTES: usize = 5 * 1024;
/// The most bytes of an audit annotation.
const MAX_ANNOTATION_BYTES: usize = 10 * 1024;

/// A policy that is compiled.
///
/// ```
/// use flyball_schema::policy::{Input, ValidatingPolicy};
/// use serde_json::json;
///
/// let spec = json!({"validations": [{"expression": "object.spec.replicas <= 5", "message": "too many"}]});
/// let policy = ValidatingPolicy::compile(&spec);
/// let (object, request) = (json!({"spec": {"replicas": 9}}), json!({"operation": "CREATE"}));
/// let input = Input::new(&object, &request);
/// let outcome = policy.evaluate(&input, &input);
/// assert_eq!(outcome.denials[0].message, "too many");
/// ```
#[derive(Debug)]
pub struct ValidatingPolicy {
    compiler: Compiler,
    failure_policy: FailurePolicy,
    conditions: MatchConditions,
    validations: Vec<Validation>,
    annotations: Vec<Annotation>,
}

#[derive(Debug)]
struct Validation {
    text: String,
    expression: Result<Expression, String>,
    message: String,
    message_expression: Option<Result<Expression, String>>,
    reason: Option<String>,
}

#[derive(Debug)]
struct Annotation {
    key: String,
    text: String,
    expression: Result<Expression, String>,
}

/// What a policy says of a request.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Outcome {
    /// Validations that failed, in their order. The actions of a binding decide what becomes of them.
    pub denials: Vec<Denial>,
    /// Audit annotations: their keys, without the name of the policy, and their values.
    pub annotations: Vec<(String, String)>,
    /// Why audit annotations could not be made; the request is refused, whatever the actions are.
    pub errors: Vec<String>,
}

/// A validation that failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Denial {
    /// The place of the validation; 0 if the policy as a whole failed.
    pub index: usize,
    /// Why.
    pub message: String,
    /// The reason of the refusal, if the validation names one.
    pub reason: Option<String>,
}

impl ValidatingPolicy {
    /// Compiles the `spec` of a policy; an expression that is invalid is an error when it is evaluated.
    pub fn compile(spec: &Value) -> ValidatingPolicy {
        let compiler = compiler_of(spec);
        let conditions = MatchConditions::compile(&compiler, &spec["matchConditions"]);
        let list = |field: &str| spec[field].as_array().map(Vec::as_slice).unwrap_or_default();
        let validations = list("validations")
            .iter()
            .map(|written| Validation::compile(&compiler, written))
            .collect();
        let annotations = list("auditAnnotations")
            .iter()
            .map(|written| Annotation::compile(&compiler, written))
            .collect();
        let failure_policy = FailurePolicy::read(&spec["failurePolicy"]);
        ValidatingPolicy {
            compiler,
            failure_policy,
            conditions,
            validations,
            annotations,
        }
    }

    /// What the policy says of a request, whose match conditions may see something else than its validations.
    pub fn evaluate(&self, conditions: &Input<'_>, input: &Input<'_>) -> Outcome {
        match self.conditions.match_input(&self.compiler, conditions.clone(), self.failure_policy) {
            Ok(true) => {}
            Ok(false) => return Outcome::default(),
            Err(why) => return self.failed(why),
        }
        let unauthorized = Input { authorizer: None, ..input.clone() };
        let decided = self
            .decide(input, &unauthorized)
            .and_then(|denials| self.annotate(Outcome { denials, ..Outcome::default() }, &unauthorized));
        decided.unwrap_or_else(|error| self.failed(error.to_string()))
    }

    /// The outcome of an error that ends the evaluation.
    fn failed(&self, message: String) -> Outcome {
        let denial = Denial { index: 0, message, reason: None };
        let denials = match self.failure_policy {
            FailurePolicy::Fail => vec![denial],
            FailurePolicy::Ignore => Vec::new(),
        };
        Outcome { denials, ..Outcome::default() }
    }

    fn decide(&self, input: &Input<'_>, unauthorized: &Input<'_>) -> Result<Vec<Denial>, OutOfBudget> {
        let mut evaluator = Evaluator::new(&self.compiler, input.clone(), MAX_POLICY_COST);
        let mut results = Vec::with_capacity(self.validations.len());
        for validation in &self.validations {
            results.push(evaluator.evaluate_compiled(&validation.expression)?);
        }
        let messages = self.messages(unauthorized, evaluator.budget());
        let fails = |message: String| (self.failure_policy == FailurePolicy::Fail).then_some((message, None));
        let mut denials = Vec::new();
        for (index, (validation, result)) in self.validations.iter().zip(results).enumerate() {
            let failed = match (result, &messages) {
                (Err(error), _) => fails(error),
                (Ok(_), Err(error)) => fails(format!("failed messageExpression: {error}")),
                (Ok(Cel::Bool(true)), _) => None,
                (Ok(_), Ok(messages)) => {
                    let reason = validation.reason.clone();
                    Some((validation.denial(messages[index].as_deref()), reason))
                }
            };
            denials.extend(failed.map(|(message, reason)| Denial { index, message, reason }));
        }
        Ok(denials)
    }

    /// The messages that expressions make, none where there is no expression or no text of it.
    fn messages(&self, input: &Input<'_>, budget: u64) -> Result<Vec<Option<String>>, OutOfBudget> {
        let mut evaluator = Evaluator::new(&self.compiler, input.clone(), budget);
        let mut messages = Vec::with_capacity(self.validations.len());
        for validation in &self.validations {
            let message = match &validation.message_expression {
                Some(expression) => evaluator.evaluate_compiled(expression)?.ok(),
                None => None,
            };
            messages.push(message.and_then(|value| Some(value.as_str()?.trim().to_owned())));
        }
        Ok(messages)
    }

    fn annotate(&self, mut outcome: Outcome, input: &Input<'_>) -> Result<Outcome, OutOfBudget> {
        let mut evaluator = Evaluator::new(&self.compiler, input.clone(), MAX_POLICY_COST);
        for annotation in &self.annotations {
            match evaluator.evaluate_compiled(&annotation.expression)? {
                Err(_) if self.failure_policy == FailurePolicy::Ignore => {}
                Err(error) => outcome.errors.push(error),
                Ok(Cel::Null) => {}
                Ok(value) => match value.as_str() {
                    Some(text) if text.trim().is_empty() => {}
                    Some(text) => outcome.annotations.push((annotation.key.clone(), cut(text.trim()).to_owned())),
                    None => outcome.errors.push(format!(
                        "valueExpression '{}' resulted in unsupported return type: {}. Return type must be either string \
                         or null.",
                        annotation.text,
                        value.type_of()
                    )),
                },
            }
        }
        Ok(outcome)
    }
}

/// The beginning of a text that an audit annotation may have.
fn cut(text: &str) -> &str {
    let mut end = text.len().min(MAX_ANNOTATION_BYTES);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}

impl Validation {
    fn compile(compiler: &Compiler, written: &Value) -> Validation {
        let text = |field: &str| written[field].as_str().unwrap_or_default().to_owned();
        let message_expression = Some(text("messageExpression")).filter(|text| !text.is_empty());
        Validation {
            text: text("expression"),
            expression: compiler.compile(&text("expression"), &[Type::Bool]),
            message: text("message"),
            message_expression: message_expression.map(|text| compiler.compile_message(&text)),
            reason: written["reason"].as_str().map(str::to_owned),
        }
    }

    /// Why a request is refused: what the expression says of it, else the message, else the validation itself.
    fn denial(&self, evaluated: Option<&str>) -> String {
        let is_usable = |text: &&str| !text.is_empty() && text.len() <= MAX_MESSAGE_BYTES && !text.contains('\n');
        match evaluated.filter(is_usable) {
            Some(text) => text.to_owned(),
            None if !self.message.trim().is_empty() => self.message.trim().to_owned(),
            None => format!("failed expression: {}", self.text.trim()),
        }
    }
}

impl Annotation {
    fn compile(compiler: &Compiler, written: &Value) -> Annotation {
        let text = |field: &str| written[field].as_str().unwrap_or_default().to_owned();
        let expression = compiler.compile(&text("valueExpression"), &[Type::String, Type::Null]);
        Annotation { key: text("key"), text: text("valueExpression"), expression }
    }
}
