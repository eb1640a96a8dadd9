//! The one model of types that built-in kinds and custom resources share.
//! Reading it from a CRD or from the table of kinds is left to `crd` and `kinds`; using it to the verbs.

mod import;

use crate::pattern::Pattern;
use serde_json::Value;
use std::ops::Deref;
use std::sync::Arc;

/// An arena of types; a [`SchemaId`] is an index into it, so that types may refer to themselves.
#[derive(Clone, Debug, Default)]
pub struct Schemas {
    schemas: Vec<Schema>,
}

/// The place of one type in its [`Schemas`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SchemaId(pub u32);

/// One type: its form, and what holds for every form.
#[derive(Clone, Debug, Default)]
pub struct Schema {
    /// The name of a built-in type, such as `io.k8s.api.core.v1.Pod`; none in a CRD.
    pub name: Option<Arc<str>>,
    /// What values look like.
    pub form: Form,
    /// OpenAPI's `format`, such as `int32`, `date-time` or `byte`.
    pub format: Option<Box<str>>,
    /// Values of another type than the form's are fine too: keywords inside `allOf` and the like, and
    /// preserve-unknown without a type.
    pub any_type: bool,
    /// Whether `null` is a value of its own.
    pub nullable: bool,
    /// What an absent value becomes. In built-in types a zero value (`{}`, `""`, `0`, `false`) says that
    /// Go writes the field even when it is unset.
    pub default: Option<Value>,
    /// The only values allowed, if any are listed.
    pub allowed: Vec<Value>,
    /// `x-kubernetes-preserve-unknown-fields`.
    pub preserve_unknown: bool,
    /// `additionalProperties: true` beside properties: other fields stay, objects in them lose theirs.
    pub open: bool,
    /// `x-kubernetes-embedded-resource`.
    pub embedded_resource: bool,
    /// Validation keywords; most types have none.
    pub rules: Option<Box<Rules>>,
}

/// What the values of a type look like.
#[derive(Clone, Debug, Default)]
pub enum Form {
    /// Anything at all.
    #[default]
    Any,
    /// `true` or `false`.
    Boolean,
    /// A number without a fraction.
    Integer,
    /// Any number.
    Number,
    /// A string; [`Schema::format`] may narrow it.
    String,
    /// `x-kubernetes-int-or-string`.
    IntOrString,
    /// `resource.Quantity`: a string or a number.
    Quantity,
    /// A sequence.
    List(List),
    /// String keys that nobody declared, values of one type.
    Map(Map),
    /// Declared fields; shared by the types that differ only in their default.
    Object(Arc<Object>),
}

/// A sequence and how two of them merge.
#[derive(Clone, Debug)]
pub struct List {
    /// The type of each item.
    pub items: SchemaId,
    /// `x-kubernetes-list-type` and its keys.
    pub kind: ListKind,
}

/// `x-kubernetes-list-type`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum ListKind {
    /// One value, replaced as a whole.
    #[default]
    Atomic,
    /// Scalars, each at most once.
    Set,
    /// Items told apart by these fields.
    Map(Vec<Box<str>>),
}

/// String keys that nobody declared.
#[derive(Clone, Debug)]
pub struct Map {
    /// The type of each value.
    pub values: SchemaId,
    /// `x-kubernetes-map-type: atomic`: replaced as a whole.
    pub atomic: bool,
}

/// Declared fields.
#[derive(Clone, Debug, Default)]
pub struct Object {
    /// The fields, sorted by name.
    pub fields: Vec<Field>,
    /// `x-kubernetes-map-type: atomic`: replaced as a whole.
    pub atomic: bool,
    /// The fields that protobuf keeps, sorted by its numbers.
    pub(crate) wire_order: Box<[u16]>,
}

impl Object {
    /// Notes in which order protobuf has the fields.
    pub(crate) fn sort_for_wire(&mut self) {
        let path = |index: &u16| self.fields[usize::from(*index)].protobuf.as_ref().map(|place| &place.path);
        let count = u16::try_from(self.fields.len()).expect("fewer than 2¹⁶ fields");
        let mut order: Vec<u16> = (0..count).filter(|index| path(index).is_some()).collect();
        order.sort_unstable_by(|one, other| path(one).cmp(&path(other)));
        self.wire_order = order.into();
    }
}

/// One declared field of an [`Object`].
#[derive(Clone, Debug)]
pub struct Field {
    /// Its name in JSON.
    pub name: Box<str>,
    /// The type of its value.
    pub schema: SchemaId,
    /// Whether it has to be there.
    pub required: bool,
    /// How strategic merge patch treats it (built-in kinds only).
    pub patch: Option<Box<Patch>>,
    /// Where protobuf keeps it (built-in kinds only).
    pub protobuf: Option<Protobuf>,
}

/// `x-kubernetes-patch-strategy` and `x-kubernetes-patch-merge-key`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Patch {
    /// Items or fields merge instead of being replaced.
    pub merge: bool,
    /// The value is replaced as a whole, although it would merge by itself.
    pub replace: bool,
    /// Fields that the patch does not list under `$retainKeys` are cleared.
    pub retain_keys: bool,
    /// The field that tells items apart.
    pub merge_key: Option<Box<str>>,
}

/// Where protobuf keeps a field.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Protobuf {
    /// Field numbers from the enclosing message inwards: more than one where Go embeds a struct that JSON inlines.
    pub path: Vec<u32>,
    /// How the value is written.
    pub wire: Wire,
    /// Whether Go has a pointer there, and so tells an absent value from a zero one.
    pub pointer: bool,
    /// Whether Go leaves a zero out of JSON although it is the default.
    pub omitted: bool,
}

/// How protobuf writes one value (of a list or a map: its items or values).
///
/// A list that is the value of a map (`UserInfo.extra`), and `APIResource.verbs`, have a message around them
/// that keeps the items in field 1; their wire type is [`Wire::Message`] though the items are strings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wire {
    /// `bool`, `int32`, `int64` and enums.
    Varint,
    /// `double`.
    Fixed64,
    /// `string`.
    String,
    /// `bytes`, in JSON base64.
    Bytes,
    /// A message.
    Message,
}

/// Validation keywords of OpenAPI v3 beyond type and enum.
#[derive(Clone, Debug, Default)]
#[allow(missing_docs, reason = "each is the keyword of its name")]
pub struct Rules {
    pub minimum: Option<serde_json::Number>,
    pub exclusive_minimum: bool,
    pub maximum: Option<serde_json::Number>,
    pub exclusive_maximum: bool,
    pub multiple_of: Option<serde_json::Number>,
    pub min_length: Option<u64>,
    pub max_length: Option<u64>,
    pub pattern: Option<Pattern>,
    pub min_items: Option<u64>,
    pub max_items: Option<u64>,
    pub unique_items: bool,
    pub min_properties: Option<u64>,
    pub max_properties: Option<u64>,
    /// `additionalProperties: false`: no field is allowed.
    pub closed: bool,
    /// In the order of the schema; names that are not declared may be among them.
    pub required: Vec<Box<str>>,
    pub all_of: Vec<SchemaId>,
    pub any_of: Vec<SchemaId>,
    pub one_of: Vec<SchemaId>,
    pub not: Option<SchemaId>,
}

impl Schemas {
    /// Adds a type and says where it is.
    pub fn add(&mut self, schema: Schema) -> SchemaId {
        let id = SchemaId(u32::try_from(self.schemas.len()).expect("fewer than 2³² types"));
        self.schemas.push(schema);
        id
    }

    /// Puts a type in the place of another, for types that refer to themselves.
    pub fn set(&mut self, id: SchemaId, schema: Schema) {
        self.schemas[id.0 as usize] = schema;
    }

    /// A type together with the arena that its references point into.
    pub fn node(&self, id: SchemaId) -> Node<'_> {
        Node { schemas: self, schema: &self.schemas[id.0 as usize] }
    }

    /// How many types there are.
    pub fn len(&self) -> usize {
        self.schemas.len()
    }

    /// Whether there is no type at all.
    pub fn is_empty(&self) -> bool {
        self.schemas.is_empty()
    }
}

/// A type that can be walked: it derefs to its [`Schema`] and follows references.
#[derive(Clone, Copy, Debug)]
pub struct Node<'a> {
    schemas: &'a Schemas,
    schema: &'a Schema,
}

impl<'a> Node<'a> {
    /// The type itself, for as long as its arena lives.
    pub fn schema(self) -> &'a Schema {
        self.schema
    }

    /// The type at a reference found in this one.
    pub fn at(self, id: SchemaId) -> Node<'a> {
        self.schemas.node(id)
    }

    /// The name of a built-in type, such as `io.k8s.api.core.v1.Pod`.
    pub fn type_name(self) -> Option<&'a str> {
        self.schema.name.as_deref()
    }

    /// The declared fields, sorted by name; none unless this is an object.
    pub fn fields(self) -> &'a [Field] {
        match &self.schema.form {
            Form::Object(object) => &object.fields,
            _ => &[],
        }
    }

    /// Which fields protobuf keeps, by its numbers; none unless this is an object of a built-in kind.
    pub(crate) fn wire_order(self) -> &'a [u16] {
        match &self.schema.form {
            Form::Object(object) => &object.wire_order,
            _ => &[],
        }
    }

    /// The declaration of one field.
    pub fn declared(self, name: &str) -> Option<&'a Field> {
        let fields = self.fields();
        let index = fields.binary_search_by(|field| (*field.name).cmp(name)).ok()?;
        Some(&fields[index])
    }

    /// The type of one field: declared, or the common type of a map's values.
    pub fn field(self, name: &str) -> Option<Node<'a>> {
        match &self.schema.form {
            Form::Object(_) => self.declared(name).map(|field| self.at(field.schema)),
            Form::Map(map) => Some(self.at(map.values)),
            _ => None,
        }
    }

    /// The type of a list's items.
    pub fn items(self) -> Option<Node<'a>> {
        match &self.schema.form {
            Form::List(list) => Some(self.at(list.items)),
            _ => None,
        }
    }
}

impl Deref for Node<'_> {
    type Target = Schema;

    fn deref(&self) -> &Schema {
        self.schema
    }
}
