//! A CustomResourceDefinition as the controller keeps it: everything but the schemas, which are most of its bytes.

use crate::registry::{Kind, object};
use flyball_store::Entry;
use serde::de::{Deserialize, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Value};
use std::fmt;
use std::sync::Arc;

/// One definition, and the kinds that it defines.
pub(crate) struct Definition {
    /// The definition as it is stored.
    pub entry: Entry,
    /// The definition without schemas, annotations and managed fields.
    pub object: Value,
    /// The kinds that are served because of it.
    pub kinds: Vec<Arc<Kind>>,
}

impl Definition {
    /// Decodes a stored definition; it defines no kinds yet.
    pub(crate) fn decode(entry: Entry) -> Result<Definition, serde_json::Error> {
        let Outline(object) = serde_json::from_slice(&entry.value)?;
        Ok(Definition { entry, object, kinds: Vec::new() })
    }

    /// The API group of its kinds.
    pub(crate) fn group(&self) -> &str {
        self.object["spec"]["group"].as_str().unwrap_or_default()
    }

    /// Whether it is being deleted.
    pub(crate) fn is_deleting(&self) -> bool {
        object::is_deleting(&self.object)
    }

    /// Whether both have the same `spec` and the same accepted names, and so define the same kinds.
    pub(crate) fn defines_the_same(&self, other: &Definition) -> bool {
        let identity = |of: &Definition| (object::generation(&of.object), object::text(&of.object, "uid").to_owned());
        let names = |of: &Definition| of.object["status"]["acceptedNames"].clone();
        identity(self) == identity(other) && names(self) == names(other)
    }
}

/// Members that are skipped without being parsed into values.
const SKIPPED: [&str; 3] = ["schema", "annotations", "managedFields"];

/// A JSON value without the [`SKIPPED`] members of its objects.
struct Outline(Value);

impl<'de> Deserialize<'de> for Outline {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Outline, D::Error> {
        deserializer.deserialize_any(OutlineVisitor)
    }
}

struct OutlineVisitor;

impl<'de> Visitor<'de> for OutlineVisitor {
    type Value = Outline;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a JSON value")
    }

    fn visit_bool<E>(self, value: bool) -> Result<Outline, E> {
        Ok(Outline(value.into()))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Outline, E> {
        Ok(Outline(value.into()))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Outline, E> {
        Ok(Outline(value.into()))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Outline, E> {
        Ok(Outline(value.into()))
    }

    fn visit_str<E>(self, value: &str) -> Result<Outline, E> {
        Ok(Outline(value.into()))
    }

    fn visit_unit<E>(self) -> Result<Outline, E> {
        Ok(Outline(Value::Null))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Outline, A::Error> {
        let mut list = Vec::new();
        while let Some(Outline(item)) = items.next_element()? {
            list.push(item);
        }
        Ok(Outline(list.into()))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Outline, A::Error> {
        let mut map = Map::new();
        while let Some(name) = members.next_key::<String>()? {
            if SKIPPED.contains(&name.as_str()) {
                members.next_value::<IgnoredAny>()?;
            } else {
                let Outline(value) = members.next_value()?;
                map.insert(name, value);
            }
        }
        Ok(Outline(map.into()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_definition_is_decoded_without_its_schemas() {
        let stored = json!({
            "metadata": {"name": "toys.example.dev", "generation": 2, "annotations": {"a": "b"}, "managedFields": [{}]},
            "spec": {"group": "example.dev", "versions": [{"name": "v1", "served": true, "schema": {"openAPIV3Schema": {}}}]}
        });

        let Outline(object) = serde_json::from_str(&stored.to_string()).unwrap();

        let expected = json!({
            "metadata": {"name": "toys.example.dev", "generation": 2},
            "spec": {"group": "example.dev", "versions": [{"name": "v1", "served": true}]}
        });
        assert_eq!(object, expected);
    }
}
