//! Answers to reviews, decoded as Go's universal decoder does: JSON or YAML, with or without a kind.
// apimachinery/pkg/runtime/serializer

use flyball_schema::decode::Document;
use serde_json::Value;

/// Decodes an answer of a kind in a version. An answer without a kind or a version has the expected one.
///
/// # Errors
/// If the answer is no object, or one of another kind or version.
pub(crate) fn decode(body: &[u8], group: &str, version: &str, kind: &str) -> Result<Value, String> {
    let is_json = body.iter().find(|byte| !byte.is_ascii_whitespace()) == Some(&b'{');
    let document = if is_json {
        Document::json(body)
    } else {
        Document::yaml(body)
    };
    let document = document.map_err(|error| error.to_string())?;
    let meta = document.type_meta().map_err(|error| error.to_string())?;
    let expected = format!("{group}/{version}");
    let is = |given: &str, expected: &str| given.is_empty() || given == expected;
    if !is(&meta.kind, kind) || !is(&meta.api_version, &expected) {
        let known = ["v1", "v1beta1"].iter().find(|known| meta.api_version == format!("{group}/{known}"));
        return Err(match known {
            Some(known) if meta.kind == kind => {
                format!("converting ({known}.{kind}) to ({version}.{kind}): unknown conversion")
            }
            _ => {
                let (given, version) = (meta.kind, meta.api_version);
                format!(
                    "no kind {given:?} is registered for version {version:?} in scheme \"pkg/runtime/scheme.go:111\""
                )
            }
        });
    }
    let value = document.untyped().map_err(|error| error.to_string())?.value;
    match &value["response"] {
        Value::Object(_) | Value::Null => Ok(value),
        _ => Err(format!("json: cannot unmarshal response into Go struct field {kind}.response")),
    }
}
