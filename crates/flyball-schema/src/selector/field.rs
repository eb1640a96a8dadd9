//! Field selectors: `metadata.name=x,status.phase!=Running`.

use super::ParseSelectorError;
use std::fmt;
use std::str::FromStr;

/// What fields have to be; the empty selector takes everything.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FieldSelector {
    /// Every one of them has to hold; sorted as they were written.
    pub requirements: Vec<FieldRequirement>,
}

/// One field compared with one value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FieldRequirement {
    /// The field's label, such as `metadata.name`.
    pub field: String,
    /// Whether the field has to have this value, or must not have it.
    pub equal: bool,
    /// The value.
    pub value: String,
}

impl FieldSelector {
    /// Whether nothing is asked for.
    pub fn is_empty(&self) -> bool {
        self.requirements.is_empty()
    }

    /// Whether an object is meant, given the values of its fields; an absent field is the empty string.
    pub fn matches<'a>(&self, value_of: impl Fn(&str) -> &'a str) -> bool {
        self.requirements.iter().all(|one| (value_of(&one.field) == one.value) == one.equal)
    }

    /// The only value that a field may have, if the selector leaves but one.
    pub fn exact(&self, field: &str) -> Option<&str> {
        let found = self.requirements.iter().find(|one| one.equal && one.field == field)?;
        Some(&found.value)
    }
}

// apimachinery/pkg/fields/selector.go, parseSelector
impl FromStr for FieldSelector {
    type Err = ParseSelectorError;

    fn from_str(text: &str) -> Result<FieldSelector, ParseSelectorError> {
        let mut terms = split_terms(text);
        terms.sort_unstable();
        let terms = terms.into_iter().filter(|term| !term.is_empty());
        let requirements = terms.map(|term| parse_term(text, term)).collect::<Result<_, _>>()?;
        Ok(FieldSelector { requirements })
    }
}

fn parse_term(text: &str, term: &str) -> Result<FieldRequirement, ParseSelectorError> {
    let misunderstood = || ParseSelectorError(format!("invalid selector: '{text}'; can't understand '{term}'"));
    let at = [term.find("!="), term.find('=')].into_iter().flatten().min().ok_or_else(misunderstood)?;
    let (field, rest) = term.split_at(at);
    let equal = !rest.starts_with('!');
    let length = if rest.starts_with("!=") || rest.starts_with("==") {
        2
    } else {
        1
    };
    Ok(FieldRequirement {
        field: field.to_owned(),
        equal,
        value: unescape(&rest[length..])?,
    })
}

/// Splits at commas that no backslash stands before.
fn split_terms(text: &str) -> Vec<&str> {
    let mut terms = Vec::new();
    let (mut start, mut escaped) = (0, false);
    for (index, character) in text.char_indices() {
        match character {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            ',' => {
                terms.push(&text[start..index]);
                start = index + 1;
            }
            _ => {}
        }
    }
    terms.push(&text[start..]);
    terms
}

fn unescape(text: &str) -> Result<String, ParseSelectorError> {
    let wrong = |sequence: String| ParseSelectorError(format!("invalid field selector: {sequence}"));
    let mut out = String::with_capacity(text.len());
    let mut characters = text.chars();
    while let Some(character) = characters.next() {
        match character {
            '\\' => match characters.next() {
                Some(escaped @ ('\\' | ',' | '=')) => out.push(escaped),
                Some(other) => return Err(wrong(format!("invalid escape sequence: \\{other}"))),
                None => return Err(wrong("invalid escape sequence: \\".to_owned())),
            },
            // Go prints the rune's number.
            ',' | '=' => return Err(wrong(format!("unescaped character in value: {}", u32::from(character)))),
            _ => out.push(character),
        }
    }
    Ok(out)
}

impl fmt::Display for FieldSelector {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, one) in self.requirements.iter().enumerate() {
            let comma = if index > 0 { "," } else { "" };
            let operator = if one.equal { "=" } else { "!=" };
            let value = one.value.replace('\\', "\\\\").replace(',', "\\,").replace('=', "\\=");
            write!(formatter, "{comma}{}{operator}{value}", one.field)?;
        }
        Ok(())
    }
}
