//! Cuts the source text into tokens by the longest match; text that is no token is reported and skipped.

/// The kinds of tokens; `as_str` is what messages call them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TokenKind {
    Equals,
    NotEquals,
    In,
    Less,
    LessEquals,
    GreaterEquals,
    Greater,
    And,
    Or,
    LeftBracket,
    RightBracket,
    LeftBrace,
    RightBrace,
    LeftParen,
    RightParen,
    Dot,
    Comma,
    Minus,
    Exclamation,
    Question,
    Colon,
    Plus,
    Star,
    Slash,
    Percent,
    True,
    False,
    Null,
    Float,
    Int,
    Uint,
    String,
    Bytes,
    Identifier,
    EscapedIdentifier,
    End,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Token {
    pub kind: TokenKind,
    /// The first code point, and the one after the last.
    pub start: usize,
    pub end: usize,
}

/// Tokens and the texts that are none, each with where it begins.
pub(super) struct Tokens {
    pub tokens: Vec<Token>,
    pub unrecognized: Vec<(usize, String)>,
}

pub(super) fn tokens(letters: &[char]) -> Tokens {
    let mut found = Tokens { tokens: Vec::new(), unrecognized: Vec::new() };
    let mut at = 0;
    while at < letters.len() {
        match next(letters, at) {
            Next::Token(kind, end) => {
                found.tokens.push(Token { kind, start: at, end });
                at = end;
            }
            Next::Hidden(end) => at = end,
            Next::Nothing(failed) => {
                let end = (failed + 1).min(letters.len());
                found.unrecognized.push((at, letters[at..end].iter().collect()));
                at = end;
            }
        }
    }
    found.tokens.push(Token { kind: TokenKind::End, start: at, end: at });
    found
}

enum Next {
    Token(TokenKind, usize),
    Hidden(usize),
    /// No token; the code point at which that became clear.
    Nothing(usize),
}

fn next(letters: &[char], at: usize) -> Next {
    let letter = letters[at];
    let after = letters.get(at + 1).copied();
    match letter {
        ' ' | '\t' | '\r' | '\n' | '\u{c}' => {
            let blank = |letter: &char| matches!(letter, ' ' | '\t' | '\r' | '\n' | '\u{c}');
            Next::Hidden(run(letters, at, blank))
        }
        '/' if after == Some('/') => Next::Hidden(run(letters, at, |letter| *letter != '\n')),
        '0'..='9' => number(letters, at),
        '.' if after.is_some_and(|letter| letter.is_ascii_digit()) => number(letters, at),
        '"' | '\'' => string(letters, at, at, false, TokenKind::String),
        'r' | 'R' if is_quote(after) => string(letters, at, at + 1, true, TokenKind::String),
        'b' | 'B' if is_quote(after) => string(letters, at, at + 1, false, TokenKind::Bytes),
        'b' | 'B' if matches!(after, Some('r' | 'R')) && is_quote(letters.get(at + 2).copied()) => {
            string(letters, at, at + 2, true, TokenKind::Bytes)
        }
        'A'..='Z' | 'a'..='z' | '_' => word(letters, at),
        '`' => escaped(letters, at),
        _ => symbol(letter, after, at),
    }
}

fn run(letters: &[char], at: usize, belongs: impl Fn(&char) -> bool) -> usize {
    at + letters[at..].iter().take_while(|letter| belongs(letter)).count()
}

fn is_quote(letter: Option<char>) -> bool {
    matches!(letter, Some('"' | '\''))
}

fn word(letters: &[char], at: usize) -> Next {
    let end = run(letters, at, |letter| letter.is_ascii_alphanumeric() || *letter == '_');
    let text: String = letters[at..end].iter().collect();
    let kind = match text.as_str() {
        "in" => TokenKind::In,
        "true" => TokenKind::True,
        "false" => TokenKind::False,
        "null" => TokenKind::Null,
        _ => TokenKind::Identifier,
    };
    Next::Token(kind, end)
}

fn escaped(letters: &[char], at: usize) -> Next {
    let inside = |letter: &char| letter.is_ascii_alphanumeric() || matches!(letter, '_' | '.' | '-' | '/' | ' ');
    let end = run(letters, at + 1, inside);
    if end > at + 1 && letters.get(end) == Some(&'`') {
        return Next::Token(TokenKind::EscapedIdentifier, end + 1);
    }
    Next::Nothing(end)
}

fn number(letters: &[char], at: usize) -> Next {
    let digits = |at: usize| run(letters, at, char::is_ascii_digit);
    if letters[at] == '0' && letters.get(at + 1) == Some(&'x') {
        let end = run(letters, at + 2, char::is_ascii_hexdigit);
        if end > at + 2 {
            return integer(letters, end);
        }
    }
    let mut end = digits(at);
    let mut float = false;
    let fraction = letters.get(end) == Some(&'.') && letters.get(end + 1).is_some_and(char::is_ascii_digit);
    if fraction {
        end = digits(end + 1);
        float = true;
    }
    if matches!(letters.get(end), Some('e' | 'E')) {
        let signed = usize::from(matches!(letters.get(end + 1), Some('+' | '-')));
        let exponent = digits((end + 1 + signed).min(letters.len()));
        if exponent > end + 1 + signed {
            end = exponent;
            float = true;
        }
    }
    if float {
        Next::Token(TokenKind::Float, end)
    } else {
        integer(letters, end)
    }
}

fn integer(letters: &[char], end: usize) -> Next {
    match letters.get(end) {
        Some('u' | 'U') => Next::Token(TokenKind::Uint, end + 1),
        _ => Next::Token(TokenKind::Int, end),
    }
}

/// A string from its opening quote on. If a triple quote never closes, its first two quotes are an empty string.
fn string(letters: &[char], start: usize, quote: usize, raw: bool, kind: TokenKind) -> Next {
    let mark = letters[quote];
    let triple = letters.get(quote + 1) == Some(&mark) && letters.get(quote + 2) == Some(&mark);
    if triple {
        return match triple_end(letters, quote + 3, mark, raw) {
            Some(end) => Next::Token(kind, end),
            None => Next::Token(kind, quote + 2),
        };
    }
    let mut at = quote + 1;
    while let Some(letter) = letters.get(at) {
        match letter {
            '\n' | '\r' => break,
            '\\' if !raw => match escape_end(letters, at) {
                Ok(end) => at = end,
                Err(failed) => {
                    at = failed;
                    break;
                }
            },
            letter if *letter == mark => return Next::Token(kind, at + 1),
            _ => at += 1,
        }
    }
    // A prefix without a string behind it is a name.
    if quote > start {
        word(letters, start)
    } else {
        Next::Nothing(at)
    }
}

fn triple_end(letters: &[char], mut at: usize, mark: char, raw: bool) -> Option<usize> {
    while let Some(letter) = letters.get(at) {
        if *letter == '\\' && !raw {
            at = escape_end(letters, at).ok()?;
        } else if *letter == mark && letters.get(at + 1) == Some(&mark) && letters.get(at + 2) == Some(&mark) {
            return Some(at + 3);
        } else {
            at += 1;
        }
    }
    None
}

/// The end of an escape sequence that begins at the backslash, or the code point at which it goes wrong.
fn escape_end(letters: &[char], at: usize) -> Result<usize, usize> {
    let hex = |count: usize| fixed(letters, at + 2, count, char::is_ascii_hexdigit);
    match letters.get(at + 1) {
        Some('a' | 'b' | 'f' | 'n' | 'r' | 't' | 'v' | '"' | '\'' | '\\' | '?' | '`') => Ok(at + 2),
        Some('x' | 'X') => hex(2),
        Some('u') => hex(4),
        Some('U') => hex(8),
        Some('0'..='3') => fixed(letters, at + 2, 2, |letter| ('0'..='7').contains(letter)),
        _ => Err(at + 1),
    }
}

fn fixed(letters: &[char], at: usize, count: usize, belongs: impl Fn(&char) -> bool) -> Result<usize, usize> {
    let end = at + count;
    match (at..end).find(|index| !letters.get(*index).is_some_and(&belongs)) {
        Some(failed) => Err(failed),
        None => Ok(end),
    }
}

fn symbol(letter: char, after: Option<char>, at: usize) -> Next {
    use TokenKind::*;
    let (kind, length) = match (letter, after) {
        ('=', Some('=')) => (Equals, 2),
        ('!', Some('=')) => (NotEquals, 2),
        ('<', Some('=')) => (LessEquals, 2),
        ('>', Some('=')) => (GreaterEquals, 2),
        ('&', Some('&')) => (And, 2),
        ('|', Some('|')) => (Or, 2),
        ('=' | '&' | '|', _) => return Next::Nothing(at + 1),
        ('<', _) => (Less, 1),
        ('>', _) => (Greater, 1),
        ('[', _) => (LeftBracket, 1),
        (']', _) => (RightBracket, 1),
        ('{', _) => (LeftBrace, 1),
        ('}', _) => (RightBrace, 1),
        ('(', _) => (LeftParen, 1),
        (')', _) => (RightParen, 1),
        ('.', _) => (Dot, 1),
        (',', _) => (Comma, 1),
        ('-', _) => (Minus, 1),
        ('!', _) => (Exclamation, 1),
        ('?', _) => (Question, 1),
        (':', _) => (Colon, 1),
        ('+', _) => (Plus, 1),
        ('*', _) => (Star, 1),
        ('/', _) => (Slash, 1),
        ('%', _) => (Percent, 1),
        _ => return Next::Nothing(at),
    };
    Next::Token(kind, at + length)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kinds(text: &str) -> (Vec<TokenKind>, Vec<String>) {
        let letters: Vec<char> = text.chars().collect();
        let found = tokens(&letters);
        let kinds = found.tokens.iter().map(|token| token.kind).collect();
        (kinds, found.unrecognized.into_iter().map(|(_, text)| text).collect())
    }

    #[test]
    fn the_longest_match_decides() {
        use TokenKind::*;
        assert_eq!(
            kinds("1.5e3 1.e 0x1Fu 0xg"),
            (vec![Float, Int, Dot, Identifier, Uint, Int, Identifier, End], vec![])
        );
        assert_eq!(
            kinds("inn in br'\\' rb'' // c\n1"),
            (vec![Identifier, In, Bytes, Identifier, String, Int, End], vec![])
        );
        assert_eq!(kinds("'''a'b''' \"\"\"x"), (vec![String, String, End], vec!["\"x".to_string()]));
    }

    #[test]
    fn text_that_is_no_token_is_reported_with_what_follows() {
        assert_eq!(kinds("a | b").1, ["| "]);
        assert_eq!(kinds("\"\\xFh\"").1, ["\"\\xFh", "\""]);
        assert_eq!(kinds("'a\nb'").1, ["'a\n", "'"]);
        assert_eq!(kinds("é").1, ["é"]);
    }
}
