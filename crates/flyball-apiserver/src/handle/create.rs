//! POST: a new object.

use super::own::{Writer, other_versions};
use super::{Part, admit, decode, prepare};
use crate::answer::Answer;
use crate::call::Call;
use crate::definition;
use crate::object;
use crate::options::WriteOptions;
use crate::status::{Result, Status};
use bytes::Bytes;
use flyball_store::{Entry, Error, Expect, Op};
use http::StatusCode;
use serde_json::Value;

/// How many names are tried for an object that asks for one.
const MOST_NAMES: usize = 8;

/// Stores a new object.
pub(super) async fn create(call: &Call) -> Result<Answer> {
    let options = WriteOptions::create(&call.query, &call.headers)?;
    let mut object = decode::object(call, options.field_validation)?;
    prepare::wipe(&mut object);
    decode::check_namespace(call, &mut object)?;
    if !object::text(&object, "resourceVersion").is_empty() {
        let why = "resourceVersion should not be set on objects to be created";
        return Err(Status::without_reason(StatusCode::INTERNAL_SERVER_ERROR, why));
    }
    prepare::fill(&call.kind, &mut object);
    own(call, &options, &mut object);
    store(call, object, options.dry_run).await
}

/// Records who owns the fields of a new object.
pub(super) fn own(call: &Call, options: &WriteOptions, object: &mut Value) {
    let (others, now) = (other_versions(call), call.now());
    let writer = Writer {
        kind: &call.kind,
        others: &others,
        part: Part::Whole,
        manager: &options.manager,
        now: &now,
    };
    writer.update(None, object);
}

/// Stores an object that has been decoded, defaulted and is owned, under its own name or one made for it.
pub(crate) async fn store(call: &Call, object: Value, dry_run: bool) -> Result<Answer> {
    admit::create(call, object::name(&object)).await?;
    for attempt in 1.. {
        let mut object = object.clone();
        let generated = prepare::generate_name(&mut object);
        prepare::create(&call.kind, &mut object, &call.now());
        prepare::check(&call.kind, Part::Whole, &object, None)?;
        let name = object::name(&object).to_owned();
        match commit(call, object, dry_run).await? {
            Ok(object) => {
                definition::settle(call).await?;
                return Ok(Answer::Object { code: StatusCode::CREATED, kind: call.kind.clone(), object });
            }
            Err(_) if generated && attempt < MOST_NAMES => {}
            Err(_) if generated => return Err(Status::no_name_left(&call.kind.resource, &name)),
            Err(existing) => return Err(exists(call, &name, existing.as_deref())),
        }
    }
    unreachable!("the last attempt returns")
}

/// Writes a new object; the inner error is the object that is there already.
async fn commit(call: &Call, object: Value, dry_run: bool) -> Result<Result<Bytes, Option<Box<Entry>>>> {
    let key = call.kind.key(call.namespace(), object::name(&object));
    if dry_run {
        return match call.store().get(&key).await {
            Ok(None) => Ok(Ok(object::encode_unstored(&object))),
            Ok(Some(entry)) => Ok(Err(Some(Box::new(entry)))),
            Err(error) => call.store_failed(error),
        };
    }
    match call.store().commit(vec![Op::put(key, call.kind.stored(object), Expect::Absent)]).await {
        Ok(mut committed) => {
            let entry = committed.entries.pop().flatten().expect("a put answers with its entry");
            Ok(Ok(call.kind.present(&entry.value, entry.revision)))
        }
        Err(Error::Conflict { current, .. }) => Ok(Err(current)),
        Err(error) => call.store_failed(error),
    }
}

fn exists(call: &Call, name: &str, existing: Option<&Entry>) -> Status {
    let mut status = Status::already_exists(&call.kind.resource, name);
    let is_deleting = |entry: &Entry| object::peek(&entry.value).metadata.deletion_timestamp.is_some();
    if existing.is_some_and(is_deleting) {
        status.message = format!("object is being deleted: {}", status.message);
    }
    status
}
