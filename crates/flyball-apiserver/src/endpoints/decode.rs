//! Decodes the body of a request as an object of the kind that the path names.

mod custom;

use crate::encoding::negotiate::{self, Encoding};
use crate::registry::{Kind, object};
use crate::request::context::ResourceRequest;
use crate::request::options::{FieldValidation, WriteOptions};
use crate::status::{Result, Status};
use flyball_schema::decode::{self, DecodeError, Decoded, Document, TypeMeta};
use flyball_schema::protobuf::{self, Envelope};
use flyball_schema::schema::Node;
use serde_json::Value;

/// Decodes the body as an object of the request's kind. `fieldValidation` decides about unknown and duplicate fields.
pub(crate) fn object(request: &ResourceRequest, options: &WriteOptions) -> Result<Value> {
    let resource = &request.kind.resource;
    match (&request.kind.custom, request.kind.node()) {
        (None, Some(node)) => as_type(request, node, &resource.kind, &resource.api_version(), options.field_validation),
        _ => custom::object(request, options).inspect(|object| request.audit_request(object)),
    }
}

/// Decodes the body as an object of a built-in type.
pub(crate) fn as_type(
    request: &ResourceRequest,
    node: Node<'_>,
    own_kind: &str,
    own_version: &str,
    validation: FieldValidation,
) -> Result<Value> {
    let given = Parsed::read(request, own_kind)?;
    let meta = given.type_meta().map_err(|error| unrecognized(request, own_kind, error))?;
    let kind = if meta.kind.is_empty() {
        own_kind.to_owned()
    } else {
        meta.kind
    };
    let api_version = if meta.api_version.is_empty() {
        own_version.to_owned()
    } else {
        meta.api_version
    };
    let unfit = |why: String| unfit(own_kind, &kind, &api_version, why);
    if kind != own_kind || api_version != own_version {
        return Err(wrong_kind(request, (own_kind, own_version), (&kind, &api_version)));
    }
    let Decoded { mut value, complaints } = given.typed(node).map_err(unfit)?;
    value["apiVersion"] = own_version.into();
    value["kind"] = own_kind.into();
    request.audit_request(&value);
    report(request, validation, complaints, unfit)?;
    Ok(value)
}

/// A body that is parsed, but not yet decoded as a type.
enum Parsed<'a> {
    Text(Document),
    Protobuf(Envelope<'a>),
}

impl<'a> Parsed<'a> {
    fn read(request: &'a ResourceRequest, own_kind: &str) -> Result<Parsed<'a>> {
        match negotiate::body(&request.headers)? {
            Encoding::Protobuf => Envelope::read(&request.body)
                .map(Parsed::Protobuf)
                .map_err(|error| unrecognized(request, own_kind, error)),
            _ => document(request, own_kind).map(Parsed::Text),
        }
    }

    fn type_meta(&self) -> Result<TypeMeta, DecodeError> {
        match self {
            Parsed::Text(document) => document.type_meta(),
            Parsed::Protobuf(envelope) => Ok(TypeMeta {
                api_version: envelope.api_version.clone(),
                kind: envelope.kind.clone(),
            }),
        }
    }

    fn typed(self, node: Node<'_>) -> Result<Decoded, String> {
        match self {
            Parsed::Text(document) => document.typed(node).map_err(|error| error.to_string()),
            Parsed::Protobuf(envelope) => match protobuf::decode(envelope.raw, node) {
                Ok(value) => Ok(Decoded { value, complaints: Vec::new() }),
                Err(error) => Err(error.to_string()),
            },
        }
    }
}

fn document(request: &ResourceRequest, own_kind: &str) -> Result<Document> {
    let document = match negotiate::body(&request.headers)? {
        Encoding::Json => Document::json(&request.body),
        Encoding::Yaml => Document::yaml(&request.body),
        // kube-apiserver closes the connection.
        Encoding::Protobuf => return Err(Status::unsupported_media_type(&negotiate::OBJECTS[..2])),
    };
    document.map_err(|error| unrecognized(request, own_kind, error))
}

fn unrecognized(request: &ResourceRequest, own_kind: &str, why: impl std::fmt::Display) -> Status {
    let summary = decode::summary(&request.body);
    Status::bad_request(format!(
        "the object provided is unrecognized (must be of type {own_kind}): {why} ({summary})"
    ))
}

fn unfit(own_kind: &str, given: &str, api_version: &str, why: String) -> Status {
    let version = api_version.rsplit('/').next().unwrap_or(api_version);
    Status::bad_request(format!("{given} in version {version:?} cannot be handled as a {own_kind}: {why}"))
}

/// The error of Go's scheme for an object of another kind: the kind is not registered, or cannot be converted.
fn wrong_kind(request: &ResourceRequest, own: (&str, &str), given: (&str, &str)) -> Status {
    let (group, version) = given.1.rsplit_once('/').unwrap_or(("", given.1));
    let served = request.server.registry().served();
    let known = served.kinds().filter(|kind| kind.custom.is_none()).any(|kind| {
        let its = &kind.resource;
        *its.group == *group && *its.version == *version && *its.kind == *given.0
    });
    let why = match known {
        true if given.0 == own.0 => {
            let why = format!(
                "the API version in the data ({}) does not match the expected API version ({})",
                given.1, own.1
            );
            return Status::bad_request(why);
        }
        true => no_conversion(own, given),
        false => {
            let (kind, version) = given;
            format!("no kind {kind:?} is registered for version {version:?} in scheme \"pkg/runtime/scheme.go:111\"")
        }
    };
    unfit(own.0, given.0, given.1, why)
}

/// The message of Go's scheme for a registered kind that it cannot convert.
fn no_conversion(own: (&str, &str), given: (&str, &str)) -> String {
    let version = given.1.rsplit('/').next().unwrap_or_default();
    let internal = own
        .1
        .rsplit_once('/')
        .map_or("core", |(group, _)| group.split('.').next().unwrap_or(group));
    format!("converting ({version}.{}) to ({internal}.{}): unknown conversion", given.0, own.0)
}

/// Coerces a value to a kind: removes unknown fields, and returns a message for each.
pub(crate) fn value(kind: &Kind, mut value: Value) -> Result<(Value, Vec<String>), String> {
    let (own_kind, own_version) = (&*kind.resource.kind, kind.resource.api_version());
    match (&kind.custom, kind.node()) {
        (None, Some(node)) => {
            let given = (text(&value["kind"]), text(&value["apiVersion"]));
            if given.0 != own_kind || given.1 != own_version {
                return Err(no_conversion((own_kind, &own_version), (&given.0, &given.1)));
            }
            let unknown = decode::coerce(&mut value, node).map_err(|error| error.to_string())?;
            value["apiVersion"] = own_version.into();
            value["kind"] = own_kind.into();
            Ok((value, unknown))
        }
        _ => custom::value(kind, value),
    }
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

/// Decodes the body of a merge patch; returns also the violations of strict decoding.
pub(crate) fn merge_patch(body: &[u8]) -> Result<(Value, Vec<String>)> {
    object_patch(body, |why| Status::bad_request(format!("error decoding patch: {why}")))
}

/// Decodes the body of a strategic merge patch; returns also the violations of strict decoding.
pub(crate) fn strategic_patch(body: &[u8]) -> Result<(Value, Vec<String>)> {
    object_patch(body, Status::bad_request::<String>)
}

fn object_patch(body: &[u8], refused: impl Fn(String) -> Status) -> Result<(Value, Vec<String>)> {
    let decoded = Document::json(body).and_then(Document::untyped).map_err(|error| match error {
        DecodeError::Json(why) | DecodeError::Yaml(why) | DecodeError::Type(why) => refused(why),
    })?;
    let found = match &decoded.value {
        Value::Object(_) | Value::Null => return Ok((decoded.value, decoded.complaints)),
        Value::Array(_) => "array",
        Value::String(_) => "string",
        Value::Number(_) => "number",
        Value::Bool(_) => "bool",
    };
    Err(refused(format!(
        "json: cannot unmarshal {found} into Go value of type map[string]interface {{}}"
    )))
}

/// Decodes the configuration in the body of an apply; returns also the violations of strict decoding.
pub(crate) fn configuration(request: &ResourceRequest) -> Result<(Value, Vec<String>)> {
    let decoded = Document::yaml(&request.body).and_then(Document::untyped);
    let decoded = decoded.map_err(|error| match error {
        DecodeError::Yaml(why) => {
            Status::bad_request(format!("error decoding YAML: error converting YAML to JSON: {why}"))
        }
        error => Status::bad_request(format!("error decoding YAML: {error}")),
    })?;
    Ok((decoded.value, decoded.complaints))
}

/// Reports unknown and duplicate fields as `fieldValidation` says: as warnings, as an error, or not at all.
pub(crate) fn report(
    request: &ResourceRequest,
    validation: FieldValidation,
    complaints: Vec<String>,
    fail: impl FnOnce(String) -> Status,
) -> Result<()> {
    match validation {
        FieldValidation::Ignore => Ok(()),
        _ if complaints.is_empty() => Ok(()),
        FieldValidation::Warn => {
            complaints.into_iter().for_each(|complaint| request.warn(complaint));
            Ok(())
        }
        FieldValidation::Strict => Err(fail(format!("strict decoding error: {}", complaints.join(", ")))),
    }
}

/// Sets the namespace of the object to that of the request; refuses an object of another namespace.
// apiserver/pkg/registry/rest/meta.go, EnsureObjectNamespaceMatchesRequestNamespace
pub(crate) fn check_namespace(request: &ResourceRequest, object: &mut Value) -> Result<()> {
    let wanted = request.namespace().unwrap_or_default();
    let given = object::text(object, "namespace");
    if given == wanted {
        return Ok(());
    }
    if !given.is_empty() && !wanted.is_empty() {
        let why = "the namespace of the provided object does not match the namespace sent on the request";
        return Err(Status::bad_request(why));
    }
    match wanted {
        "" => object::metadata_mut(object).remove("namespace"),
        _ => object::metadata_mut(object).insert("namespace".to_owned(), wanted.into()),
    };
    Ok(())
}

/// Refuses an object whose name is not the one in the path.
pub(crate) fn check_name(request: &ResourceRequest, object: &Value) -> Result<()> {
    let name = request.name();
    match object::name(object) {
        "" => {
            let why = "was undeterminable: name must be provided";
            Err(Status::bad_request(format!("the name of the object ({name} based on URL) {why}")))
        }
        given if given != name => {
            let why = format!("the name of the object ({given}) does not match the name on the URL ({name})");
            Err(Status::bad_request(why))
        }
        _ => Ok(()),
    }
}
