//! The entry points, each as a function of some input. What comes out is not looked at, but must come out.

use crate::input::Input;
use crate::{builtin, large};
use flyball_schema::crd::{self, Status};
use flyball_schema::decode::{self, Document};
use flyball_schema::jsonpath::JsonPath;
use flyball_schema::managed_fields::{self, Request};
use flyball_schema::pattern::Pattern;
use flyball_schema::print::{self, CustomColumn, Include, Meta, Printer};
use flyball_schema::protobuf;
use flyball_schema::quantity::Quantity;
use flyball_schema::schema::Node;
use flyball_schema::selector::{FieldSelector, LabelSelector};
use flyball_schema::{
    default, definition, go_duration, go_text, json_patch, kinds, merge_patch, metadata, names, prune, strategic_merge,
    validate,
};
use serde_json::Value;

/// An entry point: its name, what is done with some input, and how many inputs it gets at a turn.
pub type Target = (&'static str, fn(&mut Input<'_>), u64);

/// Every entry point.
pub const ALL: [Target; 21] = [
    ("json", json, 50),
    ("yaml", yaml, 50),
    ("protobuf", protobuf_bytes, 50),
    ("protobuf-write", protobuf_value, 50),
    ("json-patch", json_patch_bytes, 50),
    ("merge-patch", merge, 50),
    ("strategic-merge", strategic, 50),
    ("apply", apply, 50),
    ("definition", read_definition, 50),
    ("custom", custom, 50),
    ("selectors", selectors, 50),
    ("jsonpath", jsonpath, 50),
    ("quantity", quantity, 50),
    ("pattern", pattern, 50),
    ("metadata", object_metadata, 50),
    ("texts", texts, 50),
    ("scale", scale, 50),
    ("print", print_row, 50),
    ("kinds", table, 2),
    ("builtin", builtin::rules, 50),
    ("large", large::one, 3),
];

fn node(input: &mut Input<'_>) -> Node<'static> {
    let kinds = kinds::builtin();
    let resources: Vec<_> = kinds.resources.iter().filter_map(|resource| resource.schema).collect();
    kinds.schemas.node(resources[input.below(resources.len())])
}

/// A value as a type would have it, if it can be made one.
fn typed(input: &mut Input<'_>, node: Node<'_>) -> Value {
    let mut value = input.value();
    match decode::coerce(&mut value, node) {
        Ok(_) => value,
        Err(_) => serde_json::json!({}),
    }
}

fn json(input: &mut Input<'_>) {
    let text = input.value().to_string().into_bytes();
    let bytes = input.damaged(text);
    documents(Document::json(&bytes).ok(), input);
    drop(decode::summary(&bytes));
}

fn yaml(input: &mut Input<'_>) {
    let text = match input.below(2) {
        0 => input.text(),
        _ => input.value().to_string(),
    };
    let bytes = input.damaged(text.into_bytes());
    documents(Document::yaml(&bytes).ok(), input);
}

fn documents(document: Option<Document>, input: &mut Input<'_>) {
    let Some(document) = document else { return };
    drop(document.type_meta());
    drop(document.clone().untyped());
    drop(document.typed(node(input)));
}

fn protobuf_bytes(input: &mut Input<'_>) {
    let node = node(input);
    let value = typed(input, node);
    let bytes = protobuf::encode(&value, node).unwrap_or_default();
    let bytes = input.damaged(bytes);
    if let Ok(value) = protobuf::decode(&bytes, node) {
        protobuf::encode(&value, node).expect("what was read can be written");
    }
    let wrapped = input.damaged(protobuf::wrap("v1", "Pod", &bytes));
    drop(protobuf::Envelope::read(&wrapped));
    drop(protobuf::decode_object(&wrapped));
    drop(protobuf::decode_events(&wrapped));
}

fn protobuf_value(input: &mut Input<'_>) {
    let node = node(input);
    let value = input.value();
    drop(protobuf::encode(&value, node));
    drop(protobuf::encode_object(&value));
    drop(protobuf::encode_list(("v1", "PodList"), &value, [input.value()].into_iter(), node));
    drop(protobuf::encode_event("ADDED", input.text().as_bytes()));
}

fn json_patch_bytes(input: &mut Input<'_>) {
    let mut value = input.value();
    let ops = ["add", "remove", "replace", "move", "copy", "test", "frob"];
    let count = if input.below(200) == 0 { 10_000 } else { input.below(6) };
    let mut operations = Vec::with_capacity(count);
    for _ in 0..count {
        let mut pointer = || {
            (0..input.below(4))
                .map(|_| format!("/{}", input.text().chars().take(8).collect::<String>()))
                .collect::<String>()
        };
        let (path, from) = (pointer(), pointer());
        let change = if count > 100 { Value::Null } else { input.value() };
        operations.push(serde_json::json!({"op": ops[input.below(7)], "path": path, "from": from, "value": change}));
    }
    let bytes = Value::Array(operations).to_string().into_bytes();
    let bytes = if input.below(2) == 0 {
        input.damaged(bytes)
    } else {
        bytes
    };
    drop(json_patch::apply(&mut value, &bytes));
}

fn merge(input: &mut Input<'_>) {
    let (mut value, patch) = (input.value(), input.value());
    merge_patch::apply(&mut value, &patch);
}

fn strategic(input: &mut Input<'_>) {
    let node = node(input);
    let (original, modified) = (typed(input, node), typed(input, node));
    let patch = match strategic_merge::diff(&original, &modified, node) {
        Ok(patch) if input.below(3) > 0 => patch,
        _ => input.value(),
    };
    let mut object = original;
    drop(strategic_merge::apply(&mut object, &patch, node));
}

fn apply(input: &mut Input<'_>) {
    let node = node(input);
    let mut live = None;
    for manager in ["one", "two", "one"] {
        let config = input.value();
        let request = request(node, live.as_ref(), manager);
        let applied = managed_fields::apply(&request, &config, input.below(2) == 0);
        let mut new = input.value();
        managed_fields::update(&request, &mut new);
        let fields = &new["metadata"]["managedFields"][0]["fieldsV1"];
        drop((managed_fields::text(fields), managed_fields::is_in_order(fields)));
        managed_fields::keep_timestamps(&config, &mut new);
        drop(managed_fields::extract(node, &new, manager, None));
        drop(managed_fields::merge_configuration(node, &new, &config));
        live = applied.ok().flatten().or(Some(new));
    }
}

/// A write of a manager to something.
pub fn request<'a>(node: Node<'a>, live: Option<&'a Value>, manager: &'a str) -> Request<'a> {
    Request {
        node,
        live,
        manager,
        api_version: "v1",
        kind: "Pod",
        subresource: None,
        reset: &["status"],
        versions: &[],
        now: "2026-01-02T15:04:05Z",
    }
}

fn scale(input: &mut Input<'_>) {
    const PATHS: [(&str, &str); 2] = [("apps/v1", "spec.replicas"), ("v1", "spec.replicas")];
    let (object, scale) = (input.value(), input.value());
    drop(managed_fields::scale_entries(&object, &PATHS));
    drop(managed_fields::scaled_entries(&object, &scale, &PATHS, "apps/v1"));
}

fn print_row(input: &mut Input<'_>) {
    const INCLUDES: [Include; 3] = [Include::None, Include::Metadata, Include::Object];
    let resources = &kinds::builtin().resources;
    let resource = &resources[input.below(resources.len())];
    let mut column = input.value();
    for (field, text) in [
        ("jsonPath", input.text()),
        ("type", KINDS[input.below(KINDS.len())].to_owned()),
    ] {
        if let Value::Object(fields) = &mut column {
            fields.insert(field.to_owned(), Value::String(text));
        }
    }
    let printers = [
        Printer::built_in(&resource.group, &resource.kind),
        Printer::custom(&[CustomColumn::read(&column)]),
    ];
    let include = INCLUDES[input.below(INCLUDES.len())];
    for printer in printers {
        let objects = vec![input.value(), input.value()];
        drop(printer.table(objects, input.value(), (Meta::V1, include), jiff::Timestamp::UNIX_EPOCH));
    }
    drop(print::partial(input.value(), Meta::V1beta1));
}

/// The types of custom columns.
const KINDS: [&str; 6] = ["string", "integer", "number", "boolean", "date", "frob"];

/// A damaged table of kinds; it is made by us, but read like anything else.
fn table(input: &mut Input<'_>) {
    const TABLE: &str = include_str!("../../data/kinds.txt");
    let bytes = input.damaged(TABLE.as_bytes().to_vec());
    drop(kinds::Kinds::read(&String::from_utf8_lossy(&bytes)));
}

fn texts(input: &mut Input<'_>) {
    let (text, value) = (input.text(), input.value());
    std::hint::black_box(decode::is_deeper_than(&value, input.below(9)));
    drop((
        go_text::quote(&text),
        go_text::shown(&value),
        go_text::plain(&value),
        go_text::json(&value),
    ));
    drop((go_text::float(f64::from_bits(input.next())), go_duration::is_duration(&text)));
    for check in NAMES {
        drop(check(&text));
    }
    for rule in [names::NameRule::Subdomain, names::NameRule::Label] {
        drop((rule.name(&text), rule.prefix(&text)));
    }
}

const NAMES: [fn(&str) -> Vec<String>; 12] = [
    names::config_key,
    names::dns1035_label,
    names::dns1123_label,
    names::dns1123_subdomain,
    names::dns1123_subdomain_with_underscore,
    names::environment_variable,
    names::http_header,
    names::label_value,
    names::path_segment,
    names::port_name,
    names::qualified_name,
    names::wildcard_subdomain,
];

fn read_definition(input: &mut Input<'_>) {
    let (value, old) = (input.value(), input.value());
    drop(definition::validate(&value));
    drop(definition::validate_update(&value, &old));
    drop(crd::unrecognized_formats(&value));
    drop(crd::read_unchanged(&value, "spec", Status::Subresource));
    drop(crd::read_stored(&value, "spec", Status::Subresource));
}

fn custom(input: &mut Input<'_>) {
    let schema = input.value();
    let structural = crd::read(&schema, "spec", Status::Plain).unwrap_or_else(|_| crd::Structural::anything());
    let (mut value, old) = (input.value(), input.value());
    prune::prune(structural.node(), &mut value);
    prune::prune_nulls(structural.node(), &mut value);
    default::default(structural.node(), &mut value);
    drop(validate::validate(structural.node(), &value));
    drop(validate::validate_update(structural.node(), &value, &old));
    drop(validate::validate_part("status", structural.node(), &value, Some(&old)));
    drop(crd::coerce_embedded(structural.node(), &mut value));
    drop(structural.coerce(&mut value));
}

fn selectors(input: &mut Input<'_>) {
    let text = input.text();
    if let Ok(selector) = text.parse::<LabelSelector>() {
        drop((selector.matches(None), selector.to_string()));
    }
    if let Ok(selector) = text.parse::<FieldSelector>() {
        drop((selector.matches(|_| ""), selector.to_string()));
    }
    drop(LabelSelector::from_value(&input.value()));
}

fn jsonpath(input: &mut Input<'_>) {
    if let Ok(path) = JsonPath::parse(&input.text()) {
        drop(path.find(&input.value()));
    }
}

fn quantity(input: &mut Input<'_>) {
    let digits = [
        "1",
        "0.5",
        "-3",
        "9999999999999999999999",
        ".",
        "1e9999999999",
        "12e-2147483648",
        "",
    ][input.below(8)];
    let suffix = ["", "m", "Ki", "E", "Ei", "n", "e5", "x"][input.below(8)];
    let text = input.damaged(format!("{digits}{suffix}").into_bytes());
    if let Ok(quantity) = String::from_utf8_lossy(&text).parse::<Quantity>() {
        drop(quantity.to_string());
    }
}

fn pattern(input: &mut Input<'_>) {
    let parts = [
        "(a+)+$",
        "(x{1,500}){1,500}",
        "[[:alpha:]]*",
        "(?i)a",
        "\\p{L}{100}",
        "^a|b$",
        "(",
        "\\Qa\\E",
        "a{99999}",
    ];
    let text = format!("{}{}", parts[input.below(parts.len())], input.text().chars().take(30).collect::<String>());
    let text = input.damaged(text.into_bytes());
    if let Ok(pattern) = Pattern::new(&String::from_utf8_lossy(&text)) {
        std::hint::black_box(pattern.is_match(&"a".repeat(input.below(10_000))));
        std::hint::black_box(pattern.is_match(&input.text()));
    }
}

fn object_metadata(input: &mut Input<'_>) {
    let (value, old) = (input.value(), input.value());
    drop(metadata::validate(&value, true, names::NameRule::Subdomain, "metadata"));
    drop(metadata::validate_update(&value, &old, "metadata"));
    drop(metadata::validate_labels(&value, "labels"));
    drop(metadata::validate_annotations(&value, "annotations"));
    drop(metadata::validate_field_manager(&input.text(), "manager"));
}
