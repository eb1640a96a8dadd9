//! Regular expressions as Go's `regexp` understands them, on top of the `regex` crate. Both take linear time.

mod translate;

use regex::Regex;
use std::fmt;

/// A compiled regular expression of a schema.
#[derive(Clone)]
pub struct Pattern {
    text: Box<str>,
    regex: Regex,
}

impl Pattern {
    /// Compiles an expression, or says with Go's words why it is none.
    pub fn new(text: &str) -> Result<Pattern, String> {
        let translated = translate::from_go(text).map_err(|error| format!("error parsing regexp: {error}"))?;
        let regex = Regex::new(&translated).map_err(|error| match error {
            regex::Error::CompiledTooBig(_) => "error parsing regexp: expression too large".to_owned(),
            _ => format!("error parsing regexp: invalid or unsupported syntax: `{text}`"),
        })?;
        Ok(Pattern { text: text.into(), regex })
    }

    /// The expression as it was written.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Whether the expression is found anywhere in a text.
    pub fn is_match(&self, text: &str) -> bool {
        self.regex.is_match(text)
    }
}

impl fmt::Debug for Pattern {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "Pattern({:?})", self.text)
    }
}
