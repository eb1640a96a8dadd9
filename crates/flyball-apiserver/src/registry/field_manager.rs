//! The field manager of a write, and what `metadata.managedFields` says after it.

use crate::endpoints::Subresource;
use crate::registry::Kind;
use crate::request::context::ResourceRequest;
use crate::request::options::WriteOptions;
use flyball_schema::managed_fields::{self, ApplyError, Request, Version};
use flyball_schema::schema::Node;
use serde_json::Value;
use std::sync::Arc;

/// The field manager of a write, and the versions in which fields may be owned.
pub(crate) struct FieldManager<'a> {
    /// The kind of the object.
    pub kind: &'a Kind,
    /// The other versions of the kind.
    pub others: Vec<Arc<Kind>>,
    /// The subresource that is written.
    pub subresource: Subresource,
    /// The manager's name.
    pub manager: &'a str,
    /// The time of the write.
    pub now: String,
}

impl<'a> FieldManager<'a> {
    /// The field manager of a request.
    pub fn of(request: &'a ResourceRequest, subresource: Subresource, options: &'a WriteOptions) -> FieldManager<'a> {
        FieldManager {
            kind: &request.kind,
            others: other_versions(request),
            subresource,
            manager: &options.manager,
            now: request.now(),
        }
    }

    /// Records in `metadata.managedFields` which fields of a new object, or of the new state of one, the manager owns.
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
            .zip(&self.others)
            .filter_map(|(name, kind)| Some((name.as_str(), self.version(kind, kind.node()?))))
            .collect();
        Some(then(&Request {
            node,
            live,
            manager: self.manager,
            api_version: &api_version,
            kind: &self.kind.resource.kind,
            subresource: self.subresource.subresource(),
            reset: self.reset(),
            versions: &versions,
            now: &self.now,
        }))
    }

    fn version<'n>(&self, kind: &Kind, node: Node<'n>) -> Version<'n> {
        match kind.custom {
            Some(_) => Version::Same(node),
            None => Version::Foreign,
        }
    }

    /// Fields that a write to this subresource never changes.
    // GetResetFields in pkg/registry/*/strategy.go
    fn reset(&self) -> &'static [&'static str] {
        match self.subresource {
            Subresource::Whole | Subresource::Scale if self.kind.custom.is_some() && !self.kind.has_status() => &[],
            Subresource::Whole | Subresource::Scale => self.kind.spec.resets,
            Subresource::Status => self.kind.spec.status.as_ref().map_or(&[], |strategy| strategy.resets),
            Subresource::Finalize | Subresource::Binding | Subresource::Eviction | Subresource::Token => &["status"],
        }
    }
}

/// The other versions in which the objects of a request's kind are served: those that share its keys in the store.
fn other_versions(request: &ResourceRequest) -> Vec<Arc<Kind>> {
    let (own, place) = (&request.kind.resource, request.kind.prefix(None));
    let served = request.server.registry().served();
    let shares = |kind: &&Arc<Kind>| kind.resource.plural == own.plural && kind.prefix(None) == place;
    let is_other = |kind: &&Arc<Kind>| (&kind.resource.group, &kind.resource.version) != (&own.group, &own.version);
    served.kinds().filter(shares).filter(is_other).cloned().collect()
}
