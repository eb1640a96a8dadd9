//! What looks at requests before they are served, and what is asked of devices.

use super::column::{AGED, NAMED, Shown, column, list, none, number, text};
use serde_json::{Value, json};

pub(super) const WEBHOOKS: &[Shown] = &[
    NAMED,
    (column("Webhooks", "integer", "How many are called."), |object, _| {
        json!(list(object, "/webhooks").len())
    }),
    AGED,
];

const PARAMETER_KIND: Shown = (column("ParamKind", "string", "What it reads besides."), |object, _| {
    match object.pointer("/spec/paramKind").is_some() {
        true => {
            let part = |field: &str| text(object, &format!("/spec/paramKind/{field}"));
            json!(format!("{}/{}", part("apiVersion"), part("kind")))
        }
        false => json!("<unset>"),
    }
});

pub(super) const VALIDATING_POLICY: &[Shown] = &[
    NAMED,
    (column("Validations", "integer", "How many things it checks."), |object, _| {
        json!(list(object, "/spec/validations").len())
    }),
    PARAMETER_KIND,
    AGED,
];

pub(super) const MUTATING_POLICY: &[Shown] = &[
    NAMED,
    (column("Mutations", "integer", "How many things it changes."), |object, _| {
        json!(list(object, "/spec/mutations").len())
    }),
    PARAMETER_KIND,
    AGED,
];

pub(super) const POLICY_BINDING: &[Shown] = &[
    NAMED,
    (column("PolicyName", "string", "The policy that is put to use."), |object, _| {
        json!(text(object, "/spec/policyName"))
    }),
    (column("ParamRef", "string", "What it reads besides."), |object, _| {
        let part = |field: &str| text(object, &format!("/spec/paramRef/{field}"));
        match (part("name"), part("namespace")) {
            ("", _) => json!("<unset>"),
            (name, "") => json!(format!("*/{name}")),
            (name, namespace) => json!(format!("{namespace}/{name}")),
        }
    }),
    AGED,
];

pub(super) const FLOW_SCHEMA: &[Shown] = &[
    NAMED,
    (column("PriorityLevel", "string", "The level its requests are served at."), |object, _| {
        json!(text(object, "/spec/priorityLevelConfiguration/name"))
    }),
    (column("MatchingPrecedence", "string", "Which schema is asked first."), |object, _| {
        json!(number(object, "/spec/matchingPrecedence"))
    }),
    (
        column("DistinguisherMethod", "string", "How flows are told apart."),
        |object, _| match text(object, "/spec/distinguisherMethod/type") {
            "" => none(),
            method => json!(method),
        },
    ),
    AGED,
    (column("MissingPL", "string", "Whether the level is missing."), |object, _| {
        let mut conditions = list(object, "/status/conditions").iter();
        let dangling = conditions.find(|condition| condition["type"] == "Dangling");
        json!(dangling.map_or("?", |condition| text(condition, "/status")))
    }),
];

fn limited(object: &Value, field: &str) -> Value {
    match object.pointer(&format!("/spec/limited/{field}")) {
        Some(number) => number.clone(),
        None => none(),
    }
}

pub(super) const PRIORITY_LEVEL: &[Shown] = &[
    NAMED,
    (column("Type", "string", "Whether it is limited."), |object, _| {
        json!(text(object, "/spec/type"))
    }),
    (
        column("NominalConcurrencyShares", "string", "Its share of what is served at once."),
        |object, _| limited(object, "nominalConcurrencyShares"),
    ),
    (column("Queues", "string", "How many queues there are."), |object, _| {
        limited(object, "limitResponse/queuing/queues")
    }),
    (column("HandSize", "string", "How many queues a flow may use."), |object, _| {
        limited(object, "limitResponse/queuing/handSize")
    }),
    (column("QueueLengthLimit", "string", "How many may wait in one."), |object, _| {
        limited(object, "limitResponse/queuing/queueLengthLimit")
    }),
    AGED,
];

pub(super) const RESOURCE_CLAIM: &[Shown] = &[
    NAMED,
    (column("State", "string", "What has become of it."), |object, _| json!(state(object))),
    AGED,
];

fn state(object: &Value) -> String {
    let deleted = !text(object, "/metadata/deletionTimestamp").is_empty();
    let allocated = object.pointer("/status/allocation").is_some();
    let mut states = Vec::new();
    if deleted {
        states.push("deleted");
    }
    match (allocated, deleted) {
        (true, _) => states.push("allocated"),
        (false, false) => states.push("pending"),
        (false, true) => {}
    }
    if allocated && !list(object, "/status/reservedFor").is_empty() {
        states.push("reserved");
    }
    states.join(",")
}

pub(super) const RESOURCE_SLICE: &[Shown] = &[
    NAMED,
    (column("Node", "string", "The node that has them."), |object, _| {
        json!(text(object, "/spec/nodeName"))
    }),
    (column("Driver", "string", "Who runs them."), |object, _| {
        json!(text(object, "/spec/driver"))
    }),
    (column("Pool", "string", "The pool they are in."), |object, _| {
        json!(text(object, "/spec/pool/name"))
    }),
    AGED,
];
