//! Messages: values that a literal such as `Type{field: value}` makes. They have fields, but are no maps: they have no size and
//! cannot be iterated.

use super::Value;
use super::equal::equal;
use crate::env::ObjectType;
use crate::eval::EvalError;
use crate::typing::Type;
use std::sync::Arc;

/// A message.
#[derive(Clone, Debug)]
pub struct Message<'a> {
    type_name: Arc<str>,
    fields: Vec<(Arc<str>, Value<'a>)>,
    /// The declared fields; `None` if the type takes any field.
    declared: Option<Arc<ObjectType>>,
}

impl<'a> Message<'a> {
    /// Makes a message. Text fields must be text, as their types may have been dynamic.
    pub(crate) fn new(
        type_name: Arc<str>,
        declared: Option<Arc<ObjectType>>,
        fields: Vec<(Arc<str>, Value<'a>)>,
    ) -> Result<Message<'a>, EvalError> {
        for (name, value) in &fields {
            let declared = declared.as_ref().and_then(|declared| declared.fields.get(name));
            if declared == Some(&Type::String) && value.as_str().is_none() {
                let found = value.native_type();
                return Err(EvalError::new(format!("unexpected type {found} for {type_name}Type '{name}' field")));
            }
        }
        Ok(Message { type_name, fields, declared })
    }

    /// The name of the type.
    pub fn type_name(&self) -> &str {
        &self.type_name
    }

    /// The fields that the literal set, in its order.
    pub fn fields(&self) -> impl Iterator<Item = (&str, &Value<'a>)> {
        self.fields.iter().map(|(name, value)| (&**name, value))
    }

    /// The value of a field that the literal set.
    pub fn get(&self, field: &str) -> Option<&Value<'a>> {
        self.fields().find(|(name, _)| *name == field).map(|(_, value)| value)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.fields.is_empty()
    }

    pub(crate) fn shared_type_name(&self) -> Arc<str> {
        self.type_name.clone()
    }

    /// Whether the type takes any field.
    pub(crate) fn is_open(&self) -> bool {
        self.declared.is_none()
    }

    /// The value of a field, or its default: text is empty, everything else null.
    pub(crate) fn select(&self, field: &str) -> Result<Value<'a>, EvalError> {
        let kind = self.field_type(field)?;
        let default = || {
            if kind == Some(&Type::String) {
                Value::text("")
            } else {
                Value::Null
            }
        };
        Ok(self.get(field).cloned().unwrap_or_else(default))
    }

    /// Whether a field is set; empty text is as good as none.
    pub(crate) fn has(&self, field: &str) -> Result<bool, EvalError> {
        let is_text = self.field_type(field)? == Some(&Type::String);
        let is_set = |value: &Value<'_>| !is_text || value.as_str() != Some("");
        Ok(self.get(field).is_some_and(is_set))
    }

    fn field_type(&self, field: &str) -> Result<Option<&Type>, EvalError> {
        let Some(declared) = &self.declared else {
            return Ok(None);
        };
        match declared.fields.get(field) {
            Some(kind) => Ok(Some(kind)),
            None => Err(EvalError::new(format!("no such field '{field}'"))),
        }
    }

    /// Whether two messages are of one type and have equal fields.
    pub(super) fn equals(&self, other: &Message<'_>) -> Result<bool, EvalError> {
        if self.type_name != other.type_name {
            return Ok(false);
        }
        let names = self.fields().map(|(name, _)| name).chain(other.fields().map(|(name, _)| name));
        for name in names {
            let is_equal = match (self.has(name)?, other.has(name)?) {
                (true, true) => equal(&self.select(name)?, &other.select(name)?)?,
                (one, other) => one == other,
            };
            if !is_equal {
                return Ok(false);
            }
        }
        Ok(true)
    }
}
