//! A document into a built-in type: what Go's decoder accepts, drops, rewrites and complains about.
// sigs.k8s.io/json, internal/golang/encoding/json/decode.go

mod go_type;

use super::path::{At, Complaints};
use super::time::{self, Precision};
use super::tree::{Tree, number};
use super::{DecodeError, Decoded};
use crate::quantity::Quantity;
use crate::schema::{Field, Form, Node};
use serde_json::{Map, Value};

pub(super) fn coerce(
    tree: Tree,
    complaint: Option<String>,
    node: Node<'_>,
    at: &At<'_>,
) -> Result<Decoded, DecodeError> {
    let complaints = Complaints::beginning_with(complaint);
    let mut coercion = Coercion { complaints, first: None, fatal: None };
    let value = coercion.value(tree, node, at);
    match coercion.fatal.or(coercion.first) {
        Some(error) => Err(DecodeError::Type(error)),
        None => Ok(Decoded { value, complaints: coercion.complaints.into_vec() }),
    }
}

struct Coercion {
    complaints: Complaints,
    /// The first value that did not fit; Go goes on and reports it in the end.
    first: Option<String>,
    /// The first complaint of a type that decodes itself; Go stops at it.
    fatal: Option<String>,
}

impl Coercion {
    fn value(&mut self, tree: Tree, node: Node<'_>, at: &At<'_>) -> Value {
        match (&node.form, tree) {
            (_, Tree::Null) => Value::Null,
            (Form::Any, tree) => self.opaque(tree),
            // RawExtension and FieldsV1 keep whatever is there.
            (Form::Object(object), tree) if node.preserve_unknown && object.fields.is_empty() => self.opaque(tree),
            (Form::Boolean, Tree::Bool(flag)) => flag.into(),
            (Form::Integer, Tree::Number(text)) => self.integer(&text, node, at),
            (Form::Number, Tree::Number(text)) => match number(&text) {
                Some(number) => Value::Number(number),
                None => self.mismatch(&format!("number {text}"), "float64", at),
            },
            (Form::String, tree) => self.text(tree, node, at),
            (Form::IntOrString, Tree::String(text)) => text.into(),
            (Form::IntOrString, tree) => self.int_or_string(tree, at),
            (Form::Quantity, tree) => self.quantity(tree),
            (Form::List(list), Tree::Array(items)) => {
                let item_node = node.at(list.items);
                let items = items.into_iter().enumerate();
                items.map(|(index, item)| self.element(item, item_node, &at.index(index))).collect()
            }
            (Form::Map(map), Tree::Object(fields)) => self.map(fields, node.at(map.values), at),
            (Form::Object(_), Tree::Object(fields)) => self.object(fields, node, at),
            (_, tree) => self.mismatch(tree.kind(), &go_type::name(node), at),
        }
    }

    /// An item of a list or a value of a map: a null there becomes Go's zero value.
    fn element(&mut self, tree: Tree, node: Node<'_>, at: &At<'_>) -> Value {
        match (tree, &node.form) {
            (Tree::Null, _) if go_type::precision(node).is_some() => Value::Null,
            (Tree::Null, form) => zero(form),
            (tree, _) => self.value(tree, node, at),
        }
    }

    fn map(&mut self, fields: Vec<(String, Tree)>, values: Node<'_>, at: &At<'_>) -> Value {
        let mut map = Map::new();
        for (name, field) in fields {
            if map.contains_key(&name) {
                self.complaints.duplicate(at, &name);
            }
            let value = self.element(field, values, &at.key(&name));
            map.insert(name, value);
        }
        Value::Object(map)
    }

    fn object(&mut self, fields: Vec<(String, Tree)>, node: Node<'_>, at: &At<'_>) -> Value {
        let owner = go_type::struct_name(node);
        let mut map = Map::new();
        for (name, tree) in fields {
            let Some(field) = node.declared(&name) else {
                if node.preserve_unknown {
                    let value = self.opaque(tree);
                    map.insert(name, value);
                } else {
                    self.complaints.unknown(at, &name);
                }
                continue;
            };
            if map.contains_key(&name) {
                self.complaints.duplicate(at, &name);
            }
            let value = self.value(tree, node.at(field.schema), &at.field(owner, &name));
            map.insert(name, value);
        }
        map.retain(|name, value| node.declared(name).is_none_or(|field| is_written(value, field, node)));
        Value::Object(map)
    }

    fn integer(&mut self, text: &str, node: Node<'_>, at: &At<'_>) -> Value {
        let target = go_type::name(node);
        match text.parse::<i64>() {
            Ok(integer) if target != "int32" || i32::try_from(integer).is_ok() => integer.into(),
            _ => self.mismatch(&format!("number {text}"), &target, at),
        }
    }

    fn text(&mut self, tree: Tree, node: Node<'_>, at: &At<'_>) -> Value {
        let precision = go_type::precision(node);
        match (tree, precision) {
            (Tree::String(text), None) if node.format.as_deref() == Some("byte") => {
                if let Some(position) = go_type::wrong_base64(&text) {
                    self.first.get_or_insert(format!("illegal base64 data at input byte {position}"));
                }
                text.into()
            }
            (Tree::String(text), None) => text.into(),
            (Tree::String(text), Some(precision)) => self.time(&text, precision),
            (tree, None) => self.mismatch(tree.kind(), &go_type::name(node), at),
            (tree, Some(_)) => {
                self.stop(&format!("json: cannot unmarshal {} into Go {} of type string", tree.kind(), at.target()))
            }
        }
    }

    fn time(&mut self, text: &str, precision: Precision) -> Value {
        match time::canonical(text, precision) {
            Ok(canonical) => canonical.into(),
            Err(error) => self.stop(&error),
        }
    }

    fn int_or_string(&mut self, tree: Tree, at: &At<'_>) -> Value {
        let kind = match tree {
            Tree::Number(text) => match text.parse::<i32>() {
                Ok(integer) => return integer.into(),
                Err(_) => format!("number {text}"),
            },
            other => other.kind().to_owned(),
        };
        self.stop(&format!("json: cannot unmarshal {kind} into Go {} of type int32", at.target()))
    }

    fn quantity(&mut self, tree: Tree) -> Value {
        let text = match tree {
            Tree::String(text) | Tree::Number(text) => text,
            // Whatever else there is does not look like a quantity either.
            _ => "x".to_owned(),
        };
        match text.trim().parse::<Quantity>() {
            Ok(quantity) => quantity.to_string().into(),
            Err(error) => self.stop(&error.to_string()),
        }
    }

    /// A type that keeps the raw text: nothing inside is looked at.
    fn opaque(&mut self, tree: Tree) -> Value {
        let value = tree.into_value(&At::root(), &mut Complaints::beginning_with(None));
        value.unwrap_or_else(|error| self.stop(&error))
    }

    fn mismatch(&mut self, kind: &str, target: &str, at: &At<'_>) -> Value {
        let place = at.target();
        self.first
            .get_or_insert_with(|| format!("json: cannot unmarshal {kind} into Go {place} of type {target}"));
        Value::Null
    }

    fn stop(&mut self, error: &str) -> Value {
        self.fatal.get_or_insert_with(|| error.to_owned());
        Value::Null
    }
}

/// Go's zero value.
fn zero(form: &Form) -> Value {
    match form {
        Form::Any | Form::List(_) | Form::Map(_) => Value::Null,
        Form::Boolean => false.into(),
        Form::Integer | Form::Number | Form::IntOrString => 0.into(),
        Form::String => "".into(),
        Form::Quantity => "0".into(),
        Form::Object(_) => Value::Object(Map::new()),
    }
}

/// Whether Go writes the field again: nulls never, empty lists and maps only where the field is required.
fn is_written(value: &Value, field: &Field, node: Node<'_>) -> bool {
    match (value, &node.at(field.schema).form) {
        (Value::Null, _) => false,
        // An empty list of managers asks the server to forget who owns what.
        (Value::Array(_), _) if &*field.name == "managedFields" => true,
        // No policies at all are a mistake, not a wish for those by default.
        (Value::Array(_), _) if &*field.name == "policies" && is_scaling(node) => true,
        // No rules are written, and owned by whoever wrote them.
        (Value::Array(_), _) if &*field.name == "rules" && is_role(node) => true,
        (Value::Array(items), Form::List(_)) => field.required || !items.is_empty(),
        (Value::Object(fields), Form::Map(_)) => field.required || !fields.is_empty(),
        (value, Form::Boolean | Form::Integer | Form::Number | Form::String) => !is_omitted(value, field, node),
        _ => true,
    }
}

fn is_scaling(node: Node<'_>) -> bool {
    node.type_name().is_some_and(|name| name.ends_with(".HPAScalingRules"))
}

fn is_role(node: Node<'_>) -> bool {
    let roles = ["io.k8s.api.rbac.v1.Role", "io.k8s.api.rbac.v1.ClusterRole"];
    node.type_name().is_some_and(|name| roles.contains(&name))
}

/// Whether Go leaves a zero out: where it has no pointer, zero is the same as nothing.
fn is_omitted(value: &Value, field: &Field, node: Node<'_>) -> bool {
    let zero = value == "" || value == false || value.as_f64() == Some(0.0);
    let always = node.at(field.schema).default.is_some() || field.required;
    zero && field.protobuf.as_ref().is_some_and(|place| !place.pointer && (place.omitted || !always))
}
