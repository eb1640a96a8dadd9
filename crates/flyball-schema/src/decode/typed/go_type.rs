//! What Go calls the types that type errors mention.

use crate::decode::time::Precision;
use crate::schema::{Form, Node};

/// `PodSpec` for `io.k8s.api.core.v1.PodSpec`.
pub(super) fn struct_name<'a>(node: Node<'a>) -> &'a str {
    node.type_name().and_then(|name| name.rsplit('.').next()).unwrap_or_default()
}

/// What `reflect.Type.String` says. Named strings and numbers are not in the table of kinds; they come out plain.
pub(super) fn name(node: Node<'_>) -> String {
    match &node.form {
        Form::Any => "interface {}".to_owned(),
        Form::Boolean => "bool".to_owned(),
        Form::Integer if node.format.as_deref() == Some("int32") => "int32".to_owned(),
        Form::Integer => "int64".to_owned(),
        Form::Number => "float64".to_owned(),
        Form::String if node.format.as_deref() == Some("byte") => "[]uint8".to_owned(),
        Form::String => "string".to_owned(),
        Form::IntOrString => "intstr.IntOrString".to_owned(),
        Form::Quantity => "resource.Quantity".to_owned(),
        Form::List(list) => format!("[]{}", name(node.at(list.items))),
        Form::Map(map) => match name(node.at(map.values)).as_str() {
            "resource.Quantity" => "v1.ResourceList".to_owned(),
            values => format!("map[string]{values}"),
        },
        Form::Object(_) => packaged(node),
    }
}

/// `v1.PodSpec` for `io.k8s.api.core.v1.PodSpec`.
fn packaged(node: Node<'_>) -> String {
    let mut segments = node.type_name().unwrap_or("struct {}").rsplitn(3, '.');
    match (segments.next(), segments.next()) {
        (Some(name), Some(package)) => format!("{package}.{name}"),
        (name, _) => name.unwrap_or_default().to_owned(),
    }
}

/// How precise a time is, if the type is one.
pub(super) fn precision(node: Node<'_>) -> Option<Precision> {
    match struct_name(node) {
        "Time" => Some(Precision::Seconds),
        "MicroTime" => Some(Precision::Microseconds),
        _ => None,
    }
}

/// Where a text stops being base64, if it does; Go skips line ends.
pub(super) fn wrong_base64(text: &str) -> Option<usize> {
    let bytes: Vec<(usize, u8)> = text.bytes().enumerate().filter(|(_, byte)| !b"\r\n".contains(byte)).collect();
    let alphabet = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'+' || byte == b'/';
    for (index, (position, byte)) in bytes.iter().enumerate() {
        if alphabet(*byte) {
            continue;
        }
        let rest: Vec<u8> = bytes[index..].iter().map(|(_, byte)| *byte).collect();
        return match (index % 4, rest.as_slice()) {
            (2, b"==") | (3, b"=") => None,
            (2, [b'=']) => Some(text.len()),
            (2, [b'=', b'=', ..]) => Some(bytes[index + 2].0),
            (2, [b'=', ..]) => Some(bytes[index + 1].0),
            (3, [b'=', _, ..]) => Some(bytes[index + 1].0),
            _ => Some(*position),
        };
    }
    (!bytes.len().is_multiple_of(4)).then_some(text.len())
}
