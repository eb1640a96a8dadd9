//! YAML into trees, with the types of YAML 1.1 that Kubernetes' library gives to plain scalars.
// sigs.k8s.io/yaml and the go.yaml.in/yaml/v2 below it

mod scalar;

use super::MAX_DEPTH;
use super::tree::Tree;
use crate::go_text;
use serde_saphyr::granit_parser::{Event, Parser, ScalarStyle, ScanError, Span, StrInput};
use std::collections::HashMap;

/// How many nodes aliases may add to a document.
const MOST_ALIASED: usize = 100_000;

/// A tree without duplicate fields, and the complaint about those there were.
pub(super) struct Parsed {
    pub(super) tree: Tree,
    pub(super) complaint: Option<String>,
}

/// Reads the first document; there may be none, which is null.
pub(super) fn parse(bytes: &[u8]) -> Result<Parsed, String> {
    let text = std::str::from_utf8(bytes).map_err(|_| "yaml: invalid leading UTF-8 octet".to_owned())?;
    let mut reader = Reader::new(text);
    loop {
        match reader.next()?.0 {
            Event::StreamEnd => return Ok(Parsed { tree: Tree::Null, complaint: None }),
            Event::DocumentStart(..) => break,
            _ => {}
        }
    }
    let (event, span) = reader.next()?;
    let tree = reader.node(event, &span)?;
    let lines = reader.duplicates.join("\n");
    let complaint = (!lines.is_empty()).then(|| format!("yaml: unmarshal errors:\n{lines}"));
    Ok(Parsed { tree, complaint })
}

struct Reader<'a> {
    events: Parser<'a, StrInput<'a>>,
    anchors: HashMap<usize, Tree>,
    aliased: usize,
    depth: usize,
    /// `  line 4: key "a" already set in map`
    duplicates: Vec<String>,
}

fn complain(error: &ScanError) -> String {
    let line = error.marker().line();
    let place = if line > 1 {
        format!("line {line}: ")
    } else {
        String::new()
    };
    format!("yaml: {place}{}", error.info())
}

impl<'a> Reader<'a> {
    fn new(text: &'a str) -> Reader<'a> {
        let events = Parser::new_from_str(text);
        Reader {
            events,
            anchors: HashMap::new(),
            aliased: 0,
            depth: 0,
            duplicates: Vec::new(),
        }
    }

    fn next(&mut self) -> Result<(Event<'a>, Span), String> {
        let event = self.events.next().transpose().map_err(|error| complain(&error))?;
        event.ok_or_else(|| "yaml: unexpected end of stream".to_owned())
    }

    fn node(&mut self, event: Event<'a>, span: &Span) -> Result<Tree, String> {
        let (tree, anchor) = match event {
            Event::Scalar(text, style, anchor, tag) => {
                let plain = matches!(style, ScalarStyle::Plain);
                let tag = tag.map(|tag| tag.to_string());
                (scalar::resolve(&text, plain, tag.as_deref())?, anchor)
            }
            Event::SequenceStart(_, anchor, _) => (self.nested(Reader::sequence)?, anchor),
            Event::MappingStart(_, anchor, _) => (self.nested(Reader::mapping)?, anchor),
            Event::Alias(anchor) => (self.alias(anchor)?, 0),
            _ => return Err(format!("yaml: line {}: did not find expected node content", span.start.line())),
        };
        if anchor > 0 {
            self.anchors.insert(anchor, tree.clone());
        }
        Ok(tree)
    }

    fn nested(&mut self, read: impl FnOnce(&mut Self) -> Result<Tree, String>) -> Result<Tree, String> {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return Err("yaml: exceeded max depth".to_owned());
        }
        let tree = read(self);
        self.depth -= 1;
        tree
    }

    fn alias(&mut self, anchor: usize) -> Result<Tree, String> {
        let tree = self.anchors.get(&anchor).ok_or("yaml: unknown anchor referenced")?;
        let (nodes, depth) = tree.size();
        self.aliased += nodes;
        if self.aliased > MOST_ALIASED || self.depth + depth > MAX_DEPTH {
            return Err("yaml: document contains excessive aliasing".to_owned());
        }
        Ok(tree.clone())
    }

    fn sequence(&mut self) -> Result<Tree, String> {
        let mut items = Vec::new();
        loop {
            match self.next()? {
                (Event::SequenceEnd, _) => return Ok(Tree::Array(items)),
                (event, span) => items.push(self.node(event, &span)?),
            }
        }
    }

    fn mapping(&mut self) -> Result<Tree, String> {
        let mut fields: Vec<(String, Tree)> = Vec::new();
        let mut places: HashMap<String, usize> = HashMap::new();
        let mut merged = Vec::new();
        loop {
            let (event, span) = self.next()?;
            let merges = match &event {
                Event::MappingEnd => break,
                Event::Scalar(text, ScalarStyle::Plain, _, None) => text == "<<",
                _ => false,
            };
            let key = self.node(event, &span)?;
            let (event, span) = self.next()?;
            let value = self.node(event, &span)?;
            if merges {
                merged.push(value);
                continue;
            }
            let (name, shown) = scalar::key(key)?;
            match places.get(&name) {
                Some(place) => {
                    let line = span.start.line();
                    self.duplicates.push(format!("  line {line}: key {shown} already set in map"));
                    fields[*place].1 = value;
                }
                None => {
                    places.insert(name.clone(), fields.len());
                    fields.push((name, value));
                }
            }
        }
        for source in merged {
            merge(&mut fields, source)?;
        }
        Ok(Tree::Object(fields))
    }
}

/// Adds the fields of a `<<` that are not there yet.
fn merge(fields: &mut Vec<(String, Tree)>, source: Tree) -> Result<(), String> {
    match source {
        Tree::Object(more) => {
            for (name, value) in more {
                if !fields.iter().any(|(known, _)| *known == name) {
                    fields.push((name, value));
                }
            }
            Ok(())
        }
        Tree::Array(sources) => sources.into_iter().try_for_each(|source| merge(fields, source)),
        _ => Err("yaml: map merge requires map or sequence of maps as the value".to_owned()),
    }
}

/// A key as the complaint about duplicates prints it.
fn shown_key(key: &Tree) -> String {
    match key {
        Tree::String(text) => go_text::quote(text),
        Tree::Number(text) => text.clone(),
        Tree::Bool(flag) => flag.to_string(),
        Tree::Null | Tree::Array(_) | Tree::Object(_) => "<nil>".to_owned(),
    }
}
