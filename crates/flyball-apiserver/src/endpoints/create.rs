//! POST: a new object.

use crate::endpoints::{Subresource, decode};
use crate::registry::field_manager::Author;
use crate::registry::service_allocator::{self, ServiceAllocator};
use crate::registry::{object, prepare, warn};
use crate::request::context::ResourceRequest;
use crate::request::options::WriteOptions;
use crate::response::ApiResponse;
use crate::status::{Result, Status};
use crate::{admission, crd};
use bytes::Bytes;
use flyball_store::{Entry, Error, Expect, Op};
use http::StatusCode;
use serde_json::Value;

/// How many names are tried for an object that asks for one.
const MAX_NAMES: usize = 8;
/// How often a Service is allocated anew because another one was faster.
pub(crate) const MAX_ALLOCATIONS: usize = 16;

/// Stores a new object.
pub(crate) async fn create(request: &ResourceRequest) -> Result<ApiResponse> {
    let options = WriteOptions::create(&request.info.query, &request.headers)?;
    let mut object = decode::object(request, &options)?;
    prepare::wipe(&mut object);
    decode::check_namespace(request, &mut object)?;
    prepare::fill(&request.kind, &mut object);
    own(request, &options, &mut object);
    store(request, object, options.dry_run).await
}

/// Records who owns the fields of a new object.
pub(crate) fn own(request: &ResourceRequest, options: &WriteOptions, object: &mut Value) {
    Author::of(request, Subresource::Whole, options).update(None, object);
}

/// Stores an object that has been decoded, defaulted and is owned, under its own name or one made for it.
pub(crate) async fn store(request: &ResourceRequest, object: Value, dry_run: bool) -> Result<ApiResponse> {
    admission::create(request, object::name(&object)).await?;
    let mut object = object;
    admission::pod(request, &mut object).await?;
    warn::owners(request, &mut object);
    let (mut names, mut allocations) = (0, 0);
    loop {
        let mut new = object.clone();
        let generated = prepare::generate_name(&mut new);
        prepare::create(&request.kind, &mut new, &request.now());
        prepare::check(&request.kind, Subresource::Whole, &new, None)?;
        if request.kind.is("", "services") {
            ServiceAllocator::new(request.store()).allocate(&mut new, None).await?;
        }
        let name = object::name(&new).to_owned();
        match commit(request, new, dry_run).await? {
            Outcome::Stored(stored) => {
                warn::finalizers(request, &object, None);
                warn::oddities(request, &object);
                warn::unenforced(request);
                crd::wait_until_reconciled(request, &name).await;
                return Ok(ApiResponse::Object {
                    code: StatusCode::CREATED,
                    kind: request.kind.clone(),
                    object: stored,
                });
            }
            Outcome::Taken => {
                allocations += 1;
                if allocations == MAX_ALLOCATIONS {
                    return Err(Status::server_timeout(&request.kind.resource, "create"));
                }
                continue;
            }
            Outcome::Exists(existing) if !generated => return Err(exists(request, &name, existing.as_deref())),
            Outcome::Exists(_) => names += 1,
        }
        if names == MAX_NAMES {
            return Err(Status::no_name_left(&request.kind.resource, &name));
        }
    }
}

/// What came of an attempt to store an object.
enum Outcome {
    /// It is stored.
    Stored(Bytes),
    /// Something of that name is there already.
    Exists(Option<Box<Entry>>),
    /// Another Service took an address or a port first.
    Taken,
}

async fn commit(request: &ResourceRequest, object: Value, dry_run: bool) -> Result<Outcome> {
    let key = request.kind.key(request.namespace(), object::name(&object));
    if dry_run {
        return match request.store().get(&key).await {
            Ok(None) => Ok(Outcome::Stored(object::encode_unstored(&object))),
            Ok(Some(entry)) => Ok(Outcome::Exists(Some(Box::new(entry)))),
            Err(error) => request.store_failed(error),
        };
    }
    if !object::text(&object, "resourceVersion").is_empty() {
        let why = "resourceVersion should not be set on objects to be created";
        return Err(Status::without_reason(StatusCode::INTERNAL_SERVER_ERROR, why));
    }
    let mut ops = match request.kind.is("", "services") {
        true => service_allocator::ops(Some(&object), None),
        false => Vec::new(),
    };
    ops.insert(0, Op::put(key.clone(), request.kind.stored(object), Expect::Absent));
    match request.store().commit(ops).await {
        Ok(committed) => {
            let entry = committed.entries.into_iter().next().flatten().expect("a put answers with its entry");
            Ok(Outcome::Stored(request.kind.present(&entry.value, entry.revision)))
        }
        Err(Error::Conflict { key: other, current, .. }) => Ok(match other == key {
            true => Outcome::Exists(current),
            false => Outcome::Taken,
        }),
        Err(error) => request.store_failed(error),
    }
}

fn exists(request: &ResourceRequest, name: &str, existing: Option<&Entry>) -> Status {
    let mut status = Status::already_exists(&request.kind.resource, name);
    let is_deleting = |entry: &Entry| object::peek(&entry.value).metadata.deletion_timestamp.is_some();
    if existing.is_some_and(is_deleting) {
        status.message = format!("object is being deleted: {}", status.message);
    }
    status
}
