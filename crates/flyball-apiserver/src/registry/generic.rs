//! The write path that all kinds and verbs share: transform (decode, default, field manager) → mutating admission →
//! preparation → validation → validating admission → allocation → commit → after-commit work.
// apiserver/pkg/registry/generic/registry/store.go

mod tries;

use crate::admission::{self, Attributes, Operation, Options, webhook};
use crate::authz::Access;
use crate::authz::rbac;
use crate::crd;
use crate::endpoints::Subresource;
use crate::flow_control;
use crate::kinds::spec::{Allocation, Delay};
use crate::registry::service_allocator::{self, ServiceAllocator};
use crate::registry::{object, strategy, warn};
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

pub(crate) use tries::Tries;

/// A create, an update, a patch or an apply.
#[derive(Clone, Copy)]
pub(crate) struct Write<'a> {
    /// The request.
    pub request: &'a ResourceRequest,
    /// The subresource that it writes.
    pub subresource: Subresource,
    /// Its options.
    pub options: &'a WriteOptions,
    /// What admission sees of it.
    pub admission: Admission<'a>,
}

/// What admission plugins see of a write.
#[derive(Clone, Copy)]
pub(crate) enum Admission<'a> {
    /// The object itself.
    Object,
    /// The object of a subresource, which `transform` reads and returns, too.
    Subresource(&'a dyn SubresourceObject),
    /// Nothing: they have admitted the request already, as the create of another object.
    Done,
}

/// The object of a subresource that is a part of a stored object.
pub(crate) trait SubresourceObject: Sync {
    /// The part of a stored object that clients read and validating plugins see.
    fn show(&self, stored: &Value) -> Value;

    /// The same with the managed fields of the subresource, which a write updates.
    fn show_managed(&self, stored: &Value) -> Value;

    /// The stored object with a new state of the part.
    fn merge(&self, stored: &Value, part: Value) -> Result<Value>;
}

/// The outcome of one attempt.
enum Attempt {
    /// The object is stored, or would be in a dry run.
    Done(ApiResponse),
    /// There is an object of that name.
    Exists {
        name: String,
        is_generated: bool,
        existing: Option<Box<Entry>>,
    },
    /// The commit met a change by another request.
    Conflict,
}

impl<'a> Write<'a> {
    /// A write of an object that admission sees as it is.
    pub fn new(request: &'a ResourceRequest, subresource: Subresource, options: &'a WriteOptions) -> Write<'a> {
        Write { request, subresource, options, admission: Admission::Object }
    }

    /// Stores a new object. `transform` makes it from the request, again for each attempt.
    pub async fn create(&self, transform: impl Fn() -> Result<Value>) -> Result<ApiResponse> {
        let mut tries = Tries::new(self.request, "create");
        loop {
            match self.try_create(transform()?).await? {
                Attempt::Done(response) => return Ok(response),
                Attempt::Exists { name, is_generated: true, .. } => tries.next_name(&name)?,
                Attempt::Exists { name, existing, .. } => return Err(self.exists(&name, existing.as_deref())),
                Attempt::Conflict => tries.next()?,
            }
        }
    }

    /// Gives an object the state that `transform` makes of the stored one; repeated while other requests interfere.
    /// `transform` returns none where nothing changes; without a stored object it returns the object to be created.
    pub async fn update(&self, transform: impl Fn(Option<&Value>) -> Result<Option<Value>>) -> Result<ApiResponse> {
        let request = self.request;
        let mut tries = Tries::new(request, "update");
        let key = request.key();
        loop {
            let entry = match request.store().get(&key).await {
                Ok(entry) => entry,
                Err(error) => return request.store_failed(error),
            };
            let attempt = match &entry {
                Some(entry) => self.try_update(entry, &transform).await?,
                None => {
                    let object = transform(None)?.ok_or_else(|| request.not_found())?;
                    let create = Access::of(&request.user, &request.info, "create");
                    request.server.require_access(&create).await?;
                    self.try_create(object).await?
                }
            };
            match attempt {
                Attempt::Done(response) => return Ok(response),
                Attempt::Exists { .. } | Attempt::Conflict => tries.next()?,
            }
        }
    }

    async fn try_create(&self, object: Value) -> Result<Attempt> {
        let request = self.request;
        refuse_while_terminating(request, &object)?;
        let mut attributes = Attributes::new(request, Operation::Create, Options::Write(self.options));
        attributes.subresource = self.subresource;
        attributes.object = object;
        admission::admit(&mut attributes).await?;
        let object = &mut attributes.object;
        warn::owners(request, object);
        let is_generated = strategy::generate_name(object);
        strategy::before_create(&request.kind, object, &request.now());
        strategy::validate(request, Subresource::Whole, object, None)?;
        warn::finalizers(request, object, None);
        warn::kind(request, object);
        admission::validate(&mut attributes).await?;
        allocate(request, &mut attributes.object, None).await?;
        self.commit_new(attributes, is_generated).await
    }

    async fn commit_new(&self, mut attributes: Attributes<'_>, is_generated: bool) -> Result<Attempt> {
        let request = self.request;
        let requirements = attributes.take_requirements();
        let object = attributes.object;
        let name = object::name(&object).to_owned();
        let key = request.kind.key(request.namespace(), &name);
        let exists = |name, existing| Attempt::Exists { name, is_generated, existing };
        if self.options.dry_run {
            return match request.store().get(&key).await {
                Ok(None) => Ok(self.created(self.request.kind.encode_dry_run(object).await?)),
                Ok(Some(entry)) => Ok(exists(name, Some(Box::new(entry)))),
                Err(error) => request.store_failed(error),
            };
        }
        if !object::text(&object, "resourceVersion").is_empty() {
            let why = "resourceVersion should not be set on objects to be created";
            return Err(Status::without_reason(StatusCode::INTERNAL_SERVER_ERROR, why));
        }
        let mut ops = Vec::with_capacity(2 + requirements.len());
        let allocations = allocations(request, Some(&object), None);
        ops.push(Op::put(key.clone(), request.kind.encode_for_storage(object).await?, Expect::Absent));
        ops.extend(requirements.into_iter().chain(allocations).chain(crd::require_definition(&request.kind)));
        match request.store().commit(ops).await {
            Ok(committed) => {
                let entry = committed.entries.into_iter().next().flatten().expect("a put answers with its entry");
                after_commit(request, &name, entry.revision).await;
                Ok(self.created(request.kind.convert_from_storage(&entry.value, entry.revision).await?))
            }
            Err(Error::Conflict { key: other, current, .. }) if other == key => Ok(exists(name, current)),
            Err(Error::Conflict { key, .. }) => self.conflict(&key).await,
            Err(error) => request.store_failed(error),
        }
    }

    /// The outcome of a commit that met a change of a key.
    async fn conflict(&self, key: &Bytes) -> Result<Attempt> {
        crd::follow_definition(&self.request.server, &self.request.kind, key).await?;
        Ok(Attempt::Conflict)
    }

    fn created(&self, object: Bytes) -> Attempt {
        warn::unenforced(self.request);
        let (code, kind) = (StatusCode::CREATED, self.request.kind.clone());
        Attempt::Done(ApiResponse::Object { code, kind, object })
    }

    fn exists(&self, name: &str, existing: Option<&Entry>) -> Status {
        let mut status = Status::already_exists(&self.request.kind.resource, name);
        let is_deleting = |entry: &Entry| object::peek(&entry.value).metadata.deletion_timestamp.is_some();
        if existing.is_some_and(is_deleting) {
            status.message = format!("object is being deleted: {}", status.message);
        }
        status
    }

    async fn try_update(
        &self,
        entry: &Entry,
        transform: impl Fn(Option<&Value>) -> Result<Option<Value>>,
    ) -> Result<Attempt> {
        let Write { request, subresource, .. } = *self;
        let kind = &request.kind;
        let live = kind.decode_from_storage(&entry.value, entry.revision).await?;
        let (mut object, mut requirements) = match self.admit_update(&live, &transform).await? {
            Some(admitted) => admitted,
            None => return Ok(self.updated(kind.convert_from_storage(&entry.value, entry.revision).await?)),
        };
        check_version(request, &mut object, entry)?;
        warn::owners(request, &mut object);
        strategy::before_update(kind, subresource, &mut object, &live);
        strategy::validate(request, subresource, &object, Some(&live))?;
        warn::finalizers(request, &object, Some(&live));
        warn::kind(request, &object);
        let mut object = self.validate_update(&live, object, &mut requirements).await?;
        // A write that changes nothing still moves an object to the version in which its kind is stored now.
        // k8s.io/apiserver/pkg/storage/etcd3/store.go, GuaranteedUpdate
        if managed_fields::keep_timestamps(&live, &mut object) && kind.is_in_storage_version(&entry.value) {
            return Ok(self.updated(kind.convert_from_storage(&entry.value, entry.revision).await?));
        }
        allocate(request, &mut object, Some(&live)).await?;
        self.commit_update(entry, object, &live, requirements).await
    }

    /// Makes the new state and runs mutating admission on it, or on the subresource's object; none if nothing changes.
    async fn admit_update(
        &self,
        live: &Value,
        transform: impl Fn(Option<&Value>) -> Result<Option<Value>>,
    ) -> Result<Option<(Value, Vec<Op>)>> {
        let part = match self.admission {
            Admission::Subresource(part) => Some((part, part.show_managed(live))),
            Admission::Object | Admission::Done => None,
        };
        let old = part.as_ref().map_or(live, |(_, old)| old);
        let Some(object) = transform(Some(old))? else {
            return Ok(None);
        };
        if let Admission::Done = self.admission {
            return Ok(Some((object, Vec::new())));
        }
        let mut attributes = self.update_attributes(object, old);
        admission::admit(&mut attributes).await?;
        let requirements = attributes.take_requirements();
        let object = attributes.object;
        Ok(Some(match &part {
            Some((part, _)) => (part.merge(live, object)?, requirements),
            None => (object, requirements),
        }))
    }

    /// Runs validating admission on a new state, or on the subresource's object in it.
    async fn validate_update(&self, live: &Value, object: Value, requirements: &mut Vec<Op>) -> Result<Value> {
        match self.admission {
            Admission::Done => Ok(object),
            Admission::Object => {
                let mut attributes = self.update_attributes(object, live);
                admission::validate(&mut attributes).await?;
                requirements.extend(attributes.take_requirements());
                Ok(attributes.object)
            }
            Admission::Subresource(part) => {
                let old = part.show(live);
                let mut attributes = self.update_attributes(part.show(&object), &old);
                admission::validate(&mut attributes).await?;
                requirements.extend(attributes.take_requirements());
                Ok(object)
            }
        }
    }

    fn update_attributes<'o>(&'o self, object: Value, old: &'o Value) -> Attributes<'o> {
        let mut attributes = Attributes::new(self.request, Operation::Update, Options::Write(self.options));
        attributes.subresource = self.subresource;
        attributes.object = object;
        attributes.old = Some(old);
        attributes
    }

    /// Writes the new state, or removes an object whose last finalizer went.
    async fn commit_update(
        &self,
        entry: &Entry,
        object: Value,
        live: &Value,
        requirements: Vec<Op>,
    ) -> Result<Attempt> {
        let request = self.request;
        if self.options.dry_run {
            return Ok(self.updated(self.request.kind.encode_dry_run(object).await?));
        }
        let expect = Expect::Revision(entry.revision);
        let is_last = is_last_state(request, &object, live);
        let allocations = allocations(request, Some(&object).filter(|_| !is_last), Some(live));
        let (op, last) = match is_last {
            true => (Op::delete(entry.key.clone(), expect), Some(object::encode_unstored(&object))),
            false => {
                let object = request.kind.encode_for_storage(object).await?;
                (Op::put(entry.key.clone(), object, expect), None)
            }
        };
        let depends_on = last.is_none().then(|| crd::require_definition(&request.kind)).flatten();
        let ops = std::iter::once(op).chain(requirements).chain(allocations).chain(depends_on).collect();
        let committed = match request.store().commit(ops).await {
            Ok(committed) => committed,
            Err(Error::Conflict { key, .. }) => return self.conflict(&key).await,
            Err(error) => return request.store_failed(error),
        };
        after_commit(request, request.name(), committed.revision).await;
        if let Some(last) = last {
            return Ok(self.updated(last));
        }
        let entry = committed.entries.into_iter().next().flatten().expect("a put answers with its entry");
        Ok(self.updated(request.kind.convert_from_storage(&entry.value, entry.revision).await?))
    }

    fn updated(&self, object: Bytes) -> Attempt {
        let (code, kind) = (StatusCode::OK, self.request.kind.clone());
        Attempt::Done(ApiResponse::Object { code, kind, object })
    }
}

/// Waits until the server itself acts on what is stored now: on a definition, a role, a webhook configuration or a policy.
pub(crate) async fn after_commit(request: &ResourceRequest, name: &str, revision: u64) {
    crd::wait_until_reconciled(request, name).await;
    match &*request.kind.resource.group {
        rbac::GROUP => request.server.rbac().reached(revision).await,
        webhook::GROUP => {
            request.server.admission_webhooks().reached(revision).await;
            request.server.policies().reached(revision).await;
        }
        flow_control::GROUP => {
            request.server.flow_control().reached(revision).await;
            if request.target.subresource.is_none() {
                flow_control::status::refresh(&request.server).await;
            }
        }
        _ => {}
    }
}

async fn allocate(request: &ResourceRequest, object: &mut Value, live: Option<&Value>) -> Result<()> {
    match request.kind.spec.allocation {
        Some(Allocation::Service) => ServiceAllocator::new(request.store()).allocate(object, live).await,
        Some(Allocation::Namespace) | None => Ok(()),
    }
}

fn allocations(request: &ResourceRequest, new: Option<&Value>, old: Option<&Value>) -> Vec<Op> {
    match request.kind.spec.allocation {
        Some(Allocation::Service) => service_allocator::ops(new, old),
        Some(Allocation::Namespace) if new.is_none() => vec![admission::forget_quotas(request.name())],
        Some(Allocation::Namespace) => Vec::new(),
        None => Vec::new(),
    }
}

// apiextensions-apiserver/pkg/apiserver/customresource_handler.go, serveResource
fn refuse_while_terminating(request: &ResourceRequest, object: &Value) -> Result<()> {
    if request.kind.custom.as_ref().is_some_and(|custom| custom.is_terminating()) {
        let why = "create not allowed while custom resource definition is terminating";
        return Err(Status::forbidden(&request.kind.resource, object::name(object), why));
    }
    Ok(())
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
    if given == 0 && !request.kind.spec.unconditional_update {
        let why = "must be specified for an update";
        let violation = Violation::invalid("metadata.resourceVersion", 0, why);
        let (group, plural) = (&resource.group, &resource.plural);
        return Err(Status::invalid(group, plural, request.name(), causes(vec![violation])));
    }
    if given != 0 && given != entry.revision {
        return Err(Status::modified(resource, request.name()));
    }
    object::metadata_mut(object).insert("resourceVersion".into(), entry.revision.to_string().into());
    Ok(())
}

/// Whether an update removes the last finalizer of an object that is being deleted.
// apiserver/pkg/registry/generic/registry/store.go, ShouldDeleteDuringUpdate
fn is_last_state(request: &ResourceRequest, object: &Value, live: &Value) -> bool {
    if !object::finalizers(object).is_empty() || !object::is_deleting(live) {
        return false;
    }
    let waits = |finalizers: &Value| finalizers.as_array().is_some_and(|all| !all.is_empty());
    if matches!(request.kind.spec.deletion.delay, Delay::Namespace) && waits(&object["spec"]["finalizers"]) {
        return false;
    }
    object::metadata(live)
        .get("deletionGracePeriodSeconds")
        .and_then(Value::as_i64)
        .unwrap_or(0)
        == 0
}
