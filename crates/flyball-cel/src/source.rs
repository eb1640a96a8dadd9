//! The source text, places in it, and what is wrong with it, written as cel-go writes it.

use std::fmt;
use std::sync::Arc;

/// The most errors that are reported of one expression; the others are counted.
const MAX_REPORTED: usize = 100;
/// The longest line that is shown beneath a message, in bytes.
const MAX_SNIPPET: usize = 16_384;

/// The text of an expression and where its lines begin.
#[derive(Clone, Debug)]
pub struct Source {
    text: Arc<str>,
    /// The code point at which each line begins.
    lines: Arc<[u32]>,
}

impl Source {
    /// Takes the text of one expression.
    pub fn new(text: &str) -> Source {
        let mut lines = vec![0];
        let breaks = text.chars().enumerate().filter(|(_, letter)| *letter == '\n');
        lines.extend(breaks.map(|(index, _)| index as u32 + 1));
        Source { text: text.into(), lines: lines.into() }
    }

    /// The text.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The line (from 1) and column (from 0) of a code point.
    pub fn location(&self, offset: u32) -> Location {
        let line = self.lines.partition_point(|start| *start <= offset);
        let start = self.lines[line.saturating_sub(1)];
        Location { line: line as i32, column: (offset - start) as i32 }
    }

    fn line(&self, number: i32) -> Option<&str> {
        self.text.split('\n').nth(usize::try_from(number).ok()?.checked_sub(1)?)
    }
}

/// A place in a source: the line counts from 1, the column from 0, in code points.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Location {
    /// The line, from 1, or -1 for no place at all.
    pub line: i32,
    /// The column, from 0.
    pub column: i32,
}

impl Location {
    /// The place of an error that concerns the expression as a whole.
    pub const NONE: Location = Location { line: -1, column: -1 };
}

/// One thing that is wrong with an expression.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Issue {
    /// Where.
    pub location: Location,
    /// What, without the place.
    pub message: String,
}

/// Everything that is wrong with an expression. `Display` is what cel-go prints, with the line and a mark beneath it.
#[derive(Clone, Debug)]
pub struct Issues {
    source: Source,
    issues: Vec<Issue>,
    count: usize,
}

impl Issues {
    pub(crate) fn new(source: Source) -> Issues {
        Issues { source, issues: Vec::new(), count: 0 }
    }

    pub(crate) fn report(&mut self, location: Location, message: String) {
        self.count += 1;
        if self.count <= MAX_REPORTED {
            self.issues.push(Issue { location, message });
        }
    }

    pub(crate) fn sorted(mut self) -> Issues {
        self.issues.sort_by_key(|issue| issue.location);
        self
    }

    /// Whether nothing is wrong.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Each issue, in the order of the source.
    pub fn iter(&self) -> impl Iterator<Item = &Issue> {
        self.issues.iter()
    }
}

impl fmt::Display for Issues {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, issue) in self.issues.iter().enumerate() {
            if index > 0 {
                f.write_str("\n")?;
            }
            let Location { line, column } = issue.location;
            write!(f, "ERROR: <input>:{line}:{}: {}", column + 1, issue.message)?;
            if let Some(text) = self.source.line(line).filter(|text| text.len() <= MAX_SNIPPET) {
                write_snippet(f, text, column)?;
            }
        }
        if self.count > MAX_REPORTED {
            write!(f, "\n{} more errors were truncated", self.count - MAX_REPORTED)?;
        }
        Ok(())
    }
}

impl std::error::Error for Issues {}

/// The line and a caret beneath the column; wide letters get wide marks.
fn write_snippet(f: &mut fmt::Formatter<'_>, text: &str, column: i32) -> fmt::Result {
    write!(f, "\n | {}\n | ", text.replace('\t', " "))?;
    let mut letters = text.chars();
    for letter in letters.by_ref().take(usize::try_from(column).unwrap_or(0)) {
        f.write_str(if letter.len_utf8() > 1 { "\u{ff0e}" } else { "." })?;
    }
    let wide = letters.next().is_some_and(|letter| letter.len_utf8() > 1);
    f.write_str(if wide { "\u{ff3e}" } else { "^" })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_issue_shows_its_line_with_a_mark_beneath() {
        let source = Source::new("a +\n\té b");
        let mut issues = Issues::new(source.clone());
        issues.report(source.location(7), "wrong".into());
        issues.report(Location::NONE, "too long".into());
        let text = issues.sorted().to_string();
        assert_eq!(text, "ERROR: <input>:-1:0: too long\nERROR: <input>:2:4: wrong\n |  é b\n | .\u{ff0e}.^");
    }
}
