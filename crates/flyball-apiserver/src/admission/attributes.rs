//! Admission attributes: one write as its plugins see it.
// apiserver/pkg/admission/interfaces.go, Attributes

use crate::endpoints::Subresource;
use crate::registry::object;
use crate::request::context::ResourceRequest;
use crate::request::options::{DeleteOptions, WriteOptions};
use crate::status::{Result, Status};
use flyball_store::{Entry, Expect, Op};
use serde_json::Value;

/// One write as admission plugins see it.
pub(crate) struct Attributes<'a> {
    /// The request: its user, kind, server, deadline and warnings.
    pub request: &'a ResourceRequest,
    /// The operation on the object; a PUT or an apply of an absent object is a create.
    pub operation: Operation,
    /// The subresource that is written.
    pub subresource: Subresource,
    /// The namespace of the object.
    pub namespace: Option<&'a str>,
    /// The new object, which mutating steps may change; null for a delete. A request to
    /// `scale`, `binding` or `eviction` has a Scale, Binding or Eviction here, not the object that the path names.
    pub object: Value,
    /// The object as it was; none for a create.
    pub old: Option<&'a Value>,
    /// The options of the request.
    #[expect(
        dead_code,
        reason = "for plugins that send the options on, or that have side effects"
    )]
    pub options: Options<'a>,
    requirements: Vec<Op>,
}

/// The operation on an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Operation {
    /// The object is stored for the first time.
    Create,
    /// The object gets a new state.
    Update,
    /// The object is deleted, or marked for deletion.
    Delete,
}

/// The options of a write.
#[derive(Clone, Copy)]
pub(crate) enum Options<'a> {
    /// Of a create, an update, a patch or an apply.
    Write(#[expect(dead_code)] &'a WriteOptions),
    /// Of a delete.
    Delete(#[expect(dead_code)] &'a DeleteOptions),
}

impl<'a> Attributes<'a> {
    /// The attributes of a write by a request.
    pub fn new(request: &'a ResourceRequest, operation: Operation, options: Options<'a>) -> Attributes<'a> {
        Attributes {
            request,
            operation,
            subresource: Subresource::Whole,
            namespace: request.namespace(),
            object: Value::Null,
            old: None,
            options,
            requirements: Vec::new(),
        }
    }

    /// The name in the path, or that of the object where the path has none; empty where it is still to be generated.
    pub fn name(&self) -> &str {
        match self.request.name() {
            "" => object::name(self.old.unwrap_or(&self.object)),
            name => name,
        }
    }

    /// 403 for the object.
    pub fn forbidden(&self, why: impl std::fmt::Display) -> Status {
        Status::forbidden(&self.request.kind.resource, self.name(), why)
    }

    /// Reads an entry of the store.
    pub async fn get(&self, key: String) -> Result<Option<Entry>> {
        match self.request.store().get(key).await {
            Ok(entry) => Ok(entry),
            Err(error) => self.request.store_failed(error),
        }
    }

    /// Makes the commit depend on an entry that a plugin has read: if it changes before, admission is repeated.
    pub fn require(&mut self, entry: &Entry) {
        self.requirements.push(Op::check(entry.key.clone(), Expect::Revision(entry.revision)));
    }

    /// The operations that plugins add to the commit.
    pub fn take_requirements(&mut self) -> Vec<Op> {
        std::mem::take(&mut self.requirements)
    }
}
