//! PUT: gives an object a new state.

use crate::endpoints::{Subresource, decode};
use crate::registry::field_manager::FieldManager;
use crate::registry::generic::Write;
use crate::registry::{object, strategy};
use crate::request::context::ResourceRequest;
use crate::request::options::WriteOptions;
use crate::response::ApiResponse;
use crate::status::{Result, Status};
use serde_json::Value;

/// Gives an object a new state, or creates it where its kind allows that.
pub(crate) async fn update(request: &ResourceRequest, subresource: Subresource) -> Result<ApiResponse> {
    let options = WriteOptions::update(&request.info.query, &request.headers)?;
    let manager = FieldManager::of(request, subresource, &options);
    let creates = request.kind.spec.create_on_update && subresource == Subresource::Whole;
    let write = Write::new(request, subresource, &options);
    write
        .update(|live| {
            let mut object = decode::object(request, &options)?;
            decode::check_namespace(request, &mut object)?;
            decode::check_name(request, &object)?;
            strategy::default(&request.kind, &mut object);
            if live.is_none() && !creates {
                return Err(request.not_found());
            }
            check_uid(request, object::text(&object, "uid"), live)?;
            if let (Subresource::Status, Some(live)) = (subresource, live) {
                strategy::keep_spec(&request.kind, &mut object, live);
            }
            manager.update(live, &mut object);
            Ok(Some(object))
        })
        .await
}

// apiserver/pkg/storage/interfaces.go, Preconditions.Check
fn check_uid(request: &ResourceRequest, uid: &str, live: Option<&Value>) -> Result<()> {
    let found = live.map_or("", |live| object::text(live, "uid"));
    if uid.is_empty() || uid == found {
        return Ok(());
    }
    let resource = &request.kind.resource;
    let key = match request.namespace() {
        Some(namespace) => format!("/registry/{}/{namespace}/{}", resource.plural, request.name()),
        None => format!("/registry/{}/{}", resource.plural, request.name()),
    };
    let why = format!(
        "StorageError: invalid object, Code: 4, Key: {key}, ResourceVersion: 0, AdditionalErrorMsg: \
         Precondition failed: UID in precondition: {uid}, UID in object meta: {found}"
    );
    Err(Status::conflict(resource, request.name(), why))
}
