//! PUT: a new state for an object. Patches and applies come here too, once they know the new state.

use crate::crd;
use crate::endpoints::create::MAX_ALLOCATIONS;
use crate::endpoints::{Subresource, create, decode};
use crate::registry::field_manager::Author;
use crate::registry::service_allocator::{self, ServiceAllocator};
use crate::registry::{object, prepare, warn};
use crate::request::context::ResourceRequest;
use crate::request::options::{WriteOptions, causes, parse_error};
use crate::response::ApiResponse;
use crate::status::{Result, Status};
use bytes::Bytes;
use flyball_schema::managed_fields;
use flyball_schema::violation::Violation;
use flyball_store::{Entry, Error, Expect, Op};
use http::StatusCode;
use serde_json::Value;

/// Gives an object a new state, or creates it where its kind allows that.
pub(crate) async fn update(request: &ResourceRequest, subresource: Subresource) -> Result<ApiResponse> {
    let options = WriteOptions::update(&request.info.query, &request.headers)?;
    let mut object = decode::object(request, &options)?;
    decode::check_namespace(request, &mut object)?;
    decode::check_name(request, &object)?;
    prepare::fill(&request.kind, &mut object);
    let uid = object::text(&object, "uid").to_owned();
    let author = Author::of(request, subresource, &options);
    write(request, subresource, options.dry_run, |live| {
        let mut object = object.clone();
        if live.is_none() && !(request.kind.strategy.create_on_update && subresource == Subresource::Whole) {
            return Err(request.not_found());
        }
        check_uid(request, &uid, live)?;
        if let (Subresource::Status, Some(live)) = (subresource, live) {
            prepare::keep_spec(&request.kind, &mut object, live);
        }
        author.update(live, &mut object);
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

/// Replaces the stored object by what `next` makes of it, again and again until nobody interferes.
/// `next` answers `None` where nothing changes, and an object for no stored one where one is to be created.
pub(crate) async fn write(
    request: &ResourceRequest,
    subresource: Subresource,
    dry_run: bool,
    next: impl Fn(Option<&Value>) -> Result<Option<Value>>,
) -> Result<ApiResponse> {
    let mut allocations = 0;
    loop {
        let entry = match request.store().get(request.key()).await {
            Ok(entry) => entry,
            Err(error) => return request.store_failed(error),
        };
        let Some(entry) = entry else {
            let object = next(None)?.ok_or_else(|| request.not_found())?;
            return create::store(request, object, dry_run).await;
        };
        let live = request.kind.present_value(&entry.value, entry.revision);
        let Some(mut object) = next(Some(&live))? else {
            return unchanged(request, &entry);
        };
        check_version(request, &mut object, &entry)?;
        warn::owners(request, &mut object);
        prepare::update(&request.kind, subresource, &mut object, &live);
        prepare::check(&request.kind, subresource, &object, Some(&live))?;
        warn::finalizers(request, &object, Some(&live));
        warn::oddities(request, &object);
        if managed_fields::keep_timestamps(&live, &mut object) {
            return unchanged(request, &entry);
        }
        if request.kind.is("", "services") {
            ServiceAllocator::new(request.store()).allocate(&mut object, Some(&live)).await?;
        }
        match commit(request, &entry, object, &live, dry_run).await? {
            Outcome::Stored(object) => {
                crd::wait_until_reconciled(request, request.name()).await;
                return Ok(ApiResponse::Object { code: StatusCode::OK, kind: request.kind.clone(), object });
            }
            Outcome::Changed => {}
            Outcome::Taken => allocations += 1,
        }
        if allocations == MAX_ALLOCATIONS {
            return Err(Status::server_timeout(&request.kind.resource, "update"));
        }
    }
}

fn unchanged(request: &ResourceRequest, entry: &Entry) -> Result<ApiResponse> {
    let object = request.kind.present(&entry.value, entry.revision);
    Ok(ApiResponse::Object { code: StatusCode::OK, kind: request.kind.clone(), object })
}

/// Refuses an object that was read at another revision than the stored one has.
// apiserver/pkg/registry/generic/registry/store.go, Update
fn check_version(request: &ResourceRequest, object: &mut Value, entry: &Entry) -> Result<()> {
    let resource = &request.kind.resource;
    let given = match object::text(object, "resourceVersion") {
        "" => 0,
        text => text.parse().map_err(|error| {
            let why = parse_error("ParseUint", text, &error);
            Status::without_reason(StatusCode::INTERNAL_SERVER_ERROR, why)
        })?,
    };
    if given == 0 && !request.kind.strategy.unconditional_update {
        let why = "must be specified for an update";
        let violation = Violation::invalid("metadata.resourceVersion", 0, why);
        return Err(Status::invalid(
            &resource.group,
            &resource.plural,
            request.name(),
            causes(vec![violation]),
        ));
    }
    if given != 0 && given != entry.revision {
        return Err(Status::modified(resource, request.name()));
    }
    object::metadata_mut(object).insert("resourceVersion".into(), entry.revision.to_string().into());
    Ok(())
}

/// The outcome of an attempt to write a new state.
enum Outcome {
    /// The object is stored, or removed; this is its last state.
    Stored(Bytes),
    /// Another request changed the object first.
    Changed,
    /// Another Service took an address or a port first.
    Taken,
}

/// Writes the new state, or removes an object whose last finalizer went.
async fn commit(
    request: &ResourceRequest,
    entry: &Entry,
    object: Value,
    live: &Value,
    dry_run: bool,
) -> Result<Outcome> {
    if dry_run {
        return Ok(Outcome::Stored(object::encode_unstored(&object)));
    }
    let expect = Expect::Revision(entry.revision);
    let is_last = is_last_state(request, &object, live);
    let mut ops = match request.kind.is("", "services") {
        true => service_allocator::ops(Some(&object).filter(|_| !is_last), Some(live)),
        false => Vec::new(),
    };
    let (op, last) = match is_last {
        true => (Op::delete(entry.key.clone(), expect), Some(object::encode_unstored(&object))),
        false => (Op::put(entry.key.clone(), request.kind.stored(object), expect), None),
    };
    ops.insert(0, op);
    match request.store().commit(ops).await {
        Ok(committed) => Ok(Outcome::Stored(last.unwrap_or_else(|| {
            let entry = committed.entries.into_iter().next().flatten().expect("a put answers with its entry");
            request.kind.present(&entry.value, entry.revision)
        }))),
        Err(Error::Conflict { key, .. }) if key == entry.key => Ok(Outcome::Changed),
        Err(Error::Conflict { .. }) => Ok(Outcome::Taken),
        Err(error) => request.store_failed(error),
    }
}

/// Whether an update is the last that a deleted object waited for.
// apiserver/pkg/registry/generic/registry/store.go, ShouldDeleteDuringUpdate
fn is_last_state(request: &ResourceRequest, object: &Value, live: &Value) -> bool {
    if !object::finalizers(object).is_empty() || !object::is_deleting(live) {
        return false;
    }
    let waits = |finalizers: &Value| finalizers.as_array().is_some_and(|all| !all.is_empty());
    if request.kind.is("", "namespaces") && waits(&object["spec"]["finalizers"]) {
        return false;
    }
    object::metadata(live)
        .get("deletionGracePeriodSeconds")
        .and_then(Value::as_i64)
        .unwrap_or(0)
        == 0
}
