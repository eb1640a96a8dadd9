//! What our engine makes of a request beside what cel-go made of it.

use std::collections::BTreeMap;
use std::fmt::{self, Display, Formatter};
use std::panic::{self, AssertUnwindSafe};
use std::sync::LazyLock;

use flyball_cel::{CompileError, Env, Type};
use serde_json::{Value as Json, json};

use super::inputs::{TYPES, bindings, type_named};
use super::peer::{Answer, Request};
use crate::cel::canonical::{canonical, entries_of};

/// What one evaluation of a rule may cost, in Kubernetes.
const CALL_LIMIT: u64 = 1_000_000;

/// What became of one expression.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Finding {
    /// Both sides have the same type, the same value or error, and the same cost.
    Same,
    /// Both fail for the same kind of reason, in other words.
    OtherWords(String),
    /// They differ for a reason that is known and left.
    Explained(&'static str),
    /// They differ: the cause, and an example.
    Different(String, String),
}

/// What a run found.
#[derive(Debug)]
pub struct Report {
    seed: u64,
    same: usize,
    values: usize,
    words: Vec<String>,
    explained: BTreeMap<&'static str, usize>,
    different: BTreeMap<String, Vec<String>>,
    /// How many examples of a cause are shown.
    pub examples: usize,
}

impl Report {
    /// A report of nothing yet.
    pub fn new(seed: u64) -> Self {
        Self {
            seed,
            same: 0,
            values: 0,
            words: Vec::new(),
            explained: BTreeMap::new(),
            different: BTreeMap::new(),
            examples: 4,
        }
    }

    /// Adds a finding.
    pub fn add(&mut self, (finding, has_value): (Finding, bool)) {
        self.values += usize::from(has_value);
        match finding {
            Finding::Same => self.same += 1,
            Finding::OtherWords(how) => self.words.push(how),
            Finding::Explained(reason) => *self.explained.entry(reason).or_default() += 1,
            Finding::Different(cause, example) => self.different.entry(cause).or_default().push(example),
        }
    }

    /// How many expressions differ.
    pub fn differences(&self) -> usize {
        self.different.values().map(Vec::len).sum()
    }
}

/// Examples by cause, and the closing line.
impl Display for Report {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        for (cause, examples) in &self.different {
            writeln!(formatter, "{} × {cause}", examples.len())?;
            for example in examples.iter().take(self.examples) {
                writeln!(formatter, "    {}", example.replace('\n', "\n    "))?;
            }
        }
        for example in self.words.iter().take(self.examples) {
            writeln!(formatter, "other words: {}", example.replace('\n', "\n    "))?;
        }
        for (reason, count) in &self.explained {
            writeln!(formatter, "{count} explained: {reason}")?;
        }
        let Self { seed, same, values, words, .. } = self;
        let (words, explained, different) = (words.len(), self.explained.values().sum::<usize>(), self.differences());
        write!(
            formatter,
            "seed {seed}: {same} same ({values} expressions have a value), {words} in other words, {explained} explained, \
             {different} different"
        )
    }
}

/// Compares, and tells whether cel-go had a value.
pub fn judge(request: &Request, theirs: &Answer) -> (Finding, bool) {
    if !theirs.panic.is_empty() {
        let how = format!("{}\ncel-go panics: {}", request.expression, theirs.panic);
        return (Finding::OtherWords(how), false);
    }
    let has_value = theirs.invalid.is_empty() && theirs.program.is_empty() && theirs.error.is_empty();
    let ours = panic::catch_unwind(AssertUnwindSafe(|| evaluated(request)));
    let finding = match ours {
        Ok(ours) => match (compared(request, &ours, theirs), reason(request)) {
            (Finding::Different(..), Some(reason)) => Finding::Explained(reason),
            (finding, _) => finding,
        },
        Err(_) => Finding::Different("a panic".into(), request.expression.clone()),
    };
    (finding, has_value)
}

/// Our side, in the peer's form.
fn evaluated(request: &Request) -> Answer {
    static ENVIRONMENT: LazyLock<Env> = LazyLock::new(|| {
        let variables = TYPES.iter().map(|(name, kind)| (*name, type_named(kind)));
        variables.fold(crate::cel::kubernetes(), |env, (name, kind)| env.variable(name, kind))
    });
    let program = match ENVIRONMENT.compile(&request.expression) {
        Ok(program) => program,
        Err(CompileError::Invalid(issues)) => return Answer { invalid: issues.to_string(), ..Answer::default() },
        Err(CompileError::Program(program)) => return Answer { program, ..Answer::default() },
    };
    let bindings = bindings(&request.values);
    let evaluation = program.evaluate_within(&bindings, CALL_LIMIT);
    let mut answer = Answer {
        kind: type_name(program.result_type()),
        cost: Some(evaluation.cost),
        ..Answer::default()
    };
    match evaluation.result.and_then(|value| canonical(&value)) {
        Ok(value) => answer.value = value,
        Err(error) => answer.error = error.to_string(),
    }
    answer
}

fn compared(request: &Request, ours: &Answer, theirs: &Answer) -> Finding {
    let different = |cause: String, ours: &dyn Display, theirs: &dyn Display| {
        let example = format!("{}\ncel-go: {theirs}\nours:   {ours}\nvalues: {}", request.expression, used(request));
        Finding::Different(cause, example)
    };
    let stages = [
        ("compilation", &ours.invalid, &theirs.invalid),
        ("program", &ours.program, &theirs.program),
        ("evaluation", &ours.error, &theirs.error),
    ];
    let mut words = None;
    for (stage, ours, theirs) in stages {
        if ours.is_empty() != theirs.is_empty() {
            let (who, message) = if ours.is_empty() {
                ("only cel-go fails", theirs)
            } else {
                ("only we fail", ours)
            };
            return different(format!("{stage}: {who}: {}", kind_of(message)), ours, theirs);
        }
        if ours != theirs && kind_of(ours) != kind_of(theirs) {
            return different(format!("{stage}: {} and {}", kind_of(theirs), kind_of(ours)), ours, theirs);
        }
        if ours != theirs {
            words = Some(format!("{}\ncel-go: {theirs}\nours:   {ours}", request.expression));
        }
    }
    if theirs.program.is_empty() && ours.kind != theirs.kind {
        return different("the type".into(), &ours.kind, &theirs.kind);
    }
    let value = ordered(theirs.value.clone());
    if ours.value != value {
        return different("the value".into(), &ours.value, &value);
    }
    if let (Some(spent), Some(expected)) = (ours.cost, theirs.cost)
        && spent != expected
    {
        return different("the cost".into(), &spent, &expected);
    }
    words.map_or(Finding::Same, Finding::OtherWords)
}

/// Why the values of an expression may differ, where that is known: our quantities have no notation of their own, and at most
/// 38 digits.
fn reason(request: &Request) -> Option<&'static str> {
    let text = &request.expression;
    if !text.contains("quantity(") {
        return None;
    }
    let is_large = |text: &str| ["e300", "e308"].iter().any(|exponent| text.contains(exponent));
    if text.contains("google.protobuf.StringValue") {
        Some("the text of a quantity")
    } else if is_large(text) || is_large(&used(request).to_string()) {
        Some("a quantity of more than 38 digits")
    } else {
        None
    }
}

/// The values of the variables that an expression names.
fn used(request: &Request) -> Json {
    let names = request.expression.split(|character: char| !character.is_ascii_alphanumeric());
    let names: Vec<&str> = names.collect();
    let used = request.values.iter().filter(|(name, _)| names.contains(name));
    used.map(|(name, value)| ((*name).to_owned(), value.clone())).collect()
}

/// A message without what it quotes and counts.
fn kind_of(message: &str) -> String {
    // What is reported beside a syntax error depends on how the parser recovers from it.
    if message.contains(": Syntax error") {
        return "Syntax error".into();
    }
    if message.starts_with("unknown time zone") {
        return "unknown time zone".into();
    }
    // cel-go reports in addition that it has stopped to look for the end of a syntax error
    let mut lines = message
        .lines()
        .filter(|line| !line.contains("error recovery token lookahead limit exceeded"));
    let line = lines.next().unwrap_or_default();
    let line = line.trim_start_matches("ERROR: ");
    let line = match line.strip_prefix("<input>:") {
        Some(rest) => rest.splitn(3, ':').nth(2).unwrap_or(rest).trim(),
        None => line,
    };
    let end = line.find([':', '\'', '"', '`', '(', '[']).unwrap_or(line.len());
    line[..end]
        .chars()
        .filter(|character| !character.is_ascii_digit())
        .collect::<String>()
        .trim()
        .to_owned()
}

/// Entries of maps by their keys, and opaque values by their types.
fn ordered(value: Json) -> Json {
    match value {
        Json::Array(items) => items.into_iter().map(ordered).collect(),
        Json::Object(members) => match (members.get("map"), members.get("opaque")) {
            (Some(Json::Array(entries)), _) => {
                let pair = |entry: &Json| (ordered(entry[0].clone()), ordered(entry[1].clone()));
                entries_of(entries.iter().map(pair).collect())
            }
            (_, Some(name)) => json!({ "opaque": name }),
            _ => members.into_iter().map(|(key, value)| (key, ordered(value))).collect(),
        },
        other => other,
    }
}

/// A type as cel-go's `Type.String` writes it.
fn type_name(kind: &Type) -> String {
    match kind {
        Type::List(element) => format!("list({})", type_name(element)),
        Type::Map(key, value) => format!("map({}, {})", type_name(key), type_name(value)),
        Type::Type(Some(inner)) => format!("type({})", type_name(inner)),
        Type::Nullable(inner) => format!("wrapper({})", type_name(inner)),
        Type::Opaque(name, parameters) if !parameters.is_empty() => {
            let parameters: Vec<String> = parameters.iter().map(type_name).collect();
            format!("{name}({})", parameters.join(", "))
        }
        other => other.runtime_name().to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_of_one_kind_whatever_they_quote() {
        assert_eq!(kind_of("no such key: a"), kind_of("no such key: b"));
        let first = "ERROR: <input>:1:2: found no matching overload for '_+_' applied to '(int, double)'\n | 1";
        assert_eq!(kind_of(first), "found no matching overload for");
        let beside =
            "ERROR: <input>:1:5: invalid argument to has() macro\n | has(\nERROR: <input>:1:6: Syntax error: x";
        assert_eq!(kind_of(beside), kind_of("ERROR: <input>:1:6: Syntax error: x"));
        assert_ne!(kind_of("division by zero"), kind_of("modulus by zero"));
    }

    #[test]
    fn only_differences_of_quantities_are_explained() {
        let of = |expression: &str, value: &str| {
            let values = [("d", json!(value))].into();
            let types = &super::super::inputs::TYPES;
            reason(&Request {
                kubernetes: true,
                expression: expression.into(),
                types,
                values,
            })
        };
        assert_eq!(of("quantity(string(d)).isInteger()", "-1e300"), Some("a quantity of more than 38 digits"));
        assert_eq!(of("quantity(string(d)).isInteger()", "1"), None);
        assert_eq!(of("string(d) == ''", "-1e300"), None);
        let text = "google.protobuf.StringValue{value: dyn(quantity('1'))}";
        assert_eq!(of(text, "1"), Some("the text of a quantity"));
    }

    #[test]
    fn maps_are_compared_in_any_order() {
        let map = |entries: Json| ordered(json!([{ "map": entries }]));
        assert_eq!(map(json!([["b", 1], ["a", 2]])), map(json!([["a", 2], ["b", 1]])));
    }
}
