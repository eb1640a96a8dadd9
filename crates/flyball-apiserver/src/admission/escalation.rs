//! EscalationCheck: a user grants by roles and bindings only what it may do itself, unless it may `escalate` or `bind`.
// pkg/registry/rbac/{role,clusterrole,rolebinding,clusterrolebinding}/policybased/storage.go

use crate::admission::chain::Plugin;
use crate::admission::{Attributes, Operation};
use crate::authz::policy::{self, PolicyRule};
use crate::authz::rbac::{GROUP, RoleRef};
use crate::authz::{Access, ResourceAccess, Target};
use crate::kinds::rbac::{CLUSTER_ROLE, CLUSTER_ROLE_BINDING, ROLE, ROLE_BINDING};
use crate::registry::object;
use crate::status::{Result, Status};
use futures::future::{BoxFuture, FutureExt};
use serde_json::Value;

/// The plugin. It is the last mutating one, so that it sees what is stored.
pub(super) struct EscalationCheck;

impl Plugin for EscalationCheck {
    fn handles(&self, attributes: &Attributes<'_>) -> bool {
        let kind = &attributes.request.kind;
        let grants = [&ROLE, &CLUSTER_ROLE, &ROLE_BINDING, &CLUSTER_ROLE_BINDING]
            .iter()
            .any(|spec| kind.is(spec));
        grants && attributes.operation != Operation::Delete && !attributes.request.user.is_master()
    }

    fn admit<'a>(&'a self, attributes: &'a mut Attributes<'_>) -> BoxFuture<'a, Result<()>> {
        async move {
            if attributes.old.is_some_and(|old| differs_only_in_gc_fields(&attributes.object, old)) {
                return Ok(());
            }
            let kind = &attributes.request.kind;
            match kind.is(&ROLE) || kind.is(&CLUSTER_ROLE) {
                true => check_role(attributes).await,
                false => check_binding(attributes).await,
            }
        }
        .boxed()
    }
}

async fn check_role(attributes: &Attributes<'_>) -> Result<()> {
    let request = attributes.request;
    if is_allowed(attributes, "escalate", GROUP, &request.kind.resource.plural, request.name()).await? {
        return Ok(());
    }
    let rules: Vec<PolicyRule> = serde_json::from_value(attributes.object["rules"].clone()).unwrap_or_default();
    confirm_held(attributes, &rules).await?;
    let aggregates = |role: &Value| {
        let selectors = role["aggregationRule"]["clusterRoleSelectors"].as_array();
        selectors.is_some_and(|selectors| !selectors.is_empty())
    };
    if aggregates(&attributes.object) || attributes.old.is_some_and(aggregates) {
        let why = "must have cluster-admin privileges to use the aggregationRule";
        let confirmed = confirm_held(attributes, &PolicyRule::full_authority()).await;
        confirmed.map_err(|_| attributes.forbidden(why))?;
    }
    Ok(())
}

async fn check_binding(attributes: &Attributes<'_>) -> Result<()> {
    let request = attributes.request;
    let role: RoleRef = serde_json::from_value(attributes.object["roleRef"].clone()).unwrap_or_default();
    let plural = match role.kind.as_str() {
        "ClusterRole" => "clusterroles",
        _ => "roles",
    };
    let group = attributes.object["roleRef"]["apiGroup"].as_str().unwrap_or_default().to_owned();
    if is_allowed(attributes, "bind", &group, plural, &role.name).await? {
        return Ok(());
    }
    let namespace = attributes.namespace.unwrap_or_default();
    let rules = {
        let policy = request.server.rbac().read(request.store()).await?;
        policy.rules(&role, namespace).map(<[PolicyRule]>::to_vec)
    };
    let absent = |_| Status::not_found(&request.kind.resource, &role.name);
    confirm_held(attributes, &rules.map_err(absent)?).await
}

async fn is_allowed(attributes: &Attributes<'_>, verb: &str, group: &str, resource: &str, name: &str) -> Result<bool> {
    let target = ResourceAccess {
        namespace: attributes.namespace.unwrap_or_default(),
        group,
        resource,
        subresource: "",
        name,
    };
    let user = &attributes.request.user;
    let access = Access { user, verb, target: Target::Resource(target) };
    Ok(attributes.request.server.authorize(&access).await?.allowed)
}

/// Refuses rules that the user does not hold itself.
// pkg/registry/rbac/validation/rule.go, ConfirmNoEscalation
async fn confirm_held(attributes: &Attributes<'_>, wanted: &[PolicyRule]) -> Result<()> {
    let (request, namespace) = (attributes.request, attributes.namespace.unwrap_or_default());
    let user = &request.user;
    let (held, error) = request.server.rbac().read(request.store()).await?.rules_for(user, namespace);
    let missing = policy::uncovered(&held, wanted);
    if missing.is_empty() {
        return Ok(());
    }
    let mut missing: Vec<String> = policy::compact(missing).iter().map(PolicyRule::to_string).collect();
    missing.sort();
    missing.dedup();
    let mut why = format!(
        "user {:?} (groups={}) is attempting to grant RBAC permissions not currently held:\n{}",
        user.name,
        policy::quoted(&user.groups),
        missing.join("\n")
    );
    if let Some(error) = error {
        why += &format!("; resolution errors: [{error}]");
    }
    Err(attributes.forbidden(why))
}

/// Whether an update changes nothing but what the garbage collector needs to change.
// pkg/registry/rbac/helpers.go, IsOnlyMutatingGCFields
fn differs_only_in_gc_fields(new: &Value, old: &Value) -> bool {
    let stripped = |object: &Value| {
        let mut object = object.clone();
        for field in ["ownerReferences", "finalizers", "managedFields"] {
            object::metadata_mut(&mut object).remove(field);
        }
        object
    };
    stripped(new) == stripped(old)
}
