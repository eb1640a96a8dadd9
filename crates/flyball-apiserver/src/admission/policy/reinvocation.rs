//! Which policies that mutate look at an object again in the second round.
// apiserver/pkg/admission/plugin/policy/mutating/reinvocationcontext.go

use serde_json::Value;
use std::collections::BTreeSet;

/// A policy, its binding, and the namespace and name of its parameters.
pub(super) type InvocationKey = (String, String, String, String);

/// What the first round leaves to the second one.
#[derive(Default)]
pub(crate) struct PolicyReinvocation {
    /// The object as the policies left it.
    output: Option<Value>,
    /// Invocations since the last change that are to be repeated after another one.
    invoked: BTreeSet<InvocationKey>,
    /// Invocations to repeat.
    repeated: BTreeSet<InvocationKey>,
}

impl PolicyReinvocation {
    /// Whether other plugins have changed the object since.
    pub fn is_changed(&self, object: &Value) -> bool {
        self.output.as_ref() != Some(object)
    }

    /// Keeps the object as the policies left it.
    pub fn set_output(&mut self, object: &Value) {
        self.output = Some(object.clone());
    }

    /// Whether an invocation is to be repeated.
    pub fn is_repeated(&self, key: &InvocationKey) -> bool {
        self.repeated.contains(key)
    }

    /// Notes an invocation that is repeated if the object changes after it.
    pub fn invoked(&mut self, key: InvocationKey) {
        self.invoked.insert(key);
    }

    /// The object has changed.
    pub fn changed(&mut self) {
        self.repeated.append(&mut self.invoked);
    }
}
