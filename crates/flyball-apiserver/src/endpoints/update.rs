//! PUT: a new state for an object. Patches and applies come here too, once they know the new state.

use crate::crd;
use crate::endpoints::{Part, create, decode};
use crate::registry::field_manager::Author;
use crate::registry::{allocate, object, prepare, warn};
use crate::request::context::Call;
use crate::request::options::{WriteOptions, causes, parse_error};
use crate::response::Answer;
use crate::status::{Result, Status};
use bytes::Bytes;
use flyball_schema::managed_fields;
use flyball_schema::violation::Violation;
use flyball_store::{Entry, Error, Expect, Op};
use http::StatusCode;
use serde_json::Value;

/// Gives an object a new state, or creates it where its kind allows that.
pub(crate) async fn update(call: &Call, part: Part) -> Result<Answer> {
    let options = WriteOptions::update(&call.query, &call.headers)?;
    let mut object = decode::object(call, &options)?;
    decode::check_namespace(call, &mut object)?;
    decode::check_name(call, &object)?;
    prepare::fill(&call.kind, &mut object);
    let uid = object::text(&object, "uid").to_owned();
    let author = Author::of(call, part, &options);
    write(call, part, options.dry_run, |live| {
        let mut object = object.clone();
        if live.is_none() && !(call.kind.strategy.create_on_update && part == Part::Whole) {
            return Err(call.not_found());
        }
        check_uid(call, &uid, live)?;
        if let (Part::Status, Some(live)) = (part, live) {
            prepare::keep_spec(&call.kind, &mut object, live);
        }
        author.update(live, &mut object);
        Ok(Some(object))
    })
    .await
}

// apiserver/pkg/storage/interfaces.go, Preconditions.Check
fn check_uid(call: &Call, uid: &str, live: Option<&Value>) -> Result<()> {
    let found = live.map_or("", |live| object::text(live, "uid"));
    if uid.is_empty() || uid == found {
        return Ok(());
    }
    let resource = &call.kind.resource;
    let key = match call.namespace() {
        Some(namespace) => format!("/registry/{}/{namespace}/{}", resource.plural, call.name()),
        None => format!("/registry/{}/{}", resource.plural, call.name()),
    };
    let why = format!(
        "StorageError: invalid object, Code: 4, Key: {key}, ResourceVersion: 0, AdditionalErrorMsg: \
         Precondition failed: UID in precondition: {uid}, UID in object meta: {found}"
    );
    Err(Status::conflict(resource, call.name(), why))
}

/// Replaces the stored object by what `next` makes of it, again and again until nobody interferes.
/// `next` answers `None` where nothing changes, and an object for no stored one where one is to be created.
pub(crate) async fn write(
    call: &Call,
    part: Part,
    dry_run: bool,
    next: impl Fn(Option<&Value>) -> Result<Option<Value>>,
) -> Result<Answer> {
    loop {
        let entry = match call.store().get(call.key()).await {
            Ok(entry) => entry,
            Err(error) => return call.store_failed(error),
        };
        let Some(entry) = entry else {
            let object = next(None)?.ok_or_else(|| call.not_found())?;
            return create::store(call, object, dry_run).await;
        };
        let live = call.kind.present_value(&entry.value, entry.revision);
        let Some(mut object) = next(Some(&live))? else {
            return unchanged(call, &entry);
        };
        check_version(call, &mut object, &entry)?;
        warn::owners(call, &mut object);
        prepare::update(&call.kind, part, &mut object, &live);
        prepare::check(&call.kind, part, &object, Some(&live))?;
        warn::finalizers(call, &object, Some(&live));
        warn::oddities(call, &object);
        if managed_fields::keep_timestamps(&live, &mut object) {
            return unchanged(call, &entry);
        }
        let asked = allocate::concerns(&call.kind).then(|| object.clone());
        allocate::assign(&call.kind, &mut object)?;
        if let Some(object) = commit(call, &entry, object, &live, asked.as_ref(), dry_run).await? {
            crd::settle(call).await?;
            return Ok(Answer::Object { code: StatusCode::OK, kind: call.kind.clone(), object });
        }
    }
}

fn unchanged(call: &Call, entry: &Entry) -> Result<Answer> {
    let object = call.kind.present(&entry.value, entry.revision);
    Ok(Answer::Object { code: StatusCode::OK, kind: call.kind.clone(), object })
}

/// Refuses an object that was read at another revision than the stored one has.
// apiserver/pkg/registry/generic/registry/store.go, Update
fn check_version(call: &Call, object: &mut Value, entry: &Entry) -> Result<()> {
    let resource = &call.kind.resource;
    let given = match object::text(object, "resourceVersion") {
        "" => 0,
        text => text.parse().map_err(|error| {
            let why = parse_error("ParseUint", text, &error);
            Status::without_reason(StatusCode::INTERNAL_SERVER_ERROR, why)
        })?,
    };
    if given == 0 && !call.kind.strategy.unconditional_update {
        let why = "must be specified for an update";
        let violation = Violation::invalid("metadata.resourceVersion", 0, why);
        return Err(Status::invalid(&resource.group, &resource.plural, call.name(), causes(vec![violation])));
    }
    if given != 0 && given != entry.revision {
        return Err(Status::modified(resource, call.name()));
    }
    object::metadata_mut(object).insert("resourceVersion".into(), entry.revision.to_string().into());
    Ok(())
}

/// Writes the new state, or removes an object whose last finalizer went; none if somebody else was faster.
async fn commit(
    call: &Call,
    entry: &Entry,
    object: Value,
    live: &Value,
    asked: Option<&Value>,
    dry_run: bool,
) -> Result<Option<Bytes>> {
    if dry_run {
        return Ok(Some(object::encode_unstored(&object)));
    }
    let expect = Expect::Revision(entry.revision);
    let is_last = is_last_state(call, &object, live);
    let mut ops = allocate::ops(&call.kind, Some(&object).filter(|_| !is_last), Some(live));
    let (op, last) = match is_last {
        true => (Op::delete(entry.key.clone(), expect), Some(object::encode_unstored(&object))),
        false => (Op::put(entry.key.clone(), call.kind.stored(object), expect), None),
    };
    ops.insert(0, op);
    match call.store().commit(ops).await {
        Ok(_) if last.is_some() => Ok(last),
        Ok(committed) => {
            let entry = committed.entries.into_iter().next().flatten().expect("a put answers with its entry");
            Ok(Some(call.kind.present(&entry.value, entry.revision)))
        }
        Err(Error::Conflict { key, .. }) => {
            let refusal = asked.and_then(|asked| allocate::refusal(&call.kind, &key, asked));
            refusal.map_or(Ok(None), Err)
        }
        Err(error) => call.store_failed(error),
    }
}

/// Whether an update is the last that a deleted object waited for.
// apiserver/pkg/registry/generic/registry/store.go, ShouldDeleteDuringUpdate
fn is_last_state(call: &Call, object: &Value, live: &Value) -> bool {
    if !object::finalizers(object).is_empty() || !object::is_deleting(live) {
        return false;
    }
    let waits = |finalizers: &Value| finalizers.as_array().is_some_and(|all| !all.is_empty());
    if call.kind.is("", "namespaces") && waits(&object["spec"]["finalizers"]) {
        return false;
    }
    object::metadata(live)
        .get("deletionGracePeriodSeconds")
        .and_then(Value::as_i64)
        .unwrap_or(0)
        == 0
}
