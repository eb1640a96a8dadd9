//! A MutatingAdmissionPolicy that is compiled, and the patches that it makes for one request.
// apiserver/pkg/admission/plugin/policy/mutating/compilation.go

use super::{
    Compiler, Evaluator, Expression, FailurePolicy, Input, MAX_POLICY_COST, MatchConditions, PatchType, compiler_of,
};
use serde_json::Value;

/// A policy that is compiled.
#[derive(Debug)]
pub struct MutatingPolicy {
    compiler: Compiler,
    failure_policy: FailurePolicy,
    conditions: MatchConditions,
    mutations: Vec<(PatchType, Result<Expression, String>)>,
    is_reinvocable: bool,
}

impl MutatingPolicy {
    /// Compiles the `spec` of a policy; an expression that is invalid is an error when it is evaluated.
    pub fn compile(spec: &Value) -> MutatingPolicy {
        let compiler = compiler_of(spec);
        let conditions = MatchConditions::compile(&compiler, &spec["matchConditions"]);
        let mutations = spec["mutations"].as_array().into_iter().flatten().map(|mutation| {
            let (patch_type, field) = match mutation["patchType"].as_str() {
                Some("JSONPatch") => (PatchType::JsonPatch, "jsonPatch"),
                _ => (PatchType::ApplyConfiguration, "applyConfiguration"),
            };
            let text = mutation[field]["expression"].as_str().unwrap_or_default();
            (patch_type, compiler.compile_patch(text, patch_type))
        });
        MutatingPolicy {
            mutations: mutations.collect(),
            conditions,
            failure_policy: FailurePolicy::read(&spec["failurePolicy"]),
            is_reinvocable: spec["reinvocationPolicy"] == "IfNeeded",
            compiler,
        }
    }

    /// Whether the policy looks at a request again if the object changes after it.
    pub fn is_reinvocable(&self) -> bool {
        self.is_reinvocable
    }

    /// How many mutations there are.
    pub fn len(&self) -> usize {
        self.mutations.len()
    }

    /// Whether there is no mutation.
    pub fn is_empty(&self) -> bool {
        self.mutations.is_empty()
    }

    /// Whether the match conditions hold.
    ///
    /// # Errors
    /// Why it cannot be told, if requests fail then.
    pub fn match_input(&self, input: &Input<'_>) -> Result<bool, String> {
        self.conditions.match_input(&self.compiler, input.clone(), self.failure_policy)
    }

    /// The patch that a mutation makes.
    ///
    /// # Errors
    /// Why it makes none, in kube-apiserver's words.
    pub fn patch(&self, index: usize, input: &Input<'_>) -> Result<(PatchType, Value), String> {
        let (patch_type, expression) = &self.mutations[index];
        let expression = expression.as_ref().map_err(Clone::clone)?;
        let mut evaluator = Evaluator::new(&self.compiler, input.clone(), MAX_POLICY_COST);
        let value = evaluator.evaluate(expression).map_err(|error| error.to_string())??;
        Ok((*patch_type, patch_type.patch(&value)?))
    }
}
