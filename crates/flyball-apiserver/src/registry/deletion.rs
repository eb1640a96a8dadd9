//! Deletion of one object: removed at once, or marked and kept until its finalizers and its grace period permit it.
// apiserver/pkg/registry/generic/registry/store.go, Delete

mod plan;
mod preconditions;

use crate::admission::{self, Attributes, Operation, Options};
use crate::crd;
use crate::kinds::spec::Allocation;
use crate::registry::generic::{Tries, after_commit};
use crate::registry::{Kind, object, service_allocator};
use crate::request::context::ResourceRequest;
use crate::request::options::DeleteOptions;
use crate::response::ApiResponse;
use crate::server::ApiServer;
use crate::status::{Result, Status};
use flyball_store::{Entry, Error, Expect, Op};
use http::StatusCode;
use plan::DeletePlan;
use serde_json::Value;
use std::sync::Arc;

/// A delete by a request.
#[derive(Clone, Copy)]
pub(crate) struct Delete<'a> {
    /// The request.
    pub request: &'a ResourceRequest,
    /// Its options.
    pub options: &'a DeleteOptions,
    /// Whether admission plugins have admitted the request already, as the create of another object.
    pub is_admitted: bool,
}

impl<'a> Delete<'a> {
    /// A delete that admission sees.
    pub fn new(request: &'a ResourceRequest, options: &'a DeleteOptions) -> Delete<'a> {
        Delete { request, options, is_admitted: false }
    }

    /// Deletes the object of a name; repeated while other requests interfere.
    pub async fn delete(&self, namespace: Option<&str>, name: &str) -> Result<ApiResponse> {
        let request = self.request;
        let key = request.kind.key(namespace, name);
        let mut tries = Tries::new(request, "delete");
        loop {
            let entry = match request.store().get(&key).await {
                Ok(Some(entry)) => entry,
                Ok(None) => return Err(Status::not_found(&request.kind.resource, name)),
                Err(error) => return request.store_failed(error),
            };
            if let Some(response) = self.try_delete(&entry, namespace, Vec::new()).await? {
                return Ok(response);
            }
            tries.next()?;
        }
    }

    /// Refuses an object that does not meet the preconditions.
    pub fn check(&self, live: &Value) -> Result<()> {
        preconditions::check(&self.request.kind, live, self.options)
    }

    /// Deletes an object that has been read, and commits other operations with it; none if the object, or what those
    /// operations expect, has changed.
    pub async fn try_delete(
        &self,
        entry: &Entry,
        namespace: Option<&str>,
        with: Vec<Op>,
    ) -> Result<Option<ApiResponse>> {
        let Delete { request, options, .. } = *self;
        let kind = &request.kind;
        let live = kind.decode_from_storage(&entry.value, entry.revision).await?;
        self.check(&live)?;
        let required = self.admit(&live, namespace).await?;
        let with = required.into_iter().chain(with).collect();
        let plan = plan::plan(kind, &live, options, request.server.clock().now());
        if options.dry_run() {
            return Ok(Some(plan.preview(live).response(kind, options)));
        }
        let name = object::name(&live).to_owned();
        let Some(result) = execute(&request.server, kind, entry, live, plan, with).await? else {
            return Ok(None);
        };
        after_commit(request, &name, result.revision()).await;
        Ok(Some(result.response(kind, options)))
    }

    /// Runs admission; returns the operations that plugins add to the commit.
    async fn admit(&self, live: &Value, namespace: Option<&str>) -> Result<Vec<Op>> {
        if self.is_admitted {
            return Ok(Vec::new());
        }
        let mut attributes = Attributes::new(self.request, Operation::Delete, Options::Delete(self.options));
        attributes.namespace = namespace;
        attributes.old = Some(live);
        admission::admit(&mut attributes).await?;
        admission::validate(&mut attributes).await?;
        Ok(attributes.take_requirements())
    }
}

/// Deletes an object without a request: no admission, no preconditions.
pub(crate) async fn purge(server: &ApiServer, kind: &Arc<Kind>, entry: Entry) -> Result<()> {
    let mut next = Some(entry);
    while let Some(entry) = next {
        let live = kind.decode_from_storage(&entry.value, entry.revision).await?;
        let plan = plan::plan(kind, &live, &DeleteOptions::default(), server.clock().now());
        if execute(server, kind, &entry, live, plan, Vec::new()).await?.is_some() {
            return Ok(());
        }
        next = server.store().get(&entry.key).await.map_err(Status::store_failed)?;
    }
    Ok(())
}

/// An object after its deletion.
enum DeleteResult {
    /// The object is still stored.
    Pending(Value),
    /// The object is removed; this was its last state.
    Deleted(Value),
}

/// Executes a plan, and commits other operations with it; none after a conflict.
async fn execute(
    server: &ApiServer,
    kind: &Kind,
    entry: &Entry,
    live: Value,
    plan: DeletePlan,
    with: Vec<Op>,
) -> Result<Option<DeleteResult>> {
    let put = async |object: Value| {
        let object = kind.encode_for_storage(object).await?;
        Ok::<_, Status>(Op::put(entry.key.clone(), object, Expect::Revision(entry.revision)))
    };
    let shown = async |entry: Entry| kind.decode_from_storage(&entry.value, entry.revision).await;
    let removed = match plan {
        DeletePlan::Wait if with.is_empty() => return Ok(Some(DeleteResult::Pending(live))),
        DeletePlan::Wait => {
            let check = Op::check(entry.key.clone(), Expect::Revision(entry.revision));
            let committed = commit(server, kind, check, with).await?;
            return Ok(committed.map(|_| DeleteResult::Pending(live)));
        }
        DeletePlan::Mark(object) => {
            return match commit(server, kind, put(object).await?, with).await?.flatten() {
                Some(marked) => Ok(Some(DeleteResult::Pending(shown(marked).await?))),
                None => Ok(None),
            };
        }
        DeletePlan::MarkAndRemove(object) => match commit(server, kind, put(object).await?, with).await?.flatten() {
            Some(marked) => remove(server, kind, &marked, &live, Vec::new()).await?,
            None => None,
        },
        DeletePlan::Remove => remove(server, kind, entry, &live, with).await?,
    };
    match removed {
        Some(entry) => Ok(Some(DeleteResult::Deleted(shown(entry).await?))),
        None => Ok(None),
    }
}

async fn remove(
    server: &ApiServer,
    kind: &Kind,
    entry: &Entry,
    live: &Value,
    mut with: Vec<Op>,
) -> Result<Option<Entry>> {
    match kind.spec.allocation {
        Some(Allocation::Service) => with.extend(service_allocator::ops(None, Some(live))),
        Some(Allocation::Namespace) => with.push(admission::forget_quotas(object::name(live))),
        None => {}
    }
    let delete = Op::delete(entry.key.clone(), Expect::Revision(entry.revision));
    Ok(commit(server, kind, delete, with).await?.flatten())
}

/// Commits an operation together with others; returns its entry, or none after a conflict.
async fn commit(server: &ApiServer, kind: &Kind, op: Op, with: Vec<Op>) -> Result<Option<Option<Entry>>> {
    let depends_on = matches!(op, Op::Put { .. }).then(|| crd::require_definition(kind)).flatten();
    let ops = std::iter::once(op).chain(with).chain(depends_on).collect();
    match server.store().commit(ops).await {
        Ok(committed) => Ok(Some(committed.entries.into_iter().next().flatten())),
        Err(Error::Conflict { key, .. }) => {
            crd::follow_definition(server, kind, &key).await?;
            Ok(None)
        }
        Err(error) => Err(Status::store_failed(error)),
    }
}

impl DeletePlan {
    /// The result of the plan, for a dry run.
    fn preview(self, live: Value) -> DeleteResult {
        match self {
            DeletePlan::Wait => DeleteResult::Pending(live),
            DeletePlan::Mark(object) => DeleteResult::Pending(object),
            DeletePlan::MarkAndRemove(object) => DeleteResult::Deleted(object),
            DeletePlan::Remove => DeleteResult::Deleted(live),
        }
    }
}

impl DeleteResult {
    /// The revision at which the object was marked or removed.
    fn revision(&self) -> u64 {
        let (DeleteResult::Pending(object) | DeleteResult::Deleted(object)) = self;
        object::text(object, "resourceVersion").parse().unwrap_or_default()
    }

    fn response(self, kind: &Arc<Kind>, options: &DeleteOptions) -> ApiResponse {
        let shown = |code: StatusCode, object: &Value| {
            let object = object::encode_unstored(object);
            ApiResponse::Object { code, kind: kind.clone(), object }
        };
        match self {
            DeleteResult::Pending(object) if options.says_accepted() => shown(StatusCode::ACCEPTED, &object),
            DeleteResult::Pending(object) => shown(StatusCode::OK, &object),
            DeleteResult::Deleted(object) if kind.spec.deletion.returns_object => shown(StatusCode::OK, &object),
            DeleteResult::Deleted(object) => {
                let (name, uid) = (object::name(&object), object::text(&object, "uid"));
                ApiResponse::Done(Status::deleted(&kind.resource, name, uid))
            }
        }
    }
}
