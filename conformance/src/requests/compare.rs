//! Finds where two normalised answers differ, by path.

use std::collections::HashMap;
use std::fmt::{self, Display, Formatter};

use regex::Regex;
use serde_json::Value;

/// How many characters of each end of a long value are shown.
const SHOWN: usize = 250;

/// One place where two answers differ.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    /// Where, as in `body/spec/replicas`, `header/warning` or `status`.
    pub path: String,
    /// What the real server has there.
    pub reference: Option<Value>,
    /// What ours has there.
    pub ours: Option<Value>,
}

impl Display for Difference {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        let show = |value: &Option<Value>| value.as_ref().map_or("nothing".to_owned(), shortened);
        write!(formatter, "{}: real {}, ours {}", self.path, show(&self.reference), show(&self.ours))
    }
}

/// Both ends of what is long: texts differ at their ends more often than in the middle.
fn shortened(value: &Value) -> String {
    let text: Vec<char> = value.to_string().chars().collect();
    if text.len() <= 2 * SHOWN {
        return text.iter().collect();
    }
    let (start, end) = (&text[..SHOWN], &text[text.len() - SHOWN..]);
    format!("{} … {}", start.iter().collect::<String>(), end.iter().collect::<String>())
}

/// Which values of the real server's stand for which of ours: what `normal` marks must be equal where, and only where,
/// it is equal on the other side.
pub struct Pairs {
    ours: HashMap<String, String>,
    reference: HashMap<String, String>,
    mark: Regex,
}

impl Default for Pairs {
    fn default() -> Self {
        let mark = Regex::new("<(uid|version|address|generated):([^>]*)>").expect("a constant pattern");
        Self { ours: HashMap::new(), reference: HashMap::new(), mark }
    }
}

impl Pairs {
    /// Every place where the answers differ.
    pub fn differences(&mut self, reference: &Value, ours: &Value) -> Vec<Difference> {
        let mut found = Vec::new();
        self.compare(String::new(), Some(reference), Some(ours), &mut found);
        found
    }

    fn compare(&mut self, path: String, reference: Option<&Value>, ours: Option<&Value>, found: &mut Vec<Difference>) {
        let under = |key: &str| {
            if path.is_empty() {
                key.to_owned()
            } else {
                format!("{path}/{key}")
            }
        };
        match (reference, ours) {
            (Some(Value::Object(left)), Some(Value::Object(right))) => {
                let extra = right.keys().filter(|key| !left.contains_key(*key));
                let mut keys: Vec<&String> = left.keys().chain(extra).collect();
                keys.sort();
                for key in keys {
                    self.compare(under(key), left.get(key), right.get(key), found);
                }
            }
            (Some(Value::Array(left)), Some(Value::Array(right))) => {
                for index in 0..left.len().max(right.len()) {
                    self.compare(under(&index.to_string()), left.get(index), right.get(index), found);
                }
            }
            (Some(Value::String(left)), Some(Value::String(right))) if self.pair(left, right) => {}
            _ if reference == ours && !matches!(reference, Some(Value::String(_))) => {}
            _ => found.push(Difference { path, reference: reference.cloned(), ours: ours.cloned() }),
        }
    }

    /// Whether both texts are the same but for marked values that are each other's pair. A pair that does not hold is
    /// told once and replaced, so that one difference does not run through the rest of a script.
    fn pair(&mut self, reference: &str, ours: &str) -> bool {
        if self.mark.replace_all(reference, "<$1>") != self.mark.replace_all(ours, "<$1>") {
            return false;
        }
        let marks = |text| self.mark.find_iter(text).map(|mark| mark.as_str().to_owned()).collect::<Vec<_>>();
        let (left, right) = (marks(reference), marks(ours));
        let mut holds = true;
        for (left, right) in left.into_iter().zip(right) {
            let known = self.ours.insert(left.clone(), right.clone()).is_none_or(|known| known == right);
            let only = self.reference.insert(right, left.clone()).is_none_or(|known| known == left);
            holds &= known && only;
        }
        holds
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn differences(reference: Value, ours: Value) -> Vec<String> {
        Pairs::default()
            .differences(&reference, &ours)
            .iter()
            .map(Difference::to_string)
            .collect()
    }

    #[test]
    fn equal_answers_have_no_difference() {
        assert!(differences(json!({"a": [1, {"b": null}]}), json!({"a": [1, {"b": null}]})).is_empty());
    }

    #[test]
    fn differences_are_found_by_path() {
        let found = differences(json!({"body": {"a": [1, 2], "b": 1}}), json!({"body": {"a": [1], "b": 2}}));
        assert_eq!(found, ["body/a/1: real 2, ours nothing", "body/b: real 1, ours 2"]);
    }

    #[test]
    fn versions_may_differ_but_not_in_what_they_equal() {
        let same = differences(json!(["<version:7>", "<version:9>"]), json!(["<version:1>", "<version:2>"]));
        assert!(same.is_empty());
        let unequal = differences(json!(["<version:7>", "<version:7>"]), json!(["<version:1>", "<version:2>"]));
        assert_eq!(unequal, [r#"1: real "<version:7>", ours "<version:2>""#]);
        let equal = differences(json!(["<version:7>", "<version:9>"]), json!(["<version:1>", "<version:1>"]));
        assert_eq!(equal, [r#"1: real "<version:9>", ours "<version:1>""#]);
    }

    #[test]
    fn one_wrong_version_is_told_once() {
        let reference = json!(["<version:7>", "<version:7>", "<version:7>"]);
        let ours = json!(["<version:1>", "<version:2>", "<version:2>"]);
        assert_eq!(differences(reference, ours).len(), 1);
    }
}
