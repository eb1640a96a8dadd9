//! What is said of a token that does not fit, and how the parser goes on behind it.

use super::lexer::TokenKind;
use super::{MAX_RECOVERIES, OPERATORS, Parser, Stop};

/// The tokens that begin an operand.
pub(super) const OPERAND: [TokenKind; 15] = [
    TokenKind::LeftBracket,
    TokenKind::LeftBrace,
    TokenKind::LeftParen,
    TokenKind::Dot,
    TokenKind::Minus,
    TokenKind::Exclamation,
    TokenKind::True,
    TokenKind::False,
    TokenKind::Null,
    TokenKind::Float,
    TokenKind::Int,
    TokenKind::Uint,
    TokenKind::String,
    TokenKind::Bytes,
    TokenKind::Identifier,
];

const LITERALS: &str = "'true', 'false', 'null', NUM_FLOAT, NUM_INT, NUM_UINT, STRING, BYTES, IDENTIFIER";

/// What may stand at a place: the tokens, and their list as messages show it.
pub(super) struct Expected {
    pub tokens: &'static [TokenKind],
    pub shown: String,
}

pub(super) fn operand() -> Expected {
    Expected {
        tokens: &[],
        shown: format!("{{'[', '{{', '(', '.', '-', '!', {LITERALS}}}"),
    }
}

/// The first element of a call, a list or a map, or its end.
pub(super) fn first(close: TokenKind) -> Expected {
    match close {
        TokenKind::RightParen => Expected {
            tokens: &[TokenKind::RightParen],
            shown: format!("{{'[', '{{', '(', ')', '.', '-', '!', {LITERALS}}}"),
        },
        TokenKind::RightBracket => Expected {
            tokens: &[TokenKind::RightBracket, TokenKind::Comma, TokenKind::Question],
            shown: format!("{{'[', ']', '{{', '(', '.', ',', '-', '!', '?', {LITERALS}}}"),
        },
        _ => Expected {
            tokens: &[TokenKind::RightBrace, TokenKind::Comma, TokenKind::Question],
            shown: format!("{{'[', '{{', '}}', '(', '.', ',', '-', '!', '?', {LITERALS}}}"),
        },
    }
}

/// Text as messages quote it: line breaks and tabs are escaped.
pub(super) fn shown(text: &str) -> String {
    text.replace('\n', "\\n").replace('\t', "\\t").replace('\r', "\\r")
}

impl Parser<'_> {
    /// Reports a syntax error at the current token, unless the parser is still recovering from the last one.
    pub(super) fn syntax_error(&mut self, message: String) {
        if !self.recovering {
            self.recovering = true;
            let start = self.tokens[self.at].start as u32;
            self.issues.report(self.source.location(start), format!("Syntax error: {message}"));
        }
    }

    pub(super) fn token_text(&self) -> String {
        match self.peek() {
            TokenKind::End => "<EOF>".into(),
            _ => shown(&self.text(self.tokens[self.at])),
        }
    }

    fn attempt(&mut self) -> Result<(), Stop> {
        self.recoveries += 1;
        if self.recoveries > MAX_RECOVERIES {
            self.recovering = false;
            self.syntax_error(format!("error recovery attempt limit exceeded: {MAX_RECOVERIES}"));
            return Err(Stop::Reported);
        }
        Ok(())
    }

    /// Takes a token of this kind. A superfluous token before it is deleted, a missing one inserted; otherwise answers false
    /// after skipping to where the surrounding construct goes on.
    pub(super) fn expect(&mut self, kind: TokenKind, name: &str) -> Result<bool, Stop> {
        if self.peek() == kind {
            if kind != TokenKind::End {
                self.bump();
            }
            return Ok(true);
        }
        self.attempt()?;
        let text = self.token_text();
        if self.peek() != TokenKind::End && self.peek_second() == kind {
            self.syntax_error(format!("extraneous input '{text}' expecting {name}"));
            self.bump();
            self.bump();
            return Ok(true);
        }
        let insertable = matches!(kind, TokenKind::RightParen | TokenKind::RightBracket | TokenKind::RightBrace);
        if (insertable && self.may_follow(self.peek())) || (kind == TokenKind::Colon && OPERAND.contains(&self.peek()))
        {
            self.syntax_error(format!("missing {name} at '{text}'"));
            return Ok(true);
        }
        self.syntax_error(format!("mismatched input '{text}' expecting {name}"));
        if kind == TokenKind::End {
            return Err(Stop::Reported);
        }
        self.skip();
        Ok(false)
    }

    /// Checks that the current token may stand here. Deletes one that may not if the next one may; otherwise answers false.
    pub(super) fn sync(&mut self, expected: &Expected, operands: bool) -> Result<bool, Stop> {
        let fits = |kind: TokenKind| expected.tokens.contains(&kind) || (operands && OPERAND.contains(&kind));
        if fits(self.peek()) {
            return Ok(true);
        }
        self.attempt()?;
        let text = self.token_text();
        if self.peek() != TokenKind::End && fits(self.peek_second()) {
            self.syntax_error(format!("extraneous input '{text}' expecting {}", expected.shown));
            self.bump();
            return Ok(true);
        }
        self.syntax_error(format!("mismatched input '{text}' expecting {}", expected.shown));
        self.skip();
        Ok(false)
    }

    fn may_follow(&self, kind: TokenKind) -> bool {
        let inner = [TokenKind::End, TokenKind::Dot, TokenKind::LeftBracket];
        inner.contains(&kind) || OPERATORS.contains(&kind) || self.follow.iter().any(|tokens| tokens.contains(&kind))
    }

    /// Skips tokens until one that may follow.
    pub(super) fn skip(&mut self) {
        while self.peek() != TokenKind::End
            && !OPERATORS.contains(&self.peek())
            && !self.follow.iter().any(|tokens| tokens.contains(&self.peek()))
        {
            self.at += 1;
        }
    }
}
