//! Reads `generated.proto`: the number and type of every field, and where JSON's fields are within it.

use super::{GenerateError, Result};
use std::collections::{BTreeMap, BTreeSet};

/// Every message, by the name that OpenAPI gives its type.
pub(super) struct Messages(BTreeMap<String, Vec<Member>>);

/// One field of a message.
pub(super) struct Member {
    /// Its name; upper and lower case may differ from JSON's.
    pub(super) name: String,
    /// How often it may occur.
    pub(super) label: Label,
    /// A scalar such as `string`, or the name of a message as OpenAPI spells it.
    pub(super) of: String,
    /// The markers in its comment, such as `+optional`.
    pub(super) markers: Vec<String>,
    number: u32,
}

/// How often a field may occur.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Label {
    Optional,
    Repeated,
    Map,
}

impl Messages {
    /// Reads every message of these files.
    pub(super) fn read(files: &[String]) -> Result<Messages> {
        let mut messages = BTreeMap::new();
        for text in files {
            read_file(text, &mut messages)?;
        }
        Ok(Messages(messages))
    }

    /// The fields of a message.
    pub(super) fn get(&self, name: &str) -> Option<&[Member]> {
        self.0.get(name).map(Vec::as_slice)
    }

    /// Where protobuf keeps a JSON field, as the table writes it: `6m`, or `2.1m` within an embedded message.
    /// `declared` are all JSON fields of that type: a message field that none of them names is an embedded struct.
    pub(super) fn place(&self, name: &str, field: &str, declared: &BTreeSet<String>) -> Option<String> {
        let members = self.get(name)?;
        if let Some(member) = members.iter().find(|member| folded(&member.name) == folded(field)) {
            return Some(format!("{}{}", member.number, member.wire()));
        }
        let embedded = members
            .iter()
            .filter(|it| it.label == Label::Optional && !declared.contains(&folded(&it.name)));
        embedded
            .filter_map(|member| Some(format!("{}.{}", member.number, self.place(&member.of, field, declared)?)))
            .next()
    }
}

impl Member {
    /// The letter that the table writes for how protobuf encodes a value.
    fn wire(&self) -> char {
        match &*self.of {
            "bool" | "int32" | "int64" | "uint32" | "uint64" => 'v',
            "double" => 'f',
            "string" => 's',
            "bytes" => 'b',
            _ => 'm',
        }
    }

    /// The value of a marker, such as `atomic` of `+listType=atomic`.
    pub(super) fn marker(&self, name: &str) -> Option<&str> {
        self.markers.iter().find_map(|marker| marker.strip_prefix(name))
    }
}

/// Letters and digits in lower case: `$ref` is `ref` in protobuf, `uid` may be `uID`.
pub(super) fn folded(name: &str) -> String {
    name.chars()
        .filter(char::is_ascii_alphanumeric)
        .map(|letter| letter.to_ascii_lowercase())
        .collect()
}

fn read_file(text: &str, messages: &mut BTreeMap<String, Vec<Member>>) -> Result<()> {
    let mut package = String::new();
    let mut message: Option<(String, Vec<Member>)> = None;
    let mut markers = Vec::new();
    for line in text.lines().map(str::trim) {
        if let Some(comment) = line.strip_prefix("//") {
            markers.extend(comment.trim().strip_prefix('+').map(str::to_string));
        } else if let Some(name) = line.strip_prefix("package ") {
            package = openapi_name(name.trim_end_matches(';'));
        } else if let Some(name) = line.strip_prefix("message ") {
            message = Some((format!("{package}.{}", name.trim_end_matches(" {")), Vec::new()));
            markers.clear();
        } else if line == "}" {
            messages.extend(message.take());
        } else if let Some((_, members)) = &mut message
            && let Some(declaration) = line.strip_suffix(';')
        {
            members.push(member(declaration, &package, std::mem::take(&mut markers))?);
        }
    }
    Ok(())
}

/// Reads `optional string name = 1`, `repeated Container containers = 2`, `map<string, string> labels = 11`.
fn member(declaration: &str, package: &str, markers: Vec<String>) -> Result<Member> {
    let unexpected = || GenerateError::Unexpected(format!("protobuf field `{declaration}` in {package}"));
    let (left, number) = declaration.split_once(" = ").ok_or_else(unexpected)?;
    let (left, name) = left.rsplit_once(' ').ok_or_else(unexpected)?;
    let (label, of) = if let Some(of) = left.strip_prefix("optional ") {
        (Label::Optional, of)
    } else if let Some(of) = left.strip_prefix("repeated ") {
        (Label::Repeated, of)
    } else {
        (
            Label::Map,
            left.strip_prefix("map<string, ")
                .and_then(|it| it.strip_suffix('>'))
                .ok_or_else(unexpected)?,
        )
    };
    let of = match of.strip_prefix('.') {
        Some(full) => openapi_name(full),
        None if of.starts_with(char::is_lowercase) => of.to_string(),
        None => format!("{package}.{of}"),
    };
    let number = number.parse().map_err(|_| unexpected())?;
    Ok(Member { name: name.to_string(), label, of, markers, number })
}

/// `k8s.io.kube_aggregator.pkg.apis` is `io.k8s.kube-aggregator.pkg.apis` in OpenAPI.
fn openapi_name(name: &str) -> String {
    name.replacen("k8s.io.", "io.k8s.", 1).replace('_', "-")
}

#[cfg(test)]
mod tests {
    use super::*;

    const PROTO: &str = "
package k8s.io.kube_aggregator.pkg.v1;

// Volume is a volume.
message Volume {
  // its name
  // +optional
  optional string name = 1;

  // +listType=set
  repeated int32 uIDs = 3;

  optional VolumeSource volumeSource = 2;

  map<string, .k8s.io.api.Quantity> limits = 4;
}

message VolumeSource {
  optional HostPath hostPath = 1;
}
";

    fn place(field: &str) -> Option<String> {
        let declared = ["name", "hostpath", "uids", "limits"].map(str::to_string).into();
        let messages = Messages::read(&[PROTO.to_string()]).unwrap();
        messages.place("io.k8s.kube-aggregator.pkg.v1.Volume", field, &declared)
    }

    #[test]
    fn a_field_is_found_by_its_json_name() {
        assert_eq!(place("name").as_deref(), Some("1s"));
        assert_eq!(place("uids").as_deref(), Some("3v"));
        assert_eq!(place("limits").as_deref(), Some("4m"));
        assert_eq!(place("kind"), None);
    }

    #[test]
    fn a_field_of_an_embedded_message_has_a_longer_path() {
        assert_eq!(place("hostPath").as_deref(), Some("2.1m"));
    }

    #[test]
    fn markers_belong_to_the_field_below_them() {
        let messages = Messages::read(&[PROTO.to_string()]).unwrap();
        let members = messages.get("io.k8s.kube-aggregator.pkg.v1.Volume").unwrap();
        assert_eq!(members[0].markers, ["optional"]);
        assert_eq!(members[1].marker("listType="), Some("set"));
        assert!(members[2].markers.is_empty());
        assert_eq!(members[3].of, "io.k8s.api.Quantity");
    }

    #[test]
    fn a_declaration_that_is_not_understood_is_an_error() {
        let strange = PROTO.replace("map<string,", "map<int32,");
        assert!(matches!(Messages::read(&[strange]), Err(GenerateError::Unexpected(_))));
    }
}
