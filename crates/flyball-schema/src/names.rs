//! What may be a name, a label key or a label value, and how Kubernetes says that something may not.
//! Each check answers with what is wrong, and with nothing when all is well.

const LABEL: &str = "[a-z0-9]([-a-z0-9]*[a-z0-9])?";
const SUBDOMAIN: &str = "[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*";
const LABEL_1035: &str = "[a-z]([-a-z0-9]*[a-z0-9])?";
const KEY: &str = "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]";
const VALUE: &str = "(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?";

const LABEL_RULE: &str = "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', \
     and must start and end with an alphanumeric character";
const SUBDOMAIN_RULE: &str = "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', \
     and must start and end with an alphanumeric character";
const LABEL_1035_RULE: &str = "a DNS-1035 label must consist of lower case alphanumeric characters or '-', \
     start with an alphabetic character, and end with an alphanumeric character";
const KEY_RULE: &str = "must consist of alphanumeric characters, '-', '_' or '.', \
     and must start and end with an alphanumeric character";
const VALUE_RULE: &str = "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', \
     and must start and end with an alphanumeric character";
const UNDERSCORE: &str = "_?[a-z0-9]([-_a-z0-9]*[a-z0-9])?(\\._?[a-z0-9]([-_a-z0-9]*[a-z0-9])?)*";
const UNDERSCORE_RULE: &str = "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '_', '-' or '.', \
     and must start and end with an alphanumeric character";
const WILDCARD: &str = "\\*\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*";
const WILDCARD_RULE: &str = "a wildcard DNS-1123 subdomain must start with '*.', followed by a valid DNS subdomain, \
     which must consist of lower case alphanumeric characters, '-' or '.' and end with an alphanumeric character";
const CONFIG_KEY_RULE: &str = "a valid config key must consist of alphanumeric characters, '-', '_' or '.'";

/// Which names the objects of a kind may have.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum NameRule {
    /// A DNS-1123 subdomain: most kinds, and every custom resource.
    #[default]
    Subdomain,
    /// A DNS-1123 label, such as a Namespace's.
    Label,
    /// A DNS-1035 label.
    Label1035,
    /// Anything that is one segment of a path, such as a Role's.
    PathSegment,
}

impl NameRule {
    /// What is wrong with a name.
    pub fn name(self, name: &str) -> Vec<String> {
        match self {
            NameRule::Subdomain => dns1123_subdomain(name),
            NameRule::Label => dns1123_label(name),
            NameRule::Label1035 => dns1035_label(name),
            NameRule::PathSegment => path_segment(name),
        }
    }

    /// What is wrong with a `generateName`, to which characters will be added.
    pub fn prefix(self, prefix: &str) -> Vec<String> {
        if self == NameRule::PathSegment {
            return path_segment_prefix(prefix);
        }
        // apimachinery/pkg/api/validation/generic.go, maskTrailingDash: it takes two characters off.
        match prefix.strip_suffix('-') {
            Some(rest) if !rest.is_empty() => {
                let kept: String = rest.chars().take(rest.chars().count() - 1).collect();
                self.name(&(kept + "a"))
            }
            _ => self.name(prefix),
        }
    }
}

/// What is wrong with a label of DNS (RFC 1123).
pub fn dns1123_label(value: &str) -> Vec<String> {
    let mut wrong = too_long(value, 63, "characters");
    if is_label(value) {
        return wrong;
    }
    if is_subdomain(value) {
        wrong.push("must not contain dots".to_owned());
    } else {
        wrong.push(by_pattern(LABEL_RULE, LABEL, &["my-name", "123-abc"]));
    }
    wrong
}

/// What is wrong with a subdomain of DNS (RFC 1123).
pub fn dns1123_subdomain(value: &str) -> Vec<String> {
    let mut wrong = too_long(value, 253, "characters");
    if !is_subdomain(value) {
        wrong.push(by_pattern(SUBDOMAIN_RULE, SUBDOMAIN, &["example.com"]));
    }
    wrong
}

/// What is wrong with a label of DNS (RFC 1035).
pub fn dns1035_label(value: &str) -> Vec<String> {
    let mut wrong = too_long(value, 63, "characters");
    if !is_label(value) || !value.starts_with(|first: char| first.is_ascii_lowercase()) {
        wrong.push(by_pattern(LABEL_1035_RULE, LABEL_1035, &["my-name", "abc-123"]));
    }
    wrong
}

/// What is wrong with a qualified name: a label's key, a finalizer.
pub fn qualified_name(value: &str) -> Vec<String> {
    let mut wrong = Vec::new();
    let examples = ["MyName", "my.name", "123-abc"];
    let mut parts = value.split('/');
    let name = match (parts.next(), parts.next(), parts.next()) {
        (Some(name), None, _) => name,
        (Some(prefix), Some(name), None) => {
            wrong.extend(key_prefix(prefix));
            name
        }
        _ => {
            let rule = by_pattern(KEY_RULE, KEY, &examples);
            let optional = "with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')";
            return vec![format!("a valid label key {rule} {optional}")];
        }
    };
    if name.is_empty() {
        wrong.push("name part must be non-empty".to_owned());
    }
    wrong.extend(too_long(name, 63, "bytes").into_iter().map(|text| format!("name part {text}")));
    if !is_key(name) {
        wrong.push(format!("name part {}", by_pattern(KEY_RULE, KEY, &examples)));
    }
    wrong
}

fn key_prefix(prefix: &str) -> Vec<String> {
    if prefix.is_empty() {
        return vec!["prefix part must be non-empty".to_owned()];
    }
    // The check of keys counts bytes where the check of names counts characters.
    let mut wrong = too_long(prefix, 253, "bytes");
    if !is_subdomain(prefix) {
        wrong.push(by_pattern(SUBDOMAIN_RULE, SUBDOMAIN, &["example.com"]));
    }
    wrong.into_iter().map(|text| format!("prefix part {text}")).collect()
}

/// What is wrong with a label's value.
pub fn label_value(value: &str) -> Vec<String> {
    let mut wrong = too_long(value, 63, "bytes");
    if !value.is_empty() && !is_key(value) {
        wrong.push(by_pattern(VALUE_RULE, VALUE, &["MyValue", "my_value", "12345"]));
    }
    wrong
}

/// What is wrong with a name that is one segment of a path.
pub fn path_segment(name: &str) -> Vec<String> {
    match name {
        "." | ".." => vec![format!("may not be '{name}'")],
        _ => path_segment_prefix(name),
    }
}

fn path_segment_prefix(name: &str) -> Vec<String> {
    let unsafe_parts = ["/", "%"].into_iter().filter(|part| name.contains(part));
    unsafe_parts.map(|part| format!("may not contain '{part}'")).collect()
}

/// What is wrong with a key of a ConfigMap or Secret.
pub fn config_key(value: &str) -> Vec<String> {
    let mut wrong = too_long(value, 253, "characters");
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"-._".contains(&byte);
    if value.is_empty() || !value.bytes().all(allowed) {
        wrong.push(by_pattern(CONFIG_KEY_RULE, "[-._a-zA-Z0-9]+", &["key.name", "KEY_NAME", "key-name"]));
    }
    match value {
        "." | ".." => wrong.push(format!("must not be '{value}'")),
        _ if value.starts_with("..") => wrong.push("must not start with '..'".to_owned()),
        _ => {}
    }
    wrong
}

/// What is wrong with a subdomain of DNS in which underscores are allowed, as in what resolvers search.
pub fn dns1123_subdomain_with_underscore(value: &str) -> Vec<String> {
    let mut wrong = too_long(value, 253, "characters");
    let word = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    let is_part = |part: &str| is_enclosed(part.strip_prefix('_').unwrap_or(part), word, |byte| b"-_".contains(&byte));
    if !value.split('.').all(is_part) {
        wrong.push(by_pattern(UNDERSCORE_RULE, UNDERSCORE, &["example.com"]));
    }
    wrong
}

/// What is wrong with the name of a port.
// apimachinery/pkg/util/validation/validation.go, IsValidPortName
pub fn port_name(value: &str) -> Vec<String> {
    let mut wrong = too_long(value, 15, "characters");
    let word = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    if value.is_empty() || !value.bytes().all(word) {
        wrong.push("must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)".to_owned());
    }
    if !value.bytes().any(|byte| byte.is_ascii_lowercase()) {
        wrong.push("must contain at least one letter (a-z)".to_owned());
    }
    if value.contains("--") {
        wrong.push("must not contain consecutive hyphens".to_owned());
    }
    if value.starts_with('-') || value.ends_with('-') {
        wrong.push("must not begin or end with a hyphen".to_owned());
    }
    wrong
}

/// What is wrong with the name of an environment variable.
// apimachinery/pkg/util/validation/validation.go, IsRelaxedEnvVarName
pub fn environment_variable(value: &str) -> Vec<String> {
    let rule = "a valid environment variable name must consist only of printable ASCII characters other than '='";
    match value.bytes().all(|byte| matches!(byte, b' '..=b'~') && byte != b'=') {
        true => Vec::new(),
        false => vec![rule.to_owned()],
    }
}

/// What is wrong with the name of an HTTP header.
pub fn http_header(value: &str) -> Vec<String> {
    if !value.is_empty() && value.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-') {
        return Vec::new();
    }
    let rule = "a valid HTTP header must consist of alphanumeric characters or '-'";
    vec![by_pattern(rule, "[-A-Za-z0-9]+", &["X-Header-Name"])]
}

/// What is wrong with a wildcard of DNS: `*.` and a subdomain.
pub fn wildcard_subdomain(value: &str) -> Vec<String> {
    let mut wrong = too_long(value, 253, "characters");
    if !value.strip_prefix("*.").is_some_and(is_subdomain) {
        wrong.push(by_pattern(WILDCARD_RULE, WILDCARD, &["*.example.com"]));
    }
    wrong
}

fn is_label(value: &str) -> bool {
    let word = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    is_enclosed(value, word, |byte| byte == b'-')
}

fn is_subdomain(value: &str) -> bool {
    value.split('.').all(is_label)
}

fn is_key(value: &str) -> bool {
    is_enclosed(value, |byte| byte.is_ascii_alphanumeric(), |byte| b"-_.".contains(&byte))
}

/// Whether a value begins and ends with `outer` and has nothing but `outer` and `inner` in it.
fn is_enclosed(value: &str, outer: impl Fn(u8) -> bool, inner: impl Fn(u8) -> bool) -> bool {
    match value.as_bytes() {
        [] => false,
        [only] => outer(*only),
        [first, middle @ .., last] => {
            outer(*first) && outer(*last) && middle.iter().all(|byte| outer(*byte) || inner(*byte))
        }
    }
}

fn too_long(value: &str, most: usize, unit: &str) -> Vec<String> {
    if value.len() > most {
        vec![format!("must be no more than {most} {unit}")]
    } else {
        Vec::new()
    }
}

fn by_pattern(rule: &str, pattern: &str, examples: &[&str]) -> String {
    let shown: Vec<_> = examples.iter().map(|example| format!("'{example}', ")).collect();
    format!("{rule} (e.g. {}regex used for validation is '{pattern}')", shown.join(" or "))
}
