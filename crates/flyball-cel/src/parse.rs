//! Reads source text into a syntax tree. Errors are worded as cel-go's generated parser words them, and parsing goes on
//! behind them with the same recovery: one token deleted or inserted, or skipped up to a token that may follow.

mod lexer;
mod literal;
pub(crate) mod macros;
mod message;
mod operand;

use crate::ast::{Expr, ExprId, ExprKind, Literal, Tree};
use crate::source::{Issues, Location, Source};
use lexer::{Token, TokenKind};
use macros::{Macro, MacroError};
use std::sync::Arc;

/// The longest expression, in code points.
pub const MAX_CODE_POINTS: usize = 100_000;
/// How deep expressions may be nested.
pub const MAX_DEPTH: usize = 250;
/// How many nodes the macros of one expression may expand to.
pub const MAX_NODES: usize = 500_000;
/// How often the parser recovers from a syntax error before it gives up.
const MAX_RECOVERIES: usize = 30;

/// What of the language is switched on.
#[derive(Clone, Debug, Default)]
pub(crate) struct Syntax {
    pub optionals: bool,
    pub quoted_identifiers: bool,
    pub macros: Vec<Macro>,
}

/// Parses an expression and expands its macros.
pub(crate) fn parse(text: &str, syntax: &Syntax) -> Result<Tree, Issues> {
    let source = Source::new(text);
    let mut issues = Issues::new(source.clone());
    let letters: Vec<char> = text.chars().collect();
    if letters.len() > MAX_CODE_POINTS {
        let size = letters.len();
        let message = format!("expression code point size exceeds limit: size: {size}, limit {MAX_CODE_POINTS}");
        issues.report(Location::NONE, message);
        return Err(issues);
    }
    let lexed = lexer::tokens(&letters);
    for (start, text) in &lexed.unrecognized {
        let message = format!("Syntax error: token recognition error at: '{text}'");
        issues.report(source.location(*start as u32), message);
    }
    let mut parser = Parser {
        letters: &letters,
        tokens: lexed.tokens,
        at: 0,
        exprs: Vec::new(),
        heights: Vec::new(),
        source: source.clone(),
        issues,
        syntax,
        depth: 0,
        follow: Vec::new(),
        recovering: false,
        recoveries: 0,
    };
    let root = parser.start();
    let Parser { exprs, mut issues, .. } = parser;
    match root {
        Ok(root) if issues.is_empty() => Ok(Tree { exprs, root, source }),
        Ok(_) | Err(Stop::Reported) => Err(issues.sorted()),
        Err(Stop::Limit(text)) => {
            issues.report(Location::NONE, text);
            Err(issues.sorted())
        }
    }
}

/// Why parsing ends before the end of the text.
enum Stop {
    /// A limit, to be reported without a place.
    Limit(String),
    /// The error is reported already.
    Reported,
}

type Parsed = Result<ExprId, Stop>;

struct Parser<'a> {
    letters: &'a [char],
    tokens: Vec<Token>,
    at: usize,
    exprs: Vec<Expr>,
    /// How deep each expression is, counted as cel-go counts its recursion.
    heights: Vec<u16>,
    source: Source,
    issues: Issues,
    syntax: &'a Syntax,
    depth: usize,
    /// The tokens at which the constructs around this place go on.
    follow: Vec<&'static [TokenKind]>,
    recovering: bool,
    recoveries: usize,
}

/// Operators that may follow an operand anywhere.
const OPERATORS: [TokenKind; 15] = [
    TokenKind::Equals,
    TokenKind::NotEquals,
    TokenKind::In,
    TokenKind::Less,
    TokenKind::LessEquals,
    TokenKind::GreaterEquals,
    TokenKind::Greater,
    TokenKind::And,
    TokenKind::Or,
    TokenKind::Question,
    TokenKind::Plus,
    TokenKind::Minus,
    TokenKind::Star,
    TokenKind::Slash,
    TokenKind::Percent,
];

impl Parser<'_> {
    fn start(&mut self) -> Parsed {
        let root = self.expr()?;
        self.expect(TokenKind::End, "<EOF>")?;
        if usize::from(self.heights[root as usize]) > MAX_DEPTH {
            return Err(Stop::Limit("max recursion depth exceeded".into()));
        }
        Ok(root)
    }

    fn expr(&mut self) -> Parsed {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return Err(Stop::Limit(format!("expression recursion limit exceeded: {MAX_DEPTH}")));
        }
        let condition = self.logical_or()?;
        let result = match self.peek() {
            TokenKind::Question => self.conditional(condition)?,
            _ => condition,
        };
        self.depth -= 1;
        Ok(result)
    }

    fn conditional(&mut self, condition: ExprId) -> Parsed {
        let op = self.bump();
        self.follow.push(&[TokenKind::Colon]);
        let truthy = self.logical_or()?;
        self.follow.pop();
        if !self.expect(TokenKind::Colon, "':'")? {
            return self.unspecified(op.start);
        }
        let falsy = self.expr()?;
        let height = self.height(&[condition, truthy, falsy]) + 1;
        self.call(op.start, "_?_:_", vec![condition, truthy, falsy], height)
    }

    fn logical_or(&mut self) -> Parsed {
        self.logical(TokenKind::Or, "_||_", Parser::logical_and)
    }

    fn logical_and(&mut self) -> Parsed {
        self.logical(TokenKind::And, "_&&_", |parser| parser.binary(0))
    }

    /// A chain of one logical operator, as a balanced tree.
    fn logical(&mut self, op: TokenKind, function: &str, operand: impl Fn(&mut Self) -> Parsed) -> Parsed {
        let mut terms = vec![operand(self)?];
        let mut ops = Vec::new();
        while self.peek() == op {
            ops.push(self.bump().start);
            terms.push(operand(self)?);
        }
        match ops.len() {
            0 => Ok(terms[0]),
            _ => self.balanced(function, &terms, &ops),
        }
    }

    fn balanced(&mut self, function: &str, terms: &[ExprId], ops: &[usize]) -> Parsed {
        let middle = ops.len() / 2;
        let left = match middle {
            0 => terms[0],
            _ => self.balanced(function, &terms[..=middle], &ops[..middle])?,
        };
        let right = match middle + 1 == ops.len() {
            true => terms[middle + 1],
            false => self.balanced(function, &terms[middle + 1..], &ops[middle + 1..])?,
        };
        let height = self.height(&[left, right]);
        self.call(ops[middle], function, vec![left, right], height)
    }

    /// Operators of at least this precedence: comparisons, sums, products. All are left-associative.
    fn binary(&mut self, least: u8) -> Parsed {
        let mut left = self.unary()?;
        while let Some((precedence, function)) = binary_operator(self.peek()).filter(|(found, _)| *found >= least) {
            let op = self.bump();
            let right = self.binary(precedence + 1)?;
            let height = self.height(&[left, right]) + 1;
            left = self.call(op.start, function, vec![left, right], height)?;
        }
        Ok(left)
    }

    fn call(&mut self, offset: usize, function: &str, args: Vec<ExprId>, height: u16) -> Parsed {
        self.global_call(offset, function, args, height)
    }

    /// A function that is no method, or the macro of that name.
    fn global_call(&mut self, offset: usize, function: &str, args: Vec<ExprId>, height: u16) -> Parsed {
        if let Some(expanded) = self.expand(offset, function, None, &args)? {
            self.heights[expanded as usize] = height;
            return Ok(expanded);
        }
        self.add(offset, ExprKind::Call { function: function.into(), target: None, args }, height)
    }

    fn receiver_call(&mut self, offset: usize, function: &str, target: ExprId, args: Vec<ExprId>) -> Parsed {
        let height = self.height(&args).max(self.height(&[target])) + 1;
        if let Some(expanded) = self.expand(offset, function, Some(target), &args)? {
            self.heights[expanded as usize] = height;
            return Ok(expanded);
        }
        self.add(offset, ExprKind::Call { function: function.into(), target: Some(target), args }, height)
    }

    fn expand(
        &mut self,
        offset: usize,
        function: &str,
        target: Option<ExprId>,
        args: &[ExprId],
    ) -> Result<Option<ExprId>, Stop> {
        let Some(expand) = macros::find(&self.syntax.macros, function, args.len(), target.is_some()) else {
            return Ok(None);
        };
        match expand(&mut macros::Expansion::new(self, offset), target, args) {
            Ok(expanded) => Ok(expanded),
            Err(MacroError::Limit) => Err(Stop::Limit(format!("expression node limit exceeded: {MAX_NODES}"))),
            Err(MacroError::Invalid(offset, message)) => {
                self.issues.report(self.source.location(offset), message);
                self.unspecified(offset as usize).map(Some)
            }
        }
    }

    fn add(&mut self, offset: usize, kind: ExprKind, height: u16) -> Parsed {
        if self.exprs.len() >= MAX_NODES {
            return Err(Stop::Limit(format!("expression node limit exceeded: {MAX_NODES}")));
        }
        self.exprs.push(Expr { kind, offset: offset as u32 });
        self.heights.push(height);
        Ok(self.exprs.len() as ExprId - 1)
    }

    fn literal(&mut self, offset: usize, literal: Literal) -> Parsed {
        self.add(offset, ExprKind::Literal(literal), 0)
    }

    fn unspecified(&mut self, offset: usize) -> Parsed {
        self.add(offset, ExprKind::Unspecified, 0)
    }

    fn height(&self, ids: &[ExprId]) -> u16 {
        ids.iter().map(|id| self.heights[*id as usize]).max().unwrap_or(0)
    }

    fn peek(&self) -> TokenKind {
        self.tokens[self.at].kind
    }

    fn peek_second(&self) -> TokenKind {
        self.tokens.get(self.at + 1).map_or(TokenKind::End, |token| token.kind)
    }

    fn bump(&mut self) -> Token {
        let token = self.tokens[self.at];
        self.at = (self.at + 1).min(self.tokens.len() - 1);
        self.recovering = false;
        token
    }

    fn text(&self, token: Token) -> Arc<str> {
        self.letters[token.start..token.end].iter().collect::<String>().into()
    }

    fn invalid(&mut self, offset: usize, message: impl Into<String>) -> Parsed {
        self.issues.report(self.source.location(offset as u32), message.into());
        self.unspecified(offset)
    }
}

fn binary_operator(kind: TokenKind) -> Option<(u8, &'static str)> {
    Some(match kind {
        TokenKind::Less => (0, "_<_"),
        TokenKind::LessEquals => (0, "_<=_"),
        TokenKind::GreaterEquals => (0, "_>=_"),
        TokenKind::Greater => (0, "_>_"),
        TokenKind::Equals => (0, "_==_"),
        TokenKind::NotEquals => (0, "_!=_"),
        TokenKind::In => (0, "@in"),
        TokenKind::Plus => (1, "_+_"),
        TokenKind::Minus => (1, "_-_"),
        TokenKind::Star => (2, "_*_"),
        TokenKind::Slash => (2, "_/_"),
        TokenKind::Percent => (2, "_%_"),
        _ => return None,
    })
}

#[cfg(test)]
mod tests;
