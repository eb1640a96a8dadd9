//! RBAC: the roles and bindings of the store, indexed by subject, and what they allow.
// plugin/pkg/auth/authorizer/rbac/rbac.go, pkg/registry/rbac/validation/rule.go

use crate::authn::user::User;
use crate::authz::policy::PolicyRule;
use crate::authz::{Access, Decision, Target};
use crate::store_index::{Index, StoreIndex};
use serde::Deserialize;
use std::collections::HashMap;
use std::sync::Arc;

/// The API group of roles and bindings.
pub(crate) const GROUP: &str = "rbac.authorization.k8s.io";
/// What the keys of roles and bindings begin with.
const PREFIX: &str = "rbac.authorization.k8s.io/";

/// The roles and bindings of a store.
pub(crate) type Rbac = StoreIndex<Policy>;

/// Roles, and bindings by the subjects that they apply to.
#[derive(Default)]
pub(crate) struct Policy {
    /// By namespace and name; the namespace of a ClusterRole is empty.
    roles: HashMap<(String, String), Arc<[PolicyRule]>>,
    /// By key, for changes and deletions.
    bindings: HashMap<Vec<u8>, Arc<Binding>>,
    /// By namespace and subject; the namespace of a ClusterRoleBinding is empty.
    by_subject: HashMap<(String, Subject), Vec<Arc<Binding>>>,
}

/// A RoleBinding, or a ClusterRoleBinding if its namespace is empty.
#[derive(Debug)]
pub(crate) struct Binding {
    name: String,
    namespace: String,
    role: RoleRef,
    /// The subjects, and how a reason names them.
    subjects: Vec<(Subject, String)>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Subject {
    User(String),
    Group(String),
}

/// The role that a binding refers to.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct RoleRef {
    /// The kind, `Role` or `ClusterRole`.
    pub kind: String,
    /// The name.
    pub name: String,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct StoredRole {
    rules: Option<Vec<PolicyRule>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct StoredBinding {
    subjects: Option<Vec<StoredSubject>>,
    role_ref: RoleRef,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct StoredSubject {
    kind: String,
    name: String,
    namespace: String,
}

impl Index for Policy {
    const PREFIX: &'static str = PREFIX;

    fn apply(&mut self, key: &[u8], value: Option<&[u8]>) {
        let path = std::str::from_utf8(key).unwrap_or_default();
        let parts: Vec<&str> = path.strip_prefix(PREFIX).unwrap_or_default().split('/').collect();
        let applied = match parts[..] {
            ["clusterroles", name] => self.apply_role("", name, value),
            ["roles", namespace, name] => self.apply_role(namespace, name, value),
            ["clusterrolebindings", name] => self.apply_binding(key, "", name, value),
            ["rolebindings", namespace, name] => self.apply_binding(key, namespace, name, value),
            _ => Ok(()),
        };
        if let Err(error) = applied {
            tracing::error!(%error, key = path, "decode a stored role or binding");
        }
    }
}

impl Policy {
    fn apply_role(&mut self, namespace: &str, name: &str, value: Option<&[u8]>) -> serde_json::Result<()> {
        let key = (namespace.to_owned(), name.to_owned());
        self.roles.remove(&key);
        if let Some(value) = value {
            let role: StoredRole = serde_json::from_slice(value)?;
            self.roles.insert(key, role.rules.unwrap_or_default().into());
        }
        Ok(())
    }

    fn apply_binding(
        &mut self,
        key: &[u8],
        namespace: &str,
        name: &str,
        value: Option<&[u8]>,
    ) -> serde_json::Result<()> {
        if let Some(old) = self.bindings.remove(key) {
            for (subject, _) in &old.subjects {
                let index = (namespace.to_owned(), subject.clone());
                if let Some(bindings) = self.by_subject.get_mut(&index) {
                    bindings.retain(|binding| !Arc::ptr_eq(binding, &old));
                    if bindings.is_empty() {
                        self.by_subject.remove(&index);
                    }
                }
            }
        }
        let Some(value) = value else { return Ok(()) };
        let stored: StoredBinding = serde_json::from_slice(value)?;
        let subjects = stored.subjects.unwrap_or_default();
        let binding = Arc::new(Binding {
            name: name.to_owned(),
            namespace: namespace.to_owned(),
            role: stored.role_ref,
            subjects: subjects.iter().filter_map(|subject| subject.read(namespace)).collect(),
        });
        for (subject, _) in &binding.subjects {
            let bindings = self.by_subject.entry((namespace.to_owned(), subject.clone())).or_default();
            if !bindings.iter().any(|known| Arc::ptr_eq(known, &binding)) {
                bindings.push(binding.clone());
            }
        }
        self.bindings.insert(key.to_owned(), binding);
        Ok(())
    }

    /// Decides about a request.
    pub fn authorize(&self, access: &Access<'_>) -> Decision {
        let namespace = match &access.target {
            Target::Resource(target) => target.namespace,
            Target::Path(_) => "",
        };
        let mut errors: Vec<String> = Vec::new();
        for binding in self.bindings_of(access.user, namespace) {
            match self.rules(&binding.role, &binding.namespace) {
                Ok(rules) if rules.iter().any(|rule| rule.allows(access)) => {
                    let reason = format!("RBAC: allowed by {}", binding.describe(access.user));
                    return Decision { allowed: true, reason };
                }
                Ok(_) => {}
                Err(error) => errors.push(error),
            }
        }
        let reason = aggregate(errors).map_or_else(String::new, |errors| format!("RBAC: {errors}"));
        Decision { allowed: false, reason }
    }

    /// All rules that apply to a user in a namespace, and why some may be missing.
    pub fn rules_for(&self, user: &User, namespace: &str) -> (Vec<PolicyRule>, Option<String>) {
        let (mut rules, mut errors) = (Vec::new(), Vec::new());
        let mut bindings: Vec<&Arc<Binding>> = self.bindings_of(user, namespace).collect();
        bindings.sort_by_key(|binding| (&binding.namespace, &binding.name));
        bindings.dedup_by(|a, b| Arc::ptr_eq(a, b));
        for binding in bindings {
            match self.rules(&binding.role, &binding.namespace) {
                Ok(own) => rules.extend(own.iter().cloned()),
                Err(error) => errors.push(error),
            }
        }
        (rules, aggregate(errors))
    }

    /// The rules of a role that a binding in a namespace refers to; an error names a role that is absent.
    pub fn rules(&self, role: &RoleRef, namespace: &str) -> Result<&[PolicyRule], String> {
        let (singular, namespace) = match role.kind.as_str() {
            "Role" => ("role", namespace),
            "ClusterRole" => ("clusterrole", ""),
            other => return Err(format!("unsupported role reference kind: {other:?}")),
        };
        let found = self.roles.get(&(namespace.to_owned(), role.name.clone()));
        found
            .map(|rules| &**rules)
            .ok_or_else(|| format!("{singular}.{GROUP} {:?} not found", role.name))
    }

    /// The bindings of a user: those of the cluster, then those of a namespace. One may occur for several subjects.
    fn bindings_of<'a>(&'a self, user: &'a User, namespace: &'a str) -> impl Iterator<Item = &'a Arc<Binding>> {
        let namespaces = [Some(""), Some(namespace).filter(|namespace| !namespace.is_empty())];
        namespaces.into_iter().flatten().flat_map(move |namespace| {
            let subjects = std::iter::once(Subject::User(user.name.clone()));
            let subjects = subjects.chain(user.groups.iter().cloned().map(Subject::Group));
            subjects
                .flat_map(move |subject| self.by_subject.get(&(namespace.to_owned(), subject)).into_iter().flatten())
        })
    }
}

impl Binding {
    fn describe(&self, user: &User) -> String {
        let applies = |(subject, _): &&(Subject, String)| match subject {
            Subject::User(name) => *name == user.name,
            Subject::Group(name) => user.is_in(name),
        };
        let subject = self.subjects.iter().find(applies).map_or("", |(_, shown)| shown);
        let RoleRef { kind, name } = &self.role;
        match self.namespace.is_empty() {
            true => format!("ClusterRoleBinding {:?} of {kind} {name:?} to {subject}", self.name),
            false => {
                format!("RoleBinding \"{}/{}\" of {kind} {name:?} to {subject}", self.name, self.namespace)
            }
        }
    }
}

impl StoredSubject {
    /// The subject, and how a reason names it; none if it applies to no user.
    fn read(&self, binding_namespace: &str) -> Option<(Subject, String)> {
        let Self { kind, name, namespace } = self;
        match kind.as_str() {
            "User" => Some((Subject::User(name.clone()), format!("User {name:?}"))),
            "Group" => Some((Subject::Group(name.clone()), format!("Group {name:?}"))),
            "ServiceAccount" => {
                let namespace = if namespace.is_empty() {
                    binding_namespace
                } else {
                    namespace
                };
                let user = Subject::User(format!("system:serviceaccount:{namespace}:{name}"));
                (!namespace.is_empty()).then(|| (user, format!("ServiceAccount \"{name}/{namespace}\"")))
            }
            _ => None,
        }
    }
}

/// Several errors as one text, as Go aggregates them.
// apimachinery/pkg/util/errors/errors.go
fn aggregate(mut errors: Vec<String>) -> Option<String> {
    let mut seen = std::collections::HashSet::new();
    errors.retain(|error| seen.insert(error.clone()));
    match errors.len() {
        0 => None,
        1 => errors.pop(),
        _ => Some(format!("[{}]", errors.join(", "))),
    }
}
