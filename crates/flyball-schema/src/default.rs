//! Fills in what a schema says that absent fields are.
// apiextensions-apiserver/pkg/apiserver/schema/defaulting/algorithm.go

use crate::schema::{Form, Node};
use serde_json::Value;

/// Fills in the defaults of a value: absent fields, and nulls where null is not allowed.
pub fn default(node: Node<'_>, value: &mut Value) {
    match (value, &node.form) {
        (Value::Object(fields), Form::Object(object)) => {
            for field in &object.fields {
                let inner = node.at(field.schema);
                let Some(default) = &inner.default else { continue };
                match fields.get_mut(&*field.name) {
                    None => {
                        fields.insert(field.name.to_string(), default.clone());
                    }
                    Some(value) if value.is_null() && !inner.nullable => *value = default.clone(),
                    Some(_) => {}
                }
            }
            for (name, field) in fields.iter_mut() {
                if let Some(inner) = node.field(name) {
                    self::default(inner, field);
                }
            }
        }
        (Value::Object(fields), Form::Map(map)) => {
            let inner = node.at(map.values);
            fields.values_mut().for_each(|field| default_element(inner, field));
        }
        (Value::Array(items), Form::List(list)) => {
            let inner = node.at(list.items);
            items.iter_mut().for_each(|item| default_element(inner, item));
        }
        _ => {}
    }
}

/// An item of a list or a value of a map: there is nothing absent, but there may be a null.
fn default_element(node: Node<'_>, value: &mut Value) {
    if value.is_null() && !node.nullable {
        *value = node.default.clone().unwrap_or_default();
    }
    default(node, value);
}
