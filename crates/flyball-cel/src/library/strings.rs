//! Functions on text (cel-go's strings extension). Places in a text are counted in code points.

use super::add;
use crate::decl::{Entry, entry};
use crate::env::Env;
use crate::eval::EvalError;
use crate::value::{Text, Value, code_points};

type Outcome<'a> = Result<Value<'a>, EvalError>;

pub(super) fn install(env: &mut Env, version: u32) {
    add(env, &FUNCTIONS);
    if version >= 1 {
        add(env, &[entry("strings.quote", "strings_quote", "(string) -> string", quote)]);
        let format = if version >= 4 {
            super::format_text::second
        } else {
            super::format_text::first
        };
        add(env, &[entry("format", "string_format", "string.(list(dyn)) -> string", format)]);
    }
    if version >= 3 {
        add(env, &[entry("reverse", "string_reverse", "string.() -> string", reverse)]);
    }
}

const FUNCTIONS: [Entry; 16] = [
    entry("charAt", "string_char_at_int", "string.(int) -> string", char_at),
    entry("indexOf", "string_index_of_string", "string.(string) -> int", index_of),
    entry("indexOf", "string_index_of_string_int", "string.(string, int) -> int", index_of),
    entry("lastIndexOf", "string_last_index_of_string", "string.(string) -> int", last_index_of),
    entry(
        "lastIndexOf",
        "string_last_index_of_string_int",
        "string.(string, int) -> int",
        last_index_of,
    ),
    entry("lowerAscii", "string_lower_ascii", "string.() -> string", |args| match args {
        [Value::String(text)] => Ok(Value::string(text.to_ascii_lowercase())),
        _ => Err(EvalError::no_such_overload()),
    }),
    entry("upperAscii", "string_upper_ascii", "string.() -> string", |args| match args {
        [Value::String(text)] => Ok(Value::string(text.to_ascii_uppercase())),
        _ => Err(EvalError::no_such_overload()),
    }),
    entry("replace", "string_replace_string_string", "string.(string, string) -> string", replace),
    entry(
        "replace",
        "string_replace_string_string_int",
        "string.(string, string, int) -> string",
        replace,
    ),
    entry("split", "string_split_string", "string.(string) -> list(string)", split),
    entry("split", "string_split_string_int", "string.(string, int) -> list(string)", split),
    entry("substring", "string_substring_int", "string.(int) -> string", substring),
    entry("substring", "string_substring_int_int", "string.(int, int) -> string", substring),
    entry("trim", "string_trim", "string.() -> string", |args| match args {
        [Value::String(text)] => Ok(part(text, text.trim_matches(is_space))),
        _ => Err(EvalError::no_such_overload()),
    }),
    entry("join", "list_join", "list(string).() -> string", join),
    entry("join", "list_join_string", "list(string).(string) -> string", join),
];

/// Kubernetes' `jsonpatch` library.
pub(super) const JSON_PATCH: [Entry; 1] = [entry(
    "jsonpatch.escapeKey",
    "string_jsonpatch_escapeKey_string",
    "(string) -> string",
    |args| match args {
        [Value::String(text)] => Ok(Value::string(text.replace('~', "~0").replace('/', "~1"))),
        _ => Err(EvalError::no_such_overload()),
    },
)];

/// White space as Go's `unicode.IsSpace` has it.
fn is_space(letter: char) -> bool {
    letter.is_whitespace() && !('\u{1c}'..='\u{1f}').contains(&letter)
}

/// A part of a text, borrowed if the text is.
pub(super) fn part<'a>(whole: &Text<'a>, part: &str) -> Value<'a> {
    match whole {
        Text::Borrowed(text) => {
            let start = part.as_ptr() as usize - text.as_ptr() as usize;
            match text.get(start..start + part.len()) {
                Some(part) => Value::text(part),
                None => Value::string(part),
            }
        }
        Text::Shared(_) => Value::string(part),
    }
}

fn out_of_range<'a>(index: i64) -> Outcome<'a> {
    Err(EvalError::new(format!("index out of range: {index}")))
}

/// The byte at which a code point begins; the end of the text is the place behind the last one.
fn byte_at(text: &str, index: i64) -> Option<usize> {
    let index = usize::try_from(index).ok()?;
    if text.is_ascii() {
        return (index <= text.len()).then_some(index);
    }
    let ends = [text.len()];
    text.char_indices().map(|(at, _)| at).chain(ends).nth(index)
}

fn char_at<'a>(args: &[Value<'a>]) -> Outcome<'a> {
    let [Value::String(text), Value::Int(index)] = args else {
        return Err(EvalError::no_such_overload());
    };
    let Some(start) = byte_at(text, *index) else {
        return out_of_range(*index);
    };
    let length = text[start..].chars().next().map_or(0, char::len_utf8);
    Ok(part(text, &text[start..start + length]))
}

fn index_of<'a>(args: &[Value<'a>]) -> Outcome<'a> {
    let (text, wanted, offset) = match args {
        [Value::String(text), Value::String(wanted)] => (text, wanted, 0),
        [Value::String(text), Value::String(wanted), Value::Int(offset)] => (text, wanted, *offset),
        _ => return Err(EvalError::no_such_overload()),
    };
    if wanted.is_empty() {
        return Ok(Value::Int(offset));
    }
    if offset < 0 {
        return out_of_range(offset);
    }
    let found = byte_at(text, offset).and_then(|start| text[start..].find(&**wanted).map(|at| start + at));
    Ok(Value::Int(found.map_or(-1, |at| code_points(&text[..at]) as i64)))
}

fn last_index_of<'a>(args: &[Value<'a>]) -> Outcome<'a> {
    let (text, wanted) = match args {
        [Value::String(text), Value::String(wanted), ..] => (text, wanted),
        _ => return Err(EvalError::no_such_overload()),
    };
    let count = code_points(text) as i64;
    let offset = match args.get(2) {
        Some(Value::Int(offset)) => *offset,
        None if wanted.is_empty() => return Ok(Value::Int(count)),
        None if text.len() < wanted.len() => return Ok(Value::Int(-1)),
        _ => count - 1,
    };
    if wanted.is_empty() {
        return Ok(Value::Int(offset));
    }
    if offset < 0 {
        return out_of_range(offset);
    }
    if offset >= count {
        return Ok(Value::Int(-1));
    }
    let start = byte_at(text, offset).unwrap_or(text.len());
    // A match that ends no later than one at this place begins no later than it.
    let end = (0..=(start + wanted.len()).min(text.len()))
        .rev()
        .find(|at| text.is_char_boundary(*at))
        .unwrap_or(0);
    let found = text[..end].rfind(&**wanted);
    Ok(Value::Int(found.map_or(-1, |at| code_points(&text[..at]) as i64)))
}

fn replace<'a>(args: &[Value<'a>]) -> Outcome<'a> {
    let (text, from, to, limit) = match args {
        [Value::String(text), Value::String(from), Value::String(to)] => (text, from, to, -1),
        [
            Value::String(text),
            Value::String(from),
            Value::String(to),
            Value::Int(limit),
        ] => (text, from, to, *limit),
        _ => return Err(EvalError::no_such_overload()),
    };
    let limit = usize::try_from(limit).unwrap_or(usize::MAX);
    let occurrences = if from.is_empty() {
        code_points(text) + 1
    } else {
        text.len() / from.len()
    };
    let grown = occurrences.min(limit).saturating_mul(to.len()).saturating_add(text.len());
    super::check_size(grown)?;
    Ok(Value::string(text.replacen(&**from, to, limit)))
}

fn split<'a>(args: &[Value<'a>]) -> Outcome<'a> {
    let (text, separator, limit) = match args {
        [Value::String(text), Value::String(separator)] => (text, separator, -1),
        [Value::String(text), Value::String(separator), Value::Int(limit)] => (text, separator, *limit),
        _ => return Err(EvalError::no_such_overload()),
    };
    if limit == 0 {
        return Ok(Value::list(Vec::new()));
    }
    let limit = usize::try_from(limit).unwrap_or(usize::MAX);
    let parts: Vec<Value<'a>> = match separator.is_empty() {
        true => letters(text, limit).into_iter().map(|found| part(text, found)).collect(),
        false => text.splitn(limit, &**separator).map(|found| part(text, found)).collect(),
    };
    Ok(Value::list(parts))
}

/// Each code point by itself; the last of a limited number of parts takes the rest.
fn letters(text: &str, limit: usize) -> Vec<&str> {
    let mut parts = Vec::new();
    let mut rest = text;
    while let Some(letter) = rest.chars().next() {
        if parts.len() + 1 == limit {
            parts.push(rest);
            break;
        }
        let (found, after) = rest.split_at(letter.len_utf8());
        parts.push(found);
        rest = after;
    }
    parts
}

fn substring<'a>(args: &[Value<'a>]) -> Outcome<'a> {
    let (text, start, end) = match args {
        [Value::String(text), Value::Int(start)] => (text, *start, None),
        [Value::String(text), Value::Int(start), Value::Int(end)] => (text, *start, Some(*end)),
        _ => return Err(EvalError::no_such_overload()),
    };
    if let Some(end) = end.filter(|end| start > *end) {
        return Err(EvalError::new(format!("invalid substring range. start: {start}, end: {end}")));
    }
    let Some(from) = byte_at(text, start) else {
        return out_of_range(start);
    };
    let to = match end {
        None => text.len(),
        Some(end) => match byte_at(text, end) {
            Some(to) => to,
            None => return out_of_range(end),
        },
    };
    Ok(part(text, &text[from..to]))
}

fn join<'a>(args: &[Value<'a>]) -> Outcome<'a> {
    let (list, separator) = match args {
        [Value::List(list)] => (list, ""),
        [Value::List(list), Value::String(separator)] => (list, &**separator),
        _ => return Err(EvalError::no_such_overload()),
    };
    let mut joined = String::new();
    for (index, item) in list.iter().enumerate() {
        if index > 0 {
            joined.push_str(separator);
        }
        match item? {
            Value::String(text) => joined.push_str(&text),
            other => return Err(EvalError::new(format!("join: invalid input: {other}"))),
        }
        super::check_size(joined.len())?;
    }
    Ok(Value::string(joined))
}

fn reverse<'a>(args: &[Value<'a>]) -> Outcome<'a> {
    match args {
        [Value::String(text)] => Ok(Value::string(text.chars().rev().collect::<String>())),
        _ => Err(EvalError::no_such_overload()),
    }
}

fn quote<'a>(args: &[Value<'a>]) -> Outcome<'a> {
    let [Value::String(text)] = args else {
        return Err(EvalError::no_such_overload());
    };
    let mut quoted = String::with_capacity(text.len() + 2);
    quoted.push('"');
    for letter in text.chars() {
        match letter {
            '\u{7}' => quoted.push_str("\\a"),
            '\u{8}' => quoted.push_str("\\b"),
            '\u{c}' => quoted.push_str("\\f"),
            '\n' => quoted.push_str("\\n"),
            '\r' => quoted.push_str("\\r"),
            '\t' => quoted.push_str("\\t"),
            '\u{b}' => quoted.push_str("\\v"),
            '\\' => quoted.push_str("\\\\"),
            '"' => quoted.push_str("\\\""),
            other => quoted.push(other),
        }
    }
    quoted.push('"');
    Ok(Value::string(quoted))
}

/// Text as Go's `%q` shows it.
pub(crate) fn go_quote(text: &str) -> String {
    let mut quoted = String::from("\"");
    for letter in text.chars() {
        match letter {
            '"' | '\\' => quoted.extend(['\\', letter]),
            '\u{7}' => quoted.push_str("\\a"),
            '\u{8}' => quoted.push_str("\\b"),
            '\u{c}' => quoted.push_str("\\f"),
            '\n' => quoted.push_str("\\n"),
            '\r' => quoted.push_str("\\r"),
            '\t' => quoted.push_str("\\t"),
            '\u{b}' => quoted.push_str("\\v"),
            letter if letter.is_ascii_control() => quoted.push_str(&format!("\\x{:02x}", letter as u32)),
            letter if letter.is_control() || matches!(letter, '\u{2028}' | '\u{2029}' | '\u{feff}' | '\u{200b}') => {
                quoted.push_str(&format!("\\u{:04x}", letter as u32));
            }
            other => quoted.push(other),
        }
    }
    quoted.push('"');
    quoted
}
