//! Names of fields as expressions write them.
// apiserver/pkg/cel/escaping.go

use std::borrow::Cow;

/// Names that the language keeps for itself.
const RESERVED: [&str; 21] = [
    "as",
    "break",
    "const",
    "continue",
    "else",
    "false",
    "for",
    "function",
    "if",
    "import",
    "in",
    "let",
    "loop",
    "namespace",
    "null",
    "package",
    "return",
    "true",
    "var",
    "void",
    "while",
];

/// The name of a field in expressions; none if there is no way to write it.
pub(crate) fn escape(name: &str) -> Option<Cow<'_, str>> {
    if name.is_empty() || name.starts_with(|letter: char| letter.is_ascii_digit()) {
        return None;
    }
    if RESERVED.contains(&name) {
        return Some(format!("__{name}__").into());
    }
    if !name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_-./".contains(&byte)) {
        return None;
    }
    if !name.contains(['-', '.', '/']) && !name.contains("__") {
        return Some(name.into());
    }
    let mut escaped = String::with_capacity(name.len() + 16);
    let mut rest = name;
    while let Some(letter) = rest.chars().next() {
        let (taken, written) = match letter {
            '_' if rest.starts_with("__") => (2, "__underscores__"),
            '.' => (1, "__dot__"),
            '-' => (1, "__dash__"),
            '/' => (1, "__slash__"),
            _ => (1, &rest[..1]),
        };
        escaped.push_str(written);
        rest = &rest[taken..];
    }
    Some(escaped.into())
}

/// The keyword that an escaped name stands for, if it is one.
pub(super) fn unescape_keyword(escaped: &str) -> Option<&str> {
    let inner = escaped.strip_prefix("__")?.strip_suffix("__")?;
    RESERVED.contains(&inner).then_some(inner)
}

#[cfg(test)]
mod tests {
    use super::escape;

    #[test]
    fn names_are_escaped_as_upstream_does() {
        let cases = [
            ("name", Some("name")),
            ("a.b-c/d", Some("a__dot__b__dash__c__slash__d")),
            ("a__b", Some("a__underscores__b")),
            ("___", Some("__underscores___")),
            ("namespace", Some("__namespace__")),
            ("self", Some("self")),
            ("1st", None),
            ("", None),
            ("a b", None),
            ("é", None),
        ];
        for (name, escaped) in cases {
            assert_eq!(escape(name).as_deref(), escaped, "{name}");
        }
    }
}
