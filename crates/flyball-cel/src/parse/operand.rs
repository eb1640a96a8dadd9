//! Operands: literals, names, calls, lists, maps and messages, and the members selected from them.

use super::lexer::{Token, TokenKind};
use super::message::{self, Expected};
use super::{Parsed, Parser, Stop, literal};
use crate::ast::{Entry, ExprId, ExprKind, Field, Literal};
use std::sync::Arc;

/// Names that no expression may use for its own.
const RESERVED: [&str; 21] = [
    "as",
    "break",
    "const",
    "continue",
    "else",
    "false",
    "for",
    "function",
    "if",
    "import",
    "in",
    "let",
    "loop",
    "package",
    "namespace",
    "null",
    "return",
    "true",
    "var",
    "void",
    "while",
];

impl Parser<'_> {
    pub(super) fn unary(&mut self) -> Parsed {
        if !self.sync(&message::operand(), true)? {
            let start = self.tokens[self.at].start;
            return self.unspecified(start);
        }
        match self.peek() {
            TokenKind::Exclamation => self.prefixed(TokenKind::Exclamation, "!_"),
            TokenKind::Minus if matches!(self.peek_second(), TokenKind::Int | TokenKind::Float) => self.member(),
            TokenKind::Minus => self.prefixed(TokenKind::Minus, "-_"),
            _ => self.member(),
        }
    }

    /// A run of one prefix operator; an even number of them cancels out.
    fn prefixed(&mut self, op: TokenKind, function: &str) -> Parsed {
        let first = self.bump();
        let mut count = 1;
        while self.peek() == op {
            self.bump();
            count += 1;
        }
        if !self.sync(&message::operand(), true)? || self.is_other_prefix() {
            let start = self.tokens[self.at].start;
            return self.unspecified(start);
        }
        let operand = self.member()?;
        match count % 2 {
            0 => Ok(operand),
            _ => {
                let height = self.height(&[operand]);
                self.global_call(first.start, function, vec![operand], height)
            }
        }
    }

    /// Reports the other prefix operator, which may not follow one; the sign of a number may.
    fn is_other_prefix(&mut self) -> bool {
        let from = match self.peek() {
            TokenKind::Minus if !matches!(self.peek_second(), TokenKind::Int | TokenKind::Float) => self.bump().start,
            TokenKind::Exclamation => self.tokens[self.at - 1].start,
            _ => return false,
        };
        let token = self.tokens[self.at];
        let input: String = self.letters[from..token.end].iter().collect();
        self.syntax_error(format!("no viable alternative at input '{}'", message::shown(&input)));
        self.skip();
        true
    }

    fn member(&mut self) -> Parsed {
        let mut operand = self.primary()?;
        loop {
            operand = match self.peek() {
                TokenKind::Dot => self.selection(operand)?,
                TokenKind::LeftBracket => self.index(operand)?,
                _ => return Ok(operand),
            };
        }
    }

    fn selection(&mut self, operand: ExprId) -> Parsed {
        let dot = self.bump();
        let optional = self.peek() == TokenKind::Question;
        if optional {
            self.bump();
        }
        let token = match self.peek() {
            TokenKind::Identifier | TokenKind::EscapedIdentifier => self.bump(),
            _ => return self.no_field(dot, optional),
        };
        if token.kind == TokenKind::Identifier && !optional && self.peek() == TokenKind::LeftParen {
            let function = self.text(token);
            let open = self.bump();
            let args = self.arguments()?;
            return self.receiver_call(open.start, &function, operand, args);
        }
        let field = self.field_name(token);
        let height = self.height(&[operand]) + 1;
        if !optional {
            return self.add(dot.start, ExprKind::Select { operand, field, test_only: false }, height);
        }
        if !self.syntax.optionals {
            return self.invalid(dot.start, "unsupported syntax '.?'");
        }
        let field = self.literal(token.start, Literal::String(field))?;
        self.add(
            dot.start,
            ExprKind::Call {
                function: "_?._".into(),
                target: None,
                args: vec![operand, field],
            },
            height,
        )
    }

    fn no_field(&mut self, dot: Token, optional: bool) -> Parsed {
        let token = self.tokens[self.at];
        let text = self.token_text();
        let message = match token.kind {
            _ if optional => format!("mismatched input '{text}' expecting {{IDENTIFIER, ESC_IDENTIFIER}}"),
            TokenKind::True | TokenKind::False | TokenKind::Null => {
                format!("mismatched input '{text}' expecting IDENTIFIER")
            }
            TokenKind::End => "no viable alternative at input '.'".into(),
            _ => {
                let start = self.tokens[self.at.saturating_sub(1)].start.max(dot.start);
                let shown: String = self.letters[start..token.end].iter().filter(|letter| **letter != ' ').collect();
                format!("no viable alternative at input '{}'", message::shown(&shown))
            }
        };
        self.syntax_error(message);
        self.skip();
        self.unspecified(dot.start)
    }

    fn field_name(&mut self, token: Token) -> Arc<str> {
        let text = self.text(token);
        if token.kind == TokenKind::Identifier {
            return text;
        }
        if !self.syntax.quoted_identifiers {
            self.issues
                .report(self.source.location(token.start as u32), "unsupported syntax: '`'".into());
        }
        text.trim_matches('`').into()
    }

    fn index(&mut self, operand: ExprId) -> Parsed {
        let open = self.bump();
        let optional = self.peek() == TokenKind::Question;
        if optional {
            self.bump();
        }
        self.follow.push(&[TokenKind::RightBracket]);
        let index = self.expr()?;
        self.follow.pop();
        self.expect(TokenKind::RightBracket, "']'")?;
        if optional && !self.syntax.optionals {
            return self.invalid(open.start, "unsupported syntax '[?'");
        }
        let function = if optional { "_[?_]" } else { "_[_]" };
        let height = self.height(&[operand, index]) + 1;
        self.global_call(open.start, function, vec![operand, index], height)
    }

    fn primary(&mut self) -> Parsed {
        let token = self.tokens[self.at];
        match token.kind {
            TokenKind::LeftParen => self.nested(),
            TokenKind::LeftBracket => self.list(),
            TokenKind::LeftBrace => self.map(),
            TokenKind::Dot | TokenKind::Identifier => self.named(),
            _ => self.constant(),
        }
    }

    fn nested(&mut self) -> Parsed {
        self.bump();
        self.follow.push(&[TokenKind::RightParen]);
        let inner = self.expr()?;
        self.follow.pop();
        self.expect(TokenKind::RightParen, "')'")?;
        Ok(inner)
    }

    fn constant(&mut self) -> Parsed {
        let start = self.tokens[self.at].start;
        let negative = self.peek() == TokenKind::Minus;
        if negative {
            self.bump();
        }
        let token = self.bump();
        let text = self.text(token);
        match token.kind {
            TokenKind::Int => match literal::int(&text, negative) {
                Some(value) => self.literal(start, Literal::Int(value)),
                None => self.invalid(start, "invalid int literal"),
            },
            TokenKind::Uint => match literal::uint(&text) {
                Some(value) => self.literal(start, Literal::Uint(value)),
                None => self.invalid(start, "invalid uint literal"),
            },
            TokenKind::Float => match literal::double(&text, negative) {
                Some(value) => self.literal(start, Literal::Double(value)),
                None => self.invalid(start, "invalid double literal"),
            },
            TokenKind::String => match literal::unquote(&text, false).map(String::from_utf8) {
                Ok(Ok(value)) => self.literal(start, Literal::String(value.into())),
                Ok(Err(_)) => self.invalid(start, "invalid unicode code point"),
                Err(message) => self.invalid(start, message),
            },
            TokenKind::Bytes => match literal::unquote(&text[1..], true) {
                Ok(value) => self.literal(start, Literal::Bytes(value.into())),
                Err(message) => self.invalid(start, message),
            },
            TokenKind::True => self.literal(start, Literal::Bool(true)),
            TokenKind::False => self.literal(start, Literal::Bool(false)),
            _ => self.literal(start, Literal::Null),
        }
    }

    /// A name, a call of a function, or a message.
    fn named(&mut self) -> Parsed {
        if let Some(braces) = self.message_braces() {
            return self.message(braces);
        }
        let start = self.tokens[self.at].start;
        let dot = if self.peek() == TokenKind::Dot {
            Some(self.bump())
        } else {
            None
        };
        if self.peek() != TokenKind::Identifier {
            return self.no_field(dot.unwrap_or(self.tokens[self.at]), false);
        }
        let token = self.bump();
        let name = self.text(token);
        if RESERVED.contains(&&*name) {
            let reserved = format!("reserved identifier: {name}");
            if self.peek() == TokenKind::LeftParen {
                self.bump();
                self.arguments()?;
            }
            return self.invalid(start, reserved);
        }
        let name: Arc<str> = if dot.is_some() { format!(".{name}").into() } else { name };
        if self.peek() != TokenKind::LeftParen {
            return self.add(token.start, ExprKind::Ident(name), 0);
        }
        let open = self.bump();
        let args = self.arguments()?;
        let height = self.height(&args);
        self.global_call(open.start, &name, args, height)
    }

    fn arguments(&mut self) -> Result<Vec<ExprId>, Stop> {
        let mut args = Vec::new();
        self.follow.push(&[TokenKind::RightParen, TokenKind::Comma]);
        if self.sync(&message::first(TokenKind::RightParen), true)? && self.peek() != TokenKind::RightParen {
            args.push(self.expr()?);
            while self.peek() == TokenKind::Comma {
                self.bump();
                args.push(self.expr()?);
            }
        }
        self.follow.pop();
        self.expect(TokenKind::RightParen, "')'")?;
        Ok(args)
    }

    fn list(&mut self) -> Parsed {
        let open = self.bump();
        let (mut elements, mut optional) = (Vec::new(), Vec::new());
        self.follow.push(&[TokenKind::RightBracket, TokenKind::Comma]);
        if self.sync(&message::first(TokenKind::RightBracket), true)? {
            while !matches!(self.peek(), TokenKind::RightBracket | TokenKind::Comma) {
                optional.push(self.optional_mark(None));
                elements.push(self.expr()?);
                if !self.continues(&message::OPERAND) {
                    break;
                }
                self.bump();
            }
        }
        self.follow.pop();
        self.close(TokenKind::RightBracket, "']'", "{']', ','}")?;
        let height = self.height(&elements);
        self.add(open.start, ExprKind::List { elements, optional }, height)
    }

    /// Whether a comma and another element follow.
    fn continues(&self, elements: &[TokenKind]) -> bool {
        let next = self.peek_second();
        self.peek() == TokenKind::Comma && (next == TokenKind::Question || elements.contains(&next))
    }

    /// The end of a list, map or message, behind a comma if there is one.
    fn close(&mut self, kind: TokenKind, name: &'static str, shown: &str) -> Result<(), Stop> {
        if self.peek() == TokenKind::Comma {
            self.bump();
        } else if self.peek() != kind {
            let tokens: &'static [TokenKind] = match kind {
                TokenKind::RightBracket => &[TokenKind::RightBracket, TokenKind::Comma],
                _ => &[TokenKind::RightBrace, TokenKind::Comma],
            };
            if !self.sync(&Expected { tokens, shown: shown.into() }, false)? {
                return Ok(());
            }
            if self.peek() == TokenKind::Comma {
                self.bump();
            }
        }
        self.expect(kind, name)?;
        Ok(())
    }

    /// Whether there is a `?` before an element; refused where optional syntax is off, at the given place.
    fn optional_mark(&mut self, place: Option<usize>) -> bool {
        if self.peek() != TokenKind::Question {
            return false;
        }
        let token = self.bump();
        if !self.syntax.optionals {
            let start = place.unwrap_or(token.start) as u32;
            self.issues.report(self.source.location(start), "unsupported syntax '?'".into());
        }
        true
    }

    fn map(&mut self) -> Parsed {
        let open = self.bump();
        let mut entries = Vec::new();
        self.follow.push(&[TokenKind::RightBrace, TokenKind::Comma]);
        if self.sync(&message::first(TokenKind::RightBrace), true)? {
            while !matches!(self.peek(), TokenKind::RightBrace | TokenKind::Comma) {
                let optional = self.optional_mark(None);
                self.follow.push(&[TokenKind::Colon]);
                let key = self.expr()?;
                self.follow.pop();
                let offset = self.tokens[self.at].start as u32;
                if !self.expect(TokenKind::Colon, "':'")? {
                    break;
                }
                let value = self.expr()?;
                entries.push(Entry { key, value, optional, offset });
                if !self.continues(&message::OPERAND) {
                    break;
                }
                self.bump();
            }
        }
        self.follow.pop();
        self.close(TokenKind::RightBrace, "'}'", "{'}', ','}")?;
        let ids: Vec<ExprId> = entries.iter().flat_map(|entry| [entry.key, entry.value]).collect();
        let height = self.height(&ids);
        self.add(open.start, ExprKind::Map(entries), height)
    }

    /// The place of the brace if `a.b.C{` stands here.
    fn message_braces(&self) -> Option<usize> {
        let mut at = self.at + usize::from(self.peek() == TokenKind::Dot);
        loop {
            if self.tokens.get(at)?.kind != TokenKind::Identifier {
                return None;
            }
            match self.tokens.get(at + 1)?.kind {
                TokenKind::LeftBrace => return Some(at + 1),
                TokenKind::Dot => at += 2,
                _ => return None,
            }
        }
    }

    fn message(&mut self, braces: usize) -> Parsed {
        let name: String = self.tokens[self.at..braces].iter().map(|token| self.text(*token).to_string()).collect();
        self.at = braces;
        let open = self.bump();
        let expected = Expected {
            tokens: &[
                TokenKind::RightBrace,
                TokenKind::Comma,
                TokenKind::Question,
                TokenKind::Identifier,
                TokenKind::EscapedIdentifier,
            ],
            shown: "{'}', ',', '?', IDENTIFIER, ESC_IDENTIFIER}".into(),
        };
        self.follow.push(&[TokenKind::RightBrace, TokenKind::Comma]);
        let mut fields = Vec::new();
        if self.sync(&expected, false)? {
            self.fields(&mut fields)?;
        }
        self.follow.pop();
        self.close(TokenKind::RightBrace, "'}'", "{'}', ','}")?;
        let ids: Vec<ExprId> = fields.iter().map(|field: &Field| field.value).collect();
        let height = self.height(&ids);
        self.add(open.start, ExprKind::Struct { name: name.into(), fields }, height)
    }

    fn fields(&mut self, fields: &mut Vec<Field>) -> Result<(), Stop> {
        while !matches!(self.peek(), TokenKind::RightBrace | TokenKind::Comma) {
            let optional = self.optional_mark(None);
            if !matches!(self.peek(), TokenKind::Identifier | TokenKind::EscapedIdentifier) {
                let text = self.token_text();
                self.syntax_error(format!("mismatched input '{text}' expecting {{IDENTIFIER, ESC_IDENTIFIER}}"));
                self.skip();
                return Ok(());
            }
            let token = self.bump();
            let name = self.field_name(token);
            let offset = self.tokens[self.at].start as u32;
            if !self.expect(TokenKind::Colon, "':'")? {
                return Ok(());
            }
            let value = self.expr()?;
            fields.push(Field { name, value, optional, offset });
            if !self.continues(&[TokenKind::Identifier, TokenKind::EscapedIdentifier]) {
                return Ok(());
            }
            self.bump();
        }
        Ok(())
    }
}
