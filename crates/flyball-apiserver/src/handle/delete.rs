//! DELETE of one object or of many: removed at once, or marked until those who watch it let it go.

mod grace;
mod mark;

use super::filter::Filter;
use super::{admit, list};
use crate::answer::{Answer, List};
use crate::call::Call;
use crate::definition;
use crate::object;
use crate::options::{DeleteOptions, ListOptions};
use crate::status::{Result, Status};
use bytes::Bytes;
use flyball_store::{Entry, Error, Expect, Op};
use http::StatusCode;
use serde_json::Value;

/// Deletes one object.
pub(super) async fn delete(call: &Call) -> Result<Answer> {
    let options = DeleteOptions::read(call)?;
    delete_one(call, call.namespace(), call.name(), &options).await
}

/// Deletes the objects that a request means, one by one, and answers with what they were.
pub(super) async fn delete_collection(call: &Call) -> Result<Answer> {
    let list_options = ListOptions::list(&call.query)?;
    let filter = Filter::read(call, &list_options)?;
    let options = DeleteOptions::read(call)?;
    let found = list::find(call, &list_options, &filter).await?;
    for entry in &found.entries {
        let metadata = object::peek(&entry.value).metadata;
        let namespace = Some(&*metadata.namespace).filter(|namespace| !namespace.is_empty());
        match delete_one(call, namespace, &metadata.name, &options).await {
            Err(status) if status.code != 404 => return Err(status),
            _ => {}
        }
    }
    let present = |entry: &Entry| call.kind.present(&entry.value, entry.revision);
    Ok(Answer::List(List {
        kind: call.kind.clone(),
        resource_version: found.revision,
        continue_: found.continue_,
        remaining_item_count: found.remaining.filter(|_| filter.is_empty()),
        items: found.entries.iter().map(present).collect(),
    }))
}

/// What is to be done with an object that somebody wants gone.
enum Step {
    /// It stays as it is: its deletion is under way.
    Wait,
    /// It is marked, and stays until others let it go.
    Mark(Value),
    /// It is marked, so that watchers know, and removed.
    MarkAndRemove(Value),
    /// It is removed.
    Remove,
}

pub(crate) async fn delete_one(
    call: &Call,
    namespace: Option<&str>,
    name: &str,
    options: &DeleteOptions,
) -> Result<Answer> {
    let key = call.kind.key(namespace, name);
    admit::delete(call, name)?;
    loop {
        let entry = match call.store().get(&key).await {
            Ok(Some(entry)) => entry,
            Ok(None) => return Err(Status::not_found(&call.kind.resource, name)),
            Err(error) => return call.store_failed(error),
        };
        let live = call.kind.present_value(&entry.value, entry.revision);
        grace::check(&call.kind, &live, options)?;
        let step = mark::step(&call.kind, &live, options, call.server.clock().now());
        if options.dry_run() {
            return Ok(rehearse(call, &live, step, options));
        }
        if let Some(answer) = take(call, &entry, &live, step, options).await? {
            definition::settle(call, name).await?;
            return Ok(answer);
        }
    }
}

/// Takes a step; none if somebody else was faster.
async fn take(call: &Call, entry: &Entry, live: &Value, step: Step, options: &DeleteOptions) -> Result<Option<Answer>> {
    match step {
        Step::Wait if call.kind.strategy.returns_deleted => Ok(Some(shown(call, live, options))),
        Step::Wait => Ok(Some(shown(call, live, options))),
        Step::Mark(object) => {
            let op = Op::put(entry.key.clone(), call.kind.stored(object), Expect::Revision(entry.revision));
            let marked = commit(call, op).await?;
            Ok(marked.map(|entry| shown(call, &call.kind.present_value(&entry.value, entry.revision), options)))
        }
        Step::MarkAndRemove(object) => {
            let op = Op::put(entry.key.clone(), call.kind.stored(object), Expect::Revision(entry.revision));
            match commit(call, op).await? {
                Some(entry) => remove(call, &entry).await,
                None => Ok(None),
            }
        }
        Step::Remove => remove(call, entry).await,
    }
}

async fn remove(call: &Call, entry: &Entry) -> Result<Option<Answer>> {
    let removed = commit(call, Op::delete(entry.key.clone(), Expect::Revision(entry.revision))).await?;
    Ok(removed.map(|entry| gone(call, &call.kind.present_value(&entry.value, entry.revision))))
}

async fn commit(call: &Call, op: Op) -> Result<Option<Entry>> {
    match call.store().commit(vec![op]).await {
        Ok(mut committed) => Ok(committed.entries.pop().flatten()),
        Err(Error::Conflict { .. }) => Ok(None),
        Err(error) => call.store_failed(error),
    }
}

fn rehearse(call: &Call, live: &Value, step: Step, options: &DeleteOptions) -> Answer {
    match step {
        Step::Wait => shown(call, live, options),
        Step::Mark(object) => shown(call, &object, options),
        Step::MarkAndRemove(object) => gone(call, &object),
        Step::Remove => gone(call, live),
    }
}

/// The answer for an object that is still there.
fn shown(call: &Call, object: &Value, options: &DeleteOptions) -> Answer {
    let code = if options.says_accepted() {
        StatusCode::ACCEPTED
    } else {
        StatusCode::OK
    };
    let object: Bytes = object::encode_unstored(object);
    Answer::Object { code, kind: call.kind.clone(), object }
}

/// The answer for an object that is gone.
fn gone(call: &Call, object: &Value) -> Answer {
    if call.kind.strategy.returns_deleted {
        let object = object::encode_unstored(object);
        return Answer::Object { code: StatusCode::OK, kind: call.kind.clone(), object };
    }
    let uid = object::text(object, "uid");
    Answer::Done(Status::deleted(&call.kind.resource, object::name(object), uid))
}
