//! Decodes custom resources: their metadata by its built-in type, the rest by the schema of the definition.

use crate::endpoints::decode::{document, report, text, unfit, unrecognized};
use crate::registry::{Kind, object};
use crate::request::context::ResourceRequest;
use crate::request::options::{WriteOptions, causes};
use crate::status::{Result, Status};
use flyball_schema::crd;
use flyball_schema::decode;
use flyball_schema::kinds;
use flyball_schema::prune;
use flyball_schema::violation::Violation;
use serde_json::Value;

/// Decodes the body as an object of the request's kind. `fieldValidation` decides about unknown and duplicate fields.
// apiextensions-apiserver/pkg/apiserver/customresource_handler.go, schemaCoercingDecoder
pub(crate) fn object(request: &ResourceRequest, options: &WriteOptions) -> Result<Value> {
    let own_kind = &*request.kind.resource.kind;
    let document = document(request, own_kind)?;
    let meta = document.type_meta().map_err(|error| unrecognized(request, own_kind, error))?;
    let body = String::from_utf8_lossy(&request.body);
    if meta.kind.is_empty() {
        return Err(unrecognized(request, own_kind, format!("Object 'Kind' is missing in '{body}'")));
    }
    if meta.api_version.is_empty() {
        return Err(unrecognized(request, own_kind, format!("Object 'apiVersion' is missing in '{body}'")));
    }
    let unfit = |why: String| unfit(own_kind, &meta.kind, &meta.api_version, why);
    let decoded = document.untyped().map_err(|error| unfit(error.to_string()))?;
    let expected = request.kind.resource.api_version();
    let is_expected = meta.api_version == expected;
    let (object, mut complaints) = match is_expected {
        true => value(&request.kind, decoded.value).map_err(&unfit)?,
        false => (Value::Null, all_unknown(&decoded.value)),
    };
    complaints.extend(decoded.complaints);
    report(request, options.field_validation, complaints, unfit)?;
    if !is_expected {
        let given = &meta.api_version;
        let why = format!("the API version in the data ({given}) does not match the expected API version ({expected})");
        return Err(Status::bad_request(why));
    }
    check_kind(request, &object)?;
    Ok(object)
}

/// The messages for an object of a version that the definition lacks: every field is unknown.
fn all_unknown(value: &Value) -> Vec<String> {
    let fields = value.as_object().into_iter().flatten().map(|(name, _)| name.as_str());
    let unknown = fields.filter(|name| !matches!(*name, "apiVersion" | "kind" | "metadata"));
    unknown.map(|name| format!("unknown field {name:?}")).collect()
}

// apiextensions-apiserver/pkg/registry/customresource/validator.go, validateTypeMeta
fn check_kind(request: &ResourceRequest, object: &Value) -> Result<()> {
    let resource = &request.kind.resource;
    let given = text(&object["kind"]);
    if given == *resource.kind {
        return Ok(());
    }
    let violation = Violation::invalid("kind", given.as_str(), &format!("must be {}", resource.kind));
    Err(Status::invalid(&resource.group, &given, object::name(object), causes(vec![violation])))
}

/// Coerces a value to a kind: removes unknown fields, and returns a message for each.
pub(crate) fn value(kind: &Kind, mut value: Value) -> Result<(Value, Vec<String>), String> {
    let mut unknown = match kind.node() {
        Some(node) => prune::prune(node, &mut value),
        None => Vec::new(),
    };
    if let Some(metadata) = value.get_mut("metadata") {
        let node = kinds::builtin().schema("io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta");
        let complaints =
            decode::coerce(metadata, node.expect("ObjectMeta is in the table")).map_err(|error| error.to_string())?;
        let field = |complaint: String| complaint.strip_prefix("unknown field \"").map(str::to_owned);
        unknown.extend(
            complaints
                .into_iter()
                .filter_map(field)
                .map(|rest| format!("metadata.{}", rest.trim_end_matches('"'))),
        );
    }
    let mut complaints: Vec<String> = unknown.into_iter().map(|path| format!("unknown field {path:?}")).collect();
    if let Some(node) = kind.node() {
        complaints.extend(crd::coerce_embedded(node, &mut value).map_err(|error| error.to_string())?);
    }
    Ok((value, complaints))
}
