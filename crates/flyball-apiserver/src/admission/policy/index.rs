//! The policies and bindings of the store: which policies have bindings, each compiled at most once per change of its spec.
// apiserver/pkg/admission/plugin/policy/generic/policy_source.go

use crate::admission::matching::MatchCriteria;
use crate::store_index::{Index, StoreIndex};
use flyball_schema::policy::{FailurePolicy, MutatingPolicy, ValidatingPolicy};
use flyball_schema::selector::LabelSelector;
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};

/// The API group of policies and bindings.
pub(crate) const GROUP: &str = "admissionregistration.k8s.io";

/// The policies and bindings of a store.
pub(crate) type PolicyIndex = StoreIndex<Policies>;

/// Policies and bindings of both sorts.
#[derive(Default)]
pub(crate) struct Policies {
    pub validating: Hooks<ValidatingPolicy>,
    pub mutating: Hooks<MutatingPolicy>,
}

/// Policies of one sort.
pub(crate) struct Hooks<P> {
    policies: BTreeMap<String, Arc<Policy<P>>>,
    bindings: BTreeMap<String, Arc<Binding>>,
    active: Arc<[Hook<P>]>,
}

/// A policy and the bindings that make it effective, sorted by their names: upstream asks them in no order.
pub(crate) struct Hook<P> {
    pub policy: Arc<Policy<P>>,
    pub bindings: Vec<Arc<Binding>>,
}

/// A policy.
pub(crate) struct Policy<P> {
    pub name: String,
    pub criteria: MatchCriteria,
    pub param_kind: Option<ParamKind>,
    pub failure_policy: FailurePolicy,
    spec: Value,
    compiled: OnceLock<P>,
}

/// The kind of a policy's parameters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ParamKind {
    pub group: String,
    pub version: String,
    pub kind: String,
}

/// A binding of a policy.
pub(crate) struct Binding {
    pub name: String,
    pub policy: String,
    /// Which of the requests that the policy matches the binding is about; all if there is none.
    pub criteria: Option<MatchCriteria>,
    pub param_ref: Option<ParamRef>,
    /// What becomes of a validation that fails.
    pub actions: Vec<String>,
}

/// Which parameters a binding uses.
pub(crate) struct ParamRef {
    /// The name; empty if a selector chooses.
    pub name: String,
    /// The namespace; empty for that of the request.
    pub namespace: String,
    pub selector: Option<LabelSelector>,
    /// Whether requests are refused if there are none.
    pub denies_absence: bool,
}

/// A policy that can be compiled.
pub(crate) trait Compile {
    /// Compiles the `spec` of a policy.
    fn compile(spec: &Value) -> Self;
}

impl Compile for ValidatingPolicy {
    fn compile(spec: &Value) -> ValidatingPolicy {
        ValidatingPolicy::compile(spec)
    }
}

impl Compile for MutatingPolicy {
    fn compile(spec: &Value) -> MutatingPolicy {
        MutatingPolicy::compile(spec)
    }
}

impl Index for Policies {
    const PREFIX: &'static str = "admissionregistration.k8s.io/";

    fn apply(&mut self, key: &[u8], value: Option<&[u8]>) {
        let path = std::str::from_utf8(key).unwrap_or_default();
        let parts = path.strip_prefix(Self::PREFIX).and_then(|rest| rest.split_once('/'));
        let applied = match parts {
            Some(("validatingadmissionpolicies", name)) => self.validating.apply_policy(name, value),
            Some(("validatingadmissionpolicybindings", name)) => self.validating.apply_binding(name, value),
            Some(("mutatingadmissionpolicies", name)) => self.mutating.apply_policy(name, value),
            Some(("mutatingadmissionpolicybindings", name)) => self.mutating.apply_binding(name, value),
            _ => Ok(()),
        };
        if let Err(error) = applied {
            tracing::error!(%error, key = path, "decode a stored policy or binding");
        }
    }

    fn finish(&mut self) {
        self.validating.activate();
        self.mutating.activate();
    }
}

impl<P> Default for Hooks<P> {
    fn default() -> Hooks<P> {
        Hooks {
            policies: BTreeMap::new(),
            bindings: BTreeMap::new(),
            active: Arc::new([]),
        }
    }
}

impl<P> Hooks<P> {
    /// The policies that have bindings, sorted by their names.
    pub fn active(&self) -> Arc<[Hook<P>]> {
        self.active.clone()
    }

    fn apply_policy(&mut self, name: &str, value: Option<&[u8]>) -> serde_json::Result<()> {
        let old = self.policies.remove(name);
        if let Some(value) = value {
            let mut object: Value = serde_json::from_slice(value)?;
            let spec = object["spec"].take();
            let policy = old.filter(|old| old.spec == spec).unwrap_or_else(|| Arc::new(Policy::read(name, spec)));
            self.policies.insert(name.to_owned(), policy);
        }
        Ok(())
    }

    fn apply_binding(&mut self, name: &str, value: Option<&[u8]>) -> serde_json::Result<()> {
        self.bindings.remove(name);
        if let Some(value) = value {
            let object: Value = serde_json::from_slice(value)?;
            self.bindings.insert(name.to_owned(), Arc::new(Binding::read(name, &object["spec"])));
        }
        Ok(())
    }

    fn activate(&mut self) {
        let mut bindings: BTreeMap<&str, Vec<Arc<Binding>>> = BTreeMap::new();
        for binding in self.bindings.values() {
            bindings.entry(&binding.policy).or_default().push(binding.clone());
        }
        let hook = |(name, bindings): (&str, Vec<Arc<Binding>>)| {
            let policy = self.policies.get(name)?.clone();
            Some(Hook { policy, bindings })
        };
        self.active = bindings.into_iter().filter_map(hook).collect();
    }
}

impl<P> Policy<P> {
    fn read(name: &str, spec: Value) -> Policy<P> {
        Policy {
            name: name.to_owned(),
            criteria: MatchCriteria::of_resources(&spec["matchConstraints"]),
            param_kind: ParamKind::read(&spec["paramKind"]),
            failure_policy: FailurePolicy::read(&spec["failurePolicy"]),
            spec,
            compiled: OnceLock::new(),
        }
    }
}

impl ParamKind {
    /// Reads the field `paramKind`; none if it is absent.
    pub fn read(kind: &Value) -> Option<ParamKind> {
        let api_version = text(kind, "apiVersion");
        let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
        kind.is_object().then(|| ParamKind {
            group: group.to_owned(),
            version: version.to_owned(),
            kind: text(kind, "kind").to_owned(),
        })
    }
}

impl<P: Compile> Policy<P> {
    /// The policy, compiled on first use.
    pub fn compiled(&self) -> &P {
        self.compiled.get_or_init(|| P::compile(&self.spec))
    }
}

impl Binding {
    fn read(name: &str, spec: &Value) -> Binding {
        let matched = Some(&spec["matchResources"]).filter(|matched| matched.is_object());
        let actions = spec["validationActions"].as_array().into_iter().flatten();
        Binding {
            name: name.to_owned(),
            policy: text(spec, "policyName").to_owned(),
            criteria: matched.map(MatchCriteria::of_resources),
            param_ref: Some(&spec["paramRef"]).filter(|given| given.is_object()).map(ParamRef::read),
            actions: actions.filter_map(Value::as_str).map(str::to_owned).collect(),
        }
    }
}

impl ParamRef {
    fn read(given: &Value) -> ParamRef {
        ParamRef {
            name: text(given, "name").to_owned(),
            namespace: text(given, "namespace").to_owned(),
            selector: Some(&given["selector"])
                .filter(|selector| selector.is_object())
                .and_then(LabelSelector::from_value),
            denies_absence: given["parameterNotFoundAction"] == "Deny",
        }
    }
}

fn text<'a>(value: &'a Value, field: &str) -> &'a str {
    value[field].as_str().unwrap_or_default()
}
