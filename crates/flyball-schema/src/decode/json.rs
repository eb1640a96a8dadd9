//! JSON's grammar, with the complaints of Go's scanner.
// sigs.k8s.io/json, internal/golang/encoding/json/scanner.go

use super::MAX_DEPTH;
use super::tree::Tree;
use crate::go_text;

/// Reads one value and nothing after it.
pub(super) fn parse(bytes: &[u8]) -> Result<Tree, String> {
    let mut parser = Parser { bytes, at: 0, depth: 0 };
    let tree = parser.value()?;
    match parser.peek() {
        None => Ok(tree),
        Some(byte) => Err(unexpected(byte, "after top-level value")),
    }
}

struct Parser<'a> {
    bytes: &'a [u8],
    at: usize,
    depth: usize,
}

fn unexpected(byte: u8, context: &str) -> String {
    let shown = match byte {
        b'\'' => "'\\''".to_owned(),
        b'"' => "'\"'".to_owned(),
        _ => {
            let quoted = go_text::quote(&char::from(byte).to_string());
            format!("'{}'", &quoted[1..quoted.len() - 1])
        }
    };
    format!("invalid character {shown} {context}")
}

fn ended() -> String {
    "unexpected end of JSON input".to_owned()
}

impl Parser<'_> {
    /// The next byte that is no white space.
    fn peek(&mut self) -> Option<u8> {
        while let Some(b' ' | b'\t' | b'\r' | b'\n') = self.bytes.get(self.at) {
            self.at += 1;
        }
        self.bytes.get(self.at).copied()
    }

    /// The next byte, white space or not.
    fn next(&mut self) -> Result<u8, String> {
        let byte = *self.bytes.get(self.at).ok_or_else(ended)?;
        self.at += 1;
        Ok(byte)
    }

    fn value(&mut self) -> Result<Tree, String> {
        let first = self.peek().ok_or_else(ended)?;
        match first {
            b'{' => self.nested(Parser::object),
            b'[' => self.nested(Parser::array),
            b'"' => self.string().map(Tree::String),
            b'-' | b'0'..=b'9' => self.number().map(Tree::Number),
            b't' => self.literal("true", Tree::Bool(true)),
            b'f' => self.literal("false", Tree::Bool(false)),
            b'n' => self.literal("null", Tree::Null),
            other => Err(unexpected(other, "looking for beginning of value")),
        }
    }

    fn nested(&mut self, read: impl FnOnce(&mut Self) -> Result<Tree, String>) -> Result<Tree, String> {
        self.at += 1;
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return Err(unexpected(self.bytes[self.at - 1], "exceeded max depth"));
        }
        let tree = read(self);
        self.depth -= 1;
        tree
    }

    fn object(&mut self) -> Result<Tree, String> {
        let mut fields = Vec::new();
        if self.peek() == Some(b'}') {
            self.at += 1;
            return Ok(Tree::Object(fields));
        }
        loop {
            match self.peek().ok_or_else(ended)? {
                b'"' => {}
                other => return Err(unexpected(other, "looking for beginning of object key string")),
            }
            let name = self.string()?;
            match self.peek().ok_or_else(ended)? {
                b':' => self.at += 1,
                other => return Err(unexpected(other, "after object key")),
            }
            fields.push((name, self.value()?));
            match self.peek().ok_or_else(ended)? {
                b',' => self.at += 1,
                b'}' => break,
                other => return Err(unexpected(other, "after object key:value pair")),
            }
        }
        self.at += 1;
        Ok(Tree::Object(fields))
    }

    fn array(&mut self) -> Result<Tree, String> {
        let mut items = Vec::new();
        if self.peek() == Some(b']') {
            self.at += 1;
            return Ok(Tree::Array(items));
        }
        loop {
            items.push(self.value()?);
            match self.peek().ok_or_else(ended)? {
                b',' => self.at += 1,
                b']' => break,
                other => return Err(unexpected(other, "after array element")),
            }
        }
        self.at += 1;
        Ok(Tree::Array(items))
    }

    fn literal(&mut self, word: &str, tree: Tree) -> Result<Tree, String> {
        for expected in word.bytes() {
            let byte = self.next()?;
            if byte != expected {
                let context = format!("in literal {word} (expecting '{}')", char::from(expected));
                return Err(unexpected(byte, &context));
            }
        }
        Ok(tree)
    }

    fn number(&mut self) -> Result<String, String> {
        let start = self.at;
        if self.bytes[self.at] == b'-' {
            self.at += 1;
        }
        match self.next()? {
            b'0' => {}
            b'1'..=b'9' => self.skip_digits(),
            other => return Err(unexpected(other, "in numeric literal")),
        }
        if self.bytes.get(self.at) == Some(&b'.') {
            self.at += 1;
            self.digits("after decimal point in numeric literal")?;
        }
        if let Some(b'e' | b'E') = self.bytes.get(self.at) {
            self.at += 1;
            if let Some(b'+' | b'-') = self.bytes.get(self.at) {
                self.at += 1;
            }
            self.digits("in exponent of numeric literal")?;
        }
        Ok(String::from_utf8_lossy(&self.bytes[start..self.at]).into_owned())
    }

    fn digits(&mut self, context: &str) -> Result<(), String> {
        match self.next()? {
            b'0'..=b'9' => self.skip_digits(),
            other => return Err(unexpected(other, context)),
        }
        Ok(())
    }

    fn skip_digits(&mut self) {
        while let Some(b'0'..=b'9') = self.bytes.get(self.at) {
            self.at += 1;
        }
    }

    /// Reads a string from its opening quote on; what is no UTF-8 becomes U+FFFD, as in Go.
    fn string(&mut self) -> Result<String, String> {
        self.at += 1;
        let mut text = Vec::new();
        loop {
            let rest = &self.bytes[self.at..];
            let plain = rest.iter().position(|byte| matches!(byte, b'"' | b'\\' | 0..=0x1f)).unwrap_or(rest.len());
            text.extend_from_slice(&rest[..plain]);
            self.at += plain;
            match self.next()? {
                b'"' => break,
                b'\\' => self.escape(&mut text)?,
                other => return Err(unexpected(other, "in string literal")),
            }
        }
        Ok(String::from_utf8(text).unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned()))
    }

    fn escape(&mut self, text: &mut Vec<u8>) -> Result<(), String> {
        let byte = match self.next()? {
            escaped @ (b'"' | b'\\' | b'/') => escaped,
            b'b' => 0x08,
            b'f' => 0x0c,
            b'n' => b'\n',
            b'r' => b'\r',
            b't' => b'\t',
            b'u' => {
                let character = self.code_point()?;
                text.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes());
                return Ok(());
            }
            other => return Err(unexpected(other, "in string escape code")),
        };
        text.push(byte);
        Ok(())
    }

    /// The character of a `\u` escape; half of a pair becomes U+FFFD.
    fn code_point(&mut self) -> Result<char, String> {
        let unit = self.code_unit()?;
        if !(0xd800..0xe000).contains(&unit) {
            return Ok(char::from_u32(unit).unwrap_or(char::REPLACEMENT_CHARACTER));
        }
        let start = self.at;
        if unit < 0xdc00 && self.bytes[self.at..].starts_with(b"\\u") {
            self.at += 2;
            let low = self.code_unit()?;
            if (0xdc00..0xe000).contains(&low) {
                let code = 0x10000 + ((unit - 0xd800) << 10) + (low - 0xdc00);
                return Ok(char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER));
            }
            self.at = start;
        }
        Ok(char::REPLACEMENT_CHARACTER)
    }

    fn code_unit(&mut self) -> Result<u32, String> {
        let mut unit = 0;
        for _ in 0..4 {
            let byte = self.next()?;
            let digit = char::from(byte).to_digit(16);
            let digit = digit.ok_or_else(|| unexpected(byte, "in \\u hexadecimal character escape"))?;
            unit = unit * 16 + digit;
        }
        Ok(unit)
    }
}
