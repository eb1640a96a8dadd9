//! Random input: what the tests hold as cases, damaged, crossed and blown up.

use serde_json::{Map, Value};
use std::path::Path;

/// The texts and values that input is made of.
pub struct Corpus {
    texts: Vec<String>,
    values: Vec<Value>,
}

/// Everything in this crate's test data, and the cases that a real server decided.
pub fn corpus() -> Corpus {
    let mut corpus = Corpus { texts: Vec::new(), values: Vec::new() };
    for directory in ["tests/data", "../../conformance/corpus"] {
        read(&Path::new(env!("CARGO_MANIFEST_DIR")).join(directory), &mut corpus);
    }
    corpus
}

fn read(directory: &Path, corpus: &mut Corpus) {
    for entry in std::fs::read_dir(directory).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() {
            read(&path, corpus);
        } else if let Ok(text) = std::fs::read_to_string(&path)
            && let Ok(value) = serde_saphyr::from_str::<Value>(&text)
        {
            collect(&value, corpus);
        }
    }
}

fn collect(value: &Value, corpus: &mut Corpus) {
    match value {
        Value::String(text) => corpus.texts.push(text.clone()),
        Value::Array(items) => items.iter().for_each(|item| collect(item, corpus)),
        Value::Object(fields) => {
            corpus.values.push(value.clone());
            fields.values().for_each(|field| collect(field, corpus));
        }
        _ => {}
    }
}

/// One seed's worth of input.
pub struct Input<'a> {
    random: fastrand::Rng,
    corpus: &'a Corpus,
}

impl<'a> Input<'a> {
    pub fn new(seed: u64, corpus: &'a Corpus) -> Input<'a> {
        Input { random: fastrand::Rng::with_seed(seed), corpus }
    }

    pub fn next(&mut self) -> u64 {
        self.random.u64(..)
    }

    pub fn below(&mut self, count: usize) -> usize {
        self.random.usize(..count.max(1))
    }

    /// A text of the corpus, as it is or damaged.
    pub fn text(&mut self) -> String {
        let text = &self.corpus.texts[self.below(self.corpus.texts.len())];
        match self.below(4) {
            0 => text.clone(),
            _ => String::from_utf8_lossy(&self.damaged(text.as_bytes().to_vec())).into_owned(),
        }
    }

    /// Bytes with some changed, cut, doubled or made many.
    pub fn damaged(&mut self, mut bytes: Vec<u8>) -> Vec<u8> {
        const SPECIAL: &[u8] = b"{}[]\":,\\/*+?()|^$.~-0e\xff\x80\0\n ";
        for _ in 0..=self.below(6) {
            let at = self.below(bytes.len() + 1);
            match self.below(8) {
                0 => bytes.truncate(at),
                1 => bytes.insert(at, SPECIAL[self.below(SPECIAL.len())]),
                2 => bytes.insert(at, self.next() as u8),
                3 if at < bytes.len() => bytes[at] = SPECIAL[self.below(SPECIAL.len())],
                4 if at < bytes.len() => drop(bytes.remove(at)),
                5 => {
                    let part = bytes[at..(at + self.below(32)).min(bytes.len())].to_vec();
                    let most = if self.below(50) == 0 { 14 } else { 5 };
                    let times = 1 << self.below(most);
                    let part = part.repeat(times);
                    bytes.splice(at..at, part.into_iter().take(1 << 20));
                }
                _ if at < bytes.len() => bytes[at] ^= 1 << self.below(8),
                _ => {}
            }
        }
        bytes
    }

    /// A value of the corpus, as it is, crossed with others, or very deep.
    pub fn value(&mut self) -> Value {
        let mut value = self.corpus.values[self.below(self.corpus.values.len())].clone();
        for _ in 0..self.below(5) {
            self.change(&mut value, 12);
        }
        if self.below(100) == 0 {
            for _ in 0..self.below(290) {
                value = Value::Object(Map::from_iter([("a".to_owned(), value)]));
            }
        }
        value
    }

    /// Changes something, somewhere in a value.
    pub fn alter(&mut self, value: &mut Value) {
        self.change(value, 12);
    }

    fn change(&mut self, value: &mut Value, depth: usize) {
        let deeper = depth > 0 && self.below(4) > 0;
        match value {
            Value::Object(fields) if deeper && !fields.is_empty() => {
                let at = self.below(fields.len());
                if let Some(field) = fields.values_mut().nth(at) {
                    self.change(field, depth - 1);
                }
            }
            Value::Array(items) if deeper && !items.is_empty() => {
                let at = self.below(items.len());
                self.change(&mut items[at], depth - 1);
            }
            Value::Object(fields) if self.below(2) == 0 => {
                let name = self.text().chars().take(40).collect();
                fields.insert(name, self.scalar());
            }
            _ => *value = self.replacement(),
        }
    }

    fn replacement(&mut self) -> Value {
        match self.below(4) {
            0 => self.corpus.values[self.below(self.corpus.values.len())].clone(),
            1 => (0..self.below(4)).map(|_| self.scalar()).collect(),
            _ => self.scalar(),
        }
    }

    fn scalar(&mut self) -> Value {
        match self.below(8) {
            0 => Value::Null,
            1 => Value::Bool(self.below(2) == 0),
            2 => (self.next().cast_signed() >> self.below(64)).into(),
            3 => (f64::from(self.next() as i32) / 1000.0).into(),
            4 => u64::MAX.into(),
            5 => Value::String(String::new()),
            _ => Value::String(self.text()),
        }
    }
}
