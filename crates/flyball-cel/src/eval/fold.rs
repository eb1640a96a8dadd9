//! Comprehensions. The accumulator grows in place where the step only adds to it.

use super::{EvalError, Machine, Outcome, Slot};
use crate::program::{Append, Fold, Insert};
use crate::value::map::Entries;
use crate::value::{List, Map, Value};
use std::sync::Arc;

impl<'a> Machine<'a, '_> {
    pub(super) fn fold(&mut self, fold: &'a Fold) -> Outcome<'a> {
        let range = self.eval(&fold.range)?;
        self.slots[fold.accumulator] = Slot::Lazy(&fold.init);
        self.iterate(fold, range)?;
        let result = self.eval(&fold.result);
        self.slots[fold.accumulator] = Slot::Empty;
        result
    }

    fn iterate(&mut self, fold: &'a Fold, range: Value<'a>) -> Result<(), EvalError> {
        match range {
            Value::List(list) => {
                for index in 0..list.len() {
                    let Some(item) = list.get(index) else { break };
                    let item = item?;
                    let (first, second) = match fold.second {
                        Some(_) => (Value::Int(index as i64), Some(item)),
                        None => (item, None),
                    };
                    if !self.step(fold, first, second)? {
                        break;
                    }
                }
                Ok(())
            }
            Value::Map(map) if fold.second.is_some() => {
                for entry in map.entries() {
                    let (key, value) = entry?;
                    if !self.step(fold, key, Some(value))? {
                        break;
                    }
                }
                Ok(())
            }
            Value::Map(map) => {
                for key in map.keys() {
                    if !self.step(fold, key, None)? {
                        break;
                    }
                }
                Ok(())
            }
            other => Err(not_iterable(&other, fold.second.is_some())),
        }
    }

    /// One round; false if the condition ends the loop.
    fn step(&mut self, fold: &'a Fold, first: Value<'a>, second: Option<Value<'a>>) -> Result<bool, EvalError> {
        self.slots[fold.first] = Slot::Set(first.held());
        if let (Some(slot), Some(second)) = (fold.second, second) {
            self.slots[slot] = Slot::Set(second.held());
        }
        match self.eval(&fold.condition) {
            Ok(Value::Bool(false)) => return Ok(false),
            Err(error) if error.is_cancelled() => return Err(error),
            _ => {}
        }
        let value = self.eval(&fold.step);
        if let Err(error) = &value
            && error.is_cancelled()
        {
            return Err(error.clone());
        }
        self.slots[fold.accumulator] = Slot::Set(value);
        Ok(true)
    }

    /// Takes the accumulator out of its slot, so that it can be changed in place.
    fn take(&mut self, slot: usize) -> Outcome<'a> {
        match std::mem::replace(&mut self.slots[slot], Slot::Empty) {
            Slot::Set(value) => value,
            other => {
                self.slots[slot] = other;
                let value = self.local(slot);
                self.slots[slot] = Slot::Empty;
                value
            }
        }
    }

    pub(super) fn append(&mut self, append: &'a Append) -> Outcome<'a> {
        // The accumulator comes first: evaluating it for the first time is charged for before the elements.
        let accumulator = self.local(append.slot).map(drop);
        self.charge(1)?;
        let mut items = smallvec::SmallVec::<[Value<'a>; 2]>::new();
        let mut made = Ok(());
        for element in &append.elements {
            match self.eval(element) {
                Ok(item) => items.push(item),
                Err(error) if error.is_cancelled() => return Err(error),
                Err(error) => {
                    made = Err(error);
                    break;
                }
            }
        }
        self.charge(append.list_cost + 1)?;
        accumulator.and(made)?;
        match self.take(append.slot)? {
            Value::List(List::Items(mut list)) => {
                Arc::make_mut(&mut list).extend(items);
                Ok(Value::List(List::Items(list)))
            }
            Value::List(list) => {
                let all: Result<Vec<Value<'a>>, EvalError> = list.iter().chain(items.into_iter().map(Ok)).collect();
                all.map(Value::list)
            }
            _ => Err(EvalError::no_such_overload()),
        }
    }

    pub(super) fn insert(&mut self, insert: &'a Insert) -> Outcome<'a> {
        let accumulator = self.local(insert.slot).map(drop);
        self.charge(1)?;
        // The function of three arguments ends at the first that fails, that of two evaluates both.
        if insert.args.len() > 1 {
            accumulator.clone()?;
        }
        let mut args = smallvec::SmallVec::<[Value<'a>; 2]>::new();
        let mut made = Ok(());
        for (index, arg) in insert.args.iter().enumerate() {
            match self.eval(arg) {
                Ok(arg) => args.push(arg),
                Err(error) if error.is_cancelled() || index + 1 < insert.args.len() => return Err(error),
                Err(error) => made = Err(error),
            }
        }
        self.charge(1)?;
        accumulator.and(made)?;
        let mut entries = match self.take(insert.slot)? {
            Value::Map(Map::Entries(entries)) => entries,
            Value::Map(map) => {
                let mut entries = Entries::default();
                for entry in map.entries() {
                    let (key, value) = entry?;
                    entries.insert(key, value)?;
                }
                Arc::new(entries)
            }
            _ => return Err(EvalError::no_such_overload()),
        };
        let mut args = args.into_iter();
        match (args.next(), args.next()) {
            (Some(key), Some(value)) => insert_new(Arc::make_mut(&mut entries), key, value)?,
            (Some(Value::Map(map)), None) => {
                for entry in map.entries() {
                    let (key, value) = entry?;
                    insert_new(Arc::make_mut(&mut entries), key, value)?;
                }
            }
            _ => return Err(EvalError::no_such_overload()),
        }
        Ok(Value::Map(Map::Entries(entries)))
    }
}

fn insert_new<'a>(entries: &mut Entries<'a>, key: Value<'a>, value: Value<'a>) -> Result<(), EvalError> {
    if entries.find(&key)?.is_some() {
        return Err(EvalError::new(format!("insert failed: key {key} already exists")));
    }
    entries.insert(key, value)
}

fn not_iterable(value: &Value<'_>, two: bool) -> EvalError {
    let name = value.go_type();
    EvalError::new(match two {
        true => format!("unsupported comprehension range type: {name}"),
        false => format!("got '{name}', expected iterable type"),
    })
}
