//! Reads what a table of kinds writes behind a field's name, such as `="TCP" string` or `list:port,protocol ServicePort`.
//! Equal expressions become one type; a name with a default in front becomes a copy that shares its fields.

use super::read::{Problem, cut};
use crate::schema::{Form, List, ListKind, Map, Object, Schema, SchemaId, Schemas};
use serde_json::Value;
use std::collections::HashMap;
use std::sync::Arc;

/// Deeper than any type goes, and far from the end of the stack.
const DEEPEST: usize = 16;

/// The types read so far, and the names they go by.
#[derive(Default)]
pub(super) struct Expressions<'a> {
    /// What a name without dots belongs to.
    package: &'a str,
    schemas: Schemas,
    names: HashMap<Arc<str>, SchemaId>,
    /// Names by package, as expressions spell them.
    local: HashMap<(&'a str, &'a str), (SchemaId, Arc<str>)>,
    /// The expressions read in this package.
    known: HashMap<&'a str, SchemaId>,
    copies: Vec<(SchemaId, SchemaId, Modifiers)>,
}

/// What stands before a form.
#[derive(Default, PartialEq)]
struct Modifiers {
    default: Option<Value>,
    allowed: Vec<Value>,
    nullable: bool,
    atomic: Option<bool>,
}

impl<'a> Expressions<'a> {
    /// Gives a named type its place.
    pub(super) fn declare(&mut self, package: &'a str, name: &'a str) -> Result<(), Problem> {
        let full: Arc<str> = format!("{package}.{name}").into();
        let id = self.schemas.add(Schema::default());
        self.local.insert((package, name), (id, full.clone()));
        match self.names.insert(full, id) {
            None => Ok(()),
            Some(_) => Err("a type that was there before"),
        }
    }

    /// Begins a package.
    pub(super) fn enter(&mut self, package: &'a str) {
        self.package = package;
        self.known.clear();
    }

    /// The place and full name of a type of this package.
    pub(super) fn named(&self, name: &'a str) -> Option<(SchemaId, Arc<str>)> {
        self.local.get(&(self.package, name)).cloned()
    }

    /// The place of a type by its full name.
    pub(super) fn place(&self, name: &str) -> Result<SchemaId, Problem> {
        self.names.get(name).copied().ok_or("a type that is not in the table")
    }

    /// Puts a type into its place.
    pub(super) fn set(&mut self, id: SchemaId, schema: Schema) {
        self.schemas.set(id, schema);
    }

    /// Reads the type behind a name that is no object.
    pub(super) fn define(&mut self, name: &'a str, text: &'a str) -> Result<(), Problem> {
        let (id, name) = self.named(name).ok_or("a type without a place")?;
        let (modifiers, text) = modifiers(text)?;
        let (form, format) = self.form(text, 0)?.ok_or("a name for another name")?;
        self.set(id, Schema { name: Some(name), ..modifiers.schema(form, format) });
        Ok(())
    }

    /// Reads a field's type.
    pub(super) fn read(&mut self, text: &'a str) -> Result<SchemaId, Problem> {
        self.nested(text, 0)
    }

    fn nested(&mut self, text: &'a str, depth: usize) -> Result<SchemaId, Problem> {
        if let Some(id) = self.known.get(text) {
            return Ok(*id);
        }
        let (modifiers, rest) = modifiers(text)?;
        let id = match self.form(rest, depth)? {
            Some((form, format)) => self.schemas.add(modifiers.schema(form, format)),
            None => self.refer(rest, modifiers)?,
        };
        self.known.insert(text, id);
        Ok(id)
    }

    /// The type of a name, or a copy of it where something stands before the name.
    fn refer(&mut self, name: &'a str, modifiers: Modifiers) -> Result<SchemaId, Problem> {
        let target = match self.local.get(&(self.package, name)) {
            Some((id, _)) => *id,
            None => self.place(name)?,
        };
        if modifiers == Modifiers::default() {
            return Ok(target);
        }
        let copy = self.schemas.add(Schema::default());
        self.copies.push((copy, target, modifiers));
        Ok(copy)
    }

    /// The form and format of a type that is not named, or nothing if it is a name.
    fn form(&mut self, text: &'a str, depth: usize) -> Result<Option<(Form, Option<&'a str>)>, Problem> {
        if depth > DEEPEST {
            return Err("a type within a type within a type, too deep");
        }
        let (word, inner) = cut(text);
        let (word, detail) = word.split_once(':').map_or((word, None), |(word, detail)| (word, Some(detail)));
        let form = match word {
            "list" | "set" => {
                let items = self.nested(inner, depth + 1)?;
                let keys = detail.map(|keys| ListKind::Map(keys.split(',').map(Box::from).collect()));
                let kind = if word == "set" {
                    ListKind::Set
                } else {
                    keys.unwrap_or_default()
                };
                return Ok(Some((Form::List(List { items, kind }), None)));
            }
            "map" => {
                let values = self.nested(inner, depth + 1)?;
                return Ok(Some((Form::Map(Map { values, atomic: false }), None)));
            }
            "any" => Form::Any,
            "boolean" => Form::Boolean,
            "integer" => Form::Integer,
            "number" => Form::Number,
            "string" => Form::String,
            "int-or-string" => Form::IntOrString,
            "quantity" => Form::Quantity,
            _ => return Ok(None),
        };
        if inner.is_empty() {
            Ok(Some((form, detail)))
        } else {
            Err("something behind a type")
        }
    }

    /// The finished types: copies get the fields of what they copy.
    pub(super) fn finish(mut self) -> (Schemas, HashMap<Arc<str>, SchemaId>) {
        for (copy, target, modifiers) in self.copies {
            let schema = Schema::clone(&self.schemas.node(target));
            self.schemas.set(copy, modifiers.change(schema));
        }
        (self.schemas, self.names)
    }
}

/// `="TCP"` a default, `|"TCP"` an allowed value, `?` null is a value, `atomic` and `granular` how it merges.
fn modifiers(mut text: &str) -> Result<(Modifiers, &str), Problem> {
    let mut modifiers = Modifiers::default();
    loop {
        let (word, rest) = cut(text);
        match word.as_bytes().first() {
            Some(b'=') => modifiers.default = Some(json(&word[1..])?),
            Some(b'|') => modifiers.allowed.push(json(&word[1..])?),
            _ if word == "?" => modifiers.nullable = true,
            _ if word == "atomic" => modifiers.atomic = Some(true),
            _ if word == "granular" => modifiers.atomic = Some(false),
            _ => return Ok((modifiers, text)),
        }
        text = rest;
    }
}

fn json(text: &str) -> Result<Value, Problem> {
    serde_json::from_str(text).map_err(|_| "a value that is no JSON")
}

impl Modifiers {
    /// A type that is not named.
    fn schema(self, form: Form, format: Option<&str>) -> Schema {
        self.change(Schema { form, format: format.map(Box::from), ..Schema::default() })
    }

    /// A type with these modifiers in place of its own.
    fn change(self, mut schema: Schema) -> Schema {
        if let Some(atomic) = self.atomic {
            match &mut schema.form {
                Form::Map(map) => map.atomic = atomic,
                Form::Object(object) => *object = Arc::new(Object { atomic, ..Object::clone(object) }),
                _ => {}
            }
        }
        schema.default = self.default.or(schema.default);
        schema.nullable |= self.nullable;
        if !self.allowed.is_empty() {
            schema.allowed = self.allowed;
        }
        schema
    }
}
