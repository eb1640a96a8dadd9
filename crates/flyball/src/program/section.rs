//! Reads an author's section of the configuration into its type, and names each key that the type does not have.

use serde::{
    Deserializer,
    de::{DeserializeOwned, DeserializeSeed, MapAccess, SeqAccess, Visitor, value::StringDeserializer},
    forward_to_deserialize_any,
};
use serde_json::{Error, Map, Value};
use std::cell::RefCell;

/// Reads the section called `name`; one that is absent is as an empty one.
pub(crate) fn read<S: DeserializeOwned>(name: &str, value: Option<Value>) -> Result<S, Vec<String>> {
    let value = value.filter(|value| !value.is_null()).unwrap_or_else(|| Map::new().into());
    let found = Found::default();
    let section = S::deserialize(Node { value, path: name.to_owned(), found: &found });
    let mut unknown: Vec<_> = found.unknown.take().iter().map(|path| format!("{path}: no such key")).collect();
    unknown.sort();
    match section {
        Ok(section) if unknown.is_empty() => Ok(section),
        Ok(_) => Err(unknown),
        Err(error) => {
            let path = found.failed.take().unwrap_or_else(|| name.to_owned());
            Err(vec![format!("{path}: {error}")])
        }
    }
}

/// What was found while a section is read.
#[derive(Default)]
struct Found {
    /// The keys that the type ignores.
    unknown: RefCell<Vec<String>>,
    /// The innermost value that could not be read.
    failed: RefCell<Option<String>>,
}

/// A value, and where it is.
struct Node<'a> {
    value: Value,
    path: String,
    found: &'a Found,
}

impl<'de> Deserializer<'de> for Node<'_> {
    type Error = Error;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        let (path, found) = (self.path, self.found);
        let failed = |error| {
            found.failed.borrow_mut().get_or_insert_with(|| path.clone());
            error
        };
        match self.value {
            Value::Object(fields) => {
                let fields = Fields { fields: fields.into_iter(), next: None, path: &path, found };
                visitor.visit_map(fields).map_err(failed)
            }
            Value::Array(items) => {
                let items = Items { items: items.into_iter().enumerate(), path: &path, found };
                visitor.visit_seq(items).map_err(failed)
            }
            value => value.deserialize_any(visitor).map_err(failed),
        }
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        match self.value {
            Value::Null => visitor.visit_none(),
            _ => visitor.visit_some(self),
        }
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(self, _: &'static str, visitor: V) -> Result<V::Value, Error> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        name: &'static str,
        variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Error> {
        let failed = |error| {
            self.found.failed.borrow_mut().get_or_insert(self.path);
            error
        };
        self.value.deserialize_enum(name, variants, visitor).map_err(failed)
    }

    fn deserialize_ignored_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        self.found.unknown.borrow_mut().push(self.path);
        visitor.visit_unit()
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf unit unit_struct seq tuple
        tuple_struct map struct identifier
    }
}

struct Fields<'a> {
    fields: serde_json::map::IntoIter,
    next: Option<(String, Value)>,
    path: &'a str,
    found: &'a Found,
}

impl<'de> MapAccess<'de> for Fields<'_> {
    type Error = Error;

    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>, Error> {
        self.next = self.fields.next();
        let Some((name, _)) = &self.next else { return Ok(None) };
        let key = seed.deserialize(StringDeserializer::<Error>::new(name.clone()));
        key.map(Some).inspect_err(|_| {
            self.found.failed.borrow_mut().get_or_insert_with(|| format!("{}.{name}", self.path));
        })
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, Error> {
        let (name, value) = self.next.take().expect("a key comes before its value");
        seed.deserialize(Node {
            value,
            path: format!("{}.{name}", self.path),
            found: self.found,
        })
    }
}

struct Items<'a> {
    items: std::iter::Enumerate<std::vec::IntoIter<Value>>,
    path: &'a str,
    found: &'a Found,
}

impl<'de> SeqAccess<'de> for Items<'_> {
    type Error = Error;

    fn next_element_seed<T: DeserializeSeed<'de>>(&mut self, seed: T) -> Result<Option<T::Value>, Error> {
        let Some((index, value)) = self.items.next() else {
            return Ok(None);
        };
        let node = Node {
            value,
            path: format!("{}[{index}]", self.path),
            found: self.found,
        };
        seed.deserialize(node).map(Some)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde::Deserialize;
    use serde_json::json;

    #[derive(Debug, Deserialize, PartialEq)]
    struct Settings {
        zone: String,
        #[serde(default)]
        sizes: Vec<Size>,
        retries: Option<u32>,
        mode: Option<Mode>,
    }

    #[derive(Debug, Deserialize, PartialEq)]
    struct Size {
        gigabytes: u64,
    }

    #[derive(Debug, Deserialize, PartialEq)]
    #[serde(rename_all = "camelCase")]
    enum Mode {
        DryRun,
    }

    fn mistakes(value: Value) -> Vec<String> {
        read::<Settings>("cloud", Some(value)).unwrap_err()
    }

    #[test]
    fn a_section_is_read_into_its_type() {
        let value = json!({ "zone": "a", "sizes": [{ "gigabytes": 10 }], "retries": 3, "mode": "dryRun" });
        let expected = Settings {
            zone: "a".into(),
            sizes: vec![Size { gigabytes: 10 }],
            retries: Some(3),
            mode: Some(Mode::DryRun),
        };
        assert_eq!(read("cloud", Some(value)), Ok(expected));
    }

    #[test]
    fn unknown_keys_are_refused_by_name_wherever_they_are() {
        let value = json!({ "zone": "a", "zoone": "b", "sizes": [{ "gigabytes": 1, "bytes": { "a": 1 } }] });
        assert_eq!(mistakes(value), ["cloud.sizes[0].bytes: no such key", "cloud.zoone: no such key"]);
    }

    #[test]
    fn a_wrong_value_is_refused_with_its_key() {
        assert_eq!(mistakes(json!({})), ["cloud: missing field `zone`"]);
        assert_eq!(read::<Settings>("cloud", None), Err(vec!["cloud: missing field `zone`".into()]));
        let [wrong] = &mistakes(json!({ "zone": "a", "sizes": [{ "gigabytes": "many" }] }))[..] else {
            panic!("one")
        };
        assert!(
            wrong.starts_with("cloud.sizes[0].gigabytes: invalid type: string \"many\", expected u64"),
            "{wrong}"
        );
        let [wrong] = &mistakes(json!({ "zone": "a", "mode": "wet" }))[..] else {
            panic!("one")
        };
        assert!(wrong.starts_with("cloud.mode: unknown variant `wet`, expected `dryRun`"), "{wrong}");
        assert!(mistakes(json!("a"))[0].starts_with("cloud: invalid type: string"));
    }
}
