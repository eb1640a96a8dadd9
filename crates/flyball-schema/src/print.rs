//! `Table`: what `kubectl get` shows. Which columns a kind has and what stands in them; the kinds that users look at
//! most have columns of their own, custom resources have those of their definition, all others a name and a time.

mod admission;
mod age;
mod builtin;
mod column;
mod custom;
mod event;
mod job;
mod network;
mod node;
mod plain;
mod pod;
mod policy;
mod service;
mod storage;
mod workload;

pub use custom::CustomColumn;

use column::{Column, NAME, Shown, definition, name};
use custom::Filler;
use jiff::Timestamp;
use serde_json::{Value, json};

/// The version of `meta.k8s.io` that a converted object has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "each is the version of its name")]
pub enum Meta {
    V1,
    V1beta1,
}

/// What a row of a `Table` carries of its object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Include {
    /// Nothing.
    None,
    /// A `PartialObjectMetadata`.
    Metadata,
    /// All of it.
    Object,
}

/// Prints objects of one kind.
pub struct Printer {
    columns: Vec<Value>,
    cells: Cells,
}

/// What stands in the columns.
enum Cells {
    Row(&'static [Column], fn(&Value, Timestamp) -> Vec<Value>),
    Each(&'static [Shown]),
    Custom(Vec<Filler>),
}

impl Printer {
    /// The printer for a built-in kind.
    pub fn built_in(group: &str, kind: &str) -> Printer {
        let cells = builtin::cells(group, kind);
        let columns = match &cells {
            Cells::Row(columns, _) => columns.iter().map(definition).collect(),
            Cells::Each(shown) => shown.iter().map(|(column, _)| definition(column)).collect(),
            Cells::Custom(_) => Vec::new(),
        };
        Printer { columns, cells }
    }

    /// The printer for a custom kind whose definition has these columns.
    pub fn custom(columns: &[CustomColumn]) -> Printer {
        let own = match columns {
            [] => &[CustomColumn::age()],
            columns => columns,
        };
        Printer {
            columns: std::iter::once(definition(&NAME))
                .chain(own.iter().map(CustomColumn::definition))
                .collect(),
            cells: Cells::Custom(own.iter().map(Filler::new).collect()),
        }
    }

    /// A table of these objects. `metadata` is that of the list, or of the one object.
    pub fn table(&self, objects: Vec<Value>, metadata: Value, shape: (Meta, Include), now: Timestamp) -> Value {
        let mut table = self.rows(objects, metadata, shape, now);
        table["columnDefinitions"] = Value::Array(self.columns.clone());
        table
    }

    /// The same without columns: a watch names them only once.
    pub fn rows(&self, objects: Vec<Value>, metadata: Value, shape: (Meta, Include), now: Timestamp) -> Value {
        let rows: Vec<Value> = objects.into_iter().map(|object| self.row(object, shape, now)).collect();
        let api_version = shape.0.api_version();
        json!({
            "kind": "Table", "apiVersion": api_version, "metadata": metadata, "columnDefinitions": null, "rows": rows
        })
    }

    fn row(&self, object: Value, (meta, include): (Meta, Include), now: Timestamp) -> Value {
        let mut row = json!({"cells": self.cells(&object, now)});
        if let Some(condition) = pod::completed(&object) {
            row["conditions"] = json!([condition]);
        }
        row["object"] = match include {
            Include::None => Value::Null,
            Include::Metadata => partial(object, meta),
            Include::Object => object,
        };
        row
    }

    fn cells(&self, object: &Value, now: Timestamp) -> Vec<Value> {
        match &self.cells {
            Cells::Row(_, cells) => cells(object, now),
            Cells::Each(shown) => shown.iter().map(|(_, cell)| cell(object, now)).collect(),
            Cells::Custom(columns) => {
                let cells = columns.iter().map(|column| column.cell(object, now));
                std::iter::once(json!(name(object))).chain(cells).collect()
            }
        }
    }
}

impl Meta {
    /// The `apiVersion` of a converted object.
    pub fn api_version(self) -> &'static str {
        match self {
            Meta::V1 => "meta.k8s.io/v1",
            Meta::V1beta1 => "meta.k8s.io/v1beta1",
        }
    }
}

/// An object reduced to its metadata.
pub fn partial(mut object: Value, meta: Meta) -> Value {
    let mut metadata = object.get_mut("metadata").map(Value::take).unwrap_or_else(|| json!({}));
    if object["kind"] == "DaemonSet" {
        forget_template_generation(&mut metadata);
    }
    json!({"kind": "PartialObjectMetadata", "apiVersion": meta.api_version(), "metadata": metadata})
}

/// A DaemonSet's count of templates is a field of Go's own type, and an annotation only where the whole is shown.
fn forget_template_generation(metadata: &mut Value) {
    let annotations = metadata.get_mut("annotations").and_then(Value::as_object_mut);
    let is_empty = annotations.is_some_and(|annotations| {
        annotations.remove("deprecated.daemonset.template.generation");
        annotations.is_empty()
    });
    if let Some(members) = metadata.as_object_mut().filter(|_| is_empty) {
        members.remove("annotations");
    }
}
