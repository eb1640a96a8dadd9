//! Who may do what, how many there may be, and who is in charge.

use super::age;
use super::column::{AGED, NAMED, Shown, column, list, none, number, or_none, text, wide};
use crate::quantity::Quantity;
use serde_json::{Value, json};

pub(super) const BINDING: &[Shown] = &[
    NAMED,
    (column("Role", "string", "The role that is given."), |object, _| {
        json!(format!("{}/{}", text(object, "/roleRef/kind"), text(object, "/roleRef/name")))
    }),
    AGED,
    (wide("Users", "string", "Users who have it."), |object, _| subjects(object, "User")),
    (wide("Groups", "string", "Groups that have it."), |object, _| subjects(object, "Group")),
    (wide("ServiceAccounts", "string", "Accounts that have it."), |object, _| {
        subjects(object, "ServiceAccount")
    }),
];

fn subjects(object: &Value, kind: &str) -> Value {
    let of_kind = list(object, "/subjects").iter().filter(|subject| subject["kind"] == kind);
    let shown = of_kind.map(|subject| match (kind, text(subject, "/namespace")) {
        ("ServiceAccount", namespace) => format!("{namespace}/{}", text(subject, "/name")),
        _ => text(subject, "/name").to_owned(),
    });
    json!(shown.collect::<Vec<_>>().join(", "))
}

pub(super) const BUDGET: &[Shown] = &[
    NAMED,
    (column("Min Available", "string", "Pods that have to stay."), |object, _| {
        amount(object, "/spec/minAvailable")
    }),
    (column("Max Unavailable", "string", "Pods that may go."), |object, _| {
        amount(object, "/spec/maxUnavailable")
    }),
    (column("Allowed Disruptions", "integer", "Pods that may go now."), |object, _| {
        json!(number(object, "/status/disruptionsAllowed"))
    }),
    AGED,
];

fn amount(object: &Value, pointer: &str) -> Value {
    match object.pointer(pointer) {
        Some(Value::String(share)) => json!(share),
        Some(Value::Number(number)) => json!(number.to_string()),
        _ => json!("N/A"),
    }
}

pub(super) const AUTOSCALER: &[Shown] = &[
    NAMED,
    (column("Reference", "string", "What is scaled."), |object, _| {
        let reference = |field: &str| text(object, &format!("/spec/scaleTargetRef/{field}"));
        json!(format!("{}/{}", reference("kind"), reference("name")))
    }),
    (column("Targets", "string", "What is measured, and what it should be."), |object, _| {
        json!(targets(object))
    }),
    (column("MinPods", "string", "The fewest pods."), |object, _| {
        let least = object.pointer("/spec/minReplicas").and_then(Value::as_i64);
        json!(least.map_or("<unset>".to_owned(), |least| least.to_string()))
    }),
    (column("MaxPods", "string", "The most pods."), |object, _| {
        json!(number(object, "/spec/maxReplicas"))
    }),
    (column("Replicas", "string", "The pods there are."), |object, _| {
        json!(number(object, "/status/currentReplicas"))
    }),
    AGED,
];

/// The CPU's target is a field of its own in v1.
fn targets(object: &Value) -> String {
    const MOST: usize = 2;
    if object["apiVersion"] == "autoscaling/v1" {
        let mut v2 = object.clone();
        crate::builtin::autoscaler::to_v2(&mut v2);
        return targets(&v2);
    }
    let metrics = list(object, "/spec/metrics");
    let current = list(object, "/status/currentMetrics");
    let shown: Vec<String> = metrics
        .iter()
        .enumerate()
        .map(|(index, metric)| target(metric, current.get(index).unwrap_or(&Value::Null)))
        .collect();
    match shown.len() {
        0 => "<none>".to_owned(),
        count if count > MOST => format!("{} + {} more...", shown[..MOST].join(", "), count - MOST),
        _ => shown.join(", "),
    }
}

fn target(metric: &Value, current: &Value) -> String {
    let (field, named) = match text(metric, "/type") {
        "External" => ("external", false),
        "Pods" => ("pods", false),
        "Object" => ("object", false),
        "Resource" => ("resource", true),
        "ContainerResource" => ("containerResource", true),
        _ => return "<unknown type>".to_owned(),
    };
    let (wanted, now) = (&metric[field]["target"], &current[field]["current"]);
    let prefix = if named {
        format!("{}: ", text(&metric[field], "/name"))
    } else {
        String::new()
    };
    let amount = |values: &Value, key: &str| {
        let quantity = values[key].as_str().and_then(|text| text.parse::<Quantity>().ok());
        quantity.map(|quantity| quantity.to_string())
    };
    let unknown = || "<unknown>".to_owned();
    if let Some(average) = amount(wanted, "averageValue") {
        let suffix = if matches!(field, "external" | "object") {
            " (avg)"
        } else {
            ""
        };
        return format!("{prefix}{}/{average}{suffix}", amount(now, "averageValue").unwrap_or_else(unknown));
    }
    if named {
        let percent = |values: &Value| values["averageUtilization"].as_i64().map(|share| format!("{share}%"));
        let wanted = percent(wanted).unwrap_or_else(|| "<auto>".to_owned());
        return format!("{prefix}{}/{wanted}", percent(now).unwrap_or_else(unknown));
    }
    let wanted = amount(wanted, "value").unwrap_or_default();
    format!("{}/{wanted}", amount(now, "value").unwrap_or_else(unknown))
}

pub(super) const QUOTA: &[Shown] = &[
    NAMED,
    (column("Request", "string", "What is used, of what may be requested."), |object, _| {
        json!(used(object, false))
    }),
    (column("Limit", "string", "What is used, of what limits may add up to."), |object, _| {
        json!(used(object, true))
    }),
    AGED,
];

fn used(object: &Value, limits: bool) -> String {
    let hard = object.pointer("/status/hard").and_then(Value::as_object).into_iter().flatten();
    let chosen = hard.filter(|(name, _)| name.starts_with("limits.") == limits);
    let shown = chosen.map(|(name, most)| {
        let used = object.pointer("/status/used").and_then(|used| used[name].as_str()).unwrap_or("0");
        format!("{name}: {used}/{}", most.as_str().unwrap_or_default())
    });
    shown.collect::<Vec<_>>().join(", ")
}

pub(super) const REVISION: &[Shown] = &[
    NAMED,
    (column("Controller", "string", "Whose revision it is."), |object, _| {
        let mut owners = list(object, "/metadata/ownerReferences").iter();
        let Some(owner) = owners.find(|owner| owner["controller"] == true) else {
            return none();
        };
        let group = text(owner, "/apiVersion").split_once('/').map_or("", |(group, _)| group);
        let kind = text(owner, "/kind").to_lowercase();
        let dotted = if group.is_empty() {
            String::new()
        } else {
            format!(".{group}")
        };
        json!(format!("{kind}{dotted}/{}", text(owner, "/name")))
    }),
    (column("Revision", "string", "How many there were before."), |object, _| {
        json!(number(object, "/revision"))
    }),
    AGED,
];

pub(super) const SIGNING_REQUEST: &[Shown] = &[
    NAMED,
    AGED,
    (column("SignerName", "string", "Who is asked to sign."), |object, _| {
        json!(or_none(text(object, "/spec/signerName")))
    }),
    (column("Requestor", "string", "Who asks."), |object, _| {
        json!(text(object, "/spec/username"))
    }),
    (column("RequestedDuration", "string", "For how long."), |object, _| {
        match object.pointer("/spec/expirationSeconds").and_then(Value::as_i64) {
            Some(seconds) => json!(age::human(seconds)),
            None => none(),
        }
    }),
    (column("Condition", "string", "What has become of it."), |object, _| json!(signed(object))),
];

fn signed(object: &Value) -> String {
    let has = |kind: &str| list(object, "/status/conditions").iter().any(|condition| condition["type"] == kind);
    let mut shown = match () {
        () if has("Denied") => "Denied",
        () if has("Approved") => "Approved",
        () => "Pending",
    }
    .to_owned();
    if has("Failed") {
        shown.push_str(",Failed");
    }
    if !text(object, "/status/certificate").is_empty() {
        shown.push_str(",Issued");
    }
    shown
}
