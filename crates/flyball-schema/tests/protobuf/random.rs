//! Random objects of every built-in kind: what is written is read again. A failure names its seed.

use flyball_schema::kinds;
use flyball_schema::protobuf;
use flyball_schema::schema::{Field, Form, Node};
use serde_json::{Map, Value, json};

const SEEDS: u64 = 20;

/// Calls with every kind and seed: what they are called, the kind's type, and randomness.
fn for_all(check: impl Fn(&str, Node<'_>, &mut Random)) {
    let kinds = kinds::builtin();
    for resource in &kinds.resources {
        let Some(id) = resource.schema else { continue };
        for seed in 0..SEEDS {
            let name = format!("{}, seed {seed}", resource.kind);
            check(&name, kinds.schemas.node(id), &mut Random(fastrand::Rng::with_seed(seed)));
        }
    }
}

#[test]
fn what_is_written_is_read_again() {
    for_all(|name, node, random| {
        let mut object = random.object(node, 0);
        for field in ["apiVersion", "kind"] {
            object.remove(field);
        }
        let object = Value::Object(object);
        let bytes = protobuf::encode(&object, node).unwrap_or_else(|error| panic!("{name}: {error}"));
        let read = protobuf::decode(&bytes, node).unwrap_or_else(|error| panic!("{name}: {error}"));
        assert_eq!(read, object, "{name}");
    });
}

#[test]
fn bytes_that_were_changed_are_read_or_refused() {
    for_all(|name, node, random| {
        let object = Value::Object(random.object(node, 0));
        let mut bytes = protobuf::encode(&object, node).expect("what is generated fits");
        for _ in 0..8 {
            let at = random.below(bytes.len().max(1));
            match random.below(3) {
                0 => bytes.truncate(at),
                1 => bytes.insert(at.min(bytes.len()), random.next() as u8),
                _ if !bytes.is_empty() => bytes[at] = random.next() as u8,
                _ => {}
            }
            if let Ok(value) = protobuf::decode(&bytes, node) {
                // What was cut off comes back as zero, once.
                let again = protobuf::encode(&value, node).expect("what was read can be written");
                let whole = protobuf::decode(&again, node).expect("what was written can be read");
                assert_eq!(protobuf::encode(&whole, node), Ok(again), "{name}");
            }
        }
    });
}

struct Random(fastrand::Rng);

impl Random {
    fn next(&mut self) -> u64 {
        self.0.u64(..)
    }

    fn below(&mut self, count: usize) -> usize {
        self.0.usize(..count)
    }

    /// What Go would write as JSON: what is no pointer is there where its zero is written, else only where it is not zero.
    fn object(&mut self, node: Node<'_>, depth: usize) -> Map<String, Value> {
        let mut object = Map::new();
        for field in node.fields() {
            if let Some(value) = self.field(field, node, depth) {
                object.insert(field.name.to_string(), value);
            }
        }
        object
    }

    fn field(&mut self, field: &Field, owner: Node<'_>, depth: usize) -> Option<Value> {
        let place = field.protobuf.as_ref()?;
        let node = owner.at(field.schema);
        let is_collection = matches!(node.form, Form::List(_) | Form::Map(_));
        let always = node.default.is_some() || field.required || matches!(node.form, Form::Quantity);
        let present = match place.pointer || is_collection {
            true => depth < 5 && self.below(3) == 0,
            false => always || matches!(node.form, Form::Object(_)) || self.below(2) == 0,
        };
        if !present {
            return None;
        }
        let value = self.value(node, depth + 1);
        let zero = value == "" || value == 0 || value == false || value == json!({});
        let keeps_zero =
            place.pointer || (!place.omitted && node.default.as_ref().is_some_and(is_zero)) || field.required;
        (!zero || keeps_zero).then_some(value)
    }

    fn value(&mut self, node: Node<'_>, depth: usize) -> Value {
        let name = node.type_name().and_then(|name| name.rsplit('.').next()).unwrap_or_default();
        match (&node.form, name) {
            (Form::String, "Time") => ["2026-01-02T03:04:05Z", "1969-12-31T23:59:59Z"][self.below(2)].into(),
            (Form::String, "MicroTime") => {
                ["2026-01-02T03:04:05.000006Z", "1969-12-31T23:59:59.999999Z"][self.below(2)].into()
            }
            (Form::String, _) if node.format.as_deref() == Some("byte") => ["", "AA==", "/+8x"][self.below(3)].into(),
            (Form::String, _) => ["", "a", "ü\u{1f600}", "x\ny"][self.below(4)].into(),
            (Form::Boolean, _) => (self.below(2) == 0).into(),
            (Form::Integer, _) if node.format.as_deref() == Some("int32") => {
                (self.next() as i32 >> self.below(32)).into()
            }
            (Form::Integer, _) => (self.next().cast_signed() >> self.below(64)).into(),
            (Form::Number, _) => [json!(0), json!(0.5), json!(-3), json!(1e300)][self.below(4)].clone(),
            (Form::IntOrString, _) => [json!(0), json!(-8080), json!("web"), json!("25%")][self.below(4)].clone(),
            (Form::Quantity, _) => ["0", "1", "500m", "1536Mi", "12e6"][self.below(5)].into(),
            (Form::List(list), _) => {
                let items = 0..=self.below(3);
                items.map(|_| self.value(node.at(list.items), depth + 1)).collect()
            }
            (Form::Map(map), _) => {
                let keys = ["", "a", "b/c"][..=self.below(3)].iter();
                keys.map(|key| ((*key).to_owned(), self.value(node.at(map.values), depth + 1))).collect()
            }
            (Form::Object(object), "FieldsV1") if object.fields.is_empty() => {
                json!({"f:a": {".": {}, "k:{\"n\":1}": {}, "v:2": {}, "f:z": {}}})
            }
            (Form::Object(object), _) if node.preserve_unknown && object.fields.is_empty() => json!({"a": [null, 1.5]}),
            (Form::Object(_), _) => self.object(node, depth).into(),
            (Form::Any, "JSONSchemaPropsOrBool") => [json!(true), json!(false), json!({})][self.below(3)].clone(),
            (Form::Any, "JSONSchemaPropsOrArray") => {
                [json!([{}, {"type": "string"}]), json!({})][self.below(2)].clone()
            }
            (Form::Any, "JSONSchemaPropsOrStringArray") => [json!(["a"]), json!({"title": "t"})][self.below(2)].clone(),
            (Form::Any, _) => [json!("x"), json!(1), json!({"a": null})][self.below(3)].clone(),
        }
    }
}

fn is_zero(value: &Value) -> bool {
    value == "" || value == 0 || value == false || *value == json!({})
}
