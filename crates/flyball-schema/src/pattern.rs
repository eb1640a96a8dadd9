//! Regular expressions as Go's `regexp` understands them, on top of the `regex` crate. Both take linear time.

mod translate;

use regex::Regex;
use std::fmt;
use std::sync::OnceLock;

/// The longest expression that is compiled; Go's limit is on what comes of it.
const MOST_BYTES: usize = 256 << 10;
const TOO_LARGE: &str = "error parsing regexp: expression too large";

/// A compiled regular expression of a schema.
#[derive(Clone)]
pub struct Pattern {
    text: Box<str>,
    regex: OnceLock<Option<Regex>>,
}

impl Pattern {
    /// Compiles an expression, or says with Go's words why it is none.
    pub fn new(text: &str) -> Result<Pattern, String> {
        let regex = OnceLock::from(Some(compile(text)?));
        Ok(Pattern { text: text.into(), regex })
    }

    /// Takes an expression that has been compiled before, and compiles it again when it is first asked.
    pub(crate) fn checked(text: &str) -> Pattern {
        Pattern { text: text.into(), regex: OnceLock::new() }
    }

    /// The expression as it was written.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Whether the expression is found anywhere in a text.
    pub fn is_match(&self, text: &str) -> bool {
        let regex = self.regex.get_or_init(|| compile(&self.text).ok());
        regex.as_ref().is_some_and(|regex| regex.is_match(text))
    }
}

fn compile(text: &str) -> Result<Regex, String> {
    if text.len() > MOST_BYTES {
        return Err(TOO_LARGE.to_owned());
    }
    let translated = translate::from_go(text).map_err(|error| format!("error parsing regexp: {error}"))?;
    Regex::new(&translated).map_err(|error| match error {
        regex::Error::CompiledTooBig(_) => TOO_LARGE.to_owned(),
        _ => format!("error parsing regexp: invalid or unsupported syntax: `{text}`"),
    })
}

impl fmt::Debug for Pattern {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "Pattern({:?})", self.text)
    }
}
