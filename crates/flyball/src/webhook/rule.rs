//! Which requests a webhook is asked about, and what the API server does when it gets no answer.

use crate::cache::kind::{self, Kind};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{LabelSelector, LabelSelectorRequirement};
use kube::core::admission::Operation;
use serde_json::{Value, json};
use std::time::Duration;

/// The API server's own default of `timeoutSeconds`, and its limits.
const TIMEOUT: Duration = Duration::from_secs(10);
const MAX_TIMEOUT: Duration = Duration::from_secs(30);
/// As many as the API server takes.
const MAX_CONDITIONS: usize = 64;

/// The label that every namespace has, with its name.
const NAMESPACE_NAME: &str = "kubernetes.io/metadata.name";

/// Which requests a webhook is asked about.
///
/// Unless it says otherwise: creates and updates of the kind of its function, in every namespace but `kube-system` and the one
/// that the operator runs in. An operator that is down must not keep the cluster from running its own components, or the operator
/// from coming back.
#[derive(Clone, Debug)]
#[must_use = "a rule does nothing before a webhook has it"]
pub struct WebhookRule {
    pub(crate) groups: Vec<String>,
    pub(crate) versions: Vec<String>,
    pub(crate) resources: Vec<String>,
    operations: Vec<Operation>,
    scope: Scope,
    namespaces: LabelSelector,
    everywhere: bool,
    objects: LabelSelector,
    conditions: Vec<(String, String)>,
    failure_policy: FailurePolicy,
    match_policy: MatchPolicy,
    side_effects: SideEffects,
    timeout: Duration,
    reinvocation: bool,
    pub(crate) terminating: bool,
}

/// Which resources a rule is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// Those in namespaces.
    Namespaced,
    /// Those in none.
    Cluster,
    /// All.
    All,
}

/// What becomes of a request that the webhook does not answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FailurePolicy {
    /// It is refused.
    #[default]
    Fail,
    /// It is admitted.
    Ignore,
}

/// Whether a request in another version of a kind counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum MatchPolicy {
    /// The API server converts it to a version of the rule.
    #[default]
    Equivalent,
    /// Only the versions of the rule.
    Exact,
}

/// Whether the webhook changes anything beside its answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SideEffects {
    /// Never.
    #[default]
    None,
    /// Not in a dry run.
    NoneOnDryRun,
}

impl WebhookRule {
    pub(crate) fn of(kind: &Kind) -> WebhookRule {
        let scope = match kind.scope {
            kind::Scope::Namespaced => Scope::Namespaced,
            kind::Scope::Cluster => Scope::Cluster,
            kind::Scope::Unknown => Scope::All,
        };
        WebhookRule {
            groups: vec![kind.resource.group.clone()],
            versions: vec![kind.resource.version.clone()],
            resources: vec![kind.resource.plural.clone()],
            scope,
            ..WebhookRule::any()
        }
    }

    /// A rule that has to say what it is about.
    pub(crate) fn any() -> WebhookRule {
        WebhookRule {
            groups: Vec::new(),
            versions: Vec::new(),
            resources: Vec::new(),
            operations: vec![Operation::Create, Operation::Update],
            scope: Scope::All,
            namespaces: LabelSelector::default(),
            everywhere: false,
            objects: LabelSelector::default(),
            conditions: Vec::new(),
            failure_policy: FailurePolicy::default(),
            match_policy: MatchPolicy::default(),
            side_effects: SideEffects::default(),
            timeout: TIMEOUT,
            reinvocation: false,
            terminating: false,
        }
    }

    /// Asks about these API groups; `""` is the core group, `"*"` means all.
    pub fn groups<T: Into<String>>(mut self, groups: impl IntoIterator<Item = T>) -> WebhookRule {
        self.groups = groups.into_iter().map(Into::into).collect();
        self
    }

    /// Asks about these versions; `"*"` means all.
    pub fn versions<T: Into<String>>(mut self, versions: impl IntoIterator<Item = T>) -> WebhookRule {
        self.versions = versions.into_iter().map(Into::into).collect();
        self
    }

    /// Asks about these resources, as in `pods`, `pods/status` or `*`.
    pub fn resources<T: Into<String>>(mut self, resources: impl IntoIterator<Item = T>) -> WebhookRule {
        self.resources = resources.into_iter().map(Into::into).collect();
        self
    }

    /// Asks about these operations; create and update unless set.
    pub fn operations(mut self, operations: impl IntoIterator<Item = Operation>) -> WebhookRule {
        self.operations = operations.into_iter().collect();
        self
    }

    /// Asks about resources of this scope.
    pub fn scope(mut self, scope: Scope) -> WebhookRule {
        self.scope = scope;
        self
    }

    /// Asks about objects in namespaces whose labels match.
    pub fn namespaces(mut self, selector: LabelSelector) -> WebhookRule {
        self.namespaces = selector;
        self
    }

    /// Asks about `kube-system` and the operator's own namespace too.
    pub fn everywhere(mut self) -> WebhookRule {
        self.everywhere = true;
        self
    }

    /// Asks about objects whose labels match.
    pub fn objects(mut self, selector: LabelSelector) -> WebhookRule {
        self.objects = selector;
        self
    }

    /// Asks only where a condition in CEL holds, which the API server evaluates itself: `object`, `oldObject`, `request` and
    /// `authorizer` are known. All conditions have to hold. [`flyball_test`] and the API server check the expression.
    ///
    /// [`flyball_test`]: https://docs.rs/flyball-test
    pub fn condition(mut self, name: impl Into<String>, expression: impl Into<String>) -> WebhookRule {
        self.conditions.push((name.into(), expression.into()));
        self
    }

    /// Decides what becomes of a request that the webhook does not answer; it is refused unless set.
    pub fn failure_policy(mut self, policy: FailurePolicy) -> WebhookRule {
        self.failure_policy = policy;
        self
    }

    /// Decides whether a request in another version of a kind counts; it does unless set.
    pub fn match_policy(mut self, policy: MatchPolicy) -> WebhookRule {
        self.match_policy = policy;
        self
    }

    /// Says whether the webhook changes anything beside its answer; it does not unless set.
    pub fn side_effects(mut self, effects: SideEffects) -> WebhookRule {
        self.side_effects = effects;
        self
    }

    /// Limits the time of an answer, from 1 to 30 seconds; 10 seconds unless set.
    pub fn timeout(mut self, timeout: Duration) -> WebhookRule {
        self.timeout = timeout;
        self
    }

    /// Asks a defaulting webhook once more if a later one has changed the object.
    pub fn reinvocation(mut self) -> WebhookRule {
        self.reinvocation = true;
        self
    }

    /// Asks about updates of objects that are being deleted too.
    ///
    /// Without it such an update is admitted: a refusal would keep finalizers from being removed, and the object for ever.
    pub fn terminating(mut self) -> WebhookRule {
        self.terminating = true;
        self
    }

    /// What the API server would refuse.
    pub(crate) fn mistakes(&self) -> Vec<String> {
        let mut mistakes = Vec::new();
        for (what, values) in [
            ("groups", &self.groups),
            ("versions", &self.versions),
            ("resources", &self.resources),
        ] {
            if values.is_empty() {
                mistakes.push(format!("says no {what}: add `.{what}([…])` to its rule"));
            }
        }
        if self.operations.is_empty() {
            mistakes.push("is asked about no operation".into());
        }
        if self.timeout < Duration::from_secs(1) || self.timeout > MAX_TIMEOUT || self.timeout.subsec_nanos() != 0 {
            mistakes.push(format!("has a timeout of {:?}: expected 1 to 30 whole seconds", self.timeout));
        }
        if self.conditions.len() > MAX_CONDITIONS {
            mistakes.push(format!("has more than {MAX_CONDITIONS} conditions"));
        }
        let empty = self
            .conditions
            .iter()
            .find(|(name, expression)| name.is_empty() || expression.trim().is_empty());
        if let Some((name, _)) = empty {
            mistakes.push(format!("has a condition {name:?} without a name or an expression"));
        }
        mistakes
    }

    /// The fields of a webhook of a configuration that follow from it. `own` is the operator's namespace.
    pub(crate) fn to_value(&self, own: &str) -> Value {
        let operations: Vec<_> = self.operations.iter().map(operation_name).collect();
        let scope = match self.scope {
            Scope::Namespaced => "Namespaced",
            Scope::Cluster => "Cluster",
            Scope::All => "*",
        };
        let conditions = self
            .conditions
            .iter()
            .map(|(name, expression)| json!({ "name": name, "expression": expression }));
        let mut value = json!({
            "rules": [{
                "apiGroups": self.groups,
                "apiVersions": self.versions,
                "resources": self.resources,
                "operations": operations,
                "scope": scope,
            }],
            "namespaceSelector": self.namespace_selector(own),
            "objectSelector": self.objects,
            "failurePolicy": format!("{:?}", self.failure_policy),
            "matchPolicy": format!("{:?}", self.match_policy),
            "sideEffects": format!("{:?}", self.side_effects),
            "timeoutSeconds": self.timeout.as_secs(),
            "admissionReviewVersions": ["v1"],
        });
        if !self.conditions.is_empty() {
            value["matchConditions"] = conditions.collect();
        }
        value
    }

    /// What a mutating webhook has beside.
    pub(crate) fn reinvocation_policy(&self) -> &'static str {
        if self.reinvocation { "IfNeeded" } else { "Never" }
    }

    fn namespace_selector(&self, own: &str) -> LabelSelector {
        let mut selector = self.namespaces.clone();
        if !self.everywhere {
            let mut values = vec!["kube-system".to_owned(), own.to_owned()];
            values.dedup();
            selector.match_expressions.get_or_insert_default().push(LabelSelectorRequirement {
                key: NAMESPACE_NAME.into(),
                operator: "NotIn".into(),
                values: Some(values),
            });
        }
        selector
    }
}

pub(crate) fn operation_name(operation: &Operation) -> &'static str {
    match operation {
        Operation::Create => "CREATE",
        Operation::Update => "UPDATE",
        Operation::Delete => "DELETE",
        Operation::Connect => "CONNECT",
    }
}
