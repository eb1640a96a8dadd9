//! Which kind a request is about, or why there is none.

use crate::registry::{Kind, Served};
use crate::request::info::{Route, Target, Verb};
use crate::status::Status;
use http::Method;
use std::sync::Arc;

/// What a request is about.
pub(crate) enum Resolved<'a> {
    /// A served kind, and something that can be done with it.
    Kind(Arc<Kind>),
    /// Something that is not served.
    Refused(Status),
    /// A resource that is not served.
    Missing(&'a Target),
    /// A path that names no resource.
    Path,
}

/// Finds the kind that a request is about.
pub(crate) fn resolve<'a>(served: &Served, route: &'a Route) -> Resolved<'a> {
    let Some(target) = &route.target else {
        return Resolved::Path;
    };
    let Some(kind) = served.find(&target.group, &target.version, &target.resource) else {
        return Resolved::Missing(target);
    };
    let checked = match &kind.custom {
        Some(_) if !has_its_scope(kind, target) => return Resolved::Missing(target),
        Some(_) => check_custom(kind, target),
        None => check(kind, target, &route.method),
    };
    match checked {
        Ok(()) => Resolved::Kind(kind.clone()),
        Err(status) => Resolved::Refused(status),
    }
}

// apiextensions-apiserver/pkg/apiserver/customresource_handler.go, ServeHTTP
fn has_its_scope(kind: &Kind, target: &Target) -> bool {
    match (kind.resource.namespaced, &target.namespace) {
        (true, None) => matches!(target.verb, Verb::List | Verb::Watch),
        (false, Some(_)) => false,
        _ => true,
    }
}

fn check_custom(kind: &Kind, target: &Target) -> Result<(), Status> {
    let resource = &kind.resource;
    let verbs = match &target.subresource {
        None => &resource.verbs,
        Some(name) => {
            let missing = || Status::not_found(resource, target.name.as_deref().unwrap_or_default());
            &resource.subresource(name).ok_or_else(missing)?.verbs
        }
    };
    let word = word(target.verb);
    match verbs.iter().any(|verb| **verb == *word) {
        true => Ok(()),
        false => Err(Status::method_not_supported(resource, word)),
    }
}

fn check(kind: &Kind, target: &Target, method: &Method) -> Result<(), Status> {
    let resource = &kind.resource;
    let of_namespace = &*resource.plural == "namespaces" && resource.group.is_empty();
    if target.namespace.is_some() && !resource.namespaced && !of_namespace {
        return Err(Status::no_such_path());
    }
    if resource.namespaced && target.namespace.is_none() && target.name.is_some() {
        return Err(Status::no_such_path());
    }
    let verbs = match &target.subresource {
        None => &resource.verbs,
        Some(name) => &resource.subresource(name).ok_or_else(Status::no_such_path)?.verbs,
    };
    let everywhere = resource.namespaced && target.namespace.is_none();
    let possible = match target.verb {
        Verb::List | Verb::Watch => true,
        Verb::Create => (target.name.is_none() || target.subresource.is_some()) && !everywhere,
        Verb::DeleteCollection => !everywhere,
        Verb::Update | Verb::Patch => target.name.is_some(),
        Verb::Get => *method != Method::HEAD,
        Verb::Delete => true,
        Verb::Proxy | Verb::None => false,
    };
    let word = word(target.verb);
    if !possible || !verbs.iter().any(|verb| **verb == *word) {
        return Err(Status::method_not_allowed());
    }
    Ok(())
}

fn word(verb: Verb) -> &'static str {
    match verb {
        Verb::Create => "create",
        Verb::Get => "get",
        Verb::List => "list",
        Verb::Watch => "watch",
        Verb::Update => "update",
        Verb::Patch => "patch",
        Verb::Delete => "delete",
        Verb::DeleteCollection => "deletecollection",
        Verb::Proxy | Verb::None => "",
    }
}
