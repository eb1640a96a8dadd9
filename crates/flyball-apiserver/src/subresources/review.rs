//! Reviews: questions about users and their rights, answered and never stored.

mod access;
mod identity;

use crate::admission::{self, Attributes, Operation, Options};
use crate::endpoints::{Subresource, decode};
use crate::registry::field_manager::FieldManager;
use crate::request::context::ResourceRequest;
use crate::request::options::WriteOptions;
use crate::response::ApiResponse;
use crate::status::{Result, Status};
use http::StatusCode;
use serde_json::{Value, json};

/// Answers a review.
pub(crate) async fn answer(request: &ResourceRequest) -> Result<ApiResponse> {
    let options = WriteOptions::create(&request.info.query, &request.headers)?;
    let mut attributes = Attributes::new(request, Operation::Create, Options::Write(&options));
    attributes.object = decode::object(request, &options)?;
    admission::admit(&mut attributes).await?;
    admission::validate(&mut attributes).await?;
    let mut object = attributes.object;
    let status = match &*request.kind.resource.plural {
        "selfsubjectaccessreviews" => access::of_self(request, &object).await?,
        "subjectaccessreviews" => access::of_subject(request, &object).await?,
        "localsubjectaccessreviews" => access::of_subject_in_namespace(request, &object).await?,
        "selfsubjectrulesreviews" => return access::rules(request, &object).await,
        "selfsubjectreviews" => return Ok(created(identity::own(request))),
        "tokenreviews" => identity::of_token(request, &object["spec"]).await?,
        other => return Err(Status::internal(format!("no review is called {other}"))),
    };
    FieldManager::of(request, Subresource::Whole, &options).update(None, &mut object);
    object["status"] = status;
    Ok(created(object))
}

fn created(object: Value) -> ApiResponse {
    ApiResponse::Other { code: StatusCode::CREATED, object }
}

/// A review of the requested kind with nothing in it but a status.
fn with_status(request: &ResourceRequest, status: Value) -> Value {
    let resource = &request.kind.resource;
    json!({
        "kind": resource.kind,
        "apiVersion": resource.api_version(),
        "metadata": {},
        "status": status,
    })
}
