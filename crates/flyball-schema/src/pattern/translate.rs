//! Go's syntax for regular expressions into the `regex` crate's: Perl classes are ASCII, `{` may stand for itself,
//! and a class has no classes in it. What Go refuses is refused in its words.
// Go's regexp/syntax/parse.go

use std::str::Chars;

const MOST_REPEATS: u32 = 1000;
/// Longer than the name of any class within a class.
const LONGEST_CLASS_NAME: usize = 256;
/// Longer than any repetition in braces.
const LONGEST_BRACES: usize = 64;

/// An expression that means to the `regex` crate what it means to Go.
pub(super) fn from_go(text: &str) -> Result<String, String> {
    let mut translation = Translation {
        text,
        rest: text.chars(),
        out: String::new(),
        open: 0,
        atom: false,
        repeated: None,
    };
    translation.run()?;
    Ok(translation.out)
}

struct Translation<'a> {
    text: &'a str,
    rest: Chars<'a>,
    out: String,
    open: usize,
    /// Whether a repetition operator has something to repeat.
    atom: bool,
    /// The repetition operator that stands right before.
    repeated: Option<String>,
}

impl<'a> Translation<'a> {
    fn run(&mut self) -> Result<(), String> {
        while let Some(character) = self.rest.next() {
            match character {
                '\\' => self.escape()?,
                '[' => self.class()?,
                '(' => self.group()?,
                ')' => {
                    self.open = self.open.checked_sub(1).ok_or(format!("unexpected ): `{}`", self.text))?;
                    self.push(")", true);
                }
                '*' | '+' | '?' => self.repeat(&character.to_string())?,
                '{' => self.braces()?,
                '|' => self.push("|", false),
                '^' => self.push("^", true),
                _ => self.push(character.encode_utf8(&mut [0; 4]), true),
            }
        }
        if self.open > 0 {
            Err(format!("missing closing ): `{}`", self.text))
        } else {
            Ok(())
        }
    }

    fn push(&mut self, text: &str, atom: bool) {
        self.out.push_str(text);
        self.atom = atom;
        self.repeated = None;
    }

    /// What is left, from the characters that have been taken last.
    fn text_from(&self, taken: usize) -> &'a str {
        let at = self.text.len() - self.rest.as_str().len();
        let back = self.text[..at].chars().rev().take(taken).map(char::len_utf8).sum::<usize>();
        &self.text[at - back..]
    }

    fn peek(&self) -> Option<char> {
        self.rest.clone().next()
    }

    fn group(&mut self) -> Result<(), String> {
        self.open += 1;
        self.push("(", false);
        if self.peek() != Some('?') {
            return Ok(());
        }
        let from = self.text_from(1);
        if from.starts_with("(?P<") || from.starts_with("(?<") {
            return self.named_group(from);
        }
        let mut taken = "(".to_owned();
        for character in self.rest.by_ref() {
            taken.push(character);
            match character {
                '?' if taken.len() == 2 => {}
                'i' | 'm' | 's' | 'U' | '-' if taken.len() > 2 => {}
                ':' | ')' if taken.len() > 2 => {
                    // Flags alone are no group.
                    self.open -= usize::from(character == ')');
                    self.out.push_str(&taken[1..]);
                    return Ok(());
                }
                _ => break,
            }
        }
        Err(format!("invalid or unsupported Perl syntax: `{taken}`"))
    }

    fn named_group(&mut self, from: &str) -> Result<(), String> {
        let (capture, _) = from.split_once('>').ok_or(format!("invalid named capture: `{from}`"))?;
        let name = capture.trim_start_matches("(?P<").trim_start_matches("(?<");
        if name.is_empty() || !name.chars().all(|character| character.is_ascii_alphanumeric() || character == '_') {
            return Err(format!("invalid named capture: `{capture}>`"));
        }
        for _ in 0..capture.chars().count() {
            self.rest.next();
        }
        self.out.push_str(&format!("?P<{name}>"));
        Ok(())
    }

    fn repeat(&mut self, operator: &str) -> Result<(), String> {
        if !self.atom {
            return Err(format!("missing argument to repetition operator: `{operator}`"));
        }
        let mut operator = operator.to_owned();
        if self.peek() == Some('?') {
            self.rest.next();
            operator.push('?');
        }
        if let Some(last) = self.repeated.take() {
            return Err(format!("invalid nested repetition operator: `{last}{operator}`"));
        }
        self.out.push_str(&operator);
        self.repeated = Some(operator);
        Ok(())
    }

    /// `{2}`, `{2,}` and `{2,3}` repeat; any other brace stands for itself.
    fn braces(&mut self) -> Result<(), String> {
        let inside: String = self.rest.clone().take(LONGEST_BRACES).take_while(|character| *character != '}').collect();
        let closed = self.rest.clone().nth(inside.chars().count()) == Some('}');
        let (least, most) = inside.split_once(',').unwrap_or((&inside, &inside));
        let is_count = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        if !closed || !is_count(least) || !(most.is_empty() || is_count(most)) {
            self.push("\\{", true);
            return Ok(());
        }
        let operator = format!("{{{inside}}}");
        let count = |text: &str| text.parse::<u32>().ok().filter(|count| *count <= MOST_REPEATS);
        let in_order = most.is_empty() || count(least).zip(count(most)).is_some_and(|(least, most)| least <= most);
        if count(least).is_none() || !in_order {
            return Err(format!("invalid repeat count: `{operator}`"));
        }
        for _ in 0..=inside.chars().count() {
            self.rest.next();
        }
        self.repeat(&operator)
    }

    fn escape(&mut self) -> Result<(), String> {
        let Some(escaped) = self.rest.next() else {
            return Err("trailing backslash at end of expression: ``".to_owned());
        };
        match escaped {
            'Q' => {
                let quoted = self.quoted();
                self.push(&regex::escape(&quoted), true);
            }
            'b' => self.push("(?-u:\\b)", true),
            'B' | 'A' | 'z' => self.push(&format!("\\{escaped}"), true),
            'p' | 'P' => {
                let class = self.unicode_class(escaped);
                self.push(&class, true);
            }
            _ => match perl_class(escaped) {
                Some((negated, members)) => {
                    let class = if negated {
                        format!("[^{members}]")
                    } else {
                        format!("[{members}]")
                    };
                    self.push(&class, true);
                }
                None => {
                    let literal = self.literal_escape(escaped)?;
                    self.push(&literal, true);
                }
            },
        }
        Ok(())
    }

    /// Everything up to `\E`, which may be missing.
    fn quoted(&mut self) -> String {
        let mut quoted = String::new();
        while let Some(character) = self.rest.next() {
            if character == '\\' && self.peek() == Some('E') {
                self.rest.next();
                break;
            }
            quoted.push(character);
        }
        quoted
    }

    fn unicode_class(&mut self, letter: char) -> String {
        let mut class = format!("\\{letter}");
        match self.rest.next() {
            Some('{') => {
                class.push('{');
                for character in self.rest.by_ref() {
                    class.push(character);
                    if character == '}' {
                        break;
                    }
                }
            }
            Some(name) => class.push(name),
            None => {}
        }
        class
    }

    /// An escape that stands for one character.
    fn literal_escape(&mut self, escaped: char) -> Result<String, String> {
        match escaped {
            'a' | 'f' | 'n' | 'r' | 't' | 'v' => Ok(format!("\\{escaped}")),
            'x' => {
                let braced = self.peek() == Some('{');
                let hexadecimal = |character: &char| character.is_ascii_hexdigit() || "{}".contains(*character);
                let length = if braced { usize::MAX } else { 2 };
                let mut digits = String::new();
                while digits.len() < length && self.peek().is_some_and(|digit| hexadecimal(&digit)) {
                    let digit = self.rest.next().unwrap_or_default();
                    digits.push(digit);
                    if digit == '}' {
                        break;
                    }
                }
                Ok(format!("\\x{digits}"))
            }
            '0' => Ok("\\x00".to_owned()),
            _ if escaped.is_ascii_alphanumeric() => Err(format!("invalid escape sequence: `\\{escaped}`")),
            _ => Ok(regex::escape(&escaped.to_string())),
        }
    }

    fn class(&mut self) -> Result<(), String> {
        let start = self.text_from(1);
        let missing = || format!("missing closing ]: `{start}`");
        let mut class = "[".to_owned();
        if self.peek() == Some('^') {
            self.rest.next();
            class.push('^');
        }
        let mut first = true;
        loop {
            match self.peek().ok_or_else(missing)? {
                ']' if !first => break,
                '[' => {
                    self.rest.next();
                    class.push_str(&self.named_class()?.unwrap_or_else(|| "\\[".to_owned()));
                }
                _ => {
                    let member = self.member().map_err(|error| error.unwrap_or_else(missing))?;
                    class.push_str(&member);
                }
            }
            first = false;
        }
        self.rest.next();
        class.push(']');
        self.push(&class, true);
        Ok(())
    }

    /// `[:alpha:]` inside a class, whose bracket has been taken.
    fn named_class(&mut self) -> Result<Option<String>, String> {
        let named = self.rest.as_str().strip_prefix(':').filter(|rest| {
            // No name is long; looking for the end of each to the end of all would take forever.
            rest.char_indices().take(LONGEST_CLASS_NAME).any(|(at, _)| rest[at..].starts_with(":]"))
        });
        let Some((name, _)) = named.and_then(|rest| rest.split_once(":]")) else {
            return Ok(None);
        };
        const NAMES: [&str; 14] = [
            "alnum", "alpha", "ascii", "blank", "cntrl", "digit", "graph", "lower", "print", "punct", "space", "upper",
            "word", "xdigit",
        ];
        if !NAMES.contains(&name.strip_prefix('^').unwrap_or(name)) {
            return Err(format!("invalid character class range: `[:{name}:]`"));
        }
        for _ in 0..name.chars().count() + 3 {
            self.rest.next();
        }
        Ok(Some(format!("[:{name}:]")))
    }

    /// A character, a range or an escaped class; an error without words is a class that does not end.
    fn member(&mut self) -> Result<String, Option<String>> {
        let from = self.text_from(0);
        let low = match self.character()? {
            Member::Class(class) => return Ok(class),
            Member::Character(character) => character,
        };
        let mut ahead = self.rest.clone();
        if ahead.next() != Some('-') || matches!(ahead.next(), Some(']') | None) {
            return Ok(low);
        }
        self.rest.next();
        let Member::Character(high) = self.character()? else {
            let taken = from.chars().count() - self.rest.clone().count();
            return Err(Some(format!(
                "invalid character class range: `{}`",
                from.chars().take(taken).collect::<String>()
            )));
        };
        // Escapes are compared by what they look like only where both are plain characters.
        let plain = |text: &str| text.trim_start_matches('\\').chars().next().filter(|_| text.chars().count() <= 2);
        if plain(&low) > plain(&high) && plain(&high).is_some() {
            let taken = from.chars().count() - self.rest.clone().count();
            return Err(Some(format!(
                "invalid character class range: `{}`",
                from.chars().take(taken).collect::<String>()
            )));
        }
        Ok(format!("{low}-{high}"))
    }

    fn character(&mut self) -> Result<Member, Option<String>> {
        let character = self.rest.next().ok_or(None)?;
        if character != '\\' {
            return Ok(Member::Character(regex::escape(&character.to_string())));
        }
        let escaped = self.rest.next().ok_or(None)?;
        match perl_class(escaped) {
            Some((true, members)) => Ok(Member::Class(format!("[^{members}]"))),
            Some((false, members)) => Ok(Member::Class(members.to_owned())),
            None if escaped == 'p' || escaped == 'P' => Ok(Member::Class(self.unicode_class(escaped))),
            None => self.literal_escape(escaped).map(Member::Character).map_err(Some),
        }
    }
}

/// What a class is made of, as the `regex` crate writes it.
enum Member {
    Character(String),
    Class(String),
}

/// What Go's `\d`, `\s` and `\w` stand for, and whether they are negated.
fn perl_class(letter: char) -> Option<(bool, &'static str)> {
    let members = match letter.to_ascii_lowercase() {
        'd' => "0-9",
        's' => "\\t\\n\\x0c\\r ",
        'w' => "0-9A-Za-z_",
        _ => return None,
    };
    Some((letter.is_ascii_uppercase(), members))
}
