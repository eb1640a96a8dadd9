//! Admission attributes: one write as its plugins see it, and as webhooks and policies read it.
// apiserver/pkg/admission/interfaces.go, Attributes

use crate::admission::matching::Match;
use crate::admission::policy::PolicyReinvocation;
use crate::endpoints::{Subresource, decode};
use crate::kinds::spec::ResourceSpec;
use crate::registry::{Kind, object, strategy};
use crate::request::context::ResourceRequest;
use crate::request::options::{DeleteOptions, WriteOptions};
use crate::status::{Result, Status};
use flyball_schema::kinds;
use flyball_schema::schema::Node;
use flyball_store::{Entry, Expect, Op, Range};
use serde_json::{Value, json};
use std::borrow::Cow;
use std::collections::BTreeSet;
use std::sync::Arc;
use tokio::sync::OnceCell;

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
    pub options: Options<'a>,
    /// Whether the mutating steps run a second time, and whether they have to.
    pub reinvocation: Reinvocation,
    /// The managed fields before a webhook or a policy replaced the object, null if there were none; none if none did.
    pub managed_fields_before: Option<Value>,
    requirements: Vec<Op>,
    /// The stored Namespace of the object, once a plugin has asked for it.
    namespace_object: OnceCell<Option<Value>>,
}

/// The rounds of the mutating steps. If a webhook or a policy changes the object, all plugins run once more.
// apiserver/pkg/admission/interfaces.go, ReinvocationContext
#[derive(Default)]
pub(crate) struct Reinvocation {
    /// Whether this is the second round.
    pub is_second_round: bool,
    /// Whether a second round is necessary.
    pub is_required: bool,
    /// Which policies look at the object again.
    pub policies: PolicyReinvocation,
    /// The webhooks that were called, and are to be called again if the object changes after them.
    pub invoked: BTreeSet<String>,
    /// The webhooks that are due in the second round.
    due: BTreeSet<String>,
    /// The object as the webhooks of the first round left it.
    pub last_output: Value,
}

// apiserver/pkg/admission/plugin/webhook/mutating/reinvocationcontext.go
impl Reinvocation {
    /// The object has changed: the webhooks that were called so far are due again.
    pub fn require_invoked(&mut self) {
        self.due.append(&mut self.invoked);
    }

    /// Whether a webhook is due in the second round.
    pub fn is_due(&self, uid: &str) -> bool {
        self.due.contains(uid)
    }
}

/// The objects of a write in the version of a webhook or a policy.
pub(crate) struct Versioned<'a> {
    object: Cow<'a, Value>,
    old: Cow<'a, Value>,
}

impl Versioned<'_> {
    /// The new object; null for a delete.
    pub fn object(&self) -> &Value {
        &self.object
    }

    /// The object as it was; null for a create.
    pub fn old(&self) -> &Value {
        &self.old
    }
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

impl Operation {
    /// The operation, as rules and AdmissionReviews name it.
    pub fn name(self) -> &'static str {
        match self {
            Operation::Create => "CREATE",
            Operation::Update => "UPDATE",
            Operation::Delete => "DELETE",
        }
    }
}

/// The options of a write.
#[derive(Clone, Copy)]
pub(crate) enum Options<'a> {
    /// Of a create, an update, a patch or an apply.
    Write(&'a WriteOptions),
    /// Of a delete.
    Delete(&'a DeleteOptions),
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
            reinvocation: Reinvocation::default(),
            managed_fields_before: None,
            requirements: Vec::new(),
            namespace_object: OnceCell::new(),
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
    // apiserver/pkg/admission/errors.go, extractResourceName
    pub fn forbidden(&self, why: impl std::fmt::Display) -> Status {
        let name = match (self.name(), object::text(&self.object, "generateName")) {
            ("", "") => "Unknown",
            ("", prefix) => prefix,
            (name, _) => name,
        };
        Status::forbidden(&self.request.kind.resource, name, why)
    }

    /// Reads an entry of the store.
    pub async fn get(&self, key: String) -> Result<Option<Entry>> {
        match self.request.store().get(key).await {
            Ok(entry) => Ok(entry),
            Err(error) => self.request.store_failed(error),
        }
    }

    /// Reads the objects whose keys begin with a prefix.
    pub async fn list(&self, prefix: String) -> Result<Vec<Value>> {
        let page = self.request.store().range(Range::prefix(prefix)).await;
        let page = page.map_err(Status::store_failed)?;
        Ok(page.entries.iter().map(|entry| object::decode(&entry.value)).collect())
    }

    /// Whether the object itself is created.
    pub fn creates(&self, kind: &'static ResourceSpec) -> bool {
        self.operation == Operation::Create && self.writes(kind)
    }

    /// Whether the object itself is written, not a subresource of it.
    pub fn writes(&self, kind: &'static ResourceSpec) -> bool {
        self.subresource == Subresource::Whole && self.request.kind.is(kind)
    }

    /// Adds an operation to the commit: if its expectation does not hold any more, admission is repeated.
    pub fn commit_with(&mut self, op: Op) {
        self.requirements.push(op);
    }

    /// Makes the commit depend on an entry that a plugin has read: if it changes before, admission is repeated. An entry
    /// that is read in both rounds counts as it was in the first.
    pub fn require(&mut self, entry: &Entry) {
        if self.requirements.iter().any(|known| *known.key() == entry.key) {
            return;
        }
        self.requirements.push(Op::check(entry.key.clone(), Expect::Revision(entry.revision)));
    }

    /// The operations that plugins add to the commit.
    pub fn take_requirements(&mut self) -> Vec<Op> {
        std::mem::take(&mut self.requirements)
    }

    /// The name as webhooks and policies see it: that of the path, or of a new object; empty for each object of a
    /// collection that is deleted, and for a name that is still to be generated.
    pub fn request_name(&self) -> &str {
        match self.request.name() {
            "" => object::name(&self.object),
            name => name,
        }
    }

    /// The namespace as webhooks and policies see it: a Namespace is in itself, other cluster-scoped objects in none.
    pub fn namespace_name(&self) -> &str {
        let resource = &self.request.kind.resource;
        match self.namespace {
            Some(namespace) => namespace,
            None if resource.group.is_empty() && &*resource.plural == "namespaces" => self.request_name(),
            None => "",
        }
    }

    /// The stored Namespace of the object; none if it is absent, or if the object is in none. Read once.
    pub async fn namespace_object(&self) -> Result<Option<&Value>> {
        let read = || async {
            match self.namespace_name() {
                "" => Ok(None),
                name => Ok(self.get(format!("core/namespaces/{name}")).await?.map(|it| object::decode(&it.value))),
            }
        };
        Ok(self.namespace_object.get_or_try_init(read).await?.as_ref())
    }

    /// 404 for the namespace of the object.
    pub fn namespace_not_found(&self) -> Status {
        let served = self.request.server.registry().served();
        let kind = served.find("", "v1", "namespaces").expect("namespaces are built in");
        Status::not_found(&kind.resource, self.namespace_name())
    }

    /// Whether everything but the commit is to be done.
    pub fn is_dry_run(&self) -> bool {
        match self.options {
            Options::Write(options) => options.dry_run,
            Options::Delete(options) => options.dry_run(),
        }
    }

    /// Whether the object is of the kind of the request, and not a Scale, a Binding or an Eviction.
    pub fn has_own_object(&self) -> bool {
        matches!(self.subresource, Subresource::Whole | Subresource::Status | Subresource::Finalize)
    }

    /// The group, version and kind of the object as if the write were one of this kind: that of the subresource's object,
    /// if it has one of its own.
    pub fn kind_of(&self, kind: &Kind) -> Value {
        let resource = &kind.resource;
        let subresource = self.subresource.subresource().and_then(|name| resource.subresource(name));
        match subresource {
            Some(sub) => json!({"group": sub.group, "version": sub.version, "kind": sub.kind}),
            None => json!({"group": resource.group, "version": resource.version, "kind": resource.kind}),
        }
    }

    /// The AdmissionRequest without its uid and its objects, for a webhook or a policy that matches the write.
    // apiserver/pkg/admission/plugin/cel/condition.go, CreateAdmissionRequest
    pub fn admission_request(&self, matched: &Match) -> Value {
        let resource = |kind: &Kind| {
            let it = &kind.resource;
            json!({"group": it.group, "version": it.version, "resource": it.plural})
        };
        let own = &self.request.kind;
        let mut request = json!({
            "kind": self.kind_of(&matched.kind),
            "resource": resource(&matched.kind),
            "requestKind": self.kind_of(own),
            "requestResource": resource(own),
            "operation": self.operation.name(),
            "userInfo": self.user_info(),
            "dryRun": self.is_dry_run(),
            "options": self.options_object(),
        });
        let texts = [
            ("subResource", self.subresource.subresource().unwrap_or_default()),
            ("requestSubResource", self.subresource.subresource().unwrap_or_default()),
            ("name", self.request_name()),
            ("namespace", self.namespace_name()),
        ];
        for (field, text) in texts.into_iter().filter(|(_, text)| !text.is_empty()) {
            request[field] = text.into();
        }
        request
    }

    /// The user, as `authentication.k8s.io/v1` UserInfo.
    pub fn user_info(&self) -> Value {
        let user = &self.request.user;
        let mut info = json!({});
        if !user.name.is_empty() {
            info["username"] = user.name.as_str().into();
        }
        if !user.uid.is_empty() {
            info["uid"] = user.uid.as_str().into();
        }
        if !user.groups.is_empty() {
            info["groups"] = json!(user.groups);
        }
        if !user.extra.is_empty() {
            info["extra"] = json!(user.extra);
        }
        info
    }

    /// The options of the request as `meta.k8s.io/v1` CreateOptions, UpdateOptions or DeleteOptions.
    pub fn options_object(&self) -> Value {
        let (kind, mut options) = match (self.options, self.operation) {
            (Options::Write(options), Operation::Create) => ("CreateOptions", options.to_value()),
            (Options::Write(options), _) => ("UpdateOptions", options.to_value()),
            (Options::Delete(options), _) => ("DeleteOptions", options.to_value()),
        };
        options["kind"] = kind.into();
        options["apiVersion"] = "meta.k8s.io/v1".into();
        options
    }

    /// The objects in the version of a webhook or a policy that matches the write.
    // apiserver/pkg/admission/conversion.go, NewVersionedAttributes
    pub async fn versioned(&self, matched: &Match) -> Result<Versioned<'_>> {
        static NULL: Value = Value::Null;
        let old = self.old.unwrap_or(&NULL);
        if !self.has_own_object() || Arc::ptr_eq(&matched.kind, &self.request.kind) {
            return Ok(Versioned { object: Cow::Borrowed(&self.object), old: Cow::Borrowed(old) });
        }
        let own = &self.request.kind;
        let object = own.convert_to(&matched.kind, self.object.clone()).await?;
        let old = own.convert_to(&matched.kind, old.clone()).await?;
        Ok(Versioned { object: Cow::Owned(object), old: Cow::Owned(old) })
    }

    /// Replaces the object by one in the version of a webhook or a policy.
    pub async fn replace(&mut self, matched: &Match, object: Value) -> Result<()> {
        let managed_fields = || object::metadata(&self.object).get("managedFields").cloned().unwrap_or_default();
        self.managed_fields_before.get_or_insert_with(managed_fields);
        self.object = match !self.has_own_object() || Arc::ptr_eq(&matched.kind, &self.request.kind) {
            true => object,
            false => matched.kind.convert_to(&self.request.kind, object).await?,
        };
        Ok(())
    }

    /// Decodes and defaults an object that was patched.
    ///
    /// # Errors
    /// If it does not fit its type.
    pub fn decode_patched(&self, matched: &Match, mut object: Value) -> Result<Value, String> {
        if let Some(node) = self.own_type() {
            let typed = ["apiVersion", "kind"].map(|field| (field, object[field].clone()));
            flyball_schema::decode::coerce(&mut object, node).map_err(|error| error.to_string())?;
            typed.into_iter().for_each(|(field, value)| object[field] = value);
            return Ok(object);
        }
        let (mut object, _unknown) = decode::value(&matched.kind, object)?;
        strategy::default(&matched.kind, &mut object);
        Ok(object)
    }

    fn own_type(&self) -> Option<Node<'static>> {
        let name = match self.subresource {
            Subresource::Whole | Subresource::Status | Subresource::Finalize => return None,
            Subresource::Scale => "io.k8s.api.autoscaling.v1.Scale",
            Subresource::Binding => "io.k8s.api.core.v1.Binding",
            Subresource::Eviction => "io.k8s.api.policy.v1.Eviction",
            Subresource::Token => "io.k8s.api.authentication.v1.TokenRequest",
        };
        kinds::builtin().schema(name)
    }
}
