//! From Go's notation of patterns to that of the engine: what the two write differently is rewritten, what only the engine
//! has is refused, with Go's words.

/// How often Go lets a pattern be repeated.
const MAX_REPEAT: u32 = 1000;

/// What is wrong with a pattern, and the part of it that is.
type Wrong = (&'static str, String);

pub(super) fn translate(pattern: &str) -> Result<String, Wrong> {
    let mut translator = Translator {
        repeats: vec![1],
        weight: 1,
        pattern,
        at: 0,
        out: String::with_capacity(pattern.len()),
        depth: 0,
        last: Last::None,
    };
    while translator.at < pattern.len() {
        translator.step()?;
    }
    if translator.depth > 0 {
        return Err(("missing closing )", pattern.into()));
    }
    Ok(translator.out)
}

/// What stands before the current place.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Last {
    /// Nothing that could be repeated.
    None,
    /// Something that can be repeated.
    Atom,
    /// A repetition that begins here.
    Repeat(usize),
}

struct Translator<'a> {
    pattern: &'a str,
    at: usize,
    out: String,
    depth: usize,
    last: Last,
    /// The product of nested repetitions in each open group, and of what stands before the current place.
    repeats: Vec<u32>,
    weight: u32,
}

impl Translator<'_> {
    fn rest(&self) -> &str {
        &self.pattern[self.at..]
    }

    fn take(&mut self) -> Option<char> {
        let letter = self.rest().chars().next()?;
        self.at += letter.len_utf8();
        Some(letter)
    }

    fn atom(&mut self, text: &str) {
        self.out.push_str(text);
        self.last = Last::Atom;
        self.weight = 1;
    }

    /// Counts a repetition; nested ones multiply.
    fn weigh(&mut self, braces: &str) -> Result<(), Wrong> {
        let numbers = braces.trim_matches(['{', '}']).split(',');
        let most = numbers.filter_map(|number| number.parse::<u32>().ok()).max().unwrap_or(1).max(1);
        self.weight = self.weight.saturating_mul(most);
        if self.weight > MAX_REPEAT {
            return Err(("invalid repeat count", braces.into()));
        }
        if let Some(group) = self.repeats.last_mut() {
            *group = (*group).max(self.weight);
        }
        Ok(())
    }

    fn step(&mut self) -> Result<(), Wrong> {
        let start = self.at;
        match self.take().unwrap_or('\0') {
            '\\' => self.escape(false)?,
            '[' => self.class(start)?,
            '(' => self.group(start)?,
            ')' => {
                if self.depth == 0 {
                    return Err(("unexpected )", self.pattern.into()));
                }
                self.depth -= 1;
                self.atom(")");
                self.weight = self.repeats.pop().unwrap_or(1);
                if let Some(group) = self.repeats.last_mut() {
                    *group = (*group).max(self.weight);
                }
            }
            '|' => {
                self.out.push('|');
                self.last = Last::None;
            }
            letter @ ('*' | '+' | '?') => self.repeat(start, &letter.to_string())?,
            '{' => match self.braces()? {
                Some(braces) => {
                    self.at = start + braces.len();
                    self.repeat(start, &braces)?;
                    self.weigh(&braces)?;
                }
                None => self.atom("\\{"),
            },
            letter @ ('}' | ']') => self.atom(&format!("\\{letter}")),
            letter => self.atom(letter.encode_utf8(&mut [0; 4])),
        }
        Ok(())
    }

    fn repeat(&mut self, start: usize, op: &str) -> Result<(), Wrong> {
        if self.rest().starts_with('?') {
            self.at += 1;
        }
        let shown = &self.pattern[start..self.at];
        match self.last {
            Last::None => return Err(("missing argument to repetition operator", shown.into())),
            Last::Repeat(first) => {
                return Err(("invalid nested repetition operator", self.pattern[first..self.at].into()));
            }
            Last::Atom => {}
        }
        self.out.push_str(op);
        if shown.len() > op.len() {
            self.out.push('?');
        }
        self.last = Last::Repeat(start);
        Ok(())
    }

    /// The repetition in braces behind the current place, if it is one.
    fn braces(&self) -> Result<Option<String>, Wrong> {
        let Some((inner, _)) = self.rest().split_once('}') else {
            return Ok(None);
        };
        let (least, most) = inner.split_once(',').map_or((inner, None), |(least, most)| (least, Some(most)));
        let digits = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
        if least.is_empty() || !digits(least) || !most.is_none_or(digits) {
            return Ok(None);
        }
        let number = |part: &str| part.parse::<u32>().unwrap_or(u32::MAX);
        let upper = most.filter(|most| !most.is_empty()).map(number);
        if number(least) > MAX_REPEAT || upper.is_some_and(|upper| upper > MAX_REPEAT || upper < number(least)) {
            return Err(("invalid repeat count", format!("{{{inner}}}")));
        }
        Ok(Some(format!("{{{inner}}}")))
    }

    fn group(&mut self, start: usize) -> Result<(), Wrong> {
        self.last = Last::None;
        let Some(inner) = self.rest().strip_prefix('?').map(String::from) else {
            self.depth += 1;
            self.repeats.push(1);
            self.out.push('(');
            return Ok(());
        };
        if let Some(name) = inner.strip_prefix("P<").or_else(|| inner.strip_prefix('<')) {
            if name.starts_with(['=', '!']) {
                return Err(("invalid or unsupported Perl syntax", self.pattern[start..start + 4].into()));
            }
            let Some(end) = name.find('>') else {
                return Err(("invalid named capture", self.pattern[start..].into()));
            };
            let valid = end > 0 && name[..end].chars().all(|letter| letter.is_ascii_alphanumeric() || letter == '_');
            let length = inner.len() - name.len() + 1 + end + 1;
            if !valid {
                return Err(("invalid named capture", self.pattern[start..start + 1 + length].into()));
            }
            self.out.push_str(&format!("(?P<{}>", &name[..end]));
            self.at += length;
            self.depth += 1;
            self.repeats.push(1);
            return Ok(());
        }
        let end = inner.find([')', ':']).unwrap_or(inner.len());
        let flags = &inner[..end];
        if end == inner.len() || !flags.chars().all(|flag| "imsU-".contains(flag)) || flags.ends_with('-') {
            let shown = flags.char_indices().find(|(_, flag)| !"imsU-".contains(*flag));
            let length = shown.map_or(flags.len(), |(at, flag)| at + flag.len_utf8());
            let shown = self.pattern[start..].get(..2 + length).unwrap_or(&self.pattern[start..]);
            let why = if end == inner.len() && shown.len() == self.pattern.len() - start {
                return Err(("missing closing )", self.pattern.into()));
            } else {
                "invalid or unsupported Perl syntax"
            };
            return Err((why, shown.into()));
        }
        self.out.push_str(&format!("(?{}", &inner[..=end]));
        self.at += 1 + end + 1;
        if inner[end..].starts_with(':') {
            self.depth += 1;
            self.repeats.push(1);
        }
        Ok(())
    }

    fn class(&mut self, start: usize) -> Result<(), Wrong> {
        let missing = |translator: &Self| Err(("missing closing ]", translator.pattern[start..].to_string()));
        self.out.push('[');
        if self.rest().starts_with('^') {
            self.at += 1;
            self.out.push('^');
        }
        let first = self.at;
        loop {
            let at = self.at;
            let Some(letter) = self.take() else {
                return missing(self);
            };
            match letter {
                ']' if at > first => break,
                '\\' => self.escape(true)?,
                '[' if self.rest().starts_with(':') => match self.rest().find(":]") {
                    Some(end) => {
                        let name = self.pattern[at..self.at + end + 2].to_string();
                        if !is_posix(&name) {
                            return Err(("invalid character class range", name));
                        }
                        self.out.push_str(&name);
                        self.at += end + 2;
                    }
                    None => self.out.push_str("\\["),
                },
                // The engine's set operations are plain characters in Go's classes.
                '[' | ']' | '&' | '~' => self.out.extend(['\\', letter]),
                '-' if at == first || self.rest().starts_with(']') || self.rest().starts_with('-') => {
                    self.out.push_str("\\-");
                }
                letter => self.out.push(letter),
            }
        }
        self.atom("]");
        Ok(())
    }

    fn escape(&mut self, in_class: bool) -> Result<(), Wrong> {
        let start = self.at - 1;
        let Some(letter) = self.take() else {
            return Err(("trailing backslash at end of expression", String::new()));
        };
        // Go's classes of digits, words and blanks are those of ASCII.
        let text = match letter {
            'd' => "[0-9]",
            'D' => "[^0-9]",
            'w' => "[0-9A-Za-z_]",
            'W' => "[^0-9A-Za-z_]",
            's' => "[\\t\\n\\x0c\\r ]",
            'S' => "[^\\t\\n\\x0c\\r ]",
            'b' if !in_class => "(?-u:\\b)",
            'B' if !in_class => "(?-u:\\B)",
            'A' if !in_class => "\\A",
            'z' if !in_class => "\\z",
            'Q' if !in_class => {
                let rest = self.rest().to_string();
                let quoted = rest.split("\\E").next().unwrap_or_default();
                self.at = (self.at + quoted.len() + 2).min(self.pattern.len());
                let quoted = regex::escape(quoted);
                self.atom(&quoted);
                return Ok(());
            }
            'E' if !in_class => "",
            'x' | 'p' | 'P' => {
                let braced = self.rest().strip_prefix('{').and_then(|inner| inner.find('}'));
                let end = self.at + braced.map_or(0, |length| length + 2);
                let escaped = self.pattern[start..end].to_string();
                self.at = end;
                self.atom(&escaped);
                return Ok(());
            }
            'a' | 'f' | 't' | 'n' | 'r' | 'v' => {
                self.atom(&format!("\\{letter}"));
                return Ok(());
            }
            '0' => "\\x00",
            letter if letter.is_ascii_punctuation() => {
                self.atom(&format!("\\{letter}"));
                return Ok(());
            }
            _ => return Err(("invalid escape sequence", self.pattern[start..self.at].into())),
        };
        self.atom(text);
        Ok(())
    }
}

fn is_posix(name: &str) -> bool {
    let inner = name.trim_start_matches("[:").trim_start_matches('^').trim_end_matches(":]");
    let known = [
        "alnum", "alpha", "ascii", "blank", "cntrl", "digit", "graph", "lower", "print", "punct", "space", "upper",
        "word", "xdigit",
    ];
    known.contains(&inner)
}

#[cfg(test)]
mod tests {
    use super::super::compile;

    #[test]
    fn patterns_mean_what_they_mean_in_go() {
        let cases = [
            (r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$", "a-b", true),
            (r"^\d+$", "٣", false),
            (r"^\w+$", "é", false),
            (r"^[\w.]+$", "a.b", true),
            (r"a{,5}", "a{,5}", true),
            (r"^a{2,3}$", "aaa", true),
            (r"^[[]a]$", "[a]", true),
            (r"^[]a]+$", "]a", true),
            (r"^[a&&b]+$", "&", true),
            (r"\Qa.b\E$", "a.b", true),
            (r"\Qa.b\E$", "axb", false),
            (r"^\/$", "/", true),
            (r"(?i)^HELLO$", "hello", true),
            (r"^.$", "é", true),
            (r"^[[:alpha:]]+$", "abc", true),
            (r"}", "}", true),
            (r"^\p{L}[[:alpha:]]$", "äb", true),
            (r"^[\p{Greek}\x{41}]+$", "αA", true),
            (r"^\pN$", "a", false),
        ];
        for (pattern, text, expected) in cases {
            let compiled = compile(pattern).unwrap_or_else(|error| panic!("{pattern}: {error}"));
            assert_eq!(compiled.is_match(text), expected, "{pattern} on {text}");
        }
    }

    #[test]
    fn wrong_patterns_are_refused_in_the_words_of_go() {
        let cases = [
            ("(", "missing closing ): `(`"),
            (")", "unexpected ): `)`"),
            ("[a-z", "missing closing ]: `[a-z`"),
            ("*a", "missing argument to repetition operator: `*`"),
            ("a|??", "missing argument to repetition operator: `??`"),
            ("x++", "invalid nested repetition operator: `++`"),
            ("a{1001}", "invalid repeat count: `{1001}`"),
            ("(a{100}){11}", "invalid repeat count: `{11}`"),
            (r"\8", r"invalid escape sequence: `\8`"),
            (r"a\", "trailing backslash at end of expression: ``"),
            ("(?=a)", "invalid or unsupported Perl syntax: `(?=`"),
            ("(?<name%>a)", "invalid named capture: `(?<name%>`"),
        ];
        for (pattern, expected) in cases {
            let error = compile(pattern).expect_err(pattern);
            assert_eq!(error.message(), format!("error parsing regexp: {expected}"), "{pattern}");
        }
    }
}
