//! Matching of writes by webhooks and policies: rules, selectors of namespaces and objects, and equivalent resources.
// apiserver/pkg/admission/plugin/webhook/predicates, apiserver/pkg/admission/plugin/policy/matching

use crate::admission::{Attributes, Operation};
use crate::registry::{Kind, Served, object};
use crate::status::{Result, Status};
use flyball_schema::selector::LabelSelector;
use serde_json::Value;
use std::sync::Arc;

/// The kinds of `admissionregistration.k8s.io`, of which no webhook and no policy is asked.
const EXEMPT_GROUP: &str = "admissionregistration.k8s.io";

/// Which writes a webhook or a policy is about.
#[derive(Debug)]
pub(crate) struct MatchCriteria {
    rules: Vec<Rule>,
    excluded: Vec<Rule>,
    matches_equivalents: bool,
    /// The selector of namespaces; none if it is invalid.
    namespaces: Option<LabelSelector>,
    /// The selector of objects; none if it is invalid.
    objects: Option<LabelSelector>,
    /// Whether criteria without rules match every resource.
    is_open: bool,
}

/// A `RuleWithOperations`, or a `NamedRuleWithOperations`.
#[derive(Debug)]
struct Rule {
    operations: Vec<String>,
    groups: Vec<String>,
    versions: Vec<String>,
    resources: Vec<String>,
    scope: Option<String>,
    /// The names of the objects; all if it is empty.
    names: Vec<String>,
}

/// A resource by which criteria match a write.
#[derive(Clone)]
pub(crate) struct Match {
    /// The kind and version that the webhook or the policy sees: that of the request, or an equivalent one.
    pub kind: Arc<Kind>,
}

/// Whether a write is one of a webhook configuration, a policy or a binding, which neither webhooks nor policies see.
// IsExemptAdmissionConfigurationResource
pub(crate) fn is_exempt(attributes: &Attributes<'_>) -> bool {
    &*attributes.request.kind.resource.group == EXEMPT_GROUP
}

impl MatchCriteria {
    /// The criteria of a webhook: `rules`, `matchPolicy` and the selectors.
    pub fn of_webhook(webhook: &Value) -> MatchCriteria {
        MatchCriteria {
            rules: rules(&webhook["rules"]),
            is_open: false,
            ..MatchCriteria::of_resources(webhook)
        }
    }

    /// The criteria of a policy or a binding (`MatchResources`). Without `resourceRules` they match every resource.
    pub fn of_resources(resources: &Value) -> MatchCriteria {
        MatchCriteria {
            rules: rules(&resources["resourceRules"]),
            excluded: rules(&resources["excludeResourceRules"]),
            matches_equivalents: resources["matchPolicy"] == "Equivalent",
            namespaces: LabelSelector::from_value(&resources["namespaceSelector"]),
            objects: LabelSelector::from_value(&resources["objectSelector"]),
            is_open: true,
        }
    }

    /// The resource by which the criteria match a write; none if they do not.
    ///
    /// # Errors
    /// If the rules match, but a selector cannot be evaluated: it is invalid, or the namespace is absent (404).
    pub async fn matches(&self, attributes: &Attributes<'_>) -> Result<Option<Match>> {
        // An error counts only if everything else matches.
        let namespaces = self.matches_namespace(attributes).await;
        let objects = self.matches_object(attributes);
        if matches!(namespaces, Ok(false)) || matches!(objects, Ok(false)) {
            return Ok(None);
        }
        if self.find(&self.excluded, attributes).is_some() {
            return Ok(None);
        }
        let found = match self.is_open && self.rules.is_empty() {
            true => Some(Match { kind: attributes.request.kind.clone() }),
            false => self.find(&self.rules, attributes),
        };
        if found.is_some() {
            namespaces?;
            objects?;
        }
        Ok(found)
    }

    fn find(&self, rules: &[Rule], attributes: &Attributes<'_>) -> Option<Match> {
        let own = &attributes.request.kind;
        if rules.iter().any(|rule| rule.matches(own, attributes)) {
            return Some(Match { kind: own.clone() });
        }
        if !self.matches_equivalents || rules.is_empty() {
            return None;
        }
        let served = attributes.request.server.registry().served();
        let others = equivalents(&served, own, attributes.subresource.subresource());
        let found = rules.iter().find_map(|rule| others.iter().find(|kind| rule.matches(kind, attributes)));
        found.map(|kind| Match { kind: (*kind).clone() })
    }

    // predicates/namespace/matcher.go, MatchNamespaceSelector
    async fn matches_namespace(&self, attributes: &Attributes<'_>) -> Result<bool> {
        let is_namespace = &*attributes.request.kind.resource.plural == "namespaces";
        if attributes.namespace_name().is_empty() && !is_namespace {
            return Ok(true);
        }
        let selector = self.namespaces.as_ref().ok_or_else(|| invalid("namespaceSelector"))?;
        if selector.is_empty() {
            return Ok(true);
        }
        let is_new = matches!(attributes.operation, Operation::Create | Operation::Update);
        if is_namespace && attributes.subresource.subresource().is_none() && is_new {
            return Ok(selector.matches(labels(&attributes.object)));
        }
        let namespace = attributes.namespace_object().await?;
        let namespace = namespace.ok_or_else(|| attributes.namespace_not_found())?;
        Ok(selector.matches(labels(namespace)))
    }

    // predicates/object/matcher.go, MatchObjectSelector
    fn matches_object(&self, attributes: &Attributes<'_>) -> Result<bool> {
        let selector = self.objects.as_ref().ok_or_else(|| invalid("objectSelector"))?;
        let is_selected = |object: &Value| !object.is_null() && selector.matches(labels(object));
        Ok(selector.is_empty() || is_selected(&attributes.object) || attributes.old.is_some_and(is_selected))
    }
}

impl Rule {
    fn read(rule: &Value) -> Rule {
        Rule {
            operations: texts(&rule["operations"]),
            groups: texts(&rule["apiGroups"]),
            versions: texts(&rule["apiVersions"]),
            resources: texts(&rule["resources"]),
            scope: rule["scope"].as_str().filter(|scope| *scope != "*").map(str::to_owned),
            names: texts(&rule["resourceNames"]),
        }
    }

    /// Whether the rule matches a write as if it were one of this kind.
    // predicates/rules/rules.go, Matcher
    fn matches(&self, kind: &Kind, attributes: &Attributes<'_>) -> bool {
        let resource = &kind.resource;
        let subresource = attributes.subresource.subresource().unwrap_or_default();
        let is_listed = |items: &[String], item: &str| items.iter().any(|listed| listed == "*" || listed == item);
        let matches_resource = |listed: &String| {
            let (name, sub) = listed.split_once('/').unwrap_or((listed, ""));
            (name == "*" || *name == *resource.plural) && (sub == "*" || sub == subresource)
        };
        self.matches_scope(kind, attributes)
            && is_listed(&self.operations, attributes.operation.name())
            && is_listed(&self.groups, &resource.group)
            && is_listed(&self.versions, &resource.version)
            && self.resources.iter().any(matches_resource)
            && (self.names.is_empty() || self.names.iter().any(|name| name == attributes.request_name()))
    }

    fn matches_scope(&self, kind: &Kind, attributes: &Attributes<'_>) -> bool {
        let is_namespace = kind.resource.group.is_empty() && &*kind.resource.plural == "namespaces";
        let is_cluster_scoped = is_namespace || attributes.namespace_name().is_empty();
        match self.scope.as_deref() {
            None => true,
            Some("Namespaced") => !is_cluster_scoped,
            Some("Cluster") => is_cluster_scoped,
            Some(_) => false,
        }
    }
}

/// The other versions of a kind, and the kinds of other groups that share its objects, if they have a subresource.
// apimachinery/pkg/runtime/mapper.go, EquivalentResourcesFor
pub(crate) fn equivalents<'a>(served: &'a Served, own: &Kind, subresource: Option<&str>) -> Vec<&'a Arc<Kind>> {
    let has_subresource = |kind: &Kind| subresource.is_none_or(|name| kind.resource.subresource(name).is_some());
    // Events are the only kind that two groups serve.
    let other_group = match (&*own.resource.group, &*own.resource.plural) {
        ("", "events") => Some("events.k8s.io"),
        ("events.k8s.io", "events") => Some(""),
        _ => None,
    };
    let groups = std::iter::once(&*own.resource.group).chain(other_group);
    groups
        .filter_map(|group| served.group(group))
        .flat_map(|group| group.kinds())
        .filter(|kind| kind.resource.plural == own.resource.plural && has_subresource(kind))
        .filter(|kind| (&kind.resource.group, &kind.resource.version) != (&own.resource.group, &own.resource.version))
        .collect()
}

fn rules(rules: &Value) -> Vec<Rule> {
    rules.as_array().into_iter().flatten().map(Rule::read).collect()
}

fn texts(texts: &Value) -> Vec<String> {
    texts
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .map(str::to_owned)
        .collect()
}

fn labels(object: &Value) -> Option<&serde_json::Map<String, Value>> {
    object::metadata(object).get("labels").and_then(Value::as_object)
}

fn invalid(field: &str) -> Status {
    Status::internal(format!("invalid {field}"))
}

#[cfg(test)]
mod tests;
