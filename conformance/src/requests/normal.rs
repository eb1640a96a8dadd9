//! Takes out of an answer what must differ between two servers, and marks what must only be paired: uids, versions,
//! addresses and generated names stay as `<uid:…>` and the like, for `compare` to see which equals which.

use http::HeaderMap;
use regex::{Captures, Regex};
use serde_json::{Map, Value, json};

use super::script::Request;
use super::send::{Answer, Content};

/// Headers that say something of the transport or of flow control, and nothing of the API.
const TRANSPORT: [&str; 7] = [
    "connection",
    "content-length",
    "date",
    "keep-alive",
    "transfer-encoding",
    "x-kubernetes-pf-flowschema-uid",
    "x-kubernetes-pf-prioritylevel-uid",
];

/// How answers of one script are normalised.
pub struct Normal {
    prefixes: Vec<Regex>,
    patterns: Patterns,
}

struct Patterns {
    uid: Regex,
    time: Regex,
    revision: Regex,
    port: Regex,
    hash: Regex,
    object: Regex,
    token: Regex,
}

impl Patterns {
    fn new() -> Self {
        let pattern = |text| Regex::new(text).expect("a constant pattern");
        Self {
            uid: pattern(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"),
            time: pattern(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{6})?Z"),
            revision: pattern(
                r#"(?i)((?:resource ?version|current)[^:\d]*:[ \\"]*|resource ?version[^:\d]* \(|resource version: \d+ \()\d+"#,
            ),
            port: pattern(r"127\.0\.0\.1:\d+"),
            hash: pattern(r"hash=[0-9A-F]+"),
            object: pattern(r#""\{(?:[^"\\]|\\.)*\}""#),
            token: pattern(r"eyJ[\w-]+\.eyJ[\w-]+\.[\w-]+"),
        }
    }
}

impl Default for Normal {
    fn default() -> Self {
        // Admission generates the name of the volume that holds a pod's token.
        let token_volume = Regex::new("(kube-api-access-)([a-z0-9]{5})").expect("a constant pattern");
        Self { prefixes: vec![token_volume], patterns: Patterns::new() }
    }
}

impl Normal {
    /// Notes that names may be generated from what `request` says.
    pub fn expect(&mut self, request: &Request) {
        let base = request.body.as_ref().and_then(|body| body["metadata"]["generateName"].as_str());
        if let Some(base) = base {
            let pattern = format!("({})([a-z0-9]{{5}})", regex::escape(base));
            self.prefixes.push(Regex::new(&pattern).expect("an escaped pattern"));
        }
    }

    /// `answer` as a document `{status, header, body}` in which only what should be equal is left.
    pub fn of(&self, answer: &Answer) -> Value {
        let body = match &answer.content {
            Content::Json(document) => self.value(document, Place::Document),
            Content::Events(events) => {
                let kept = events.iter().filter(|event| !is_chance(event));
                Value::Array(kept.map(|event| self.event(event)).collect())
            }
            Content::Text(text) => Value::String(self.text(text)),
        };
        json!({"status": answer.status, "header": self.headers(&answer.headers), "body": body})
    }

    fn headers(&self, headers: &HeaderMap) -> Value {
        let mut kept: Map<String, Value> = Map::new();
        for name in headers.keys().filter(|name| !TRANSPORT.contains(&name.as_str())) {
            let values = headers
                .get_all(name)
                .iter()
                .map(|value| String::from_utf8_lossy(value.as_bytes()).into_owned());
            let text = match name.as_str() {
                "audit-id" => "<uid>".to_owned(),
                "etag" => "<hash>".to_owned(),
                "expires" | "last-modified" => "<time>".to_owned(),
                _ => self.text(&values.collect::<Vec<_>>().join("\n")),
            };
            kept.insert(name.to_string(), Value::String(text));
        }
        Value::Object(kept)
    }

    fn event(&self, event: &Value) -> Value {
        let place = if event["type"] == "BOOKMARK" {
            Place::Moment
        } else {
            Place::Document
        };
        let mut event = event.clone();
        if let Some(object) = event.get_mut("object") {
            *object = self.value(object, place);
        }
        event
    }

    fn value(&self, value: &Value, place: Place) -> Value {
        match value {
            Value::Object(members) => self.object(members, place),
            Value::Array(items) => Value::Array(items.iter().map(|item| self.value(item, place.item())).collect()),
            Value::String(text) if place == Place::Cell && is_age(text) => Value::String("<age>".into()),
            Value::String(text) => Value::String(self.text(text)),
            other => other.clone(),
        }
    }

    fn object(&self, members: &Map<String, Value>, place: Place) -> Value {
        let moment = place == Place::Moment || is_collection(members);
        let members = &in_order(members);
        let mut normal = Map::new();
        for (key, value) in members {
            let value = match (key.as_str(), value) {
                ("metadata", Value::Object(metadata)) => self.metadata(metadata, moment),
                ("clusterIP" | "clusterIPs", _) => self.address(value),
                ("nodePort" | "healthCheckNodePort", Value::Number(_)) => json!("<port>"),
                ("cells", Value::Array(cells)) => {
                    Value::Array(cells.iter().map(|cell| self.value(cell, Place::Cell)).collect())
                }
                ("parameters" | "paths" | "required", Value::Array(items)) => self.set(items),
                _ => self.value(value, Place::Document),
            };
            normal.insert(self.key(key), value);
        }
        Value::Object(normal)
    }

    /// A list whose order says nothing, by what its items are called.
    fn set(&self, items: &[Value]) -> Value {
        let name =
            |item: &Value| item["name"].as_str().or(item.as_str()).map_or_else(|| item.to_string(), str::to_owned);
        Value::Object(items.iter().map(|item| (name(item), self.value(item, Place::Document))).collect())
    }

    fn metadata(&self, metadata: &Map<String, Value>, moment: bool) -> Value {
        let mut normal = Map::new();
        for (key, value) in metadata {
            let value = match (key.as_str(), value.as_str()) {
                ("resourceVersion", Some(version)) if version.parse::<u64>().is_ok_and(|version| version > 0) => {
                    Value::String(if moment {
                        "<revision>".into()
                    } else {
                        format!("<version:{version}>")
                    })
                }
                ("continue", Some(token)) if !token.is_empty() => json!("<continue>"),
                ("managedFields", _) => sorted(self.value(value, Place::Document)),
                _ => self.value(value, Place::Document),
            };
            normal.insert(key.clone(), value);
        }
        Value::Object(normal)
    }

    fn address(&self, value: &Value) -> Value {
        match value {
            Value::String(text) if text.starts_with("10.") => Value::String(format!("<address:{text}>")),
            Value::Array(items) => Value::Array(items.iter().map(|item| self.address(item)).collect()),
            other => other.clone(),
        }
    }

    /// A key that names an owner's uid; keys are matched before anything is paired.
    fn key(&self, key: &str) -> String {
        self.patterns.uid.replace_all(key, "<uid>").into_owned()
    }

    fn text(&self, text: &str) -> String {
        let Self { prefixes, patterns } = self;
        let text = patterns.token.replace_all(text, "<token>");
        let text = patterns.object.replace_all(&text, |found: &Captures<'_>| sorted_object(&found[0]));
        let mut text = patterns.uid.replace_all(&text, "<uid:$0>").into_owned();
        for prefix in prefixes {
            text = prefix.replace_all(&text, "$1<generated:$2>").into_owned();
        }
        let time = |found: &Captures<'_>| {
            if found.get(1).is_some() {
                "<microtime>"
            } else {
                "<time>"
            }
        };
        let text = patterns.time.replace_all(&text, time);
        let text = patterns.revision.replace_all(&text, "$1<revision>");
        let text = patterns.port.replace_all(&text, "127.0.0.1:<port>");
        patterns.hash.replace_all(&text, "hash=<hash>").into_owned()
    }
}

/// Where in an answer a value stands.
#[derive(Clone, Copy, PartialEq)]
enum Place {
    /// Anywhere.
    Document,
    /// In an object that tells a moment of the whole store, as a bookmark does.
    Moment,
    /// In a cell of a Table.
    Cell,
}

impl Place {
    fn item(self) -> Self {
        if self == Self::Cell { Self::Cell } else { Self::Document }
    }
}

/// Whether an event is a bookmark that ends no initial list: the real server sends one more before the end of a short watch,
/// or it does not.
fn is_chance(event: &Value) -> bool {
    event["type"] == "BOOKMARK" && event.pointer("/object/metadata/annotations/k8s.io~1initial-events-end").is_none()
}

/// The real server sorts entries by the second they were made in, which is chance where requests follow each other.
fn sorted(mut entries: Value) -> Value {
    if let Value::Array(entries) = &mut entries {
        let identity = |entry: &Value| {
            ["manager", "operation", "subresource", "apiVersion"].map(|key| string(&entry[key]).to_owned())
        };
        entries.sort_by_key(identity);
    }
    entries
}

/// A custom resource's violations, and conflicts with several managers, come in the order of a Go map: they are sorted,
/// and violations are taken out of the message, which lists them too.
fn in_order(members: &Map<String, Value>) -> Map<String, Value> {
    let mut members = members.clone();
    let Some(details) = members.get_mut("details").and_then(Value::as_object_mut) else {
        return members;
    };
    let custom = text_of(details, "group").is_some_and(|group| group.ends_with(".dev"));
    let Some(causes) = details.get_mut("causes").and_then(Value::as_array_mut) else {
        return members;
    };
    if custom || causes.iter().all(|cause| cause["reason"] == "FieldManagerConflict") {
        causes.sort_by_key(Value::to_string);
    }
    if !custom {
        return members;
    }
    let said = |cause: &Value| format!("{}: {}", string(&cause["field"]), string(&cause["message"]));
    let said: Vec<String> = causes.iter().map(said).collect();
    if let Some(Value::String(message)) = members.get_mut("message") {
        for text in said {
            *message = message.replace(&text, "<cause>");
        }
    }
    members
}

/// An object that a message quotes, with its members in the order of their names.
fn sorted_object(quoted: &str) -> String {
    let object = serde_json::from_str::<String>(quoted).and_then(|text| serde_json::from_str::<Value>(&text));
    object.map_or_else(|_| quoted.to_owned(), |object| Value::String(object.to_string()).to_string())
}

fn string(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

/// A list's version is the whole store's, which others write to as well.
fn is_collection(members: &Map<String, Value>) -> bool {
    let kind = text_of(members, "kind").unwrap_or_default();
    kind.ends_with("List") || kind == "Table" || kind == "Status"
}

fn is_age(text: &str) -> bool {
    text.strip_suffix('s')
        .is_some_and(|seconds| seconds.len() < 3 && seconds.parse::<u8>().is_ok())
}

fn text_of<'a>(members: &'a Map<String, Value>, key: &str) -> Option<&'a str> {
    members.get(key).and_then(Value::as_str)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn normal(normal: &Normal, document: Value) -> Value {
        body(normal, Content::Json(document))
    }

    fn body(normal: &Normal, content: Content) -> Value {
        let answer = Answer { status: 200, headers: HeaderMap::new(), content };
        normal.of(&answer)["body"].clone()
    }

    #[test]
    fn a_bookmark_is_compared_where_it_ends_the_initial_list() {
        let bookmark =
            |annotations: Value| json!({"type": "BOOKMARK", "object": {"metadata": {"annotations": annotations}}});
        let end = bookmark(json!({"k8s.io/initial-events-end": "true"}));
        let added = json!({"type": "ADDED", "object": {}});
        let events = vec![added.clone(), end.clone(), bookmark(json!({})), bookmark(Value::Null)];
        assert_eq!(body(&Normal::default(), Content::Events(events)), json!([added, end]));
    }

    #[test]
    fn a_lists_version_is_any_revision_and_its_items_are_not() {
        let item = json!({"metadata": {"resourceVersion": "7"}});
        let list = json!({"kind": "PodList", "metadata": {"resourceVersion": "9"}, "items": [item]});
        let list = normal(&Normal::default(), list);
        assert_eq!(list["metadata"]["resourceVersion"], "<revision>");
        assert_eq!(list["items"][0]["metadata"]["resourceVersion"], "<version:7>");
    }

    #[test]
    fn generated_names_are_replaced_wherever_they_appear() {
        let mut names = Normal::default();
        let request =
            json!({"name": "a", "request": "POST /", "status": 201, "body": {"metadata": {"generateName": "a-"}}});
        names.expect(&serde_json::from_value(request).unwrap());
        let object = normal(&names, json!({"metadata": {"name": "a-x7k2p"}, "message": "pods \"a-x7k2p\" not found"}));
        assert_eq!(object["metadata"]["name"], "a-<generated:x7k2p>");
        assert_eq!(object["message"], "pods \"a-<generated:x7k2p>\" not found");
    }

    #[test]
    fn a_custom_resources_violations_are_compared_in_any_order() {
        let cause = |field: &str| json!({"field": field, "message": "wrong"});
        let status = |first: &str, second: &str| {
            let message = format!("Thing is invalid: [{first}: wrong, {second}: wrong]");
            json!({"details": {"group": "example.dev", "causes": [cause(first), cause(second)]}, "message": message})
        };
        let both = [status("a", "b"), status("b", "a")].map(|status| normal(&Normal::default(), status));
        assert_eq!(both[0], both[1]);
        assert_eq!(both[0]["message"], "Thing is invalid: [<cause>, <cause>]");
    }

    #[test]
    fn times_uids_and_revisions_in_messages_are_replaced() {
        let message = "at 2026-11-15T10:00:00Z uid 0a1b2c3d-0000-4000-8000-0123456789ab: Too large resource version: 99, current: 12";
        let object = normal(&Normal::default(), json!({"message": message}));
        let expected = "at <time> uid <uid:0a1b2c3d-0000-4000-8000-0123456789ab>: Too large resource version: <revision>, current: <revision>";
        assert_eq!(object["message"], expected);
    }

    #[test]
    fn an_object_in_a_message_is_compared_in_any_order() {
        let says = |object: &str| json!({"message": format!("Invalid value: {}: bad", json!(object))});
        let both = [r#"{"b":1,"a":2}"#, r#"{"a":2,"b":1}"#].map(|object| normal(&Normal::default(), says(object)));
        assert_eq!(both[0], both[1]);
    }

    #[test]
    fn ages_are_replaced_only_in_cells() {
        let table = normal(&Normal::default(), json!({"rows": [{"cells": ["a", "3s"]}], "data": "3s"}));
        assert_eq!(table, json!({"rows": [{"cells": ["a", "<age>"]}], "data": "3s"}));
    }
}
