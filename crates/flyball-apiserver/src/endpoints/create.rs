//! POST: stores a new object.

use crate::endpoints::{Subresource, decode};
use crate::registry::field_manager::FieldManager;
use crate::registry::generic::Write;
use crate::registry::strategy;
use crate::request::context::ResourceRequest;
use crate::request::options::WriteOptions;
use crate::response::ApiResponse;
use crate::status::Result;
use serde_json::Value;

/// Stores a new object.
pub(crate) async fn create(request: &ResourceRequest) -> Result<ApiResponse> {
    let options = WriteOptions::create(&request.info.query, &request.headers)?;
    let write = Write::new(request, Subresource::Whole, &options);
    write.create(|| new_object(request, &options)).await
}

fn new_object(request: &ResourceRequest, options: &WriteOptions) -> Result<Value> {
    let mut object = decode::object(request, options)?;
    strategy::wipe_system_fields(&mut object);
    decode::check_namespace(request, &mut object)?;
    strategy::default(&request.kind, &mut object);
    FieldManager::of(request, Subresource::Whole, options).update(None, &mut object);
    Ok(object)
}
