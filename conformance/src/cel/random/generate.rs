//! Makes expressions of templates: mostly well-typed, sometimes not, of any depth up to a limit.

use super::inputs::{TYPES, values};
use super::peer::Request;
use super::templates::{LITERALS, TEMPLATES};

/// Numbers that a seed decides.
#[derive(Debug)]
pub struct Random(fastrand::Rng);

impl Random {
    /// A number below a limit that is not zero.
    pub fn below(&mut self, limit: usize) -> usize {
        self.0.usize(..limit)
    }

    /// One of several.
    pub fn one_of<'a, T>(&mut self, items: &'a [T]) -> &'a T {
        &items[self.below(items.len())]
    }

    fn in_hundred(&mut self, chance: usize) -> bool {
        self.below(100) < chance
    }
}

/// How often in a hundred an operand has another type than it should.
const WRONG_TYPES: usize = 2;
/// How deeply templates are put into each other.
const MAX_DEPTH: usize = 5;

/// Makes requests, all decided by one seed.
#[derive(Debug)]
pub struct Generator {
    random: Random,
    /// Variables of the comprehensions around the place that is being filled.
    scope: Vec<(String, String)>,
    named: usize,
}

impl Generator {
    /// A generator whose expressions the seed decides.
    pub fn new(seed: u64) -> Self {
        Self {
            random: Random(fastrand::Rng::with_seed(seed)),
            scope: Vec::new(),
            named: 0,
        }
    }

    /// A random expression on random values.
    pub fn request(&mut self) -> Request {
        self.named = 0;
        let kinds: Vec<&str> = TEMPLATES.iter().map(|(kind, _)| *kind).collect();
        let kind = if self.random.in_hundred(40) {
            "bool"
        } else {
            *self.random.one_of(&kinds)
        };
        let depth = 1 + self.random.below(MAX_DEPTH);
        let expression = self.expression(kind, depth);
        self.request_of(&expression)
    }

    /// An expression on random values.
    pub fn request_of(&mut self, expression: &str) -> Request {
        Request {
            kubernetes: true,
            expression: expression.to_owned(),
            types: &TYPES,
            values: values(&mut self.random),
        }
    }

    fn expression(&mut self, kind: &str, depth: usize) -> String {
        let kind = if self.random.in_hundred(WRONG_TYPES) {
            self.random.one_of(&TEMPLATES).0
        } else {
            kind
        };
        let templates = TEMPLATES.iter().find(|(of, _)| *of == kind).map(|(_, templates)| *templates);
        match templates {
            Some(templates) if depth > 0 && !self.random.in_hundred(15) => {
                let template = *self.random.one_of(templates);
                self.filled(template, depth - 1)
            }
            _ => self.leaf(kind),
        }
    }

    /// A template with its holes filled: `{int}`, or `{bool|$a:int}` for a place that sees a variable.
    fn filled(&mut self, template: &str, depth: usize) -> String {
        self.named += 1;
        let fresh =
            |text: &str, named: usize| text.replace("$a", &format!("v{named}")).replace("$b", &format!("w{named}"));
        let named = self.named;
        let mut filled = String::new();
        let mut rest = template;
        while let Some((before, after)) = rest.split_once('«') {
            filled.push_str(&fresh(before, named));
            let (hole, after) = after.split_once('»').unwrap_or((after, ""));
            let mut parts = hole.split('|');
            let kind = parts.next().unwrap_or_default();
            let outside = self.scope.len();
            for part in parts {
                let (name, kind) = part.split_once(':').unwrap_or((part, "dyn"));
                self.scope.push((fresh(name, named), kind.to_owned()));
            }
            let inner = self.expression(kind, depth);
            self.scope.truncate(outside);
            filled.push_str(&inner);
            rest = after;
        }
        filled.push_str(&fresh(rest, named));
        filled
    }

    fn leaf(&mut self, kind: &str) -> String {
        let local: Vec<&String> = self.scope.iter().filter(|(_, of)| of == kind).map(|(name, _)| name).collect();
        if !local.is_empty() && self.random.in_hundred(60) {
            return (*self.random.one_of(&local)).clone();
        }
        let variables: Vec<&str> = TYPES.iter().filter(|(_, of)| **of == kind).map(|(name, _)| *name).collect();
        let literals = LITERALS.iter().find(|(of, _)| *of == kind).map_or(&[][..], |(_, literals)| *literals);
        if !variables.is_empty() && (literals.is_empty() || self.random.in_hundred(50)) {
            return (*self.random.one_of(&variables)).to_owned();
        }
        let literal: &str = literals.get(self.random.below(literals.len().max(1))).copied().unwrap_or("null");
        literal.to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_decides_everything() {
        let made = |seed| {
            let mut generator = Generator::new(seed);
            (0..50).map(|_| format!("{:?}", generator.request())).collect::<Vec<_>>()
        };
        assert_eq!(made(7), made(7));
        assert_ne!(made(7), made(8));
    }

    #[test]
    fn every_hole_of_a_template_has_templates_or_leaves() {
        let holes =
            |template: &'static str| template.split('«').skip(1).filter_map(|part| part.split(['»', '|']).next());
        let kinds = TEMPLATES
            .iter()
            .flat_map(|(_, templates)| templates.iter().flat_map(|template| holes(template)));
        for kind in kinds {
            let leaves = LITERALS.iter().any(|(of, _)| *of == kind) || TYPES.values().any(|of| *of == kind);
            assert!(leaves, "nothing makes {kind}");
        }
    }
}
