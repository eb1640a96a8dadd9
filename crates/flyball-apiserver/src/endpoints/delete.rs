//! DELETE of one object or of a collection.

use crate::endpoints::filter::Filter;
use crate::endpoints::list;
use crate::registry::deletion::Delete;
use crate::registry::object;
use crate::request::context::ResourceRequest;
use crate::request::options::{DeleteOptions, ListOptions};
use crate::response::ApiResponse;
use crate::status::Result;

/// Deletes one object.
pub(crate) async fn delete(request: &ResourceRequest) -> Result<ApiResponse> {
    let options = DeleteOptions::read(request)?;
    request.audit_request(&options.audited());
    if let Some(warning) = request.kind.spec.deletion.warning.filter(|_| options.propagation().is_none()) {
        request.warn(warning);
    }
    let delete = Delete::new(request, &options);
    delete.delete(request.namespace(), request.name()).await
}

/// Deletes the objects that a request selects, one by one, and answers with their last states.
pub(crate) async fn delete_collection(request: &ResourceRequest) -> Result<ApiResponse> {
    let list_options = ListOptions::list(&request.info.query)?;
    let filter = Filter::read(request, &list_options)?;
    let options = DeleteOptions::read(request)?;
    request.audit_request(&options.audited());
    let delete = Delete::new(request, &options);
    let found = list::find(request, &list_options, &filter).await?;
    for entry in &found.entries {
        let metadata = object::peek(&entry.value).metadata;
        let namespace = Some(&*metadata.namespace).filter(|namespace| !namespace.is_empty());
        match delete.delete(namespace, &metadata.name).await {
            Err(status) if status.code != 404 => return Err(status),
            _ => {}
        }
    }
    Ok(found.answer(request, &filter))
}
