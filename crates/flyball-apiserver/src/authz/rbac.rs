//! RBAC: the roles and bindings of the store, indexed by subject, and what they allow. Loaded on first use and kept up to
//! date by a watch.
// plugin/pkg/auth/authorizer/rbac/rbac.go, pkg/registry/rbac/validation/rule.go

use crate::authn::user::User;
use crate::authz::policy::PolicyRule;
use crate::authz::{Access, Decision, Target};
use crate::status::{Result, Status};
use flyball_store::{Range, Store, Watch};
use serde::Deserialize;
use std::collections::HashMap;
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard};
use std::time::Duration;
use tokio::sync::{OnceCell, watch};
use tokio::task::AbortHandle;

/// The API group of roles and bindings.
pub(crate) const GROUP: &str = "rbac.authorization.k8s.io";
/// What the keys of roles and bindings begin with.
const PREFIX: &str = "rbac.authorization.k8s.io/";
/// How long to wait after a failure of the store.
const RETRY_AFTER: Duration = Duration::from_secs(1);
/// How long the response to a write of a role or binding waits until it takes effect.
const MAX_WAIT: Duration = Duration::from_secs(5);

/// The roles and bindings of a store.
#[derive(Default)]
pub(crate) struct Rbac(OnceCell<Loaded>);

struct Loaded {
    policy: Arc<RwLock<Policy>>,
    seen: watch::Receiver<u64>,
    task: AbortHandle,
}

impl Drop for Loaded {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Rbac {
    /// The roles and bindings as they are now.
    pub async fn policy(&self, store: &Store) -> Result<RwLockReadGuard<'_, Policy>> {
        let loaded = self.0.get_or_try_init(|| start(store)).await?;
        Ok(loaded.policy.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Waits until the change of a role or binding takes effect.
    pub async fn reached(&self, revision: u64) {
        if let Some(loaded) = self.0.get() {
            let mut seen = loaded.seen.clone();
            // The write is stored: a late watch only delays when it takes effect.
            let _late = tokio::time::timeout(MAX_WAIT, seen.wait_for(|seen| *seen >= revision)).await;
        }
    }
}

async fn start(store: &Store) -> Result<Loaded> {
    let (policy, revision, changes) = load(store).await.map_err(Status::store_failed)?;
    let policy = Arc::new(RwLock::new(policy));
    let (sender, seen) = watch::channel(revision);
    let task = tokio::spawn(follow(store.clone(), policy.clone(), sender, changes)).abort_handle();
    Ok(Loaded { policy, seen, task })
}

async fn load(store: &Store) -> flyball_store::Result<(Policy, u64, Watch)> {
    let page = store.range(Range::prefix(PREFIX)).await?;
    let mut policy = Policy::default();
    for entry in &page.entries {
        policy.apply(&entry.key, Some(&entry.value));
    }
    let changes = store.watch(PREFIX, page.revision).await?;
    Ok((policy, page.revision, changes))
}

async fn follow(store: Store, policy: Arc<RwLock<Policy>>, seen: watch::Sender<u64>, mut changes: Watch) {
    loop {
        match changes.next().await {
            Some(Ok(event)) => {
                let mut policy = policy.write().unwrap_or_else(PoisonError::into_inner);
                policy.apply(&event.key, event.value.as_deref());
                drop(policy);
                seen.send_replace(event.revision);
            }
            ended => {
                if let Some(Err(error)) = ended {
                    tracing::warn!(%error, "watch roles and bindings");
                }
                let (new, revision, watch) = reload(&store).await;
                *policy.write().unwrap_or_else(PoisonError::into_inner) = new;
                seen.send_replace(revision);
                changes = watch;
            }
        }
    }
}

/// Reads all roles and bindings again, as soon as the store allows it.
async fn reload(store: &Store) -> (Policy, u64, Watch) {
    loop {
        tokio::time::sleep(RETRY_AFTER).await;
        match load(store).await {
            Ok(loaded) => return loaded,
            Err(error) => tracing::warn!(%error, "list roles and bindings"),
        }
    }
}

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

impl Policy {
    /// Takes over a change of a role or binding; none is a deletion.
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
