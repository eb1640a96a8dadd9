//! What is done for each verb: a request to a resource in, an answer or a refusal out.

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
use crate::request::context::Call;
use crate::request::info::Verb;
use crate::request::options::PatchType;
use crate::response::Answer;
use crate::status::{Result, Status};
use crate::subresources::{binding, eviction, review, scale};
use flyball_schema::names;

pub(crate) use crate::registry::field_manager::Writer;
pub(crate) use delete::purge;

/// Does what a request asks for.
pub(crate) async fn handle(call: &Call) -> Result<Answer> {
    if let Some(warning) = deprecation(&call.kind) {
        call.warn(warning);
    }
    check_name(call)?;
    let part = match call.target.subresource.as_deref() {
        None => Part::Whole,
        Some("status") => Part::Status,
        Some("scale") => return scale::handle(call).await,
        Some("binding") => return binding::bind(call).await,
        Some("eviction") => return eviction::evict(call).await,
        Some("finalize") => Part::Finalize,
        Some(name) => return Err(unsupported(call, name).await),
    };
    match call.target.verb {
        Verb::Create if review::is_question(call) => review::answer(call),
        Verb::Create if binding::is_named(call) => binding::bind_named(call).await,
        Verb::Create => create::create(call).await,
        Verb::Get => get::get(call).await,
        Verb::List => list::list(call).await,
        Verb::Watch => watch::watch(call).await,
        Verb::Update => update::update(call, part).await,
        Verb::Patch => match PatchType::read(call)? {
            PatchType::Apply => apply::apply(call, part).await,
            patch => patch::patch(call, part, patch).await,
        },
        Verb::Delete => delete::delete(call).await,
        Verb::DeleteCollection => delete::delete_collection(call).await,
        Verb::Proxy | Verb::None => Err(Status::method_not_allowed()),
    }
}

/// Which part of an object a request writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Part {
    /// All but what has a subresource of its own.
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

impl Part {
    /// The subresource, as managedFields name it.
    pub(crate) fn subresource(self) -> Option<&'static str> {
        match self {
            Part::Whole => None,
            Part::Status => Some("status"),
            Part::Finalize => Some("finalize"),
            Part::Scale => Some("scale"),
            Part::Binding => Some("binding"),
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
async fn unsupported(call: &Call, subresource: &str) -> Status {
    match call.store().get(call.key()).await {
        Ok(None) => call.not_found(),
        _ => Status::method_not_supported(&call.kind.resource, subresource),
    }
}

// apiserver/pkg/registry/generic/registry/store.go, NamespaceKeyFunc
fn check_name(call: &Call) -> Result<()> {
    let Some(name) = call.target.name.as_deref() else {
        return Ok(());
    };
    match &names::path_segment(name)[..] {
        [] => Ok(()),
        wrong => Err(Status::bad_request(format!("Name parameter invalid: {name:?}: {}", wrong.join(";")))),
    }
}
