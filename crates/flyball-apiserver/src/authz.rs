//! What a user is allowed to do: members of `system:masters` everything, others read health and version.

use crate::authn::user::User;
use crate::request::info::RequestInfo;
use crate::status::{Result, Status};
use http::Method;

/// Paths that every user may read, as the cluster role `system:public-info-viewer` allows.
const PUBLIC: [&str; 5] = ["/healthz", "/livez", "/readyz", "/version", "/version/"];

/// Decides whether a user may make a request; 403 if not.
pub(crate) fn authorize(user: &User, info: &RequestInfo) -> Result<()> {
    let public = info.method == Method::GET && PUBLIC.contains(&info.path.as_str());
    match user.is_master() || public {
        true => Ok(()),
        false => Err(forbidden(user, info)),
    }
}

// apiserver/pkg/endpoints/handlers/responsewriters/errors.go, ForbiddenStatusError
fn forbidden(user: &User, info: &RequestInfo) -> Status {
    let (user, verb) = (&user.name, info.verb());
    let Some(target) = &info.resource else {
        let why = format!("User {user:?} cannot {verb} path {:?}", info.path);
        return Status::access_denied("", "", "", &escape(&why));
    };
    let mut resource = target.resource.clone();
    if let Some(subresource) = &target.subresource {
        resource = format!("{resource}/{subresource}");
    }
    let scope = match target.namespace.as_deref() {
        Some(namespace) if !namespace.is_empty() => format!("in the namespace {namespace:?}"),
        _ => "at the cluster scope".to_owned(),
    };
    let group = &target.group;
    let why = format!("User {user:?} cannot {verb} resource {resource:?} in API group {group:?} {scope}");
    Status::access_denied(group, &target.resource, target.name.as_deref().unwrap_or_default(), &escape(&why))
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(method: Method, path: &str) -> Option<String> {
        let info = RequestInfo::read(&method, &path.parse().unwrap());
        authorize(&User::anonymous(), &info).err().map(|status| status.message)
    }

    #[test]
    fn anonymous_requests_may_read_health_and_version_only() {
        assert_eq!(refusal(Method::GET, "/readyz"), None);
        for (method, path, expected) in [
            (
                Method::POST,
                "/readyz",
                r#"forbidden: User "system:anonymous" cannot post path "/readyz""#,
            ),
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
            assert_eq!(refusal(method, path).as_deref(), Some(expected));
        }
    }
}
