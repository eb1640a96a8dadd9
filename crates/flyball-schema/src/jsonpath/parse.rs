//! Reads the text of a path into steps.

use super::{End, Filter, Slice, Step};
use serde_json::Value;

/// The steps of a path.
pub(super) fn steps(text: &str) -> Result<Vec<Step>, String> {
    let mut parser = Parser { rest: text, steps: vec![] };
    while !parser.rest.is_empty() {
        parser.next()?;
    }
    Ok(parser.steps)
}

struct Parser<'a> {
    rest: &'a str,
    steps: Vec<Step>,
}

impl<'a> Parser<'a> {
    fn next(&mut self) -> Result<(), String> {
        if let Some(rest) = self.rest.strip_prefix("[?(") {
            return self.filter(rest);
        }
        if let Some(rest) = self.rest.strip_prefix("..") {
            return self.recursive(rest);
        }
        let first = self.rest.chars().next().expect("called while there is text");
        match first {
            ' ' | '@' | '$' => self.rest = &self.rest[1..],
            '[' => self.brackets()?,
            '"' | '\'' => self.quoted(first)?,
            '.' => {
                self.rest = &self.rest[1..];
                self.field();
            }
            '+' | '-' | '0'..='9' => self.number()?,
            first if is_word(first) => self.word()?,
            other => return Err(format!("unrecognized character in action: {other:?}")),
        }
        Ok(())
    }

    fn recursive(&mut self, rest: &'a str) -> Result<(), String> {
        if self.steps.last() == Some(&Step::Recursive) {
            return Err("invalid multiple recursive descent".into());
        }
        self.steps.push(Step::Recursive);
        self.rest = rest;
        if rest.chars().next().is_some_and(is_word) {
            self.field();
        }
        Ok(())
    }

    fn field(&mut self) {
        let mut escaped = false;
        let end = self.rest.find(|char| {
            let ends = !escaped && is_terminator(char);
            escaped = char == '\\' && !escaped;
            ends
        });
        let name = self.take(end.unwrap_or(self.rest.len()));
        self.steps.push(match name {
            "*" => Step::Wildcard,
            _ => Step::Field(name.replace('\\', "")),
        });
    }

    fn brackets(&mut self) -> Result<(), String> {
        let end = self.rest.find([']', '\n']).filter(|end| self.rest[*end..].starts_with(']'));
        let text = self.take(end.ok_or("unterminated array")? + 1);
        let text = &text[1..text.len() - 1];
        let step = match text.contains(',') {
            true => Step::Union(text.split(',').map(branch).collect::<Result<_, _>>()?),
            false => return self.index(text),
        };
        self.steps.push(step);
        Ok(())
    }

    fn index(&mut self, text: &str) -> Result<(), String> {
        let key = text.strip_prefix('\'').and_then(|text| text.strip_suffix('\''));
        if let Some(key) = key.filter(|key| !key.contains('\'')) {
            self.steps.extend(steps(&format!(".{key}"))?);
            return Ok(());
        }
        self.steps.push(Step::Slice(slice(if text == "*" { ":" } else { text })?));
        Ok(())
    }

    fn quoted(&mut self, quote: char) -> Result<(), String> {
        let end = closing(&self.rest[1..], quote).ok_or("unterminated quoted string")?;
        let text = self.take(end + 2);
        let text = unescaped(&text[1..text.len() - 1])?;
        self.steps.push(Step::Constant(Value::String(text)));
        Ok(())
    }

    fn number(&mut self) -> Result<(), String> {
        let digits = self.rest[1..].find(|char: char| char != '.' && !char.is_ascii_digit());
        let text = self.take(digits.map_or(self.rest.len(), |end| end + 1));
        let integer = text.parse::<i64>().map(Value::from);
        let number = integer.or_else(|_| text.parse::<f64>().map(Value::from));
        self.steps
            .push(Step::Constant(number.map_err(|_| format!("cannot parse number {text}"))?));
        Ok(())
    }

    fn word(&mut self) -> Result<(), String> {
        let end = self.rest.find(is_terminator).unwrap_or(self.rest.len());
        let constant = match self.take(end) {
            "true" => Value::Bool(true),
            "false" => Value::Bool(false),
            other => return Err(format!("unrecognized identifier {other}")),
        };
        self.steps.push(Step::Constant(constant));
        Ok(())
    }

    fn filter(&mut self, rest: &'a str) -> Result<(), String> {
        let end = filter_end(rest).ok_or("unterminated filter")?;
        let text = &rest[..end];
        self.rest = rest[end + 1..].strip_prefix(']').ok_or("unclosed array expect ]")?;
        let operator = text.find(['!', '<', '>', '=']).filter(|at| *at > 0);
        let filter = match operator {
            None => Filter { left: steps(text)?, comparison: None },
            Some(at) => {
                let right = text[at..].trim_start_matches(['!', '<', '>', '=']);
                let operator = &text[at..text.len() - right.len()];
                Filter {
                    left: steps(&text[..at])?,
                    comparison: Some((operator.to_owned(), steps(right)?)),
                }
            }
        };
        self.steps.push(Step::Filter(filter));
        Ok(())
    }

    fn take(&mut self, length: usize) -> &'a str {
        let (taken, rest) = self.rest.split_at(length);
        self.rest = rest;
        taken
    }
}

fn branch(text: &str) -> Result<Vec<Step>, String> {
    steps(&format!("[{}]", text.trim_matches(' ')))
}

fn slice(text: &str) -> Result<Slice, String> {
    let parts: Vec<&str> = text.split(':').collect();
    let parse = |text: &str| match text {
        "" => Ok(None),
        _ => text.parse::<i64>().map(Some).map_err(|_| format!("invalid array index {text}")),
    };
    let [start, end, step] = match parts[..] {
        [start] if !start.is_empty() => return Ok(Slice { start: index(start)?, end: End::Next, step: None }),
        [start, end] => [start, end, ""],
        [start, end, step] => [start, end, step],
        _ => return Err(format!("invalid array index {text}")),
    };
    let end = parse(end)?.map_or(End::Last, End::At);
    Ok(Slice { start: parse(start)?.unwrap_or(0), end, step: parse(step)? })
}

fn index(text: &str) -> Result<i64, String> {
    text.parse().map_err(|_| format!("invalid array index {text}"))
}

/// Where a filter's closing parenthesis is: the first one outside of quotes.
fn filter_end(text: &str) -> Option<usize> {
    let mut quote = None;
    let mut before = ' ';
    for (at, char) in text.char_indices() {
        match (char, quote) {
            ('\n', _) => return None,
            ('"' | '\'', None) => quote = Some(char),
            (_, Some(open)) if char == open && before != '\\' => quote = None,
            (')', None) => return Some(at),
            _ => {}
        }
        before = char;
    }
    None
}

fn closing(text: &str, quote: char) -> Option<usize> {
    let mut before = ' ';
    for (at, char) in text.char_indices() {
        match char {
            '\n' => return None,
            _ if char == quote && before != '\\' => return Some(at),
            _ => before = char,
        }
    }
    None
}

fn unescaped(text: &str) -> Result<String, String> {
    let mut unescaped = String::with_capacity(text.len());
    let mut chars = text.chars();
    while let Some(char) = chars.next() {
        unescaped.push(match char {
            '\\' => match chars.next() {
                Some('n') => '\n',
                Some('t') => '\t',
                Some('r') => '\r',
                Some(escaped @ ('\\' | '\'' | '"')) => escaped,
                _ => return Err(format!("unquote string {text} error invalid syntax")),
            },
            char => char,
        });
    }
    Ok(unescaped)
}

fn is_word(char: char) -> bool {
    char == '_' || char.is_alphanumeric()
}

fn is_terminator(char: char) -> bool {
    matches!(char, ' ' | '\t' | '\r' | '\n' | '.' | ',' | '[' | ']' | '$' | '@' | '{' | '}')
}
