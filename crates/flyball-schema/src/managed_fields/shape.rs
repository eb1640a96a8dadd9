//! Types as ownership sees them: maps, lists and scalars, some of them atomic.
//! Mirrors kube-openapi's `schemaconv` and the resolving of structured-merge-diff's `schema`.

use super::path::PathElement;
use crate::go_text;
use crate::kinds;
use crate::schema::{Form, ListKind, Node};
use serde_json::Value;
use std::borrow::Cow;

const OBJECT_META: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta";

/// Types whose values are never looked into.
const ATOMIC: [&str; 2] = [
    "io.k8s.apimachinery.pkg.runtime.RawExtension",
    "io.k8s.apimachinery.pkg.apis.meta.v1.ManagedFieldsEntry",
];

/// The type of a value.
#[derive(Clone, Copy, Debug)]
pub(super) enum Type<'a> {
    /// A declared type; `open` where an enclosing type of a CRD preserves unknown fields.
    Declared { node: Node<'a>, open: bool },
    /// Told by the value: maps are separable, lists atomic.
    Deduced,
    /// Told by the value, and atomic whatever it is.
    Atomic,
    /// No type: nothing may be here.
    Undeclared,
}

/// What values of a type may be; more than one where the type leaves it open.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Atom<'a> {
    pub(super) map: Option<MapShape<'a>>,
    pub(super) scalar: Option<Scalar>,
    pub(super) list: Option<ListShape<'a>>,
}

/// What one value is.
#[derive(Clone, Copy, Debug)]
pub(super) enum Shape<'a> {
    Map(MapShape<'a>),
    Scalar(Scalar),
    List(ListShape<'a>),
    Nothing,
}

/// Scalars that a type allows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Scalar {
    Boolean,
    Numeric,
    String,
    Untyped,
}

/// An object or a map.
#[derive(Clone, Copy, Debug)]
pub(super) struct MapShape<'a> {
    declared: Option<Node<'a>>,
    /// Whether inlined types below preserve unknown fields.
    open: bool,
    others: Other<'a>,
    pub(super) atomic: bool,
}

/// The type of what is not declared.
#[derive(Clone, Copy, Debug)]
enum Other<'a> {
    Node(Node<'a>),
    Deduced,
    Atomic,
    Undeclared,
}

/// A list.
#[derive(Clone, Copy, Debug)]
pub(super) struct ListShape<'a> {
    pub(super) kind: &'a ListKind,
    pub(super) items: Type<'a>,
}

impl<'a> Type<'a> {
    /// The type of an object.
    pub(super) fn root(node: Node<'a>) -> Type<'a> {
        Type::of(node, false)
    }

    /// A named type is read on its own; whether unknown fields are preserved is inherited by inlined ones only.
    fn of(node: Node<'a>, open: bool) -> Type<'a> {
        if node.name.as_deref().is_some_and(|name| ATOMIC.contains(&name)) {
            return Type::Atomic;
        }
        let open = node.preserve_unknown || (open && node.name.is_none());
        Type::Declared { node, open }
    }

    /// What values of the type may be.
    pub(super) fn atom(self) -> Atom<'a> {
        match self {
            Type::Declared { node, open } => declared_atom(node, open),
            Type::Deduced => any(Other::Deduced, false),
            Type::Atomic => any(Other::Atomic, true),
            Type::Undeclared => Atom::default(),
        }
    }

    /// What this value is.
    pub(super) fn shape(self, value: Option<&Value>) -> Shape<'a> {
        self.atom().deduce(value).shape()
    }
}

fn declared_atom(node: Node<'_>, open: bool) -> Atom<'_> {
    let scalar = |scalar| Atom { scalar: Some(scalar), ..Atom::default() };
    match &node.schema().form {
        Form::Any | Form::IntOrString => any(Other::Deduced, false),
        Form::Boolean => scalar(Scalar::Boolean),
        Form::Integer | Form::Number => scalar(Scalar::Numeric),
        Form::String if matches!(node.format.as_deref(), None | Some("" | "byte")) => scalar(Scalar::String),
        Form::String | Form::Quantity => scalar(Scalar::Untyped),
        Form::List(list) => {
            let list = ListShape { kind: &list.kind, items: Type::of(node.at(list.items), open) };
            Atom { list: Some(list), ..Atom::default() }
        }
        Form::Map(map) => {
            let others = Other::Node(node.at(map.values));
            Atom {
                map: Some(MapShape { declared: None, open, others, atomic: map.atomic }),
                ..Atom::default()
            }
        }
        Form::Object(object) => {
            let others = if open || node.open || object.fields.is_empty() {
                Other::Deduced
            } else {
                Other::Undeclared
            };
            Atom {
                map: Some(MapShape { declared: Some(node), open, others, atomic: object.atomic }),
                ..Atom::default()
            }
        }
    }
}

fn any<'a>(others: Other<'a>, atomic: bool) -> Atom<'a> {
    Atom {
        map: Some(MapShape { declared: None, open: false, others, atomic }),
        scalar: Some(Scalar::Untyped),
        list: Some(ListShape { kind: &ListKind::Atomic, items: Type::Atomic }),
    }
}

impl<'a> Atom<'a> {
    /// Narrows the atom to what the value is, where the type allows that.
    // structured-merge-diff, typed/helpers.go, deduceAtom
    pub(super) fn deduce(self, value: Option<&Value>) -> Atom<'a> {
        let none = Atom::default();
        match value {
            Some(Value::Bool(_) | Value::Number(_) | Value::String(_)) if self.scalar.is_some() => {
                Atom { scalar: self.scalar, ..none }
            }
            Some(Value::Array(_)) if self.list.is_some() => Atom { list: self.list, ..none },
            Some(Value::Object(_)) if self.map.is_some() => Atom { map: self.map, ..none },
            _ => self,
        }
    }

    /// The first of map, scalar and list.
    pub(super) fn shape(self) -> Shape<'a> {
        match self {
            Atom { map: Some(map), .. } => Shape::Map(map),
            Atom { scalar: Some(scalar), .. } => Shape::Scalar(scalar),
            Atom { list: Some(list), .. } => Shape::List(list),
            _ => Shape::Nothing,
        }
    }

    /// Whether two narrowings of one type came out the same.
    pub(super) fn same(&self, other: &Atom<'_>) -> bool {
        let parts = |atom: &Atom<'_>| (atom.map.is_some(), atom.scalar.is_some(), atom.list.is_some());
        parts(self) == parts(other)
    }
}

impl<'a> MapShape<'a> {
    /// Whether the field is declared, in contrast to a key of a map.
    pub(super) fn declares(&self, name: &str) -> bool {
        self.declared(name).is_some()
    }

    fn declared(&self, name: &str) -> Option<Type<'a>> {
        let node = self.declared?;
        if node.embedded_resource
            && let Some(ty) = of_embedded(name)
        {
            return Some(ty);
        }
        node.declared(name).map(|field| Type::of(node.at(field.schema), self.open))
    }

    /// The type of a field or of the value at a key.
    pub(super) fn field(&self, name: &str) -> Type<'a> {
        self.declared(name).unwrap_or_else(|| match self.others {
            Other::Node(node) => Type::of(node, self.open),
            Other::Deduced => Type::Deduced,
            Other::Atomic => Type::Atomic,
            Other::Undeclared => Type::Undeclared,
        })
    }
}

/// The types of what every resource has, also one within another.
fn of_embedded(name: &str) -> Option<Type<'static>> {
    let object_meta = kinds::builtin().schema(OBJECT_META)?;
    match name {
        "apiVersion" | "kind" => object_meta.field("name").map(Type::root),
        "metadata" => Some(Type::root(object_meta)),
        _ => None,
    }
}

impl<'a> ListShape<'a> {
    pub(super) fn is_atomic(&self) -> bool {
        *self.kind == ListKind::Atomic
    }

    /// The path element of an item, or why it has none.
    // structured-merge-diff, typed/helpers.go, listItemToPathElement
    pub(super) fn element<'v>(&self, item: &'v Value) -> Result<PathElement<'v>, String>
    where
        'a: 'v,
    {
        match self.kind {
            ListKind::Atomic => Err("invalid indexing of non-associative list".into()),
            ListKind::Set => set_element(item),
            ListKind::Map(keys) => self.key_element(keys, item),
        }
    }

    fn key_element<'v>(&self, keys: &'a [Box<str>], item: &'v Value) -> Result<PathElement<'v>, String>
    where
        'a: 'v,
    {
        let fields = match item {
            Value::Object(fields) => fields,
            Value::Null => return Err("associative list with keys may not have a null element".into()),
            _ => return Err("associative list with keys may not have non-map elements".into()),
        };
        let mut key = Vec::with_capacity(keys.len());
        for name in keys {
            if let Some(value) = fields.get(&**name).or_else(|| self.default(name)) {
                key.push((Cow::Borrowed(&**name), Cow::Borrowed(value)));
            }
        }
        if key.is_empty() {
            let names: Vec<String> = keys.iter().map(|key| go_text::quote(key)).collect();
            return Err(format!(
                "associative list with keys has an element that omits all key fields [{}] \
                 (and doesn't have default values for any key fields)",
                names.join(" ")
            ));
        }
        Ok(PathElement::key(key))
    }

    fn default(&self, name: &str) -> Option<&'a Value> {
        match self.items {
            Type::Declared { node, .. } => {
                let field = node.declared(name)?;
                node.at(field.schema).schema().default.as_ref()
            }
            _ => None,
        }
    }
}

fn set_element(item: &Value) -> Result<PathElement<'_>, String> {
    match item {
        Value::Object(_) => Err("associative list without keys has an element that's a map type".into()),
        Value::Array(_) => Err("not supported: associative list with lists as elements".into()),
        Value::Null => Err("associative list without keys has an element that's an explicit null".into()),
        _ => Ok(PathElement::Value(Cow::Borrowed(item))),
    }
}
