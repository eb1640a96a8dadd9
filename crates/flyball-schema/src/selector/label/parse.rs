//! The grammar of label selectors, with Kubernetes' tokens and complaints.
// apimachinery/pkg/labels/selector.go, Lexer and Parser

use super::{LabelOperator, LabelRequirement};
use crate::names;
use crate::selector::ParseSelectorError;
use crate::violation::Violation;
use std::collections::BTreeSet;

/// A word or a symbol; the end is the empty word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Token<'a> {
    End,
    Word(&'a str),
    Symbol(&'a str),
}

struct Parser<'a> {
    tokens: Vec<Token<'a>>,
    position: usize,
}

type Parsed<T> = Result<T, ParseSelectorError>;

fn wrong<T>(message: String) -> Parsed<T> {
    Err(ParseSelectorError(message))
}

/// Reads every requirement, in the order in which they are written.
pub(super) fn requirements(text: &str) -> Parsed<Vec<LabelRequirement>> {
    let mut parser = Parser { tokens: tokens(text), position: 0 };
    let mut requirements = Vec::new();
    loop {
        match parser.peek() {
            Token::Word(_) | Token::Symbol("!") => {
                let read = parser.requirement();
                let read = read.map_err(|error| ParseSelectorError(format!("unable to parse requirement: {error}")));
                requirements.push(read?);
            }
            Token::End => return Ok(requirements),
            other => return wrong(format!("found '{other}', expected: !, identifier, or 'end of string'")),
        }
        match parser.next() {
            Token::End => return Ok(requirements),
            Token::Symbol(",") => match parser.peek() {
                Token::Word(_) | Token::Symbol("!") => {}
                other => return wrong(format!("found '{other}', expected: identifier after ','")),
            },
            other => return wrong(format!("found '{other}', expected: ',' or 'end of string'")),
        }
    }
}

impl<'a> Parser<'a> {
    fn peek(&self) -> Token<'a> {
        self.tokens.get(self.position).copied().unwrap_or(Token::End)
    }

    fn next(&mut self) -> Token<'a> {
        let token = self.peek();
        self.position += 1;
        token
    }

    fn requirement(&mut self) -> Parsed<LabelRequirement> {
        let mut token = self.next();
        let negated = token == Token::Symbol("!");
        if negated {
            token = self.next();
        }
        let Token::Word(key) = token else {
            return wrong(format!("found '{token}', expected: identifier"));
        };
        check_key(key)?;
        // What follows `!key` is left to the caller, who complains about it.
        let exists = matches!(self.peek(), Token::End | Token::Symbol(","));
        if negated || exists {
            let operator = if negated {
                LabelOperator::DoesNotExist
            } else {
                LabelOperator::Exists
            };
            return Ok(LabelRequirement { key: key.to_owned(), operator, values: Vec::new() });
        }
        let operator = self.operator()?;
        let values = match operator {
            LabelOperator::In | LabelOperator::NotIn => self.values()?,
            _ => self.exact_value()?,
        };
        check_values(key, operator, &values)?;
        Ok(LabelRequirement {
            key: key.to_owned(),
            operator,
            values: values.into_iter().map(str::to_owned).collect(),
        })
    }

    fn operator(&mut self) -> Parsed<LabelOperator> {
        Ok(match self.next() {
            Token::Word("in") => LabelOperator::In,
            Token::Word("notin") => LabelOperator::NotIn,
            Token::Symbol("=") => LabelOperator::Equals,
            Token::Symbol("==") => LabelOperator::DoubleEquals,
            Token::Symbol("!=") => LabelOperator::NotEquals,
            Token::Symbol(">") => LabelOperator::GreaterThan,
            Token::Symbol("<") => LabelOperator::LessThan,
            other => return wrong(format!("found '{other}', expected: in, notin, =, ==, !=, gt, lt")),
        })
    }

    fn values(&mut self) -> Parsed<BTreeSet<&'a str>> {
        match self.next() {
            Token::Symbol("(") => {}
            other => return wrong(format!("found '{other}' expected: '('")),
        }
        match self.peek() {
            Token::Symbol(")") => {
                self.next();
                Ok(BTreeSet::from([""]))
            }
            Token::Word(_) | Token::Symbol(",") => {
                let values = self.listed()?;
                self.next();
                Ok(values)
            }
            other => wrong(format!("found '{other}', expected: ',', ')' or identifier")),
        }
    }

    /// Reads up to the closing parenthesis and leaves it there; nothing between two commas is the empty value.
    fn listed(&mut self) -> Parsed<BTreeSet<&'a str>> {
        let mut values = BTreeSet::new();
        loop {
            match self.next() {
                Token::Word(value) => {
                    values.insert(value);
                    match self.peek() {
                        Token::Symbol(",") => {}
                        Token::Symbol(")") => return Ok(values),
                        other => return wrong(format!("found '{other}', expected: ',' or ')'")),
                    }
                }
                Token::Symbol(",") => {
                    if values.is_empty() || matches!(self.peek(), Token::Symbol("," | ")")) {
                        values.insert("");
                    }
                    if self.peek() == Token::Symbol(")") {
                        return Ok(values);
                    }
                }
                other => return wrong(format!("found '{other}', expected: ',', or identifier")),
            }
        }
    }

    fn exact_value(&mut self) -> Parsed<BTreeSet<&'a str>> {
        match self.peek() {
            Token::End | Token::Symbol(",") => Ok(BTreeSet::from([""])),
            Token::Word(value) => {
                self.next();
                Ok(BTreeSet::from([value]))
            }
            other => wrong(format!("found '{other}', expected: identifier")),
        }
    }
}

fn check_key(key: &str) -> Parsed<()> {
    let details = names::qualified_name(key);
    // No path is given, and Go prints that.
    let violation = Violation::invalid("<nil>", key, &details.join("; "));
    if details.is_empty() {
        Ok(())
    } else {
        wrong(violation.to_string())
    }
}

fn check_values(key: &str, operator: LabelOperator, values: &BTreeSet<&str>) -> Parsed<()> {
    let mut found = Vec::new();
    for (index, value) in values.iter().enumerate() {
        let compares = matches!(operator, LabelOperator::GreaterThan | LabelOperator::LessThan);
        if compares && value.parse::<i64>().is_err() {
            let detail = "for 'Gt', 'Lt' operators, the value must be an integer";
            found.push(Violation::invalid(format!("values[{index}]"), *value, detail).to_string());
        }
        let details = names::label_value(value);
        if !details.is_empty() {
            let path = format!("values[{index}][{key}]");
            found.push(Violation::invalid(path, *value, &details.join("; ")).to_string());
        }
    }
    match found.as_slice() {
        [] => Ok(()),
        [only] => wrong(only.clone()),
        several => wrong(format!("[{}]", several.join(", "))),
    }
}

fn tokens(text: &str) -> Vec<Token<'_>> {
    let mut tokens = Vec::new();
    // A zero byte ends the text, as in Go.
    let mut rest = text.split('\0').next().unwrap_or_default();
    loop {
        rest = rest.trim_start_matches([' ', '\t', '\r', '\n']);
        let (token, length) = if rest.is_empty() {
            tokens.push(Token::End);
            return tokens;
        } else if rest.starts_with(SYMBOLS) {
            symbol(rest)
        } else {
            let length = rest.find(|character| SYMBOLS.contains(&character) || BLANKS.contains(&character));
            let length = length.unwrap_or(rest.len());
            (Token::Word(&rest[..length]), length)
        };
        tokens.push(token);
        rest = &rest[length..];
    }
}

const SYMBOLS: [char; 7] = ['=', '!', '(', ')', ',', '>', '<'];
const BLANKS: [char; 4] = [' ', '\t', '\r', '\n'];

/// The longest symbol that a text begins with which begins with one.
fn symbol(rest: &str) -> (Token<'_>, usize) {
    let length = if rest.starts_with("==") || rest.starts_with("!=") {
        2
    } else {
        1
    };
    (Token::Symbol(&rest[..length]), length)
}

impl std::fmt::Display for Token<'_> {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Token::End => Ok(()),
            Token::Word(text) | Token::Symbol(text) => formatter.write_str(text),
        }
    }
}
