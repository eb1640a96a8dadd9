//! Reads protocol buffers in text format, without a schema: fields keep their order and their names.

use std::iter::Peekable;
use std::str::Chars;

/// A message: its fields in order.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Message {
    /// Name and value; an extension's or `Any`'s name has its brackets.
    pub fields: Vec<(String, Field)>,
}

/// A field's value.
#[derive(Clone, Debug, PartialEq)]
pub enum Field {
    /// A number, a boolean or the name of an enum's value, as it is written.
    Word(String),
    /// A string or bytes.
    Text(Vec<u8>),
    /// A message.
    Message(Message),
}

/// How deeply messages may be nested.
const MAX_DEPTH: usize = 100;

impl Message {
    /// The fields of a name.
    pub fn all<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a Field> {
        self.fields.iter().filter(move |(field, _)| field == name).map(|(_, value)| value)
    }

    /// The messages of a name.
    pub fn messages<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a Message> {
        self.all(name).filter_map(|field| match field {
            Field::Message(message) => Some(message),
            _ => None,
        })
    }

    /// The first message of a name.
    pub fn message<'a>(&'a self, name: &'a str) -> Option<&'a Message> {
        self.messages(name).next()
    }

    /// The first string of a name; empty where there is none, as in protocol buffers.
    pub fn text(&self, name: &str) -> String {
        let text = self.all(name).find_map(|field| match field {
            Field::Text(bytes) => Some(String::from_utf8_lossy(bytes).into_owned()),
            _ => None,
        });
        text.unwrap_or_default()
    }

    /// Whether a boolean is set.
    pub fn is_set(&self, name: &str) -> bool {
        self.all(name).any(|field| *field == Field::Word("true".into()))
    }
}

/// Reads a document.
pub fn parse(text: &str) -> Result<Message, String> {
    let mut reader = Reader { rest: text.chars().peekable(), line: 1 };
    let message = reader.message(None, 0);
    message.map_err(|error| format!("line {}: {error}", reader.line))
}

struct Reader<'a> {
    rest: Peekable<Chars<'a>>,
    line: usize,
}

impl Reader<'_> {
    fn next(&mut self) -> Option<char> {
        let next = self.rest.next();
        self.line += usize::from(next == Some('\n'));
        next
    }

    /// The next character that is neither space nor comment.
    fn peek(&mut self) -> Option<char> {
        loop {
            match self.rest.peek() {
                Some('#') => while self.next().is_some_and(|character| character != '\n') {},
                Some(space) if space.is_whitespace() => {
                    self.next();
                }
                other => return other.copied(),
            }
        }
    }

    fn takes(&mut self, expected: char) -> bool {
        let found = self.peek() == Some(expected);
        if found {
            self.next();
        }
        found
    }

    fn message(&mut self, end: Option<char>, depth: usize) -> Result<Message, String> {
        if depth > MAX_DEPTH {
            return Err(format!("more than {MAX_DEPTH} messages inside each other"));
        }
        let mut message = Message::default();
        loop {
            match (self.peek(), end) {
                (None, None) => return Ok(message),
                (None, Some(end)) => return Err(format!("expected `{end}`")),
                (found, Some(_)) if found == end => {
                    self.next();
                    return Ok(message);
                }
                _ => {
                    let name = self.name()?;
                    self.values(&name, &mut message, depth)?;
                    while self.takes(',') || self.takes(';') {}
                }
            }
        }
    }

    fn name(&mut self) -> Result<String, String> {
        if self.takes('[') {
            let mut name = String::from("[");
            while self.peek().is_some_and(|character| character != ']') {
                name.extend(self.next());
            }
            return if self.takes(']') {
                Ok(name + "]")
            } else {
                Err("expected `]`".into())
            };
        }
        self.word()
    }

    fn word(&mut self) -> Result<String, String> {
        self.peek();
        let mut word = String::new();
        while let Some(&character) = self.rest.peek() {
            if !(character.is_ascii_alphanumeric() || "_-+.".contains(character)) {
                break;
            }
            word.push(character);
            self.next();
        }
        match (word.is_empty(), self.rest.peek()) {
            (false, _) => Ok(word),
            (true, Some(character)) => Err(format!("unexpected `{character}`")),
            (true, None) => Err("unexpected end".into()),
        }
    }

    fn values(&mut self, name: &str, message: &mut Message, depth: usize) -> Result<(), String> {
        let colon = self.takes(':');
        if !self.takes('[') {
            let value = self.value(colon, depth)?;
            message.fields.push((name.to_owned(), value));
            return Ok(());
        }
        while !self.takes(']') {
            let value = self.value(true, depth)?;
            message.fields.push((name.to_owned(), value));
            self.takes(',');
        }
        Ok(())
    }

    fn value(&mut self, may_be_scalar: bool, depth: usize) -> Result<Field, String> {
        match self.peek() {
            Some('{') | Some('<') => {
                let end = if self.next() == Some('{') { '}' } else { '>' };
                self.message(Some(end), depth + 1).map(Field::Message)
            }
            Some('"' | '\'') if may_be_scalar => {
                let mut bytes = Vec::new();
                while let Some(quote @ ('"' | '\'')) = self.peek() {
                    self.next();
                    self.text(quote, &mut bytes)?;
                }
                Ok(Field::Text(bytes))
            }
            _ if may_be_scalar => self.word().map(Field::Word),
            _ => Err("expected `:` or a message".into()),
        }
    }

    fn text(&mut self, quote: char, bytes: &mut Vec<u8>) -> Result<(), String> {
        loop {
            match self.next().ok_or("a string has no end")? {
                character if character == quote => return Ok(()),
                '\\' => self.escape(bytes)?,
                character => push(bytes, character),
            }
        }
    }

    fn escape(&mut self, bytes: &mut Vec<u8>) -> Result<(), String> {
        let character = self.next().ok_or("a string has no end")?;
        let simple = "abfnrtv?'\"\\".find(character);
        match (simple, character) {
            (Some(index), _) => bytes.push(b"\x07\x08\x0c\n\r\t\x0b?'\"\\"[index]),
            (None, 'x' | 'X') => bytes.push(self.number(16, 2, 0)? as u8),
            (None, 'u') => self.code_point(4, bytes)?,
            (None, 'U') => self.code_point(8, bytes)?,
            (None, digit @ '0'..='7') => bytes.push(self.number(8, 2, digit as u32 - '0' as u32)? as u8),
            (None, other) => return Err(format!("unknown escape `\\{other}`")),
        }
        Ok(())
    }

    fn code_point(&mut self, digits: usize, bytes: &mut Vec<u8>) -> Result<(), String> {
        let number = self.number(16, digits, 0)?;
        push(bytes, char::from_u32(number).ok_or_else(|| format!("{number:x} is no code point"))?);
        Ok(())
    }

    /// Reads at most this many more digits.
    fn number(&mut self, radix: u32, digits: usize, start: u32) -> Result<u32, String> {
        let mut number = start;
        for _ in 0..digits {
            let Some(digit) = self.rest.peek().and_then(|character| character.to_digit(radix)) else {
                break;
            };
            self.next();
            number = number
                .checked_mul(radix)
                .and_then(|number| number.checked_add(digit))
                .ok_or("too large")?;
        }
        Ok(number)
    }
}

fn push(bytes: &mut Vec<u8>, character: char) {
    bytes.extend(character.encode_utf8(&mut [0; 4]).as_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_lists_and_strings_are_read() {
        let text = "# a comment\nname: \"a\" 'b' # more\nlist: [1, -2.5]\nmessage { inner: < flag: true; > }\n\
                    [type.googleapis.com/x.Y] { seconds: 1 }, raw: '\\x41\\u00e4\\101\\n'";
        let message = parse(text).unwrap();
        assert_eq!(message.text("name"), "ab");
        let words: Vec<&Field> = message.all("list").collect();
        assert_eq!(words, [&Field::Word("1".into()), &Field::Word("-2.5".into())]);
        assert!(message.message("message").unwrap().message("inner").unwrap().is_set("flag"));
        assert!(message.message("[type.googleapis.com/x.Y]").is_some());
        assert_eq!(message.text("raw"), "AäA\n");
    }

    #[test]
    fn errors_name_the_line() {
        assert_eq!(parse("a: 1\nb {").unwrap_err(), "line 2: expected `}`");
        assert_eq!(parse("a\n  1").unwrap_err(), "line 2: expected `:` or a message");
        assert_eq!(parse("a: 'b").unwrap_err(), "line 1: a string has no end");
        assert!(parse(&"a {".repeat(1000)).unwrap_err().contains("inside each other"));
    }
}
