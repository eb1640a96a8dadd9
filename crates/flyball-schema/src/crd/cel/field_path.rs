//! `fieldPath`: the field below the one with the rule that a refusal names.
// apiextensions-apiserver/pkg/apiserver/schema/cel/validation.go, ValidFieldPath

use crate::crd::props::{Additional, Props};

/// The path as field errors write it; none if it does not lead to a field of the schema.
pub(super) fn normalize(json_path: &str, schema: Props<'_>) -> Option<String> {
    let mut schema = schema;
    let mut path = String::new();
    let mut tokens = tokens(json_path).into_iter();
    while let Some(token) = tokens.next() {
        let quoted;
        let name = match token {
            "." => tokens.next()?,
            "[" => {
                let token = tokens.next()?;
                let inner = token.strip_prefix('\'')?.strip_suffix('\'').filter(|_| token.len() >= 2)?;
                quoted = unescape(inner)?;
                (tokens.clone().next()? == "]").then_some(())?;
                &quoted
            }
            _ => return None,
        };
        schema = if schema.properties().is_empty() {
            path.push_str(&format!("[{name}]"));
            match schema.additional()? {
                Additional::Schema(values) => values,
                Additional::Allowed(_) => return None,
            }
        } else {
            path.push_str(if path.is_empty() { "" } else { "." });
            path.push_str(name);
            schema.property(name)?
        };
        if token == "[" {
            tokens.next();
        }
    }
    Some(path)
}

/// Splits a path at `.`, `[` and `]`, which are tokens too; text in single quotes is one token.
fn tokens(path: &str) -> Vec<&str> {
    let mut tokens = Vec::new();
    let mut rest = path;
    while !rest.is_empty() {
        let end = if rest.starts_with('\'') {
            let bytes = rest.as_bytes();
            let close = (1..bytes.len()).find(|at| bytes[*at] == b'\'' && bytes[at - 1] != b'\\');
            close.map_or(rest.len(), |at| at + 1)
        } else {
            rest.find(['.', '[', ']']).map_or(rest.len(), |at| at.max(1))
        };
        let (token, after) = rest.split_at(end);
        tokens.push(token);
        rest = after;
    }
    tokens
}

fn unescape(text: &str) -> Option<String> {
    let mut unescaped = String::with_capacity(text.len());
    let mut letters = text.chars().peekable();
    while let Some(letter) = letters.next() {
        // A backslash before a line break is no escape sequence: Go's `.` does not match it.
        if letter != '\\' || letters.peek().is_none_or(|next| *next == '\n') {
            unescaped.push(letter);
            continue;
        }
        unescaped.push(match letters.next()? {
            'a' => '\x07',
            'b' => '\x08',
            'f' => '\x0c',
            'n' => '\n',
            'r' => '\r',
            't' => '\t',
            'v' => '\x0b',
            quoted @ ('\'' | '\\') => quoted,
            _ => return None,
        });
    }
    Some(unescaped)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn paths_lead_to_fields_and_keys() {
        let schema = json!({"properties": {
            "a": {"properties": {"b.c": {}, "it's": {}}},
            "m": {"additionalProperties": {"properties": {"v": {}}}},
            "l": {"items": {}},
        }});
        let cases = [
            (".a", Some("a")),
            (".a['b.c']", Some("a.b.c")),
            (r".a['it\'s']", Some("a.it's")),
            (".m.k.v", Some("m[k].v")),
            (".m['x.y'].v", Some("m[x.y].v")),
            ("", Some("")),
            ("a", None),
            (".", None),
            (".x", None),
            (".a.b.c", None),
            (".a[b]", None),
            (".a['b.c'", None),
            (".l[0]", None),
            (".a\n", None),
        ];
        for (path, normalized) in cases {
            assert_eq!(normalize(path, Props::of(&schema)).as_deref(), normalized, "{path}");
        }
    }
}
