//! From the body of a request to an object of the kind that the path names.

use crate::call::Call;
use crate::negotiate::{self, Encoding};
use crate::object;
use crate::options::FieldValidation;
use crate::registry::Kind;
use crate::status::{Result, Status};
use flyball_schema::decode::{self, DecodeError, Decoded, Document};
use serde_json::Value;

/// Decodes the body as an object of the call's kind, and deals with unknown and duplicate fields.
pub(super) fn object(call: &Call, validation: FieldValidation) -> Result<Value> {
    let resource = &call.kind.resource;
    let unrecognized = |error: DecodeError| {
        let summary = decode::summary(&call.body);
        let why = format!(
            "the object provided is unrecognized (must be of type {}): {error} ({summary})",
            resource.kind
        );
        Status::bad_request(why)
    };
    let document = match negotiate::body(&call.headers)? {
        Encoding::Json => Document::json(&call.body),
        Encoding::Yaml => Document::yaml(&call.body),
    };
    let document = document.map_err(unrecognized)?;
    let meta = document.type_meta().map_err(unrecognized)?;
    let given = |text: String, otherwise: String| if text.is_empty() { otherwise } else { text };
    let kind = given(meta.kind, resource.kind.to_string());
    let api_version = given(meta.api_version, resource.api_version());
    let unfit = |why: String| unfit(&call.kind, &kind, &api_version, why);
    check_kind(call, &kind, &api_version)?;
    let Decoded { mut value, complaints } = typed(&call.kind, document).map_err(&unfit)?;
    value["apiVersion"] = api_version.clone().into();
    value["kind"] = kind.clone().into();
    report(call, validation, complaints, unfit)?;
    Ok(value)
}

fn unfit(kind: &Kind, given: &str, api_version: &str, why: String) -> Status {
    let version = api_version.rsplit('/').next().unwrap_or(api_version);
    Status::bad_request(format!(
        "{given} in version {version:?} cannot be handled as a {}: {why}",
        kind.resource.kind
    ))
}

/// Refuses an object of another kind.
// The words for built-in kinds are those of a scheme that does not know the kind, or cannot convert it.
fn check_kind(call: &Call, given: &str, api_version: &str) -> Result<()> {
    let resource = &call.kind.resource;
    let expected = resource.api_version();
    if given == &*resource.kind && api_version == expected {
        return Ok(());
    }
    if call.kind.custom.is_some() {
        return Err(match given == &*resource.kind {
            true => Status::bad_request(format!(
                "the API version in the data ({api_version}) does not match the expected API version ({expected})"
            )),
            false => unfit(&call.kind, given, api_version, "wrong kind".into()),
        });
    }
    let (group, version) = api_version.rsplit_once('/').unwrap_or(("", api_version));
    let served = call.server.registry().served();
    let known = served.kinds().filter(|kind| kind.custom.is_none()).any(|kind| {
        let its = &kind.resource;
        &*its.group == group && &*its.version == version && &*its.kind == given
    });
    let why = match known {
        true if given == &*resource.kind => {
            format!("the API version in the data ({api_version}) does not match the expected API version ({expected})")
        }
        true => "unknown conversion".to_owned(),
        false => format!(
            "no kind {given:?} is registered for version {api_version:?} in scheme \"pkg/runtime/scheme.go:111\""
        ),
    };
    Err(unfit(&call.kind, given, api_version, why))
}

/// A document as a value of a kind, with what is unknown gone and named.
fn typed(kind: &Kind, document: Document) -> Result<Decoded, String> {
    match (kind.node(), &kind.custom) {
        (Some(node), None) => document.typed(node).map_err(|error| error.to_string()),
        _ => {
            let mut decoded = document.untyped().map_err(|error| error.to_string())?;
            decoded.complaints.splice(..0, prune(kind, &mut decoded.value));
            Ok(decoded)
        }
    }
}

/// A value as a value of a kind, with what is unknown gone and named.
pub(super) fn value(kind: &Kind, mut value: Value) -> Result<(Value, Vec<String>), String> {
    let unknown = match (kind.node(), &kind.custom) {
        (Some(node), None) => {
            let (api_version, name) = (value["apiVersion"].clone(), value["kind"].clone());
            let unknown = decode::coerce(&mut value, node).map_err(|error| error.to_string())?;
            value["apiVersion"] = api_version;
            value["kind"] = name;
            unknown
        }
        _ => prune(kind, &mut value),
    };
    Ok((value, unknown))
}

fn prune(kind: &Kind, value: &mut Value) -> Vec<String> {
    let Some(node) = kind.node() else { return Vec::new() };
    let unknown = flyball_schema::prune::prune(node, value);
    unknown.into_iter().map(|path| format!("unknown field {path:?}")).collect()
}

/// The body as a value of no particular type, and what strictness has against it.
pub(super) fn untyped(body: &[u8], _validation: FieldValidation) -> Result<(Value, Vec<String>)> {
    let decoded = Document::json(body).and_then(Document::untyped);
    let decoded = decoded.map_err(|error| Status::bad_request(format!("error decoding patch: {error}")))?;
    Ok((decoded.value, decoded.complaints))
}

/// The configuration in the body of an apply, and what strictness has against it.
pub(super) fn configuration(call: &Call) -> Result<(Value, Vec<String>)> {
    let decoded = Document::yaml(&call.body).and_then(Document::untyped);
    let decoded = decoded.map_err(|error| Status::bad_request(format!("error decoding YAML: {error}")))?;
    Ok((decoded.value, decoded.complaints))
}

/// Warns of unknown and duplicate fields, or fails because of them, as the client wishes.
pub(super) fn report(
    call: &Call,
    validation: FieldValidation,
    complaints: Vec<String>,
    fail: impl FnOnce(String) -> Status,
) -> Result<()> {
    match validation {
        FieldValidation::Ignore => Ok(()),
        _ if complaints.is_empty() => Ok(()),
        FieldValidation::Warn => {
            complaints.into_iter().for_each(|complaint| call.warn(complaint));
            Ok(())
        }
        FieldValidation::Strict => Err(fail(format!("strict decoding error: {}", complaints.join(", ")))),
    }
}

/// Gives the object the namespace of the request, and refuses another.
// apiserver/pkg/registry/rest/meta.go, EnsureObjectNamespaceMatchesRequestNamespace
pub(super) fn check_namespace(call: &Call, object: &mut Value) -> Result<()> {
    let wanted = call.namespace().unwrap_or_default();
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

/// Refuses an object of another name than the path has.
pub(super) fn check_name(call: &Call, object: &Value) -> Result<()> {
    let name = call.name();
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
