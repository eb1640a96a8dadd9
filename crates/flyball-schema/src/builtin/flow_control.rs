//! FlowSchemas and PriorityLevelConfigurations.
// pkg/apis/flowcontrol/v1/defaults.go, pkg/apis/flowcontrol/validation/validation.go

use super::rules::{label, named, subdomain};
use super::spot::{Found, Spot};
use super::{at, fill, fill_zero, items, within};
use crate::names;
use crate::violation::{Reason, Violation};
use serde_json::{Value, json};

/// The schema and the level that no limit applies to.
pub const EXEMPT: &str = "exempt";
/// The schema and the level of requests that no other schema matches.
pub const CATCH_ALL: &str = "catch-all";

const VERBS: [&str; 9] = [
    "create",
    "delete",
    "deletecollection",
    "get",
    "list",
    "patch",
    "proxy",
    "update",
    "watch",
];
const MAX_PRECEDENCE: i64 = 10_000;
const MAX_QUEUES: i64 = 10_000_000;
/// How many bits of a hash choose the queues of a flow.
const HASH_BITS: u64 = 60;

/// Sets the default of a FlowSchema, and writes absent namespaces as `null`, as Go does.
pub fn default_flow(flow: &mut Value) {
    let spec = at(flow, "spec");
    fill_zero(spec, "matchingPrecedence", 1000);
    for rule in items(spec, "rules") {
        items(rule, "resourceRules").for_each(|rule| fill(rule, "namespaces", Value::Null));
    }
}

/// Sets the defaults of a PriorityLevelConfiguration.
pub fn default_level(level: &mut Value) {
    let spec = at(level, "spec");
    if let Some(limited) = within(spec, "limited") {
        fill(limited, "nominalConcurrencyShares", 30);
        fill(limited, "lendablePercent", 0);
        let response = at(limited, "limitResponse");
        if let Some(queuing) = within(response, "queuing") {
            fill_zero(queuing, "queues", 64);
            fill_zero(queuing, "handSize", 8);
            fill_zero(queuing, "queueLengthLimit", 50);
        }
    }
    if let Some(exempt) = within(spec, "exempt") {
        fill(exempt, "nominalConcurrencyShares", 0);
        fill(exempt, "lendablePercent", 0);
    }
}

/// The spec of a schema that must not be changed.
pub fn mandatory_flow(name: &str) -> Option<Value> {
    let everything =
        json!({"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"], "clusterScope": true, "namespaces": ["*"]});
    let paths = json!({"verbs": ["*"], "nonResourceURLs": ["*"]});
    let group = |name: &str| json!({"kind": "Group", "group": {"name": name}});
    let rules =
        |subjects: Value| json!([{"subjects": subjects, "resourceRules": [everything], "nonResourceRules": [paths]}]);
    match name {
        EXEMPT => Some(json!({
            "priorityLevelConfiguration": {"name": EXEMPT}, "matchingPrecedence": 1,
            "rules": rules(json!([group("system:masters")])),
        })),
        CATCH_ALL => Some(json!({
            "priorityLevelConfiguration": {"name": CATCH_ALL}, "matchingPrecedence": 10_000,
            "distinguisherMethod": {"type": "ByUser"},
            "rules": rules(json!([group("system:unauthenticated"), group("system:authenticated")])),
        })),
        _ => None,
    }
}

/// The spec of a level that must not be changed, except for what is in `exempt`.
pub fn mandatory_level(name: &str) -> Option<Value> {
    match name {
        EXEMPT => Some(json!({"type": "Exempt", "exempt": {"nominalConcurrencyShares": 0, "lendablePercent": 0}})),
        CATCH_ALL => Some(json!({"type": "Limited", "limited": {
            "nominalConcurrencyShares": 5, "lendablePercent": 0, "limitResponse": {"type": "Reject"},
        }})),
        _ => None,
    }
}

/// Validates a FlowSchema.
pub fn validate_flow(flow: &Value, _live: Option<&Value>) -> Vec<Violation> {
    let mut found = Vec::new();
    let (root, name) = (Spot::root(flow), flow["metadata"]["name"].as_str().unwrap_or_default());
    let spec = root.field("spec");
    precedence(&spec.field("matchingPrecedence"), name, &mut found);
    let method = spec.field("distinguisherMethod");
    if method.is_set() && !matches!(method.field("type").text(), "ByNamespace" | "ByUser") {
        let supported = "supported values: \"ByNamespace\", \"ByUser\"";
        let (place, shown) = (method.field("type"), json!({"Type": method.field("type").text()}));
        found.push(Violation::with_value(place.path(), Reason::NotSupported, &shown, supported));
    }
    let level = spec.field("priorityLevelConfiguration");
    let level = level.field("name");
    match level.text() {
        "" => level.required(&mut found, "must reference a priority level"),
        _ => subdomain(&level, &mut found),
    }
    spec.field("rules").items().for_each(|rule| subjects_and_rules(&rule, &mut found));
    if mandatory_flow(name).is_some_and(|fixed| fixed != *spec.value) {
        spec.invalid(&mut found, &format!("spec of '{name}' must equal the fixed value"));
    }
    found.extend(validate_status(flow, &Value::Null));
    found
}

fn precedence(spot: &Spot<'_>, name: &str, found: &mut Found) {
    let precedence = spot.int();
    if precedence <= 0 {
        spot.invalid_as(found, precedence, "must be a positive value");
    }
    if precedence > MAX_PRECEDENCE {
        spot.invalid(found, &format!("must not be greater than {MAX_PRECEDENCE}"));
    }
    if precedence == 1 && name != EXEMPT {
        spot.invalid(found, "only the schema named 'exempt' may have matchingPrecedence 1");
    }
}

fn subjects_and_rules(rule: &Spot<'_>, found: &mut Found) {
    let subjects = rule.field("subjects");
    if subjects.len() == 0 {
        subjects.required(found, "subjects must contain at least one value");
    }
    subjects.items().for_each(|one| subject(&one, found));
    let (resources, paths) = (rule.field("resourceRules"), rule.field("nonResourceRules"));
    if resources.len() + paths.len() == 0 {
        rule.required(found, "at least one of resourceRules and nonResourceRules has to be non-empty");
    }
    resources.items().for_each(|one| resource_rule(&one, found));
    paths.items().for_each(|one| path_rule(&one, found));
}

fn subject(subject: &Spot<'_>, found: &mut Found) {
    const FIELDS: [(&str, &str); 3] = [
        ("ServiceAccount", "serviceAccount"),
        ("User", "user"),
        ("Group", "group"),
    ];
    let kind = subject.field("kind");
    let Some((kind, field)) = FIELDS.iter().find(|(name, _)| *name == kind.text()) else {
        kind.unsupported(found, &["Group", "ServiceAccount", "User"]);
        return;
    };
    let named = subject.field(field);
    match named.is_set() {
        false => named.required(found, &format!("{field} is required when subject kind is '{kind}'")),
        true => subject_name(&named, kind, found),
    }
    let order = match *kind {
        "ServiceAccount" => [1, 2],
        "User" => [0, 2],
        _ => [0, 1],
    };
    for (kind, field) in order.map(|index| FIELDS[index]) {
        let other = subject.field(field);
        if other.is_set() {
            other.forbidden(found, &format!("{field} is forbidden when subject kind is not '{kind}'"));
        }
    }
}

fn subject_name(subject: &Spot<'_>, kind: &str, found: &mut Found) {
    let (name, namespace) = (subject.field("name"), subject.field("namespace"));
    match name.text() {
        "" => name.required(found, ""),
        "*" => {}
        _ if kind == "ServiceAccount" => subdomain(&name, found),
        _ => {}
    }
    match namespace.text() {
        _ if kind != "ServiceAccount" => {}
        "" => namespace.required(found, "must specify namespace for service account"),
        _ => label(&namespace, found),
    }
}

fn has_wildcard(list: &Spot<'_>) -> bool {
    list.items().any(|item| item.text() == "*")
}

fn verbs(rule: &Spot<'_>, found: &mut Found) {
    let verbs = rule.field("verbs");
    if verbs.len() == 0 {
        verbs.required(found, "verbs must contain at least one value");
    } else if has_wildcard(&verbs) {
        if verbs.len() > 1 {
            verbs.invalid(found, "if '*' is present, must not specify other verbs");
        }
    } else if verbs.items().any(|verb| !VERBS.contains(&verb.text())) {
        let supported: Vec<String> = VERBS.iter().map(|verb| format!("{verb:?}")).collect();
        let detail = format!("supported values: {}", supported.join(", "));
        found.push(Violation::with_value(verbs.path(), Reason::NotSupported, verbs.value, &detail));
    }
}

fn resource_rule(rule: &Spot<'_>, found: &mut Found) {
    verbs(rule, found);
    for (field, missing, other) in [
        ("apiGroups", "api group", "api groups"),
        ("resources", "resource", "resources"),
    ] {
        let list = rule.field(field);
        if list.len() == 0 {
            list.required(found, &format!("resource rules must supply at least one {missing}"));
        } else if list.len() > 1 && has_wildcard(&list) {
            list.invalid(found, &format!("if '*' is present, must not specify other {other}"));
        }
    }
    let namespaces = rule.field("namespaces");
    if namespaces.len() == 0 && !rule.field("clusterScope").is_true() {
        let why = "resource rules that are not cluster scoped must supply at least one namespace";
        namespaces.required(found, why);
    } else if has_wildcard(&namespaces) {
        if namespaces.len() > 1 {
            namespaces.invalid(found, "if '*' is present, must not specify other namespaces");
        }
    } else {
        let intro = |why: &String| format!("each member of this list must be '*' or a DNS-1123 label; {why}");
        let check = |name: &str| names::dns1123_label(name).iter().map(intro).collect();
        namespaces.items().for_each(|namespace| named(&namespace, check, found));
    }
}

fn path_rule(rule: &Spot<'_>, found: &mut Found) {
    verbs(rule, found);
    let paths = rule.field("nonResourceURLs");
    if paths.len() == 0 {
        paths.required(found, "nonResourceURLs must contain at least one value");
    } else if has_wildcard(&paths) {
        if paths.len() > 1 {
            paths.invalid(found, "if '*' is present, must not specify other non-resource URLs");
        }
    } else {
        paths.items().for_each(|item| path(&item, found));
    }
}

fn path(path: &Spot<'_>, found: &mut Found) {
    let text = path.text();
    let wildcards = text.matches('*').count();
    let why = match text {
        "" => "must not be empty",
        "/" => return,
        _ if !text.starts_with('/') => "must start with slash",
        _ if text.contains(' ') => "must not contain white-space",
        _ if text.contains("//") => "must not contain double slash",
        _ if wildcards > 1 || (wildcards == 1 && !text.ends_with("/*")) => "wildcard can only do suffix matching",
        _ => return,
    };
    path.invalid_as(found, text, why);
}

/// Validates the conditions of a FlowSchema or a PriorityLevelConfiguration.
pub fn validate_status(object: &Value, _live: &Value) -> Vec<Violation> {
    let mut found = Vec::new();
    let root = Spot::root(object);
    let status = root.field("status");
    let mut seen = Vec::new();
    for condition in status.field("conditions").items() {
        let kind = condition.field("type");
        if seen.contains(kind.value) {
            kind.duplicate(&mut found, kind.text());
        }
        seen.push(kind.value.clone());
        if kind.text().is_empty() {
            kind.required(&mut found, "");
        }
    }
    found
}

/// Validates a PriorityLevelConfiguration.
pub fn validate_level(level: &Value, _live: Option<&Value>) -> Vec<Violation> {
    let mut found = Vec::new();
    let (root, name) = (Spot::root(level), level["metadata"]["name"].as_str().unwrap_or_default());
    let spec = root.field("spec");
    let (kind, limited, exempt) = (spec.field("type"), spec.field("limited"), spec.field("exempt"));
    if (name == EXEMPT) != (kind.text() == "Exempt") {
        kind.invalid_as(&mut found, kind.text(), "must be 'Exempt' if and only if `name` is 'exempt'");
    }
    match kind.text() {
        "Exempt" => {
            if limited.is_set() {
                limited.forbidden(&mut found, "must be nil if the type is not Limited");
            }
            shares(&exempt, &mut found);
            lendable(&exempt, &mut found);
        }
        "Limited" => {
            if exempt.is_set() {
                exempt.forbidden(&mut found, "must be nil if the type is Limited");
            }
            match limited.is_set() {
                true => limits(&limited, &mut found),
                false => limited.required(&mut found, "must not be empty when type is Limited"),
            }
        }
        "" => kind.required(&mut found, ""),
        _ => kind.unsupported(&mut found, &["Exempt", "Limited"]),
    }
    fixed_level(&spec, name, &mut found);
    found.extend(validate_status(level, &Value::Null));
    found
}

fn fixed_level(spec: &Spot<'_>, name: &str, found: &mut Found) {
    let Some(mut fixed) = mandatory_level(name) else {
        return;
    };
    if name == EXEMPT {
        fixed["exempt"] = spec.value["exempt"].clone();
    }
    if fixed != *spec.value {
        let except = if name == EXEMPT {
            " except the 'spec.exempt' field"
        } else {
            ""
        };
        spec.invalid(found, &format!("spec of '{name}'{except} must equal the fixed value"));
    }
}

fn shares(level: &Spot<'_>, found: &mut Found) {
    let shares = level.field("nominalConcurrencyShares");
    if shares.int() < 0 {
        shares.invalid(found, "must be a non-negative integer");
    }
}

fn lendable(level: &Spot<'_>, found: &mut Found) {
    let percent = level.field("lendablePercent");
    if !(0..=100).contains(&percent.int()) {
        percent.invalid(found, "must be between 0 and 100, inclusive");
    }
}

fn limits(limited: &Spot<'_>, found: &mut Found) {
    shares(limited, found);
    let response = limited.field("limitResponse");
    let (kind, queuing) = (response.field("type"), response.field("queuing"));
    match kind.text() {
        "Reject" if queuing.is_set() => {
            queuing.forbidden(found, "must be nil if limited.limitResponse.type is not Limited");
        }
        "Reject" => {}
        "Queue" if queuing.is_set() => queues(&queuing, found),
        "Queue" => queuing.required(found, "must not be empty if limited.limitResponse.type is Limited"),
        "" => kind.required(found, ""),
        _ => kind.unsupported(found, &["Queue", "Reject"]),
    }
    lendable(limited, found);
    let borrowing = limited.field("borrowingLimitPercent");
    if borrowing.int() < 0 {
        borrowing.invalid(found, "if specified, must be a non-negative integer");
    }
}

fn queues(queuing: &Spot<'_>, found: &mut Found) {
    let (length, queues, hand) =
        (queuing.field("queueLengthLimit"), queuing.field("queues"), queuing.field("handSize"));
    if length.int() <= 0 {
        length.invalid_as(found, length.int(), "must be positive");
    }
    if queues.int() <= 0 {
        queues.invalid_as(found, queues.int(), "must be positive");
    } else if queues.int() > MAX_QUEUES {
        queues.invalid(found, &format!("must not be greater than {MAX_QUEUES}"));
    }
    let (count, size) = (queues.int(), hand.int());
    if size <= 0 {
        hand.invalid_as(found, size, "must be positive");
    } else if size > count {
        hand.invalid(found, &format!("should not be greater than queues ({count})"));
    } else if required_bits(count, size) > HASH_BITS {
        hand.invalid(
            found,
            &format!(
                "required entropy bits of deckSize {count} and handSize {size} should not be greater than {HASH_BITS}"
            ),
        );
    }
}

/// How many bits of a hash choose `size` of `count` queues.
// apiserver/pkg/util/shufflesharding, RequiredEntropyBits
fn required_bits(count: i64, size: i64) -> u64 {
    ((count as f64).log2() * size as f64).ceil() as u64
}
