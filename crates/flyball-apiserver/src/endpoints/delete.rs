//! DELETE of one object or of many: removed at once, or marked until those who watch it let it go.

mod grace;
mod mark;

use crate::endpoints::filter::Filter;
use crate::endpoints::list;
use crate::registry::{Kind, object, service_allocator};
use crate::request::context::ResourceRequest;
use crate::request::options::{DeleteOptions, ListOptions};
use crate::response::ApiResponse;
use crate::server::ApiServer;
use crate::status::{Result, Status};
use crate::{admission, crd};
use bytes::Bytes;
use flyball_store::{Entry, Error, Expect, Op};
use http::StatusCode;
use serde_json::Value;
use std::sync::Arc;

/// Deletes one object.
pub(crate) async fn delete(request: &ResourceRequest) -> Result<ApiResponse> {
    let options = DeleteOptions::read(request)?;
    if request.kind.is("batch", "jobs") && options.propagation().is_none() {
        // pkg/registry/batch/job/storage/storage.go, Delete
        request.warn(
            "child pods are preserved by default when jobs are deleted; set propagationPolicy=Background to remove \
             them or set propagationPolicy=Orphan to suppress this warning",
        );
    }
    delete_one(request, request.namespace(), request.name(), &options).await
}

/// Deletes the objects that a request means, one by one, and answers with what they were.
pub(crate) async fn delete_collection(request: &ResourceRequest) -> Result<ApiResponse> {
    let list_options = ListOptions::list(&request.info.query)?;
    let filter = Filter::read(request, &list_options)?;
    let options = DeleteOptions::read(request)?;
    let found = list::find(request, &list_options, &filter).await?;
    for entry in &found.entries {
        let metadata = object::peek(&entry.value).metadata;
        let namespace = Some(&*metadata.namespace).filter(|namespace| !namespace.is_empty());
        match delete_one(request, namespace, &metadata.name, &options).await {
            Err(status) if status.code != 404 => return Err(status),
            _ => {}
        }
    }
    Ok(found.answer(request, &filter))
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

/// Deletes the object of a name.
pub(crate) async fn delete_one(
    request: &ResourceRequest,
    namespace: Option<&str>,
    name: &str,
    options: &DeleteOptions,
) -> Result<ApiResponse> {
    let key = request.kind.key(namespace, name);
    admission::delete(request, name)?;
    loop {
        let entry = match request.store().get(&key).await {
            Ok(Some(entry)) => entry,
            Ok(None) => return Err(Status::not_found(&request.kind.resource, name)),
            Err(error) => return request.store_failed(error),
        };
        let live = request.kind.present_value(&entry.value, entry.revision);
        grace::check(&request.kind, &live, options)?;
        let step = mark::step(&request.kind, &live, options, request.server.clock().now());
        if options.dry_run() {
            return Ok(rehearse(live, step).answer(&request.kind, options));
        }
        if let Some(left) = take(&request.server, &request.kind, &entry, live, step).await? {
            crd::wait_until_reconciled(request, name).await;
            return Ok(left.answer(&request.kind, options));
        }
    }
}

/// Deletes an object on nobody's request.
pub(crate) async fn purge(server: &ApiServer, kind: &Arc<Kind>, entry: Entry) -> Result<()> {
    let mut next = Some(entry);
    while let Some(entry) = next {
        let live = kind.present_value(&entry.value, entry.revision);
        let step = mark::step(kind, &live, &DeleteOptions::default(), server.clock().now());
        if take(server, kind, &entry, live, step).await?.is_some() {
            return Ok(());
        }
        next = server.store().get(&entry.key).await.map_err(Status::internal)?;
    }
    Ok(())
}

/// What is left of an object after a step.
enum Left {
    /// It is still there.
    Object(Value),
    /// It is gone; this was its last state.
    Nothing(Value),
}

/// Takes a step; none if somebody else was faster.
async fn take(server: &ApiServer, kind: &Kind, entry: &Entry, live: Value, step: Step) -> Result<Option<Left>> {
    let free = |key: Bytes, revision: u64| {
        let mut ops = match kind.is("", "services") {
            true => service_allocator::ops(None, Some(&live)),
            false => Vec::new(),
        };
        ops.insert(0, Op::delete(key, Expect::Revision(revision)));
        ops
    };
    let put = |object: Value| Op::put(entry.key.clone(), kind.stored(object), Expect::Revision(entry.revision));
    let shown = |entry: &Entry| kind.present_value(&entry.value, entry.revision);
    let removed = match step {
        Step::Wait => return Ok(Some(Left::Object(live))),
        Step::Mark(object) => {
            let marked = commit(server, vec![put(object)]).await?;
            return Ok(marked.map(|entry| Left::Object(shown(&entry))));
        }
        Step::MarkAndRemove(object) => match commit(server, vec![put(object)]).await? {
            Some(entry) => commit(server, free(entry.key, entry.revision)).await?,
            None => None,
        },
        Step::Remove => commit(server, free(entry.key.clone(), entry.revision)).await?,
    };
    Ok(removed.map(|entry| Left::Nothing(shown(&entry))))
}

async fn commit(server: &ApiServer, ops: Vec<Op>) -> Result<Option<Entry>> {
    match server.store().commit(ops).await {
        Ok(committed) => Ok(committed.entries.into_iter().next().flatten()),
        Err(Error::Conflict { .. }) => Ok(None),
        Err(error) => Err(Status::internal(error)),
    }
}

/// What a step would leave.
fn rehearse(live: Value, step: Step) -> Left {
    match step {
        Step::Wait => Left::Object(live),
        Step::Mark(object) => Left::Object(object),
        Step::MarkAndRemove(object) => Left::Nothing(object),
        Step::Remove => Left::Nothing(live),
    }
}

impl Left {
    fn answer(self, kind: &Arc<Kind>, options: &DeleteOptions) -> ApiResponse {
        let shown = |code: StatusCode, object: &Value| {
            let object = object::encode_unstored(object);
            ApiResponse::Object { code, kind: kind.clone(), object }
        };
        match self {
            Left::Object(object) if options.says_accepted() => shown(StatusCode::ACCEPTED, &object),
            Left::Object(object) => shown(StatusCode::OK, &object),
            Left::Nothing(object) if kind.strategy.returns_deleted => shown(StatusCode::OK, &object),
            Left::Nothing(object) => {
                let (name, uid) = (object::name(&object), object::text(&object, "uid"));
                ApiResponse::Done(Status::deleted(&kind.resource, name, uid))
            }
        }
    }
}
