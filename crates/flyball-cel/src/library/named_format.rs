//! Named formats of text, with the messages of Kubernetes' validation.

use crate::decl::{Entry, entry};
use crate::eval::EvalError;
use crate::typing::Type;
use crate::value::{Opaque, Timestamp, Value};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;

const LABEL: &str = "[a-z0-9]([-a-z0-9]*[a-z0-9])?";
const LABEL_MESSAGE: &str = "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric character";
const SUBDOMAIN: &str = "[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*";
const SUBDOMAIN_MESSAGE: &str = "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character";
const OLD_LABEL: &str = "[a-z]([-a-z0-9]*[a-z0-9])?";
const OLD_LABEL_MESSAGE: &str = "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, and end with an alphanumeric character";
const NAME: &str = "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]";
const NAME_MESSAGE: &str =
    "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character";
const VALUE: &str = "(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?";
const VALUE_MESSAGE: &str = "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character";

/// A format that has a name.
#[derive(Clone, Copy, Debug)]
pub(crate) struct NamedFormat {
    name: &'static str,
    /// How long upstream takes its pattern to be, for the purpose of cost.
    pub(crate) pattern_size: u64,
    check: fn(&str) -> Vec<String>,
}

impl Opaque for NamedFormat {
    fn type_of(&self) -> Type {
        Type::object("kubernetes.NamedFormat")
    }

    fn equals(&self, other: &dyn Opaque) -> Result<bool, EvalError> {
        let other = other.downcast_ref::<NamedFormat>().ok_or_else(EvalError::no_such_overload)?;
        Ok(self.name == other.name)
    }
}

const fn format(name: &'static str, pattern_size: u64, check: fn(&str) -> Vec<String>) -> NamedFormat {
    NamedFormat { name, pattern_size, check }
}

const FORMATS: [(&str, NamedFormat); 13] = [
    ("format.dns1123Label", format("DNS1123Label", 30, label)),
    ("format.dns1123Subdomain", format("DNS1123Subdomain", 60, subdomain)),
    ("format.dns1035Label", format("DNS1035Label", 30, old_label)),
    ("format.qualifiedName", format("QualifiedName", 60, qualified_name)),
    ("format.dns1123LabelPrefix", format("DNS1123LabelPrefix", 30, |text| label(&prefix(text)))),
    (
        "format.dns1123SubdomainPrefix",
        format("DNS1123SubdomainPrefix", 60, |text| subdomain(&prefix(text))),
    ),
    (
        "format.dns1035LabelPrefix",
        format("DNS1035LabelPrefix", 30, |text| old_label(&prefix(text))),
    ),
    ("format.labelValue", format("LabelValue", 40, label_value)),
    ("format.uri", format("URI", 1103, uri)),
    (
        "format.uuid",
        format("uuid", 70, |text| when(!is_uuid(text), "does not match the UUID format")),
    ),
    (
        "format.byte",
        format("byte", 84, |text| {
            when(text.is_empty() || STANDARD.decode(text).is_err(), "invalid base64")
        }),
    ),
    ("format.date", format("date", 71, |text| when(!is_date(text), "invalid date"))),
    (
        "format.datetime",
        format("datetime", 71, |text| when(!is_datetime(text), "invalid datetime")),
    ),
];

pub(super) const FUNCTIONS: [Entry; 2] = [
    entry(
        "validate",
        "format-validate",
        "kubernetes.NamedFormat.(string) -> optional(list(string))",
        |args| match (args[0].downcast::<NamedFormat>(), &args[1]) {
            (Some(format), Value::String(text)) => {
                let wrong = (format.check)(text);
                Ok(match wrong.is_empty() {
                    true => Value::Optional(None),
                    false => Value::some(Value::list(wrong.into_iter().map(Value::string).collect())),
                })
            }
            _ => Err(EvalError::no_such_overload()),
        },
    ),
    entry(
        "format.named",
        "format-named",
        "(string) -> optional(kubernetes.NamedFormat)",
        |args| match &args[0] {
            Value::String(name) => {
                let found = FORMATS.iter().find(|(known, _)| known.strip_prefix("format.") == Some(&**name));
                Ok(found.map_or(Value::Optional(None), |(_, format)| Value::some(Value::opaque(*format))))
            }
            _ => Err(EvalError::no_such_overload()),
        },
    ),
];

/// A function for each format, which answers it.
pub(super) const CONSTANTS: [Entry; 13] = [
    constant::<0>(),
    constant::<1>(),
    constant::<2>(),
    constant::<3>(),
    constant::<4>(),
    constant::<5>(),
    constant::<6>(),
    constant::<7>(),
    constant::<8>(),
    constant::<9>(),
    constant::<10>(),
    constant::<11>(),
    constant::<12>(),
];

const fn constant<const PLACE: usize>() -> Entry {
    let name = FORMATS[PLACE].0;
    entry(name, name, "() -> kubernetes.NamedFormat", |_| Ok(Value::opaque(FORMATS[PLACE].1)))
}

fn when(wrong: bool, message: &str) -> Vec<String> {
    if wrong { vec![message.into()] } else { Vec::new() }
}

fn matches(pattern: &str, text: &str) -> bool {
    super::regex::compile(&format!("^(?:{pattern})$")).is_ok_and(|pattern| pattern.is_match(text))
}

fn mismatch(message: &str, pattern: &str, examples: &[&str]) -> String {
    let examples: Vec<String> = examples.iter().map(|example| format!("'{example}', ")).collect();
    format!("{message} (e.g. {}regex used for validation is '{pattern}')", examples.join(" or "))
}

/// What is generated from a prefix may follow a dash.
fn prefix(text: &str) -> String {
    match text.strip_suffix('-').filter(|rest| !rest.is_empty()) {
        Some(rest) => {
            let kept: String = rest.chars().take(rest.chars().count() - 1).collect();
            format!("{kept}a")
        }
        None => text.into(),
    }
}

fn label(text: &str) -> Vec<String> {
    let mut wrong = when(text.len() > 63, "must be no more than 63 characters");
    if !matches(LABEL, text) {
        wrong.push(match matches(SUBDOMAIN, text) {
            true => "must not contain dots".into(),
            false => mismatch(LABEL_MESSAGE, LABEL, &["my-name", "123-abc"]),
        });
    }
    wrong
}

fn subdomain(text: &str) -> Vec<String> {
    let mut wrong = when(text.len() > 253, "must be no more than 253 characters");
    if !matches(SUBDOMAIN, text) {
        wrong.push(mismatch(SUBDOMAIN_MESSAGE, SUBDOMAIN, &["example.com"]));
    }
    wrong
}

fn old_label(text: &str) -> Vec<String> {
    let mut wrong = when(text.len() > 63, "must be no more than 63 characters");
    if !matches(OLD_LABEL, text) {
        wrong.push(mismatch(OLD_LABEL_MESSAGE, OLD_LABEL, &["my-name", "abc-123"]));
    }
    wrong
}

fn qualified_name(text: &str) -> Vec<String> {
    let message = mismatch(NAME_MESSAGE, NAME, &["MyName", "my.name", "123-abc"]);
    let parts: Vec<&str> = text.split('/').collect();
    let (mut wrong, name) = match parts[..] {
        [name] => (Vec::new(), name),
        ["", name] => (vec!["prefix part must be non-empty".to_string()], name),
        [prefix, name] => {
            let wrong = subdomain(prefix)
                .into_iter()
                .map(|message| format!("prefix part {}", message.replace("253 characters", "253 bytes")));
            (wrong.collect(), name)
        }
        _ => {
            let optional = "with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')";
            return vec![format!("a valid label key {message} {optional}")];
        }
    };
    if name.is_empty() {
        wrong.push("name part must be non-empty".into());
    } else if name.len() > 63 {
        wrong.push("name part must be no more than 63 bytes".into());
    }
    if !matches(NAME, name) {
        wrong.push(format!("name part {message}"));
    }
    wrong
}

fn label_value(text: &str) -> Vec<String> {
    let mut wrong = when(text.len() > 63, "must be no more than 63 bytes");
    if !matches(VALUE, text) {
        wrong.push(mismatch(VALUE_MESSAGE, VALUE, &["MyValue", "my_value", "12345"]));
    }
    wrong
}

fn uri(text: &str) -> Vec<String> {
    match super::url::parse(text, true) {
        Ok(_) => Vec::new(),
        Err(why) => vec![format!("parse {}: {why}", super::strings::go_quote(text))],
    }
}

fn is_uuid(text: &str) -> bool {
    matches("(?i)[0-9a-f]{8}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{12}", text)
}

fn is_date(text: &str) -> bool {
    Timestamp::parse(&format!("{text}T00:00:00Z")).is_some()
}

fn is_datetime(text: &str) -> bool {
    let lower = text.to_ascii_lowercase();
    let mut parts = lower.split('t');
    let (Some(date), Some(time)) = (parts.next(), parts.next()) else {
        return false;
    };
    let shaped = matches("([0-9]{2}):([0-9]{2}):([0-9]{2})(.[0-9]+)?(z|([+-][0-9]{2}:[0-9]{2}))", time);
    let within = |part: &str, most: &str| part <= most;
    is_date(date) && shaped && within(&time[..2], "23") && within(&time[3..5], "59") && within(&time[6..8], "59")
}
