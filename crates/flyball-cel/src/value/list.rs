//! Lists: JSON arrays where they are, lists of the program, and lists made during evaluation.

use super::shape::{ListKind, Shape, ShapeKind};
use super::{Value, equal};
use crate::eval::EvalError;
use serde_json::Value as Json;
use std::sync::Arc;

/// A list.
#[derive(Clone, Debug)]
pub enum List<'a> {
    /// A JSON array, and the shape of the whole array.
    Json(&'a [Json], &'a Shape),
    /// A list of the program.
    Borrowed(&'a [Value<'a>]),
    /// A list made during evaluation.
    Items(Arc<Vec<Value<'a>>>),
    /// A list made by adding to a JSON array with a shape, which still compares as that shape says.
    Shaped(Arc<Vec<Value<'a>>>, &'a Shape),
}

impl<'a> List<'a> {
    /// How many elements there are.
    pub fn len(&self) -> usize {
        match self {
            List::Json(items, _) => items.len(),
            List::Borrowed(items) => items.len(),
            List::Items(items) | List::Shaped(items, _) => items.len(),
        }
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The element at this place, if there is one.
    ///
    /// # Errors
    /// If a JSON element does not fit the declared shape.
    pub fn get(&self, index: usize) -> Option<Result<Value<'a>, EvalError>> {
        match self {
            List::Json(items, shape) => items.get(index).map(|item| shape.items().adapt(item)),
            List::Borrowed(items) => items.get(index).map(|item| Ok(item.borrow())),
            List::Items(items) | List::Shaped(items, _) => items.get(index).map(|item| Ok(item.clone())),
        }
    }

    /// All elements in order.
    pub fn iter(&self) -> impl Iterator<Item = Result<Value<'a>, EvalError>> + '_ {
        (0..self.len()).filter_map(|index| self.get(index))
    }

    /// The shape, if the list was declared with one.
    pub(crate) fn shape(&self) -> Option<&'a Shape> {
        match self {
            List::Json(_, shape) | List::Shaped(_, shape) => (!shape.is_any()).then_some(shape),
            List::Borrowed(_) | List::Items(_) => None,
        }
    }

    /// This list followed by another. Sets drop what they have already, map lists replace by key.
    pub(crate) fn concat(&self, other: &List<'a>) -> Result<List<'a>, EvalError> {
        let Some(shape) = self.shape() else {
            if self.is_empty() {
                return Ok(other.clone());
            }
            if other.is_empty() {
                return Ok(self.clone());
            }
            let items: Result<Vec<Value<'a>>, EvalError> = self.iter().chain(other.iter()).collect();
            return Ok(List::Items(Arc::new(items?)));
        };
        let mut items: Vec<Value<'a>> = self.iter().collect::<Result<_, _>>()?;
        match shape.list_kind() {
            ListKind::Set => {
                let mut known = equal::Members::new(&items);
                for item in other.iter() {
                    let item = item?;
                    if !known.contains(&items, &item)? {
                        known.insert(&item, items.len());
                        items.push(item);
                    }
                }
            }
            ListKind::Map(keys) => {
                let mut places = equal::keyed_places(&items, keys);
                for item in other.iter() {
                    let item = item?;
                    let key = equal::list_key(&item, keys);
                    match places.get(&key) {
                        Some(place) => items[*place] = item,
                        None => {
                            places.insert(key, items.len());
                            items.push(item);
                        }
                    }
                }
            }
            ListKind::Atomic => {
                for item in other.iter() {
                    items.push(item?);
                }
            }
        }
        Ok(List::Shaped(Arc::new(items), shape))
    }

    /// Whether an element equals the value.
    pub(crate) fn contains(&self, value: &Value<'a>) -> Result<bool, EvalError> {
        let mut failed = None;
        for item in self.iter() {
            match item.and_then(|item| equal::equal(&item, value)) {
                Ok(true) => return Ok(true),
                Ok(false) => {}
                Err(error) if error.is_cancelled() => return Err(error),
                Err(error) => failed = failed.or(Some(error)),
            }
        }
        match failed.filter(|_| self.shape().is_some()) {
            Some(error) => Err(error),
            None => Ok(false),
        }
    }
}

impl Shape {
    fn items(&self) -> &Shape {
        match &self.kind {
            ShapeKind::List { items, .. } => items,
            _ => &super::shape::ANY,
        }
    }

    pub(crate) fn list_kind(&self) -> &ListKind {
        match &self.kind {
            ShapeKind::List { kind, .. } => kind,
            _ => &ListKind::Atomic,
        }
    }
}
