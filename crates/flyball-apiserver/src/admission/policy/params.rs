//! The parameters that a binding refers to.
// apiserver/pkg/admission/plugin/policy/generic/policy_dispatcher.go, CollectParams

use crate::admission::Attributes;
use crate::admission::policy::index::{ParamKind, ParamRef};
use crate::registry::{Kind, object};
use crate::status::Status;
use flyball_store::{Entry, Range};
use serde_json::Value;
use std::fmt;
use std::sync::Arc;

impl fmt::Display for ParamKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}, Kind={}", self.group, self.version, self.kind)
    }
}

/// The served kind of a policy's parameters; none if it has no parameters.
pub(super) fn resolve(attributes: &Attributes<'_>, kind: Option<&ParamKind>) -> Result<Option<Arc<Kind>>, String> {
    let Some(wanted) = kind else { return Ok(None) };
    let found = find(attributes, wanted);
    found
        .map(Some)
        .ok_or_else(|| format!("failed to find resource referenced by paramKind: '{wanted}'"))
}

/// The kind that is served under these names.
pub(super) fn find(attributes: &Attributes<'_>, wanted: &ParamKind) -> Option<Arc<Kind>> {
    let served = attributes.request.server.registry().served();
    let is_wanted =
        |kind: &&Arc<Kind>| *kind.resource.version == *wanted.version && *kind.resource.kind == *wanted.kind;
    served.group(&wanted.group)?.kinds().find(is_wanted).cloned()
}

/// The parameters of a binding: one null if it has none, nothing if there are none and that is allowed.
pub(super) async fn collect(
    attributes: &Attributes<'_>,
    kind: Option<&Kind>,
    param_ref: Option<&ParamRef>,
) -> Result<Vec<Value>, String> {
    let (Some(kind), Some(param_ref)) = (kind, param_ref) else {
        return Ok(vec![Value::Null]);
    };
    let namespace = namespace(attributes, kind, param_ref)?;
    let entries = read(attributes, kind, param_ref, namespace).await.map_err(|status| status.message)?;
    if entries.is_empty() && param_ref.denies_absence {
        return Err("no params found for policy binding with `Deny` parameterNotFoundAction".to_owned());
    }
    let converted = kind.convert_entries(&entries).await.map_err(|status| status.message)?;
    Ok(converted.iter().map(|object| object::decode(object)).collect())
}

fn namespace<'a>(
    attributes: &'a Attributes<'_>,
    kind: &Kind,
    param_ref: &'a ParamRef,
) -> Result<Option<&'a str>, String> {
    match (kind.resource.namespaced, &*param_ref.namespace, attributes.namespace_name()) {
        (false, "", _) => Ok(None),
        (false, ..) => Err("paramRef.namespace must not be provided for a cluster-scoped `paramKind`".to_owned()),
        (true, "", "") => {
            Err("cannot use namespaced paramRef in policy binding that matches cluster-scoped resources".to_owned())
        }
        (true, "", own) => Ok(Some(own)),
        (true, given, _) => Ok(Some(given)),
    }
}

async fn read(
    attributes: &Attributes<'_>,
    kind: &Kind,
    param_ref: &ParamRef,
    namespace: Option<&str>,
) -> Result<Vec<Entry>, Status> {
    let store = attributes.request.store();
    if !param_ref.name.is_empty() {
        let entry = store.get(kind.key(namespace, &param_ref.name)).await.map_err(Status::store_failed)?;
        return Ok(entry.into_iter().collect());
    }
    let Some(selector) = &param_ref.selector else {
        return Ok(Vec::new());
    };
    let page = store.range(Range::prefix(kind.prefix(namespace))).await.map_err(Status::store_failed)?;
    let is_selected = |entry: &Entry| selector.matches(object::peek(&entry.value).metadata.labels.as_ref());
    Ok(page.entries.into_iter().filter(is_selected).collect())
}
