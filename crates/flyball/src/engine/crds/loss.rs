//! Whether a new definition would lose what is stored: a field that its schema no longer has is pruned when an object is read.

use crate::{Error, Result};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    CustomResourceDefinition, JSONSchemaProps, JSONSchemaPropsOrArray, JSONSchemaPropsOrBool,
};
use kube::{
    Api, Client, ResourceExt,
    api::{ApiResource, DynamicObject, GroupVersionKind, ListParams},
};
use serde_json::Value;
use std::fmt;

const PAGE: u32 = 500;

/// The path of a field, through all items of lists and all values of maps.
#[derive(Clone, Debug, Default, PartialEq)]
struct Path(Vec<Segment>);

#[derive(Clone, Debug, PartialEq)]
enum Segment {
    Field(String),
    Items,
    Values,
}

/// A stored object has a field that the new definition does not have.
#[derive(Debug, thiserror::Error)]
#[error(
    "CustomResourceDefinition {definition}: {field} of {version} is not in {into} of this operator, and {object} has it: its value would \
     be lost; keep the field, convert it (`Operator::converts`), or remove it from all objects"
)]
struct LossError {
    definition: String,
    version: String,
    into: String,
    field: String,
    object: String,
}

/// Refuses a definition that would lose a field of a stored object. Objects are listed only if a field is missing at all.
pub(super) async fn check(
    client: &Client,
    current: &CustomResourceDefinition,
    ours: &CustomResourceDefinition,
) -> Result<()> {
    let stored = current.status.iter().flat_map(|status| status.stored_versions.iter().flatten());
    for version in stored {
        let Some(before) = schema(current, version) else {
            continue;
        };
        for into in read_as(ours, version) {
            let Some(after) = schema(ours, into) else {
                continue;
            };
            let mut removed = Vec::new();
            compare(&Path::default(), before, after, &mut removed);
            if let Some((object, field)) = first_loss(client, current, version, &removed).await? {
                return Err(Error::permanent(LossError {
                    definition: current.name_any(),
                    version: version.clone(),
                    into: into.into(),
                    field,
                    object,
                }));
            }
        }
    }
    Ok(())
}

/// The versions by whose schemas an object is pruned that is stored in a version: its own, and, unless a webhook converts it, the
/// one that it is stored in next.
fn read_as<'a>(ours: &'a CustomResourceDefinition, version: &'a str) -> Vec<&'a str> {
    let conversion = ours.spec.conversion.as_ref();
    let is_converted = conversion.is_some_and(|conversion| conversion.strategy == "Webhook");
    let next = ours.spec.versions.iter().find(|known| known.storage).map(|known| &*known.name);
    let next = next.filter(|next| !is_converted && *next != version);
    std::iter::once(version).chain(next).collect()
}

fn schema<'a>(crd: &'a CustomResourceDefinition, version: &str) -> Option<&'a JSONSchemaProps> {
    let version = crd.spec.versions.iter().find(|known| known.name == version)?;
    version.schema.as_ref()?.open_api_v3_schema.as_ref()
}

fn compare(path: &Path, before: &JSONSchemaProps, after: &JSONSchemaProps, removed: &mut Vec<Path>) {
    if after.x_kubernetes_preserve_unknown_fields == Some(true) {
        return;
    }
    for (name, before) in before.properties.iter().flatten() {
        if path.0.is_empty() && ["apiVersion", "kind", "metadata"].contains(&name.as_str()) {
            continue;
        }
        let path = path.and(Segment::Field(name.clone()));
        let known = after.properties.as_ref().and_then(|properties| properties.get(name));
        match known.or_else(|| values(after)) {
            Some(after) => compare(&path, before, after, removed),
            None => removed.push(path),
        }
    }
    if let (Some(before), Some(after)) = (values(before), values(after)) {
        compare(&path.and(Segment::Values), before, after, removed);
    }
    if let (Some(before), Some(after)) = (items(before), items(after)) {
        compare(&path.and(Segment::Items), before, after, removed);
    }
}

fn values(schema: &JSONSchemaProps) -> Option<&JSONSchemaProps> {
    match schema.additional_properties.as_ref()? {
        JSONSchemaPropsOrBool::Schema(schema) => Some(schema),
        JSONSchemaPropsOrBool::Bool(_) => None,
    }
}

fn items(schema: &JSONSchemaProps) -> Option<&JSONSchemaProps> {
    match schema.items.as_ref()? {
        JSONSchemaPropsOrArray::Schema(schema) => Some(schema),
        JSONSchemaPropsOrArray::Schemas(_) => None,
    }
}

/// The first object that has one of the fields, and which.
async fn first_loss(
    client: &Client,
    crd: &CustomResourceDefinition,
    version: &str,
    removed: &[Path],
) -> Result<Option<(String, String)>> {
    if removed.is_empty() {
        return Ok(None);
    }
    let kind = GroupVersionKind::gvk(&crd.spec.group, version, &crd.spec.names.kind);
    let resource = ApiResource::from_gvk_with_plural(&kind, &crd.spec.names.plural);
    let api: Api<DynamicObject> = Api::all_with(client.clone(), &resource);
    let mut params = ListParams::default().limit(PAGE);
    loop {
        let page = api.list(&params).await?;
        for object in &page.items {
            let value = serde_json::to_value(object)?;
            if let Some(path) = removed.iter().find(|path| path.is_in(&value)) {
                let place = object.namespace().map(|namespace| format!("{namespace}/")).unwrap_or_default();
                return Ok(Some((format!("{} {place}{}", crd.spec.names.kind, object.name_any()), path.to_string())));
            }
        }
        match page.metadata.continue_.filter(|token| !token.is_empty()) {
            Some(token) => params.continue_token = Some(token),
            None => return Ok(None),
        }
    }
}

impl Path {
    fn and(&self, segment: Segment) -> Path {
        let segments = self.0.iter().cloned().chain([segment]);
        Path(segments.collect())
    }

    fn is_in(&self, value: &Value) -> bool {
        fn is_in(segments: &[Segment], value: &Value) -> bool {
            match (segments.split_first(), value) {
                (None, value) => !value.is_null(),
                (Some((Segment::Field(name), rest)), value) => value.get(name).is_some_and(|value| is_in(rest, value)),
                (Some((Segment::Items, rest)), Value::Array(items)) => items.iter().any(|item| is_in(rest, item)),
                (Some((Segment::Values, rest)), Value::Object(fields)) => {
                    fields.values().any(|value| is_in(rest, value))
                }
                _ => false,
            }
        }
        is_in(&self.0, value)
    }
}

impl fmt::Display for Path {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (count, segment) in self.0.iter().enumerate() {
            match segment {
                Segment::Field(name) if count == 0 => f.write_str(name)?,
                Segment::Field(name) => write!(f, ".{name}")?,
                Segment::Items => f.write_str("[]")?,
                Segment::Values => f.write_str("{}")?,
            }
        }
        Ok(())
    }
}
