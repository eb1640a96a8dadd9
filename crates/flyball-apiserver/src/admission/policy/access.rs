//! PolicyAccess: a user who writes a policy or a binding may read the parameters that it refers to.
// pkg/registry/admissionregistration/{validating,mutating}admissionpolicy{,binding}/authz.go

use crate::admission::chain::Plugin;
use crate::admission::policy::index::{GROUP, ParamKind};
use crate::admission::policy::{POLICIES, params};
use crate::admission::{Attributes, Operation};
use crate::authn::user::User;
use crate::authz::{Access, ResourceAccess, Target};
use crate::endpoints::Subresource;
use crate::registry::object;
use crate::request::options::causes;
use crate::status::{Result, Status};
use flyball_schema::go_text;
use flyball_schema::violation::Violation;
use futures::future::{BoxFuture, FutureExt};
use serde_json::{Value, json};

/// The plugin.
pub(crate) struct PolicyAccess;

impl Plugin for PolicyAccess {
    fn handles(&self, attributes: &Attributes<'_>) -> bool {
        let resource = &attributes.request.kind.resource;
        *resource.group == *GROUP
            && POLICIES.contains(&&*resource.plural)
            && attributes.operation != Operation::Delete
            && attributes.subresource == Subresource::Whole
            && !attributes.request.user.is_master()
    }

    fn validate<'a>(&'a self, attributes: &'a mut Attributes<'_>) -> BoxFuture<'a, Result<()>> {
        async move {
            let spec = &attributes.object["spec"];
            let (field, refusal) = match attributes.request.kind.resource.plural.ends_with("bindings") {
                true => ("paramRef", refuse_binding(attributes, spec).await?),
                false => ("paramKind", refuse_policy(attributes, &spec["paramKind"]).await?),
            };
            let Some(why) = refusal else { return Ok(()) };
            let resource = &attributes.request.kind.resource;
            let violation = Violation::forbidden(format!("spec.{field}"), &why);
            let name = object::name(&attributes.object);
            Err(Status::invalid(&resource.group, &resource.kind, name, causes(vec![violation])))
        }
        .boxed()
    }
}

/// Why a user may not write a policy: it must be allowed to read every object of the kind of parameters.
async fn refuse_policy(attributes: &Attributes<'_>, param_kind: &Value) -> Result<Option<String>> {
    if param_kind.is_null() || attributes.old.is_some_and(|old| old["spec"]["paramKind"] == *param_kind) {
        return Ok(None);
    }
    let target = Params::of(attributes, param_kind);
    let access = ResourceAccess { name: "*", namespace: "*", ..target.access() };
    let (user, kind) = (shown(&attributes.request.user), go_text::plain(&param_kind["kind"]));
    let api_version = go_text::plain(&param_kind["apiVersion"]);
    Ok((!is_allowed(attributes, "get", access).await?).then(|| {
        format!(
            "user {user} must have \"get\" permission on all objects of the referenced paramKind (kind={kind}, \
             apiVersion={api_version})"
        )
    }))
}

/// Why a user may not write a binding: it must be allowed to read the objects that it refers to. As upstream, also if an
/// update does not change the reference.
async fn refuse_binding(attributes: &Attributes<'_>, spec: &Value) -> Result<Option<String>> {
    let param_ref = &spec["paramRef"];
    if param_ref.is_null() {
        return Ok(None);
    }
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let (name, namespace, policy_name) =
        (text(&param_ref["name"]), text(&param_ref["namespace"]), text(&spec["policyName"]));
    let is_mutating = attributes.request.kind.resource.plural.starts_with("mutating");
    let policies = if is_mutating { POLICIES[0] } else { POLICIES[2] };
    let policy = attributes.get(format!("{GROUP}/{policies}/{policy_name}")).await?;
    let policy = policy.map(|entry| object::decode(&entry.value));
    let param_kind = policy.as_ref().map_or(&Value::Null, |policy| &policy["spec"]["paramKind"]);
    let target = Params::of(attributes, param_kind);
    let access = ResourceAccess { name: &name, namespace: &namespace, ..target.access() };
    let verb = if name.is_empty() { "list" } else { "get" };
    if is_allowed(attributes, verb, access).await? {
        return Ok(None);
    }
    let user = shown(&attributes.request.user);
    let everything = format!(
        "to determine minimum required permissions and user {user} does not have \"{verb}\" permission for all groups, \
         versions and resources"
    );
    Ok(Some(match &policy {
        None => format!("unable to get policy {policy_name} {everything}"),
        Some(_) if target.is_unknown => {
            let kind = [&param_kind["apiVersion"], &param_kind["kind"]].map(go_text::plain).join(" ");
            format!("unable to resolve paramKind &{{{kind}}} {everything}")
        }
        // Upstream mixes up user and verb here.
        Some(_) if is_mutating => {
            format!("user {verb} does not have \"{user}\" permission on the object referenced by paramRef")
        }
        Some(_) => format!("user {user} does not have \"{verb}\" permission on the object referenced by paramRef"),
    }))
}

/// The resource of parameters; `*` stands for what is not known.
struct Params {
    group: String,
    resource: String,
    /// Whether there is a kind of parameters that is not served.
    is_unknown: bool,
}

impl Params {
    fn of(attributes: &Attributes<'_>, param_kind: &Value) -> Params {
        let Some(kind) = ParamKind::read(param_kind) else {
            return Params { group: "*".into(), resource: "*".into(), is_unknown: false };
        };
        let served = params::find(attributes, &kind);
        let resource = served.as_ref().map_or("*", |served| &served.resource.plural).to_owned();
        Params { group: kind.group, resource, is_unknown: served.is_none() }
    }

    fn access(&self) -> ResourceAccess<'_> {
        ResourceAccess {
            group: &self.group,
            resource: &self.resource,
            ..ResourceAccess::default()
        }
    }
}

async fn is_allowed(attributes: &Attributes<'_>, verb: &str, target: ResourceAccess<'_>) -> Result<bool> {
    let user = &attributes.request.user;
    let access = Access { user, verb, target: Target::Resource(target) };
    Ok(attributes.request.server.authorize(&access).await?.allowed)
}

/// A user as Go prints it: `&{ada  [staff] map[]}`.
fn shown(user: &User) -> String {
    let (groups, extra) = (go_text::plain(&json!(user.groups)), go_text::plain(&json!(user.extra)));
    format!("&{{{} {} {groups} {extra}}}", user.name, user.uid)
}
