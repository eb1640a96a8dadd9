//! `string.format`: clauses are read here and rendered as the first versions of cel-go's library do, with grouped digits and
//! raised exponents of the locale en_US, or as the later ones do, plainly.

use super::strings::go_quote;
use crate::eval::EvalError;
use crate::typing::Type;
use crate::value::{Value, convert};
use std::fmt::Write;

type Outcome<'a> = Result<Value<'a>, EvalError>;

/// The digits behind the point if a clause does not say.
const DEFAULT_PRECISION: usize = 6;
/// The most digits behind the point.
const MAX_PRECISION: usize = 1000;

/// One piece of a format.
pub(crate) struct Clause {
    pub verb: char,
    pub precision: Option<usize>,
}

/// Renders as versions 1 to 3 do.
pub(super) fn first<'a>(args: &[Value<'a>]) -> Outcome<'a> {
    format(args, first_clause)
}

/// Renders as version 4 does.
pub(super) fn second<'a>(args: &[Value<'a>]) -> Outcome<'a> {
    format(args, second_clause)
}

type Render<'a> = fn(&Clause, &Value<'a>, &mut Room) -> Result<String, String>;

fn format<'a>(args: &[Value<'a>], clause: Render<'a>) -> Outcome<'a> {
    let [Value::String(text), Value::List(list)] = args else {
        return Err(EvalError::no_such_overload());
    };
    let argument = |index| {
        if index < list.len() {
            Ok(())
        } else {
            Err(out_of_range(index))
        }
    };
    let mut room = Room { left: super::MAX_SIZE, exceeded: false };
    let rendered = walk(text, list.len(), argument, |index, found| match list.get(index) {
        Some(Ok(value)) => clause(found, &value, &mut room),
        _ => Err(out_of_range(index)),
    });
    if room.exceeded {
        return Err(EvalError::cost_limit());
    }
    let rendered = rendered.map_err(EvalError::new)?;
    super::check_size(rendered.len())?;
    Ok(Value::string(rendered))
}

/// How many bytes may still be rendered. Values that share parts can be larger than memory, and each part is written out.
struct Room {
    left: usize,
    exceeded: bool,
}

impl Room {
    fn take(&mut self, text: String) -> Result<String, String> {
        match self.left.checked_sub(text.len() + 1) {
            Some(left) => {
                self.left = left;
                Ok(text)
            }
            None => {
                self.exceeded = true;
                Err(String::new())
            }
        }
    }
}

fn out_of_range(index: usize) -> String {
    format!("index {index} out of range")
}

/// Goes through a format and has each clause rendered with the number of its argument. `argument` is asked for each of them
/// before its clause is read.
pub(crate) fn walk(
    format: &str,
    count: usize,
    argument: impl Fn(usize) -> Result<(), String>,
    mut render: impl FnMut(usize, &Clause) -> Result<String, String>,
) -> Result<String, String> {
    let (mut rendered, mut rest, mut index) = (String::new(), format, 0);
    while let Some(at) = rest.find('%') {
        rendered.push_str(&rest[..at]);
        rest = &rest[at + 1..];
        if let Some(after) = rest.strip_prefix('%') {
            rendered.push('%');
            rest = after;
            continue;
        }
        argument(index)?;
        if rest.is_empty() {
            return Err("unexpected end of string".into());
        }
        if index >= count {
            return Err(out_of_range(index));
        }
        let (clause, after) = read(rest).map_err(|why| format!("could not parse formatting clause: {why}"))?;
        let shown = render(index, &clause).map_err(|why| format!("error during formatting: {why}"))?;
        rendered.push_str(&shown);
        rest = after;
        index += 1;
    }
    rendered.push_str(rest);
    Ok(rendered)
}

fn read(text: &str) -> Result<(Clause, &str), String> {
    let mut precision = None;
    let mut rest = text;
    if let Some(digits) = text.strip_prefix('.') {
        let end = digits.find(|letter: char| !letter.is_ascii_digit());
        let parsing = |why: String| format!("error while parsing precision: {why}");
        let end = end.ok_or_else(|| parsing("could not find end of precision specifier".into()))?;
        let number = digits[..end].parse::<usize>().ok().filter(|number| *number <= MAX_PRECISION);
        let invalid = || {
            let shown = go_quote(&digits[..end]);
            parsing(format!(
                "error while converting precision to integer: strconv.Atoi: parsing {shown}: invalid syntax"
            ))
        };
        precision = Some(number.ok_or_else(invalid)?);
        rest = &digits[end..];
    }
    let verb = rest.chars().next().unwrap_or('\0');
    match verb {
        's' | 'd' | 'f' | 'e' | 'b' | 'x' | 'X' | 'o' => Ok((Clause { verb, precision }, &rest[1..])),
        _ => Err(format!("unrecognized formatting clause \"{verb}\"")),
    }
}

/// What is said of an argument that a clause does not take.
pub(crate) fn refusal(verb: char, kind: &Type) -> String {
    let kind = kind.runtime_name();
    let wanted = match verb {
        'd' => "decimal clause can only be used on integers",
        'f' => "fixed-point clause can only be used on doubles",
        'e' => "scientific clause can only be used on doubles",
        'b' => "only integers and bools can be formatted as binary",
        'x' | 'X' => "only integers, byte buffers, and strings can be formatted as hex",
        'o' => "octal clause can only be used on integers",
        _ => {
            "string clause can only be used on strings, bools, bytes, ints, doubles, maps, lists, types, durations, and timestamps"
        }
    };
    format!("{wanted}, was given {kind}")
}

fn first_clause(clause: &Clause, value: &Value<'_>, room: &mut Room) -> Result<String, String> {
    let precision = clause.precision.unwrap_or(DEFAULT_PRECISION);
    match (clause.verb, value) {
        ('s', Value::List(_) | Value::Map(_)) => nested(value, room),
        ('s', value) => first_text(value).and_then(|text| room.take(text)),
        ('d', Value::Int(_) | Value::Uint(_)) => Ok(value.to_string()),
        ('f', value) => match double(value) {
            Some(number) => Ok(grouped(number, precision)),
            None => Err(refusal('f', &value.type_of())),
        },
        ('e', value) => match double(value) {
            Some(number) => Ok(raised(number, precision)),
            None => Err(refusal('e', &value.type_of())),
        },
        (verb, value) => digits(verb, value).and_then(|text| room.take(text)),
    }
}

fn second_clause(clause: &Clause, value: &Value<'_>, room: &mut Room) -> Result<String, String> {
    let precision = clause.precision.unwrap_or(DEFAULT_PRECISION);
    match (clause.verb, value) {
        ('s', value) => second_text(value, room),
        ('d', Value::Int(_) | Value::Uint(_)) => Ok(value.to_string()),
        ('d' | 'f' | 'e', Value::Double(number)) if !number.is_finite() => Ok(special(*number)),
        ('d', Value::Double(number)) => Ok(number.to_string()),
        ('f', Value::Double(number)) => Ok(format!("{number:.precision$}")),
        ('e', Value::Double(number)) => Ok(scientific(*number, precision)),
        (verb, value) => digits(verb, value).and_then(|text| room.take(text)),
    }
}

/// A number, or the text of one that has no digits.
fn double(value: &Value<'_>) -> Option<f64> {
    match value {
        Value::Double(number) => Some(*number),
        Value::String(text) if matches!(&**text, "NaN" | "Infinity" | "-Infinity") => convert::parse_double(text),
        _ => None,
    }
}

fn digits(verb: char, value: &Value<'_>) -> Result<String, String> {
    let signed = |number: i64, shown: &dyn Fn(u64) -> String| {
        let sign = if number < 0 { "-" } else { "" };
        format!("{sign}{}", shown(number.unsigned_abs()))
    };
    let hex = |bytes: &[u8], upper: bool| {
        bytes.iter().fold(String::new(), |mut text, byte| {
            let written = if upper {
                write!(text, "{byte:02X}")
            } else {
                write!(text, "{byte:02x}")
            };
            written.expect("writing to a string succeeds");
            text
        })
    };
    let shown: &dyn Fn(u64) -> String = match verb {
        'b' => &|number| format!("{number:b}"),
        'o' => &|number| format!("{number:o}"),
        'x' => &|number| format!("{number:x}"),
        _ => &|number| format!("{number:X}"),
    };
    match (verb, value) {
        ('b' | 'o' | 'x' | 'X', Value::Int(number)) => Ok(signed(*number, shown)),
        ('b' | 'o' | 'x' | 'X', Value::Uint(number)) => Ok(shown(*number)),
        ('b', Value::Bool(value)) => Ok(if *value { "1".into() } else { "0".into() }),
        ('x' | 'X', Value::String(text)) => Ok(hex(text.as_bytes(), verb == 'X')),
        ('x' | 'X', Value::Bytes(bytes)) => Ok(hex(bytes, verb == 'X')),
        (verb, value) => Err(refusal(verb, &value.type_of())),
    }
}

fn first_text(value: &Value<'_>) -> Result<String, String> {
    match value {
        Value::Null => Ok("null".into()),
        Value::Optional(_) | Value::Opaque(_) | Value::Message(_) => Err(refusal('s', &value.type_of())),
        other => match convert::convert(other, &Type::String) {
            Ok(text) => Ok(text.to_string()),
            Err(error) => Err(format!("could not convert argument {} to string", go_quote(error.message()))),
        },
    }
}

/// A value within a list or map: text is quoted, numbers have six digits behind the point.
fn nested(value: &Value<'_>, room: &mut Room) -> Result<String, String> {
    match value {
        Value::List(list) => {
            let items = list.iter().map(|item| nested(&item.map_err(|error| error.message().to_string())?, room));
            Ok(format!("[{}]", items.collect::<Result<Vec<String>, String>>()?.join(", ")))
        }
        Value::Map(map) => {
            let mut entries = Vec::new();
            for entry in map.entries() {
                let (key, value) = entry.map_err(|error| error.message().to_string())?;
                if !matches!(key, Value::String(_) | Value::Bool(_) | Value::Int(_) | Value::Uint(_)) {
                    let kind = key.type_of();
                    return Err(format!("no formatting function for map key of type {}", kind.runtime_name()));
                }
                entries.push((nested(&key, room)?, nested(&value, room)?));
            }
            entries.sort();
            let entries: Vec<String> = entries.into_iter().map(|(key, value)| format!("{key}:{value}")).collect();
            Ok(format!("{{{}}}", entries.join(", ")))
        }
        other => element(other).and_then(|text| room.take(text)),
    }
}

/// A value within a list or map that is neither.
fn element(value: &Value<'_>) -> Result<String, String> {
    match value {
        Value::String(text) => Ok(go_quote(text)),
        Value::Bytes(_) => first_text(value).map(|text| format!("b{}", go_quote(&text))),
        Value::Timestamp(point) => Ok(format!("timestamp({})", go_quote(&point.to_string()))),
        Value::Duration(span) => Ok(format!("duration({})", go_quote(&span.to_string()))),
        Value::Double(number) if number.is_nan() => Ok("\"NaN\"".into()),
        Value::Double(number) if number.is_infinite() => Ok(if *number > 0.0 {
            "\"+Inf\"".into()
        } else {
            "\"-Inf\"".into()
        }),
        Value::Double(number) => Ok(format!("{number:.6}")),
        Value::Optional(_) | Value::Opaque(_) => {
            Err(format!("no formatting function for {}", value.type_of().runtime_name()))
        }
        other => first_text(other),
    }
}

fn second_text(value: &Value<'_>, room: &mut Room) -> Result<String, String> {
    let text = match value {
        Value::Null => "null".into(),
        Value::Double(number) if !number.is_finite() => special(*number),
        Value::Double(number) => number.to_string(),
        Value::Bytes(bytes) => String::from_utf8_lossy(bytes).into_owned(),
        Value::Duration(span) => span.to_string(),
        Value::Timestamp(point) => point.to_string(),
        Value::List(list) => {
            let items = list
                .iter()
                .map(|item| second_text(&item.map_err(|error| error.message().to_string())?, room));
            return Ok(format!("[{}]", items.collect::<Result<Vec<String>, String>>()?.join(", ")));
        }
        Value::Map(map) => {
            let mut entries = Vec::new();
            for entry in map.entries() {
                let (key, value) = entry.map_err(|error| error.message().to_string())?;
                entries.push((second_text(&key, room)?, second_text(&value, room)?));
            }
            entries.sort_by(|one, other| one.0.cmp(&other.0));
            let entries: Vec<String> = entries.into_iter().map(|(key, value)| format!("{key}: {value}")).collect();
            return Ok(format!("{{{}}}", entries.join(", ")));
        }
        Value::Optional(_) | Value::Opaque(_) => return Err(refusal('s', &value.type_of())),
        other => other.to_string(),
    };
    room.take(text)
}

fn special(number: f64) -> String {
    match number {
        number if number.is_nan() => "NaN".into(),
        number if number > 0.0 => "Infinity".into(),
        _ => "-Infinity".into(),
    }
}

/// `1.05e+03`
fn scientific(number: f64, precision: usize) -> String {
    let text = format!("{number:.precision$e}");
    let (mantissa, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    let (sign, digits) = exponent.strip_prefix('-').map_or(('+', exponent), |digits| ('-', digits));
    format!("{mantissa}e{sign}{digits:0>2}")
}

/// `1,234.50`
fn grouped(number: f64, precision: usize) -> String {
    if number.is_nan() {
        return "NaN".into();
    }
    if number.is_infinite() {
        return if number > 0.0 { "∞".into() } else { "-∞".into() };
    }
    let text = format!("{:.precision$}", number.abs());
    let (whole, fraction) = text.split_once('.').map_or((&*text, ""), |(whole, fraction)| (whole, fraction));
    let mut grouped = String::from(if number < 0.0 { "-" } else { "" });
    for (index, digit) in whole.chars().enumerate() {
        if index > 0 && (whole.len() - index).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    if !fraction.is_empty() {
        grouped.push('.');
        grouped.push_str(fraction);
    }
    grouped
}

/// `1.052033×10⁰³`: what cel-go takes for the precision is the width there, so there are always six digits.
fn raised(number: f64, width: usize) -> String {
    if !number.is_finite() {
        let text = grouped(number, 0);
        return format!("{text:>width$}");
    }
    // Zero has no sign there.
    let text = format!("{:.6e}", number + 0.0);
    let (mantissa, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    let (sign, digits) = exponent.strip_prefix('-').map_or(("", exponent), |digits| ("⁻", digits));
    let raised: String = format!("{digits:0>2}")
        .chars()
        .map(|digit| ['⁰', '¹', '²', '³', '⁴', '⁵', '⁶', '⁷', '⁸', '⁹'][digit.to_digit(10).unwrap_or(0) as usize])
        .collect();
    format!("{mantissa}×10{sign}{raised}")
}
