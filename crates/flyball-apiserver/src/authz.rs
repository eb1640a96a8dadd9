//! Authorization: decides whether a user may do something. Members of `system:masters` may do everything, others what
//! RBAC grants them.

pub mod policy;
pub(crate) mod rbac;

use crate::authn::user::User;
use crate::request::info::{RequestInfo, Verb};
use crate::server::ApiServer;
use crate::status::{Result, Status};
use flyball_schema::names;

/// What a user wants to do.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Access<'a> {
    /// The user.
    pub user: &'a User,
    /// The verb of a resource, or the method of a path in lower case.
    pub verb: &'a str,
    /// What it is done to.
    pub target: Target<'a>,
}

/// What something is done to.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Target<'a> {
    /// A resource.
    Resource(ResourceAccess<'a>),
    /// A path that names no resource.
    Path(&'a str),
}

/// A resource as authorization sees it; parts that are not named are empty.
#[derive(Clone, Copy, Debug, Default)]
#[allow(missing_docs, reason = "each is the part of its name")]
pub(crate) struct ResourceAccess<'a> {
    pub namespace: &'a str,
    pub group: &'a str,
    pub resource: &'a str,
    pub subresource: &'a str,
    pub name: &'a str,
}

/// Whether something is allowed, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Decision {
    /// Whether it is allowed.
    pub allowed: bool,
    /// The rule that allows it, or what kept rules from being found; may be empty.
    pub reason: String,
}

impl ApiServer {
    /// Decides whether a user may do something.
    pub(crate) async fn authorize(&self, access: &Access<'_>) -> Result<Decision> {
        if access.user.is_master() {
            return Ok(Decision { allowed: true, reason: String::new() });
        }
        Ok(self.rbac().read(self.store()).await?.authorize(access))
    }

    /// The same without waiting: nothing is allowed until roles and bindings have been read once.
    pub(crate) fn authorize_loaded(&self, access: &Access<'_>) -> Decision {
        if access.user.is_master() {
            return Decision { allowed: true, reason: String::new() };
        }
        let policy = self.rbac().read_loaded();
        let nothing = Decision { allowed: false, reason: String::new() };
        policy.map_or(nothing, |policy| policy.authorize(access))
    }

    /// Refuses with 403 what a user may not do.
    pub(crate) async fn require_access(&self, access: &Access<'_>) -> Result<()> {
        let decision = self.authorize(access).await?;
        match decision.allowed {
            true => Ok(()),
            false => Err(access.forbidden(&decision.reason)),
        }
    }
}

impl<'a> Access<'a> {
    /// What a request asks for. A list or watch of one name counts as being about that object.
    // apiserver/pkg/endpoints/filters/authorization.go, GetAuthorizerAttributes; request/requestinfo.go
    pub fn of(user: &'a User, info: &'a RequestInfo, verb: &'a str) -> Access<'a> {
        let Some(target) = &info.resource else {
            return Access { user, verb, target: Target::Path(&info.path) };
        };
        let selected = match target.verb {
            Verb::List | Verb::Watch => info.query.get("fieldSelector").and_then(selected_name),
            _ => None,
        };
        let target = Target::Resource(ResourceAccess {
            namespace: target.namespace.as_deref().unwrap_or_default(),
            group: &target.group,
            resource: &target.resource,
            subresource: target.subresource.as_deref().unwrap_or_default(),
            name: target.name.as_deref().or(selected).unwrap_or_default(),
        });
        Access { user, verb, target }
    }

    /// The refusal, 403.
    // apiserver/pkg/endpoints/handlers/responsewriters/errors.go, ForbiddenStatusError
    pub fn forbidden(&self, reason: &str) -> Status {
        let (user, verb) = (&self.user.name, self.verb);
        let with_reason = |why: String| match reason.is_empty() {
            true => escape(&why),
            false => format!("{}: {reason}", escape(&why)),
        };
        let target = match &self.target {
            Target::Path(path) => {
                let why = format!("User {user:?} cannot {verb} path {path:?}");
                return Status::access_denied("", "", "", &with_reason(why));
            }
            Target::Resource(target) => target,
        };
        let resource = match target.subresource {
            "" => target.resource.to_owned(),
            subresource => format!("{}/{subresource}", target.resource),
        };
        let scope = match target.namespace {
            "" => "at the cluster scope".to_owned(),
            namespace => format!("in the namespace {namespace:?}"),
        };
        let group = target.group;
        let why = format!("User {user:?} cannot {verb} resource {resource:?} in API group {group:?} {scope}");
        Status::access_denied(group, target.resource, target.name, &with_reason(why))
    }
}

/// The name that a field selector requires.
fn selected_name(selector: &str) -> Option<&str> {
    let name = selector.split(',').find_map(|part| {
        let value = part.strip_prefix("metadata.name=")?;
        Some(value.strip_prefix('=').unwrap_or(value))
    })?;
    (!name.is_empty() && names::path_segment(name).is_empty()).then_some(name)
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::Method;

    fn refusal(method: Method, path: &str) -> String {
        let info = RequestInfo::read(&method, &path.parse().unwrap());
        Access::of(&User::anonymous(), &info, &info.verb()).forbidden("").message
    }

    #[test]
    fn a_refusal_names_user_verb_and_resource() {
        for (method, path, expected) in [
            (Method::GET, "/api", r#"forbidden: User "system:anonymous" cannot get path "/api""#),
            (
                Method::GET,
                "/api/v1/pods",
                r#"pods is forbidden: User "system:anonymous" cannot list resource "pods" in API group "" at the cluster scope"#,
            ),
            (
                Method::PUT,
                "/apis/apps/v1/namespaces/a/deployments/web/scale",
                r#"deployments.apps "web" is forbidden: User "system:anonymous" cannot update resource "deployments/scale" in API group "apps" in the namespace "a""#,
            ),
        ] {
            assert_eq!(refusal(method, path), expected);
        }
    }

    #[test]
    fn a_list_of_one_name_is_about_that_object() {
        for (query, expected) in [
            ("", ""),
            ("?fieldSelector=metadata.name%3Da", "a"),
            ("?fieldSelector=spec.nodeName%3Dn%2Cmetadata.name%3D%3Da", "a"),
            ("?fieldSelector=metadata.name%21%3Da", ""),
            ("?fieldSelector=metadata.name%3Da%2Fb", ""),
        ] {
            let uri = format!("/api/v1/namespaces/x/pods{query}").parse().unwrap();
            let info = RequestInfo::read(&Method::GET, &uri);
            let user = User::anonymous();
            let Target::Resource(target) = Access::of(&user, &info, "list").target else {
                panic!("pods are a resource");
            };
            assert_eq!(target.name, expected, "{query}");
        }
    }
}
