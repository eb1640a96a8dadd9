//! Events, of the core group and of `events.k8s.io`: the same objects under other field names.

use super::age;
use super::column::{Column, column, number, text, wide};
use jiff::Timestamp;
use serde_json::{Value, json};

pub(super) const COLUMNS: &[Column] = &[
    column("Last Seen", "string", "How long ago it happened last."),
    column("Type", "string", "Normal or Warning."),
    column("Reason", "string", "What happened, for programs."),
    column("Object", "string", "What it happened to."),
    wide("Subobject", "string", "The part of the object it happened to."),
    wide("Source", "string", "Who reports it."),
    column("Message", "string", "What happened, for people."),
    wide("First Seen", "string", "How long ago it happened first."),
    wide("Count", "string", "How often it happened."),
    wide("Name", "string", "The event's own name."),
];

pub(super) fn cells(event: &Value, now: Timestamp) -> Vec<Value> {
    let (first, last) = seen(event, now);
    let about = if event.get("regarding").is_some() {
        "/regarding"
    } else {
        "/involvedObject"
    };
    let about = |field: &str| text(event, &format!("{about}/{field}"));
    let kind = about("kind").to_lowercase();
    let object = match about("name") {
        "" => kind,
        name => format!("{kind}/{name}"),
    };
    let message = either(text(event, "/message"), text(event, "/note"));
    vec![
        json!(last),
        event["type"].as_str().unwrap_or_default().into(),
        event["reason"].as_str().unwrap_or_default().into(),
        json!(object),
        json!(about("fieldPath")),
        json!(source(event)),
        json!(message.trim()),
        json!(first),
        json!(count(event)),
        json!(text(event, "/metadata/name")),
    ]
}

/// How long ago it happened first and last.
fn seen(event: &Value, now: Timestamp) -> (String, String) {
    let time = |names: [&str; 2]| names.iter().find_map(|name| event.get(name).filter(|time| !time.is_null()));
    let first = time(["firstTimestamp", "deprecatedFirstTimestamp"]).or_else(|| event.get("eventTime"));
    let last = time(["lastTimestamp", "deprecatedLastTimestamp"]).or(first);
    let last = event.pointer("/series/lastObservedTime").or(last);
    (age::since(first, now), age::since(last, now))
}

fn count(event: &Value) -> i64 {
    if event.get("series").is_some_and(|series| !series.is_null()) {
        return number(event, "/series/count");
    }
    match number(event, "/count").max(number(event, "/deprecatedCount")) {
        0 => 1,
        count => count,
    }
}

fn source(event: &Value) -> String {
    let source = if event.get("deprecatedSource").is_some() {
        "/deprecatedSource"
    } else {
        "/source"
    };
    let reporter = either(text(event, "/reportingComponent"), text(event, "/reportingController"));
    let component = either(text(event, &format!("{source}/component")), reporter);
    match either(text(event, &format!("{source}/host")), text(event, "/reportingInstance")) {
        "" => component.to_owned(),
        instance => format!("{component}, {instance}"),
    }
}

fn either<'a>(one: &'a str, other: &'a str) -> &'a str {
    if one.is_empty() { other } else { one }
}
