//! Routing: the kind that serves a request, or the reason why none does.

use crate::registry::{Kind, Served};
use crate::request::info::{RequestInfo, ResourceInfo, Verb};
use crate::status::Status;
use http::Method;
use std::sync::Arc;

/// The handler of a request.
pub(crate) enum Route<'a> {
    /// A kind that is served, and a verb that it supports.
    Resource(Arc<Kind>, &'a ResourceInfo),
    /// A kind that is served, and a verb or subresource that it does not support.
    Refused(Status),
    /// A resource that is not served.
    Missing(&'a ResourceInfo),
    /// A path that names no resource.
    NonResource,
}

/// Routes a request.
pub(crate) fn route<'a>(served: &Served, info: &'a RequestInfo) -> Route<'a> {
    let Some(target) = &info.resource else {
        return Route::NonResource;
    };
    let Some(kind) = served.find(&target.group, &target.version, &target.resource) else {
        return Route::Missing(target);
    };
    let checked = match &kind.custom {
        Some(_) if !has_its_scope(kind, target) => return Route::Missing(target),
        Some(_) => check_custom(kind, target),
        None => check(kind, target, &info.method),
    };
    match checked {
        Ok(()) => Route::Resource(kind.clone(), target),
        Err(status) => Route::Refused(status),
    }
}

// apiextensions-apiserver/pkg/apiserver/customresource_handler.go, ServeHTTP
fn has_its_scope(kind: &Kind, target: &ResourceInfo) -> bool {
    match (kind.resource.namespaced, &target.namespace) {
        (true, None) => matches!(target.verb, Verb::List | Verb::Watch),
        (false, Some(_)) => false,
        _ => true,
    }
}

fn check_custom(kind: &Kind, target: &ResourceInfo) -> Result<(), Status> {
    let resource = &kind.resource;
    if let Some(Err(_)) = kind.custom.as_ref().map(|custom| custom.schemas.check()) {
        return Err(Status::internal("the server could not properly serve the CR schema"));
    }
    let verbs = match &target.subresource {
        None => &resource.verbs,
        Some(name) => {
            let missing = || Status::not_found(resource, target.name.as_deref().unwrap_or_default());
            &resource.subresource(name).ok_or_else(missing)?.verbs
        }
    };
    let word = target.verb.name();
    match verbs.iter().any(|verb| **verb == *word) {
        true => Ok(()),
        false => Err(Status::method_not_supported(resource, word)),
    }
}

fn check(kind: &Kind, target: &ResourceInfo, method: &Method) -> Result<(), Status> {
    let resource = &kind.resource;
    if target.verb == Verb::Proxy || (target.in_namespace && !resource.namespaced) {
        return Err(Status::no_such_path());
    }
    if resource.namespaced && !target.in_namespace && target.name.is_some() {
        return Err(Status::no_such_path());
    }
    let verbs = match &target.subresource {
        None => &resource.verbs,
        Some(name) => &resource.subresource(name).ok_or_else(Status::no_such_path)?.verbs,
    };
    let everywhere = resource.namespaced && !target.in_namespace;
    let possible = match target.verb {
        Verb::List | Verb::Watch => true,
        Verb::Create => (target.name.is_none() || target.subresource.is_some()) && !everywhere,
        Verb::DeleteCollection => !everywhere,
        Verb::Update | Verb::Patch => target.name.is_some(),
        Verb::Get => *method != Method::HEAD,
        Verb::Delete => true,
        Verb::Proxy | Verb::None => false,
    };
    let word = target.verb.name();
    if !possible || !verbs.iter().any(|verb| **verb == *word) {
        return Err(Status::method_not_allowed());
    }
    Ok(())
}
