//! Expressions of admission policies and match conditions: which variables they have, of which types, and how they are
//! evaluated within a budget; for mutations also the patch that they make. What an outcome means for a request is left to the caller.
// apiserver/pkg/admission/plugin/cel: compile.go, composition.go, activation.go

mod condition;
mod declaration;
mod mutating;
mod mutation;
mod type_check;
mod validating;

pub use flyball_cel::{AccessCheck, Authorizer, Decision};

pub use condition::{FailurePolicy, MatchConditions};
pub use mutating::MutatingPolicy;
pub use mutation::PatchType;
pub use type_check::{CheckedType, type_check};
pub use validating::{Denial, Outcome, ValidatingPolicy};

use crate::go_text;
use flyball_cel::{Activation, Env, EvalError, Program, Type, Value as Cel};
use serde_json::Value;
use std::cell::{Cell, RefCell};
use std::fmt;
use std::sync::Arc;

/// What one evaluation of an expression or a variable may cost.
pub const MAX_CALL_COST: u64 = 1_000_000;
/// What the expressions of a policy may cost for one request and binding.
pub const MAX_POLICY_COST: u64 = 10_000_000;
/// What the match conditions of a webhook or a policy may cost for one request.
pub const MAX_MATCH_CONDITIONS_COST: u64 = 2_500_000;

static NULL: Value = Value::Null;

/// Compiles expressions in the environment of admission: `object`, `oldObject`, `request`, `namespaceObject`, and what is added.
///
/// ```
/// use flyball_cel::{Type, Value};
/// use flyball_schema::policy::{Compiler, Evaluator, Input, MAX_POLICY_COST};
/// use serde_json::json;
///
/// let mut compiler = Compiler::new().with_variables();
/// compiler.add_variable("replicas", "object.spec.?replicas.orValue(1)").expect("a valid variable");
/// let rule = compiler.compile("variables.replicas <= 5", &[Type::Bool]).expect("a valid rule");
///
/// let (object, request) = (json!({"spec": {"replicas": 3}}), json!({"operation": "CREATE"}));
/// let mut evaluator = Evaluator::new(&compiler, Input::new(&object, &request), MAX_POLICY_COST);
/// assert_eq!(evaluator.evaluate(&rule), Ok(Ok(Value::Bool(true))));
/// ```
#[derive(Debug)]
pub struct Compiler {
    /// Everything but `authorizer`.
    env: Env,
    has_authorizer: bool,
    variables: Vec<Variable>,
}

#[derive(Debug)]
struct Variable {
    name: String,
    kind: Type,
    /// The program, or why there is none.
    program: Result<Program, String>,
}

/// An expression that can be evaluated.
#[derive(Debug)]
pub struct Expression {
    text: String,
    program: Program,
}

impl Default for Compiler {
    fn default() -> Compiler {
        Compiler::new()
    }
}

impl Compiler {
    /// The variables that every expression has.
    pub fn new() -> Compiler {
        Compiler {
            env: declaration::declare(Env::kubernetes()),
            has_authorizer: false,
            variables: Vec::new(),
        }
    }

    /// Adds `params`.
    #[must_use]
    pub fn with_params(mut self) -> Compiler {
        self.env = self.env.variable("params", Type::Dyn);
        self
    }

    /// Adds `authorizer` and `authorizer.requestResource`.
    #[must_use]
    pub fn with_authorizer(mut self) -> Compiler {
        self.has_authorizer = true;
        self
    }

    /// Adds `variables`, which has no fields until [`Compiler::add_variable`].
    #[must_use]
    pub fn with_variables(mut self) -> Compiler {
        self.env = declaration::declare_variables(self.env, []);
        self
    }

    /// Compiles an expression whose value later expressions read as a field of `variables`. It is evaluated when it is first
    /// read. One that does not compile is declared as well; reading it is an error.
    ///
    /// # Errors
    /// Why it does not compile, in kube-apiserver's words.
    pub fn add_variable(&mut self, name: &str, text: &str) -> Result<(), String> {
        let program = program(&self.complete_env(), text);
        let kind = program
            .as_ref()
            .map_or(Type::Dyn, |program| declaration::field_type(program.result_type()));
        let outcome = program.as_ref().map(drop).map_err(Clone::clone);
        self.variables.retain(|variable| variable.name != name);
        self.variables.push(Variable { name: name.to_owned(), kind, program });
        let fields = self.variables.iter().map(|variable| (&*variable.name, variable.kind.clone()));
        self.env = declaration::declare_variables(self.env.clone(), fields);
        outcome
    }

    /// Compiles an expression that must be of one of these types; of any type if there are none.
    ///
    /// # Errors
    /// Why it is refused, in kube-apiserver's words.
    pub fn compile(&self, text: &str, kinds: &[Type]) -> Result<Expression, String> {
        self.compile_in(&self.complete_env(), text, kinds)
    }

    /// Compiles an expression that makes a message: a text, without `authorizer`.
    ///
    /// # Errors
    /// Why it is refused, in kube-apiserver's words.
    pub fn compile_message(&self, text: &str) -> Result<Expression, String> {
        self.compile_in(&self.env, text, &[Type::String])
    }

    fn complete_env(&self) -> Env {
        match self.has_authorizer {
            true => declaration::declare_authorizer(self.env.clone()),
            false => self.env.clone(),
        }
    }

    fn compile_in(&self, env: &Env, text: &str, kinds: &[Type]) -> Result<Expression, String> {
        let program = program(env, text)?;
        let found = program.result_type();
        if !kinds.is_empty() && !kinds.contains(found) {
            let names: Vec<String> = kinds.iter().map(declaration::type_name).collect();
            let found = declaration::type_name(found);
            return Err(match &names[..] {
                [only] => format!("must evaluate to {only} but got {found}"),
                names => format!("must evaluate to one of [{}] but got {found}", names.join(" ")),
            });
        }
        Ok(Expression { text: text.to_owned(), program })
    }
}

/// The compiler for the expressions of a policy: with its variables, and with `params` if it has a kind of parameters.
fn compiler_of(spec: &Value) -> Compiler {
    let compiler = Compiler::new().with_authorizer().with_variables();
    let mut compiler = match spec["paramKind"].is_null() {
        true => compiler,
        false => compiler.with_params(),
    };
    for variable in spec["variables"].as_array().into_iter().flatten() {
        let text = |field: &str| variable[field].as_str().unwrap_or_default();
        // One that does not compile is an error where it is read.
        let _outcome = compiler.add_variable(text("name"), text("expression"));
    }
    compiler
}

fn program(env: &Env, text: &str) -> Result<Program, String> {
    env.compile(text).map_err(|error| match error {
        flyball_cel::CompileError::Invalid(issues) => format!("compilation failed: {issues}"),
        flyball_cel::CompileError::Program(why) => format!("program instantiation failed: {why}"),
    })
}

/// The values of the variables for one request. Objects that are absent are null.
#[derive(Clone, Debug)]
pub struct Input<'a> {
    /// The object as it would be stored.
    pub object: &'a Value,
    /// The object that is stored.
    pub old_object: &'a Value,
    /// The AdmissionRequest, without its objects.
    pub request: &'a Value,
    /// The Namespace of the object.
    pub namespace: &'a Value,
    /// The object that a binding names.
    pub params: &'a Value,
    /// Decides what the user of the request may do.
    pub authorizer: Option<Arc<dyn Authorizer>>,
    /// The resource of the request, for `authorizer.requestResource`.
    pub request_resource: AccessCheck,
}

impl<'a> Input<'a> {
    /// A new object and its request; everything else is absent.
    pub fn new(object: &'a Value, request: &'a Value) -> Input<'a> {
        Input {
            object,
            old_object: &NULL,
            request,
            namespace: &NULL,
            params: &NULL,
            authorizer: None,
            request_resource: AccessCheck::default(),
        }
    }
}

/// The budget is spent: no further expression is evaluated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OutOfBudget;

impl fmt::Display for OutOfBudget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("validation failed due to running out of cost budget, no further validation rules will be run")
    }
}

impl std::error::Error for OutOfBudget {}

/// Evaluates expressions for one request. Each variable is evaluated at most once, and charged for when it is.
pub struct Evaluator<'a> {
    variables: Variables<'a>,
    budget: u64,
}

impl<'a> Evaluator<'a> {
    /// An evaluator for expressions of this compiler.
    pub fn new(compiler: &'a Compiler, input: Input<'a>, budget: u64) -> Evaluator<'a> {
        let variables = Variables {
            compiler,
            input,
            values: RefCell::new(vec![None; compiler.variables.len()]),
            cost: Cell::new(0),
        };
        Evaluator { variables, budget }
    }

    /// The value of an expression, or why it has none.
    ///
    /// # Errors
    /// If the expression, or a variable that it is the first to read, costs more than is left.
    pub fn evaluate(&mut self, expression: &'a Expression) -> Result<Result<Cel<'a>, String>, OutOfBudget> {
        let evaluation = expression.program.evaluate_within(&self.variables, MAX_CALL_COST);
        let cost = evaluation.cost.saturating_add(self.variables.cost.take());
        self.budget = self.budget.checked_sub(cost).ok_or(OutOfBudget)?;
        let failed = |error: EvalError| format!("expression '{}' resulted in error: {error}", expression.text);
        Ok(evaluation.result.map_err(failed))
    }

    /// The same for an expression that may not have compiled.
    fn evaluate_compiled(
        &mut self,
        expression: &'a Result<Expression, String>,
    ) -> Result<Result<Cel<'a>, String>, OutOfBudget> {
        match expression {
            Ok(expression) => self.evaluate(expression),
            Err(why) => Ok(Err(format!("compilation error: {why}"))),
        }
    }

    /// How much of the budget is left.
    pub fn budget(&self) -> u64 {
        self.budget
    }
}

struct Variables<'a> {
    compiler: &'a Compiler,
    input: Input<'a>,
    values: RefCell<Vec<Option<Result<Cel<'a>, EvalError>>>>,
    /// What variables have cost since it was last paid.
    cost: Cell<u64>,
}

impl<'a> Activation<'a> for Variables<'a> {
    fn resolve(&self, name: &str) -> Option<Result<Cel<'a>, EvalError>> {
        let input = &self.input;
        Some(Ok(match name {
            "object" => Cel::json(input.object),
            "oldObject" => Cel::json(input.old_object),
            "request" => Cel::json(input.request),
            "namespaceObject" => Cel::json(input.namespace),
            "params" => Cel::json(input.params),
            "variables" => Cel::lazy(declaration::VARIABLES),
            "authorizer" => Cel::authorizer(input.authorizer.clone()?),
            "authorizer.requestResource" => {
                Cel::resource_check(input.authorizer.clone()?, input.request_resource.clone())
            }
            _ => return None,
        }))
    }

    fn resolve_field(&self, _type_name: &str, field: &str) -> Option<Result<Cel<'a>, EvalError>> {
        let place = self.compiler.variables.iter().position(|variable| variable.name == field)?;
        let known = self.values.borrow()[place].clone();
        Some(known.unwrap_or_else(|| {
            let value = self.evaluate(&self.compiler.variables[place]);
            self.values.borrow_mut()[place] = Some(value.clone());
            value
        }))
    }
}

impl<'a> Variables<'a> {
    /// Evaluates a variable. It reads only those that were there when it was compiled, so this ends.
    fn evaluate(&self, variable: &'a Variable) -> Result<Cel<'a>, EvalError> {
        let name = go_text::quote(&variable.name);
        let failed = |how: &str, why: &dyn fmt::Display| {
            EvalError::new(format!("composited variable {name} fails to {how}: {why}"))
        };
        let program = variable.program.as_ref().map_err(|why| failed("compile", why))?;
        let evaluation = program.evaluate_within(self, MAX_CALL_COST);
        self.cost.set(self.cost.get().saturating_add(evaluation.cost));
        evaluation.result.map_err(|error| failed("evaluate", &error))
    }
}

#[cfg(test)]
mod tests;
