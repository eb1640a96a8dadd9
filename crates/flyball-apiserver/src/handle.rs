//! What is done for each verb: a request to a resource in, an answer or a refusal out.

mod admit;
mod apply;
mod binding;
mod create;
mod decode;
mod delete;
mod filter;
mod get;
mod list;
mod own;
mod page;
mod patch;
mod prepare;
mod scale;
mod update;
mod watch;

use crate::answer::Answer;
use crate::call::Call;
use crate::options::PatchType;
use crate::request::Verb;
use crate::status::{Result, Status};

pub(crate) use delete::purge;
pub(crate) use own::Writer;

/// Does what a request asks for.
pub(crate) async fn handle(call: &Call) -> Result<Answer> {
    if let Some(warning) = call.kind.custom.as_ref().and_then(|custom| custom.deprecation_warning.as_deref()) {
        call.warn(warning);
    }
    let part = match call.target.subresource.as_deref() {
        None => Part::Whole,
        Some("status") => Part::Status,
        Some("scale") => return scale::handle(call).await,
        Some("binding") => return binding::bind(call).await,
        Some("finalize") => Part::Finalize,
        Some(name) => return Err(unsupported(call, name)),
    };
    match call.target.verb {
        Verb::Create => create::create(call).await,
        Verb::Get => get::get(call).await,
        Verb::List => list::list(call).await,
        Verb::Watch => watch::watch(call).await,
        Verb::Update => update::update(call, part).await,
        Verb::Patch => match PatchType::read(&call.headers)? {
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
}

impl Part {
    /// The subresource, as managedFields name it.
    fn subresource(self) -> Option<&'static str> {
        match self {
            Part::Whole => None,
            Part::Status => Some("status"),
            Part::Finalize => Some("finalize"),
            Part::Scale => Some("scale"),
        }
    }
}

/// What a server says of a subresource that it lists but cannot serve.
fn unsupported(call: &Call, subresource: &str) -> Status {
    let what = format!("{}/{subresource}", call.kind.resource.qualified());
    Status::service_unavailable(format!("{what} is not supported by this server"))
}
