//! The endpoints of resources, one per verb: each turns a request into a response or a Status.

pub(crate) mod apply;
pub(crate) mod create;
pub(crate) mod decode;
pub(crate) mod delete;
pub(crate) mod filter;
pub(crate) mod get;
pub(crate) mod list;
pub(crate) mod page;
pub(crate) mod patch;
pub(crate) mod update;
pub(crate) mod watch;

use crate::registry::Kind;
use crate::request::context::ResourceRequest;
use crate::request::info::Verb;
use crate::request::options::PatchType;
use crate::response::ApiResponse;
use crate::status::{Result, Status};
use crate::subresources::{binding, eviction, review, scale};
use flyball_schema::names;

pub(crate) use crate::registry::deletion::purge;
pub(crate) use crate::registry::field_manager::FieldManager;

/// Calls the endpoint of a request's verb and subresource.
pub(crate) async fn handle(request: &ResourceRequest) -> Result<ApiResponse> {
    if let Some(warning) = deprecation(&request.kind) {
        request.warn(warning);
    }
    check_name(request)?;
    let subresource = match request.target.subresource.as_deref() {
        None => Subresource::Whole,
        Some("status") => Subresource::Status,
        Some("scale") => return scale::handle(request).await,
        Some("binding") => return binding::bind(request).await,
        Some("eviction") => return eviction::evict(request).await,
        Some("finalize") => Subresource::Finalize,
        Some(name) => return Err(unsupported(request, name).await),
    };
    match request.target.verb {
        Verb::Create if review::is_question(request) => review::answer(request),
        Verb::Create if binding::is_named(request) => binding::bind_named(request).await,
        Verb::Create => create::create(request).await,
        Verb::Get => get::get(request).await,
        Verb::List => list::list(request).await,
        Verb::Watch => watch::watch(request).await,
        Verb::Update => update::update(request, subresource).await,
        Verb::Patch => match PatchType::read(request)? {
            PatchType::Apply => apply::apply(request, subresource).await,
            patch => patch::patch(request, subresource, patch).await,
        },
        Verb::Delete => delete::delete(request).await,
        Verb::DeleteCollection => delete::delete_collection(request).await,
        Verb::Proxy | Verb::None => Err(Status::method_not_allowed()),
    }
}

/// The part of an object that a request writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Subresource {
    /// The object, without the fields that have a subresource of their own.
    Whole,
    /// `status`.
    Status,
    /// `spec.finalizers` of a Namespace.
    Finalize,
    /// The number of replicas.
    Scale,
    /// The node of a Pod.
    Binding,
}

impl Subresource {
    /// The subresource, as managedFields name it.
    pub(crate) fn subresource(self) -> Option<&'static str> {
        match self {
            Subresource::Whole => None,
            Subresource::Status => Some("status"),
            Subresource::Finalize => Some("finalize"),
            Subresource::Scale => Some("scale"),
            Subresource::Binding => Some("binding"),
        }
    }
}

/// What clients of a deprecated kind are told.
fn deprecation(kind: &Kind) -> Option<&str> {
    match &kind.custom {
        Some(custom) => custom.deprecation_warning.as_deref(),
        None if kind.is("", "endpoints") => {
            Some("v1 Endpoints is deprecated in v1.33+; use discovery.k8s.io/v1 EndpointSlice")
        }
        None if kind.is("", "componentstatuses") => Some("v1 ComponentStatus is deprecated in v1.19+"),
        None => None,
    }
}

/// What is said of a subresource that is listed but not served.
async fn unsupported(request: &ResourceRequest, subresource: &str) -> Status {
    match request.store().get(request.key()).await {
        Ok(None) => request.not_found(),
        _ => Status::method_not_supported(&request.kind.resource, subresource),
    }
}

// apiserver/pkg/registry/generic/registry/store.go, NamespaceKeyFunc
fn check_name(request: &ResourceRequest) -> Result<()> {
    let Some(name) = request.target.name.as_deref() else {
        return Ok(());
    };
    if request.kind.resource.namespaced && request.namespace().is_none() {
        return Err(Status::bad_request("Namespace parameter required."));
    }
    match &names::path_segment(name)[..] {
        [] => Ok(()),
        wrong => Err(Status::bad_request(format!("Name parameter invalid: {name:?}: {}", wrong.join(";")))),
    }
}
