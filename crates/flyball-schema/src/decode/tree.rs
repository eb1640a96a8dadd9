//! A document before its types are known: fields in their order, duplicates and all, numbers as written.

use super::path::{At, Complaints};
use serde_json::{Map, Number, Value};

#[derive(Clone, Debug)]
pub(super) enum Tree {
    Null,
    Bool(bool),
    Number(String),
    String(String),
    Array(Vec<Tree>),
    Object(Vec<(String, Tree)>),
}

impl Tree {
    /// What type errors call it.
    pub(super) fn kind(&self) -> &'static str {
        match self {
            Tree::Null => "null",
            Tree::Bool(_) => "bool",
            Tree::Number(_) => "number",
            Tree::String(_) => "string",
            Tree::Array(_) => "array",
            Tree::Object(_) => "object",
        }
    }

    /// How many nodes it has, and how deep they lie.
    pub(super) fn size(&self) -> (usize, usize) {
        let inside = match self {
            Tree::Array(items) => items.iter().map(Tree::size).collect::<Vec<_>>(),
            Tree::Object(fields) => fields.iter().map(|(_, field)| field.size()).collect(),
            _ => return (1, 0),
        };
        let nodes = inside.iter().map(|(nodes, _)| nodes).sum::<usize>();
        (nodes + 1, inside.iter().map(|(_, depth)| *depth).max().unwrap_or_default() + 1)
    }

    /// Makes a value of it; the last of duplicate fields wins. The error is the first number that no float holds.
    pub(super) fn into_value(self, at: &At<'_>, complaints: &mut Complaints) -> Result<Value, String> {
        Ok(match self {
            Tree::Null => Value::Null,
            Tree::Bool(flag) => Value::Bool(flag),
            Tree::Number(text) => Value::Number(number(&text).ok_or_else(|| {
                format!("json: cannot unmarshal number {text} into Go {} of type float64", at.target())
            })?),
            Tree::String(text) => Value::String(text),
            Tree::Array(items) => {
                let items = items.into_iter().enumerate();
                let values = items.map(|(index, item)| item.into_value(&at.index(index), complaints));
                Value::Array(values.collect::<Result<_, _>>()?)
            }
            Tree::Object(fields) => {
                let mut map = Map::new();
                for (name, field) in fields {
                    if map.contains_key(&name) {
                        complaints.duplicate(at, &name);
                    }
                    let value = field.into_value(&at.key(&name), complaints)?;
                    map.insert(name, value);
                }
                Value::Object(map)
            }
        })
    }
}

impl From<Value> for Tree {
    fn from(value: Value) -> Tree {
        match value {
            Value::Null => Tree::Null,
            Value::Bool(flag) => Tree::Bool(flag),
            Value::Number(number) => Tree::Number(number.to_string()),
            Value::String(text) => Tree::String(text),
            Value::Array(items) => Tree::Array(items.into_iter().map(Tree::from).collect()),
            Value::Object(fields) => {
                let mut fields: Vec<_> = fields.into_iter().map(|(name, field)| (name, field.into())).collect();
                fields.sort_by(|(one, _), (other, _)| one.cmp(other));
                Tree::Object(fields)
            }
        }
    }
}

/// An integer where 64 bits hold it, else a float. A float without a fraction is what Go writes as an integer.
pub(super) fn number(text: &str) -> Option<Number> {
    if let Ok(integer) = text.parse::<i64>() {
        return Some(integer.into());
    }
    let float: f64 = text.parse().ok()?;
    const EDGE: f64 = 9_223_372_036_854_775_808.0;
    if float.fract() == 0.0 && (-EDGE..EDGE).contains(&float) {
        return Some((float as i64).into());
    }
    Number::from_f64(float)
}
