//! Variables and what is selected from them.

use super::{ErrorKind, EvalError, Machine, Outcome, Slot};
use crate::program::{Attribute, Qualifier, QualifierKey, Root};
use crate::value::equal::lossless_int;
use crate::value::opaque::Failed;
use crate::value::{List, Map, Message, Value, shape};
use std::sync::Arc;

impl<'a> Machine<'a, '_> {
    /// An attribute, charged for itself: a conditional is not, and presence is free but for the way there.
    pub(super) fn attribute(&mut self, attribute: &'a Attribute) -> Outcome<'a> {
        let result = self.resolve(attribute);
        if result.as_ref().is_err_and(EvalError::is_cancelled) {
            return result;
        }
        let tested = matches!(attribute.qualifiers.last(), Some(Qualifier { key: QualifierKey::Test(_), .. }));
        let free = tested && !self.program.presence_cost;
        match (&attribute.root, free) {
            (Root::Conditional(_), true) => self.cost = self.cost.saturating_sub(1),
            (Root::Conditional(_), false) | (_, true) => {}
            (_, false) => self.charge(1)?,
        }
        result
    }

    /// The value of an attribute; optional if the root or a selection is.
    pub(super) fn resolve(&mut self, attribute: &'a Attribute) -> Outcome<'a> {
        let mut value = match &attribute.root {
            Root::Variable(place) => self.variable(*place)?,
            Root::Local(slot) => self.local(*slot)?,
            Root::Operand(node) => self.eval(node)?,
            Root::Conditional(parts) => self.conditional(parts)?,
        };
        if attribute.qualifiers.is_empty() {
            return Ok(renewed_optional(value));
        }
        let mut optional = false;
        if let Value::Optional(inner) = value {
            let Some(inner) = inner else {
                return Ok(absent(attribute));
            };
            value = renewed(&inner);
            optional = true;
        }
        for qualifier in &attribute.qualifiers {
            optional |= qualifier.optional;
            match self.qualify(&value, qualifier, optional)? {
                Some(selected) => value = selected,
                None => return Ok(absent(attribute)),
            }
        }
        let tested = matches!(attribute.qualifiers.last(), Some(Qualifier { key: QualifierKey::Test(_), .. }));
        Ok(if optional && !tested { Value::some(value) } else { value })
    }

    fn variable(&mut self, place: usize) -> Outcome<'a> {
        if let Some(value) = &self.variables[place] {
            return Ok(value.clone());
        }
        let name = &self.program.variables[place];
        let missing = || EvalError::of(ErrorKind::NoSuchAttribute, format!("no such attribute(s): {name}"));
        let value = self.activation.resolve(name).ok_or_else(missing)??;
        self.variables[place] = Some(value.clone());
        Ok(value)
    }

    pub(super) fn local(&mut self, slot: usize) -> Outcome<'a> {
        match &self.slots[slot] {
            Slot::Set(value) => value.clone(),
            Slot::Lazy(node) => {
                let node = *node;
                let value = self.eval(node);
                self.slots[slot] = Slot::Set(value.clone());
                value
            }
            Slot::Empty => Err(EvalError::of(ErrorKind::NoSuchAttribute, "no such attribute(s)")),
        }
    }

    /// Whether a selection that finds nothing is no error.
    fn presence(&self, value: &Value<'a>, optional: bool) -> bool {
        optional && (!self.program.strict_presence || matches!(value, Value::Map(_) | Value::List(_)))
    }

    /// Selects from a value. A missing key is an error, unless the selection is optional. Each selection costs one, an optional
    /// one only if it finds something.
    fn qualify(
        &mut self,
        value: &Value<'a>,
        qualifier: &'a Qualifier,
        optional: bool,
    ) -> Result<Option<Value<'a>>, EvalError> {
        let selected = match &qualifier.key {
            QualifierKey::Field(name) => self.select_field(value, name, self.presence(value, optional)),
            QualifierKey::Const(key) => select(value, key, self.presence(value, optional)),
            QualifierKey::Test(name) => {
                let found = match value {
                    Value::Message(message) => message.has(name),
                    value => self.select_field(value, name, self.presence(value, true)).map(|found| found.is_some()),
                };
                if !optional || found == Ok(true) {
                    self.charge(1)?;
                }
                return found.map(|found| Some(Value::Bool(found)));
            }
            QualifierKey::Computed(node) => match self.branch(node) {
                Ok(key) => select(value, &key, self.presence(value, optional)),
                Err(error) if error.is_cancelled() => return Err(error),
                Err(error) => Err(error),
            },
        };
        if !optional || matches!(selected, Ok(Some(_))) {
            self.charge(1)?;
        }
        selected
    }

    fn select_field(&self, value: &Value<'a>, name: &Arc<str>, optional: bool) -> Result<Option<Value<'a>>, EvalError> {
        match value {
            Value::Map(map) => {
                let found = match map {
                    Map::Lazy(type_name) => self.activation.resolve_field(type_name, name).transpose()?,
                    map => map.find_text(name)?,
                };
                match found {
                    None if !optional => Err(no_such_key(name)),
                    found => Ok(found),
                }
            }
            Value::List(_) => Err(EvalError::new("unsupported index type 'string' in list")),
            Value::Message(message) => select_from_message(message, name, optional),
            _ if optional => Ok(None),
            _ => Err(no_such_key(name)),
        }
    }
}

/// An optional that an attribute is worth. cel-go converts what it holds to a native value and back (applyQualifiers).
pub(super) fn renewed_optional(value: Value<'_>) -> Value<'_> {
    match value {
        Value::Optional(Some(inner)) => Value::some(renewed(&inner)),
        other => other,
    }
}

/// A value after the way to Go and back: types become text, optionals what they hold, JSON loses its shape. Kubernetes' own
/// values do not come back.
fn renewed<'a>(value: &Value<'a>) -> Value<'a> {
    let native = |native: &str, shown: String| {
        let message = format!("unsupported conversion to ref.Val: ({native}){shown}");
        Value::opaque(Failed(EvalError::new(message)))
    };
    match value {
        Value::Optional(None) => Value::Null,
        Value::Optional(Some(inner)) => renewed(inner),
        Value::Type(kind) => Value::string(kind.runtime_name()),
        Value::List(List::Json(items, _)) => Value::List(List::Json(items, &shape::ANY)),
        Value::List(List::Shaped(items, _)) => Value::List(List::Items(items.clone())),
        Value::Map(Map::Json(entries, _)) => Value::Map(Map::Json(entries, &shape::ANY)),
        Value::Opaque(opaque) => match opaque.type_of().runtime_name() {
            "error" => match value.held() {
                Err(error) => native("*errors.errorString", error.message().to_string()),
                Ok(value) => value,
            },
            "net.IP" => native("netip.Addr", opaque.show()),
            "net.CIDR" => native("netip.Prefix", opaque.show()),
            "kubernetes.Semver" => native("semver.Version", opaque.show()),
            "kubernetes.Quantity" => native("*resource.Quantity", opaque.show()),
            "kubernetes.URL" => native("*url.URL", opaque.show()),
            name if name.starts_with("kubernetes.authorization.") => {
                Value::opaque(Failed(EvalError::no_such_overload()))
            }
            _ => value.clone(),
        },
        other => other.clone(),
    }
}

/// What an attribute is worth whose way ends early.
fn absent<'a>(attribute: &Attribute) -> Value<'a> {
    match attribute.qualifiers.last() {
        Some(Qualifier { key: QualifierKey::Test(_), .. }) => Value::Bool(false),
        _ => Value::Optional(None),
    }
}

fn no_such_key(key: &dyn std::fmt::Display) -> EvalError {
    EvalError::of(ErrorKind::NoSuchKey, format!("no such key: {key}"))
}

/// A field of a message. Upstream's messages without declared fields have no index, so that an optional selection finds none.
fn select_from_message<'a>(message: &Message<'a>, name: &str, optional: bool) -> Result<Option<Value<'a>>, EvalError> {
    if optional && (message.is_open() || !message.has(name)?) {
        return Ok(None);
    }
    message.select(name).map(Some)
}

fn select<'a>(value: &Value<'a>, key: &Value<'a>, optional: bool) -> Result<Option<Value<'a>>, EvalError> {
    if !key.is_qualifier() {
        return Err(EvalError::new(format!("invalid qualifier type: {}", key.go_type())));
    }
    match value {
        Value::Map(map) => match map.find(key)? {
            None if !optional => Err(no_such_key(key)),
            found => Ok(found),
        },
        Value::List(list) => element(list, key, optional),
        Value::Message(message) => match key.as_str() {
            Some(name) => select_from_message(message, name, optional),
            None => Err(EvalError::no_such_overload()),
        },
        _ if optional => Ok(None),
        _ => Err(no_such_key(key)),
    }
}

fn element<'a>(list: &List<'a>, key: &Value<'a>, optional: bool) -> Result<Option<Value<'a>>, EvalError> {
    let index = index_of(key)?;
    match usize::try_from(index).ok().and_then(|index| list.get(index)) {
        Some(item) => item?.held().map(Some),
        None if optional => Ok(None),
        None => Err(EvalError::of(ErrorKind::IndexOutOfBounds, format!("index out of bounds: {key}"))),
    }
}

/// A number as the index of a list.
pub(crate) fn index_of(key: &Value<'_>) -> Result<i64, EvalError> {
    let number = match key {
        Value::Int(index) => Some(*index),
        Value::Uint(index) => i64::try_from(*index).ok(),
        Value::Double(index) => lossless_int(*index),
        other => {
            let kind = other.type_of();
            return Err(EvalError::new(format!("unsupported index type '{}' in list", kind.runtime_name())));
        }
    };
    number.ok_or_else(|| EvalError::new(format!("unsupported index value {key} in list")))
}
