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

use crate::kinds::spec::{Create, SubresourceEndpoint};
use crate::registry::Kind;
use crate::request::context::ResourceRequest;
use crate::request::info::Verb;
use crate::request::options::PatchType;
use crate::response::ApiResponse;
use crate::status::{Result, Status};
use crate::subresources::{binding, eviction, review, scale, token};
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
        Some(name) => match request.kind.subresource_endpoint(name) {
            SubresourceEndpoint::Status => Subresource::Status,
            SubresourceEndpoint::Finalize => Subresource::Finalize,
            SubresourceEndpoint::Scale(_) => return scale::handle(request).await,
            SubresourceEndpoint::Binding => return binding::bind(request).await,
            SubresourceEndpoint::Eviction => return eviction::evict(request).await,
            SubresourceEndpoint::Token => return token::issue(request).await,
            SubresourceEndpoint::Unsupported => return Err(unsupported(request, name).await),
        },
    };
    match request.target.verb {
        Verb::Create => match request.kind.spec.create {
            Create::Store => create::create(request).await,
            Create::Review => review::answer(request).await,
            Create::Binding => binding::bind_named(request).await,
        },
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
    /// The eviction of a Pod.
    Eviction,
    /// A token of a ServiceAccount.
    Token,
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
            Subresource::Eviction => Some("eviction"),
            Subresource::Token => Some("token"),
        }
    }
}

/// The Warning header of a deprecated kind.
fn deprecation(kind: &Kind) -> Option<&str> {
    match &kind.custom {
        Some(custom) => custom.deprecation_warning.as_deref(),
        None => kind.spec.deprecation,
    }
}

/// The refusal of a subresource that discovery lists but that has no handler.
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
