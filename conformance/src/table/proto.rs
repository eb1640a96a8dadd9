//! Reads `generated.proto`: the number and type of every field, and where JSON's fields are within it. Which fields are
//! pointers, whose zero is a value of its own, is read from the Go that it was generated from.

use super::{GenerateError, Result};
use std::collections::{BTreeMap, BTreeSet};

/// One package of messages.
#[derive(Default)]
pub(super) struct Package {
    /// Its `generated.proto`.
    pub(super) proto: String,
    /// The Go files beside it.
    pub(super) go: Vec<String>,
}

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
    /// Whether Go tells an absent value from a zero one.
    is_pointer: bool,
    /// Whether Go leaves a zero out of JSON.
    is_omitted: bool,
}

/// How often a field may occur.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Label {
    Optional,
    Repeated,
    Map,
}

impl Messages {
    /// Reads every message of these packages.
    pub(super) fn read(packages: &[Package]) -> Result<Messages> {
        let mut messages = BTreeMap::new();
        for package in packages {
            let tags = package.go.iter().flat_map(|text| tags(text)).collect();
            read_file(&package.proto, &tags, &mut messages)?;
        }
        Ok(Messages(messages))
    }

    /// The fields of a message.
    pub(super) fn get(&self, name: &str) -> Option<&[Member]> {
        self.0.get(name).map(Vec::as_slice)
    }

    /// Whether Go leaves a zero of a JSON field out, although its default is one.
    pub(super) fn omits_zero(&self, name: &str, field: &str) -> bool {
        let members = self.get(name).unwrap_or_default();
        members.iter().any(|member| folded(&member.name) == folded(field) && member.is_omitted)
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
    /// The letter that the table writes for how protobuf encodes a value; a capital one for a pointer.
    fn wire(&self) -> char {
        let letter = match &*self.of {
            "bool" | "int32" | "int64" | "uint32" | "uint64" => 'v',
            "double" => 'f',
            "string" => 's',
            "bytes" => 'b',
            _ => 'm',
        };
        if self.is_pointer {
            letter.to_ascii_uppercase()
        } else {
            letter
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

/// What Go says of a field: whether it is a pointer, and whether a zero is left out of JSON.
type Tags = BTreeMap<(String, u32), (bool, bool)>;

/// The fields of structs by the name of their struct and their number:
/// ``Replicas *int32 `json:"replicas,omitempty" protobuf:"varint,1,opt,name=replicas"` ``.
fn tags(go: &str) -> Vec<((String, u32), (bool, bool))> {
    let mut found = Vec::new();
    let mut owner = "";
    for line in go.lines() {
        if let Some(name) = line.strip_prefix("type ").and_then(|rest| rest.strip_suffix(" struct {")) {
            owner = name;
        }
        let is_pointer = line.split_whitespace().nth(1).is_some_and(|of| of.starts_with('*'));
        let number = line.split_once("protobuf:\"").and_then(|(_, tag)| tag.split(',').nth(1)?.parse().ok());
        if let Some(number) = number {
            found.push(((owner.to_string(), number), (is_pointer, line.contains(",omitempty"))));
        }
    }
    found
}

fn read_file(text: &str, tags: &Tags, messages: &mut BTreeMap<String, Vec<Member>>) -> Result<()> {
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
        } else if let Some((name, members)) = &mut message
            && let Some(declaration) = line.strip_suffix(';')
        {
            let mut member = member(declaration, &package, std::mem::take(&mut markers))?;
            let owner = name.rsplit('.').next().unwrap_or_default();
            let (is_pointer, is_omitted) = tags.get(&(owner.into(), member.number)).copied().unwrap_or_default();
            member.is_pointer = member.label == Label::Optional && is_pointer;
            member.is_omitted = is_omitted && !is_pointer;
            members.push(member);
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
    Ok(Member {
        name: name.to_string(),
        label,
        of,
        markers,
        number,
        is_pointer: false,
        is_omitted: false,
    })
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

    const GO: &str = r#"
type VolumeSource struct {
	HostPath *HostPath `json:"hostPath" protobuf:"bytes,1,opt,name=hostPath"`
}
"#;

    fn package(proto: &str) -> Package {
        Package { proto: proto.to_string(), go: vec![GO.to_string()] }
    }

    fn place(field: &str) -> Option<String> {
        let declared = ["name", "hostpath", "uids", "limits"].map(str::to_string).into();
        let messages = Messages::read(&[package(PROTO)]).unwrap();
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
        assert_eq!(place("hostPath").as_deref(), Some("2.1M"), "a capital letter for a pointer");
    }

    #[test]
    fn markers_belong_to_the_field_below_them() {
        let messages = Messages::read(&[package(PROTO)]).unwrap();
        let members = messages.get("io.k8s.kube-aggregator.pkg.v1.Volume").unwrap();
        assert_eq!(members[0].markers, ["optional"]);
        assert_eq!(members[1].marker("listType="), Some("set"));
        assert!(members[2].markers.is_empty());
        assert_eq!(members[3].of, "io.k8s.api.Quantity");
    }

    #[test]
    fn a_declaration_that_is_not_understood_is_an_error() {
        let strange = PROTO.replace("map<string,", "map<int32,");
        assert!(matches!(Messages::read(&[package(&strange)]), Err(GenerateError::Unexpected(_))));
    }
}
