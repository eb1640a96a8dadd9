//! Who owns which field: `metadata.managedFields`, kept with every write.

use crate::endpoints::Part;
use crate::registry::Kind;
use crate::request::context::Call;
use crate::request::options::WriteOptions;
use flyball_schema::managed_fields::{self, ApplyError, Request, Version};
use flyball_schema::schema::Node;
use serde_json::Value;
use std::sync::Arc;

/// Whoever sent a request, as the owner of what it writes.
pub(crate) struct Author<'a> {
    call: &'a Call,
    part: Part,
    manager: &'a str,
    others: Vec<Arc<Kind>>,
}

impl<'a> Author<'a> {
    /// The author of a write to a part of an object.
    pub fn of(call: &'a Call, part: Part, options: &'a WriteOptions) -> Author<'a> {
        Author {
            call,
            part,
            manager: &options.manager,
            others: other_versions(call),
        }
    }

    /// Records in a new object, or in the new state of one, that it was written now.
    pub fn update(&self, live: Option<&Value>, object: &mut Value) {
        self.writer(&self.call.now()).update(live, object);
    }

    /// Merges an applied configuration now; none if it changes nothing.
    pub fn apply(&self, live: Option<&Value>, config: &Value, force: bool) -> Result<Option<Value>, ApplyError> {
        self.writer(&self.call.now()).apply(live, config, force)
    }

    fn writer<'w>(&'w self, now: &'w str) -> Writer<'w> {
        let Author { call, part, manager, others } = self;
        Writer { kind: &call.kind, others, part: *part, manager, now }
    }
}

/// Who writes what.
pub(crate) struct Writer<'a> {
    pub kind: &'a Kind,
    pub others: &'a [Arc<Kind>],
    pub part: Part,
    pub manager: &'a str,
    pub now: &'a str,
}

impl Writer<'_> {
    /// Records in a new object, or in the new state of one, who owns what.
    pub fn update(&self, live: Option<&Value>, object: &mut Value) {
        self.with(live, |request| managed_fields::update(request, object));
    }

    /// Merges an applied configuration; none if it changes nothing.
    pub fn apply(&self, live: Option<&Value>, config: &Value, force: bool) -> Result<Option<Value>, ApplyError> {
        self.with(live, |request| managed_fields::apply(request, config, force))
            .unwrap_or(Ok(None))
    }

    fn with<T>(&self, live: Option<&Value>, then: impl FnOnce(&Request<'_>) -> T) -> Option<T> {
        let node = self.kind.node()?;
        let api_version = self.kind.resource.api_version();
        let names: Vec<String> = self.others.iter().map(|kind| kind.resource.api_version()).collect();
        let versions: Vec<(&str, Version<'_>)> = names
            .iter()
            .zip(self.others)
            .filter_map(|(name, kind)| Some((name.as_str(), self.version(kind, kind.node()?))))
            .collect();
        Some(then(&Request {
            node,
            live,
            manager: self.manager,
            api_version: &api_version,
            kind: &self.kind.resource.kind,
            subresource: self.part.subresource(),
            reset: self.reset(),
            versions: &versions,
            now: self.now,
        }))
    }

    fn version<'a>(&self, kind: &Kind, node: Node<'a>) -> Version<'a> {
        match kind.custom {
            Some(_) => Version::Same(node),
            None => Version::Foreign,
        }
    }

    /// What a write to this part never changes.
    // GetResetFields in pkg/registry/*/strategy.go
    fn reset(&self) -> &'static [&'static str] {
        let kind = self.kind;
        match self.part {
            Part::Whole if kind.is("certificates.k8s.io", "certificatesigningrequests") => &["spec", "status"],
            Part::Whole | Part::Scale if kind.has_status() => &["status"],
            Part::Whole | Part::Scale => &[],
            Part::Status if kind.custom.is_some() || kind.strategy.status_keeps_metadata => &["metadata", "spec"],
            Part::Status if kind.is("apps", "deployments") => &["spec", "metadata.labels"],
            Part::Status if kind.is("", "pods") => &["spec", "metadata.deletionTimestamp", "metadata.ownerReferences"],
            Part::Status => &["spec"],
            Part::Finalize | Part::Binding => &["status"],
        }
    }
}

/// The other versions in which the objects of a call's kind are served: those that share its place in the store.
fn other_versions(call: &Call) -> Vec<Arc<Kind>> {
    let (own, place) = (&call.kind.resource, call.kind.prefix(None));
    let served = call.server.registry().served();
    let shares = |kind: &&Arc<Kind>| kind.resource.plural == own.plural && kind.prefix(None) == place;
    let is_other = |kind: &&Arc<Kind>| (&kind.resource.group, &kind.resource.version) != (&own.group, &own.version);
    served.kinds().filter(shares).filter(is_other).cloned().collect()
}
