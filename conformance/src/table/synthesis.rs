//! Makes the type of what OpenAPI leaves out, such as options that come in a query, from its protobuf message.

use super::proto::{Label, Member, Messages};
use super::{GenerateError, Result};
use serde_json::{Map, Value, json};

/// The type of a message, as OpenAPI would say it. A root is a kind, and has `apiVersion` and `kind`.
pub(super) fn synthesise(name: &str, is_root: bool, messages: &Messages) -> Result<Value> {
    let members = messages
        .get(name)
        .ok_or_else(|| GenerateError::Unexpected(format!("no type named {name}")))?;
    let mut properties = Map::new();
    if is_root {
        properties.insert("apiVersion".to_string(), json!({ "type": "string" }));
        properties.insert("kind".to_string(), json!({ "type": "string" }));
    }
    let mut required = Vec::new();
    for member in members {
        if !member.markers.iter().any(|marker| marker == "optional") {
            required.push(member.name.clone());
        }
        properties.insert(member.name.clone(), property(member)?);
    }
    Ok(json!({ "type": "object", "properties": properties, "required": required }))
}

fn property(member: &Member) -> Result<Value> {
    let one = match &*member.of {
        "string" => json!({ "type": "string" }),
        "bytes" => json!({ "type": "string", "format": "byte" }),
        "bool" => json!({ "type": "boolean" }),
        "int32" | "int64" => json!({ "type": "integer", "format": member.of }),
        message if message.contains('.') => json!({ "$ref": message }),
        other => return Err(GenerateError::Unexpected(format!("protobuf type {other} of {}", member.name))),
    };
    Ok(match member.label {
        Label::Optional => one,
        Label::Map => json!({ "type": "object", "additionalProperties": one }),
        Label::Repeated => {
            let mut list = json!({ "type": "array", "items": one });
            if let Some(kind) = member.marker("listType=") {
                list["x-kubernetes-list-type"] = kind.into();
                list["x-kubernetes-list-map-keys"] = member.marker("listMapKey=").into_iter().collect();
            }
            list
        }
    })
}

#[cfg(test)]
mod tests {
    use super::super::proto::Package;
    use super::*;

    #[test]
    fn a_message_becomes_the_type_that_openapi_leaves_out() {
        let proto = "package k8s.io.api.v1;\nmessage PodExecOptions {\n  // +optional\n  optional bool tty = 4;\n\n  \
                     // +listType=atomic\n  repeated string command = 6;\n}\n";
        let messages = Messages::read(&[Package { proto: proto.to_string(), go: vec![] }]).unwrap();
        assert_eq!(
            synthesise("io.k8s.api.v1.PodExecOptions", true, &messages).unwrap(),
            json!({
                "type": "object",
                "required": ["command"],
                "properties": {
                    "apiVersion": { "type": "string" },
                    "kind": { "type": "string" },
                    "tty": { "type": "boolean" },
                    "command": {
                        "type": "array",
                        "items": { "type": "string" },
                        "x-kubernetes-list-type": "atomic",
                        "x-kubernetes-list-map-keys": [],
                    },
                },
            })
        );
    }

    #[test]
    fn a_name_that_is_nowhere_is_an_error() {
        let messages = Messages::read(&[]).unwrap();
        assert!(matches!(synthesise("io.k8s.Nothing", true, &messages), Err(GenerateError::Unexpected(_))));
    }
}
