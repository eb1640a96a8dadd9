//! Input as large as a server takes it, three mebibytes, in the shapes that cost the most: wide, deep, repeated, crossed.

use crate::input::Input;
use crate::targets::request;
use flyball_schema::builtin::{network, pod, service, volume, workload};
use flyball_schema::crd::{self, Status};
use flyball_schema::decode::Document;
use flyball_schema::jsonpath::JsonPath;
use flyball_schema::managed_fields;
use flyball_schema::pattern::Pattern;
use flyball_schema::quantity::Quantity;
use flyball_schema::schema::Node;
use flyball_schema::selector::{FieldSelector, LabelSelector};
use flyball_schema::{default, definition, json_patch, kinds, merge_patch, protobuf, prune, strategic_merge, validate};
use serde_json::{Value, json};

/// The most that a server reads of a request.
const MOST: usize = 3 << 20;

/// One entry point, one large input.
pub fn one(input: &mut Input<'_>) {
    const SHAPES: [fn(&mut Input<'_>); 10] = [
        texts,
        documents,
        builtin,
        patches,
        merges,
        applies,
        customs,
        definitions,
        patterns,
        paths,
    ];
    SHAPES[input.below(SHAPES.len())](input);
}

/// Something of a size, as often as it fits.
fn filled(part: &str) -> String {
    part.repeat(MOST / part.len())
}

/// A list, joined by commas, of as many items as fit.
fn listed(item: impl Fn(usize) -> String) -> String {
    let (mut text, mut index) = (String::new(), 0);
    while text.len() < MOST {
        text.push_str(&item(index));
        text.push(',');
        index += 1;
    }
    text.pop();
    text
}

fn read(text: &str) -> Value {
    serde_json::from_str(text).expect("what is made here is JSON")
}

fn node_of(api_version: &str, kind: &str) -> Node<'static> {
    kinds::builtin().type_of(api_version, kind).expect("the kind is in the table")
}

fn texts(input: &mut Input<'_>) {
    match input.below(7) {
        0 => drop(filled("9").parse::<Quantity>()),
        1 => drop(format!("1e{}", filled("9")).parse::<Quantity>()),
        2 => drop(listed(|index| format!("k{index} in (a,b)")).parse::<LabelSelector>()),
        3 => drop(format!("k in ({})", listed(|index| format!("v{index}"))).parse::<LabelSelector>()),
        4 => drop(listed(|index| format!("metadata.k{index}=a")).parse::<FieldSelector>()),
        5 => drop(filled("(").parse::<LabelSelector>()),
        _ => drop(LabelSelector::from_value(&read(&format!(
            r#"{{"matchExpressions":[{}]}}"#,
            listed(|index| format!(r#"{{"key":"k{index}","operator":"Exists"}}"#))
        )))),
    }
}

fn documents(input: &mut Input<'_>) {
    let json: [fn() -> String; 8] = [
        || filled("["),
        || filled(r#"{"a":"#),
        || filled("1"),
        || format!("[{}]", listed(|_| "0".to_owned())),
        || format!("{{{}}}", listed(|index| format!(r#""k{index}":1"#))),
        || format!("{{{}}}", listed(|_| r#""spec":{}"#.to_owned())),
        || format!(r#"{{"a":"{}"}}"#, filled(r"\u00e9")),
        || format!(r#"{{"metadata":{{"labels":{{{}}}}}}}"#, listed(|index| format!(r#""k{index}":null"#))),
    ];
    let yaml: [fn() -> String; 10] = [
        || filled("- "),
        || filled("? "),
        || filled("a: &a b\n"),
        || filled("{a: "),
        || listed(|index| format!("k{index}: [*a")),
        || format!("a: &a [x]\nb: [{}]", listed(|_| "*a".to_owned())),
        || format!("a: |\n{}", filled("  text\n")),
        || format!("a: \"{}\"", filled("\\x41")),
        || filled("a: b\n---\n"),
        || listed(|index| format!("k{index}: 1\n")).replace(",k", "k"),
    ];
    let document = match input.below(2) {
        0 => Document::json(json[input.below(json.len())]().as_bytes()),
        _ => Document::yaml(yaml[input.below(yaml.len())]().as_bytes()),
    };
    let Ok(document) = document else { return };
    match input.below(2) {
        0 => drop(document.untyped()),
        _ => drop(document.typed(node_of("v1", "Pod"))),
    }
}

/// A kind, a list in it, and what its items look like.
type Shape = (&'static str, &'static str, fn(&str) -> String, fn(usize) -> String);

// tidy: table
const SHAPES: [Shape; 9] = [
    (
        "v1",
        "Pod",
        |list| format!(r#"{{"spec":{{"containers":[{list}]}}}}"#),
        |index| format!(r#"{{"name":"c{index}","image":"i","ports":[{{"containerPort":{}}}]}}"#, index % 65535 + 1),
    ),
    (
        "v1",
        "Pod",
        |list| format!(r#"{{"spec":{{"containers":[{{"name":"c","image":"i","env":[{list}]}}]}}}}"#),
        |index| format!(r#"{{"name":"E{index}","value":"v"}}"#),
    ),
    (
        "v1",
        "Pod",
        |list| format!(r#"{{"spec":{{"containers":[{{"name":"c","image":"i"}}],"volumes":[{list}]}}}}"#),
        |index| format!(r#"{{"name":"v{index}","emptyDir":{{}}}}"#),
    ),
    (
        "v1",
        "Pod",
        |list| format!(r#"{{"spec":{{"tolerations":[{list}]}}}}"#),
        |_| r#"{"key":"a","operator":"Exists"}"#.to_owned(),
    ),
    (
        "v1",
        "Service",
        |list| format!(r#"{{"spec":{{"ports":[{list}]}}}}"#),
        |index| format!(r#"{{"name":"p{index}","port":{}}}"#, index % 65535 + 1),
    ),
    (
        "apps/v1",
        "Deployment",
        |list| {
            format!(
                r#"{{"spec":{{"selector":{{"matchLabels":{{{list}}}}},"template":{{"metadata":{{"labels":{{{list}}}}}}}}}}}"#
            )
        },
        |index| format!(r#""k{}":"v""#, index / 2),
    ),
    (
        "networking.k8s.io/v1",
        "Ingress",
        |list| format!(r#"{{"spec":{{"rules":[{list}]}}}}"#),
        |index| format!(r#"{{"host":"h{index}.example.com"}}"#),
    ),
    (
        "v1",
        "PersistentVolumeClaim",
        |list| format!(r#"{{"spec":{{"accessModes":[{list}]}}}}"#),
        |_| r#""ReadWriteOnce""#.to_owned(),
    ),
    (
        "v1",
        "ConfigMap",
        |list| format!(r#"{{"data":{{{list}}}}}"#),
        |index| format!(r#""k{index}":"v""#),
    ),
];

fn object(input: &mut Input<'_>) -> (Node<'static>, Value) {
    let (api_version, kind, whole, item) = SHAPES[input.below(SHAPES.len())];
    let same = input.below(3) == 0;
    (
        node_of(api_version, kind),
        read(&whole(&listed(|index| item(if same { 1 } else { index })))),
    )
}

fn builtin(input: &mut Input<'_>) {
    let (node, value) = object(input);
    let kind = node.type_name().and_then(|name| name.rsplit('.').next()).unwrap_or_default();
    let live = (input.below(2) == 0).then_some(&value);
    match (input.below(3), kind) {
        (0, _) => drop(protobuf::decode(&protobuf::encode(&value, node).unwrap_or_default(), node)),
        (1, "Pod") => pod::default(&mut value.clone()),
        (_, "Pod") => drop(pod::validate(&value, live)),
        (1, "Service") => service::default(&mut value.clone()),
        (_, "Service") => drop(service::validate(&value, live)),
        (_, "Deployment") => drop(workload::validate_deployment(&value, live)),
        (_, "Ingress") => drop(network::validate_ingress(&value, live)),
        (_, "PersistentVolumeClaim") => drop(volume::validate_claim(&value, live)),
        _ => default::default(node, &mut value.clone()),
    }
}

fn patches(input: &mut Input<'_>) {
    const OPERATIONS: [&str; 10] = [
        r#"{"op":"add","path":"/list/0","value":1}"#,
        r#"{"op":"remove","path":"/list/0"}"#,
        r#"{"op":"move","from":"/list/0","path":"/list/-"}"#,
        r#"{"op":"move","from":"/list","path":"/other"},{"op":"move","from":"/other","path":"/list"}"#,
        r#"{"op":"copy","from":"/list","path":"/other"}"#,
        r#"{"op":"copy","from":"/small","path":"/small/-"}"#,
        r#"{"op":"test","path":"/list","value":[0]}"#,
        r#"{"op":"add","path":"/small/-","value":[[[[[[[[]]]]]]]]}"#,
        r#"{"op":"replace","path":"/list/1","value":{}}"#,
        r#"{"op":"test","path":"/list/1000000","value":null}"#,
    ];
    let operation = OPERATIONS[input.below(OPERATIONS.len())];
    let count = 10_000 / operation.matches("\"op\"").count();
    let patch = format!("[{}]", vec![operation; count].join(","));
    let list = format!(r#"{{"small":[1],"list":[{}]}}"#, listed(|_| "0".to_owned()));
    drop(json_patch::apply(&mut read(&list), patch.as_bytes()));
    // Each adds below what the one before added.
    let mut path = String::new();
    let nested: Vec<String> = (0..300)
        .map(|_| {
            let operation = format!(
                r#"{{"op":"add","path":"{path}/a","value":{}{}}}"#,
                r#"{"a":"#.repeat(50),
                "{}".to_owned() + &"}".repeat(50)
            );
            path.push_str(&"/a".repeat(51));
            operation
        })
        .collect();
    drop(json_patch::apply(&mut json!({}), format!("[{}]", nested.join(",")).as_bytes()));
}

fn merges(input: &mut Input<'_>) {
    let (node, value) = object(input);
    let (_, other) = object(input);
    match input.below(4) {
        0 => merge_patch::apply(&mut value.clone(), &other),
        1 => drop(strategic_merge::diff(&value, &other, node)),
        2 => drop(strategic_merge::apply(&mut value.clone(), &value, node)),
        _ => drop(strategic_merge::apply(&mut value.clone(), &other, node)),
    }
}

fn applies(input: &mut Input<'_>) {
    let (node, mut config) = object(input);
    config["metadata"] = json!({"name": "a"});
    match input.below(3) {
        0 => drop(managed_fields::apply(&request(node, None, "one"), &config, false)),
        1 => managed_fields::update(&request(node, None, "one"), &mut config),
        _ => {
            let entry = |index| {
                format!(
                    r#"{{"manager":"m{index}","operation":"Update","apiVersion":"v1","fieldsType":"FieldsV1","fieldsV1":{{"f:data":{{"f:k{index}":{{}}}}}}}}"#
                )
            };
            config["metadata"]["managedFields"] = read(&format!("[{}]", listed(entry)));
            drop(managed_fields::apply(
                &request(node, Some(&config), "one"),
                &json!({"data": {"k1": "x"}}),
                false,
            ));
        }
    }
}

fn customs(input: &mut Input<'_>) {
    let property = [
        json!({"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "integer"}}),
        json!({"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["k"],
            "items": {"type": "object", "required": ["k"], "properties": {"k": {"type": "integer"}}}}),
        json!({"type": "array", "items": {"type": "integer", "enum": (0..1000).collect::<Vec<_>>()}}),
        json!({"type": "array", "items": {"type": "string", "pattern": "^(a+)+$"}}),
        json!({"type": "array", "items": {"type": "integer", "oneOf": vec![json!({"minimum": 1}); 8]}}),
        json!({"type": "string", "pattern": "^(a+)+$", "maxLength": 10}),
        json!({"type": "string", "format": "date-time"}),
        json!({"type": "array", "items": {"type": "object", "properties": {"a": {"type": "string", "default": "x"}}}}),
    ];
    let values: [fn() -> String; 6] = [
        || format!("[{}]", listed(|index| index.to_string())),
        || format!("[{}]", listed(|_| "7".to_owned())),
        || format!("[{}]", listed(|index| format!(r#"{{"k":{index}}}"#))),
        || format!("[{}]", listed(|_| "{}".to_owned())),
        || format!("[{}]", listed(|_| "\"aaaaaaaaaaaaaaaaaaaaaaaaaaaaab\"".to_owned())),
        || format!("\"{}b\"", filled("a")),
    ];
    let schema = json!({"type": "object", "properties": {"spec": property[input.below(property.len())]}});
    let structural = crd::read(&schema, "", Status::Plain).expect("a structural schema");
    let mut value = json!({"spec": read(&values[input.below(values.len())]())});
    match input.below(4) {
        0 => drop(prune::prune(structural.node(), &mut value)),
        1 => default::default(structural.node(), &mut value),
        2 => drop(validate::validate(structural.node(), &value)),
        _ => drop(validate::validate_update(structural.node(), &value, &value)),
    }
}

fn definitions(input: &mut Input<'_>) {
    let properties: [fn() -> String; 9] = [
        || listed(|index| format!(r#""p{index}":{{"type":"string"}}"#)),
        || {
            listed(|index| {
                format!(
                    r#""p{index}":{{"type":"string","pattern":"^(a|b){{1,50}}{index}$","description":"{}"}}"#,
                    "x".repeat(400)
                )
            })
        },
        || listed(|index| format!(r#""p{index}":{{"type":"string","default":"x","maxLength":9}}"#)),
        || listed(|index| format!(r#""p{index}":{{"type":"frob","anyOf":[{{"type":"string"}}]}}"#)),
        || format!(r#""a":{{"type":"string","enum":[{}]}}"#, listed(|_| "\"a\"".to_owned())),
        || format!(r#""a":{{"type":"string","enum":[{}]}}"#, listed(|index| format!("\"a{index}\""))),
        || format!(r#""a":{{"type":"integer","allOf":[{}]}}"#, listed(|_| r#"{"minimum":1}"#.to_owned())),
        || {
            format!(
                r#""a":{{"type":"array","items":{{"type":"object"}},"x-kubernetes-list-type":"map","x-kubernetes-list-map-keys":[{}]}}"#,
                listed(|_| "\"a\"".to_owned())
            )
        },
        || format!(r#""a":{{"type":"object","required":[{}]}}"#, listed(|index| format!("\"a{index}\""))),
    ];
    let schema = format!(r#"{{"type":"object","properties":{{{}}}}}"#, properties[input.below(properties.len())]());
    let schema = read(&schema);
    match input.below(3) {
        0 => drop(crd::read(&schema, "schema", Status::Plain)),
        1 => drop(crd::unrecognized_formats(&schema)),
        _ => {
            let version = json!({"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": schema}});
            let definition = json!({"metadata": {"name": "ks.g.io"}, "spec": {"group": "g.io", "scope": "Namespaced",
                "names": {"plural": "ks", "singular": "k", "kind": "K", "listKind": "KList"}, "versions": [version]}});
            drop(definition::validate(&definition));
            drop(definition::validate_update(&definition, &definition));
        }
    }
}

fn patterns(input: &mut Input<'_>) {
    const EXPRESSIONS: [&str; 8] = [
        "^(a+)+$",
        "(a|aa)+$",
        "(.*)*b",
        "(a?){30}a{30}",
        "([a-z]+)*[0-9]",
        "(x+x+)+y",
        "^(([a-z])+.)+[A-Z]([a-z])+$",
        "((a{1,100}){1,10}){1,1}$",
    ];
    match input.below(4) {
        0 => drop(Pattern::new(&filled("(")).is_ok()),
        1 => drop(Pattern::new(&filled("a?")).is_ok()),
        2 => drop(Pattern::new(&filled("a{1,1000}")).is_ok()),
        _ => {
            if let Ok(pattern) = Pattern::new(EXPRESSIONS[input.below(EXPRESSIONS.len())]) {
                std::hint::black_box(pattern.is_match(&filled("a")));
            }
        }
    }
}

fn paths(input: &mut Input<'_>) {
    const PATHS: [&str; 6] = [
        "..a..a..a..a..a..a",
        "[*][*][*][*]",
        "[0,0,0,0,0,0,0,0][0,0,0,0,0,0,0,0][0,0,0,0,0,0,0,0][0,0,0,0,0,0,0,0][0,0,0,0,0,0,0,0][0,0,0,0,0,0,0,0]",
        "..[?(@.a)]",
        "..",
        "[?(@.a==@.a)].a",
    ];
    let nested = |open: &str, close: &str| read(&format!("{}1{}", open.repeat(100), close.repeat(100)));
    let values = [
        nested(r#"{"a":"#, "}"),
        nested("[", "]"),
        read(&format!("[{}]", listed(|index| format!(r#"{{"a":{index}}}"#)))),
    ];
    match input.below(3) {
        0 => drop(JsonPath::parse(&filled(".a"))),
        1 => drop(JsonPath::parse(&filled("[?(@.a)]"))),
        _ => {
            let path = JsonPath::parse(PATHS[input.below(PATHS.len())]).expect("a path");
            drop(path.find(&values[input.below(values.len())]));
        }
    }
}
