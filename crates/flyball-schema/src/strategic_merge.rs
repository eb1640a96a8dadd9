//! Strategic merge patch: objects merge field by field, lists as the table of kinds says, and `$` directives say the rest.
// apimachinery/pkg/util/strategicpatch/patch.go

mod diff;
mod list;
mod order;

use crate::go_text;
use crate::schema::{Field, Form, Node, Patch};
use serde_json::{Map, Value};

pub use diff::diff;

const DIRECTIVE: &str = "$patch";
const RETAIN_KEYS: &str = "$retainKeys";
const DELETE: &str = "$deleteFromPrimitiveList";
const ORDER: &str = "$setElementOrder";

/// Why a patch cannot be merged, in the words of Kubernetes' library.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MergeError {
    /// A directive is not as it has to be.
    #[error("{0}")]
    Malformed(&'static str),
    /// It asks for what cannot be done to any object.
    #[error("{0}")]
    Unprocessable(&'static str),
    /// It does not fit the type, or the object.
    #[error("{0}")]
    Unfit(String),
}

type Result<T, E = MergeError> = std::result::Result<T, E>;

/// Merges a patch into an object of a built-in type.
pub fn apply(object: &mut Value, patch: &Value, node: Node<'_>) -> Result<()> {
    let patch = match patch {
        Value::Object(patch) => patch.clone(),
        Value::Null => Map::new(),
        other => return Err(bad_type("map[string]interface {}", other)),
    };
    let original = match object.take() {
        Value::Object(original) => original,
        _ => Map::new(),
    };
    *object = Value::Object(merge(original, patch, Type::Struct(node))?);
    Ok(())
}

/// What Go knows of a value's type.
#[derive(Clone, Copy)]
enum Type<'a> {
    Struct(Node<'a>),
    /// No struct, and so without fields that anything could be known of.
    Other(&'static str),
}

impl<'a> Type<'a> {
    fn of(node: Node<'a>) -> Type<'a> {
        match &node.form {
            Form::Object(_) | Form::Any | Form::Quantity | Form::IntOrString => Type::Struct(node),
            Form::Map(_) => Type::Other("map"),
            Form::List(_) => Type::Other("slice"),
            Form::Boolean => Type::Other("bool"),
            Form::Integer => Type::Other("int64"),
            Form::Number => Type::Other("float64"),
            Form::String => Type::Other("string"),
        }
    }

    /// The kind of type that Go's reflection says it is.
    fn kind(self) -> &'static str {
        match self {
            Type::Struct(_) => "struct",
            Type::Other(kind) => kind,
        }
    }

    fn declared(self, name: &str) -> Result<(&'a Field, Node<'a>)> {
        let node = match self {
            Type::Struct(node) => node,
            Type::Other(kind) => {
                let why = "merging an object in json but data type is not struct, instead is";
                return Err(MergeError::Unfit(format!("{why}: {kind}")));
            }
        };
        let folded = || node.fields().iter().find(|field| field.name.eq_ignore_ascii_case(name));
        let field = node.declared(name).or_else(folded).ok_or_else(|| {
            let owner = node.type_name().and_then(|name| name.rsplit('.').next()).unwrap_or_default();
            MergeError::Unfit(format!("unable to find api field in struct {owner} for the json field {name:?}"))
        })?;
        Ok((field, node.at(field.schema)))
    }

    /// The type of a field that holds an object, and how it is patched.
    fn field(self, name: &str) -> Result<(Type<'a>, Strategy<'a>)> {
        let (field, node) = self.declared(name)?;
        Ok((Type::of(node), Strategy(field.patch.as_deref())))
    }

    /// The type of the items of a field that holds a list, and how it is patched.
    fn items(self, name: &str) -> Result<(Type<'a>, Strategy<'a>)> {
        let (field, node) = self.declared(name)?;
        let items = node.items().ok_or_else(|| {
            let why = format!("expected slice or array type, but got: {}", self.kind());
            MergeError::Unfit(why)
        })?;
        Ok((Type::of(items), Strategy(field.patch.as_deref())))
    }
}

/// How a field is patched.
#[derive(Clone, Copy)]
struct Strategy<'a>(Option<&'a Patch>);

impl<'a> Strategy<'a> {
    fn merges(self) -> bool {
        self.0.is_some_and(|patch| patch.merge)
    }

    fn replaces(self) -> bool {
        self.0.is_some_and(|patch| patch.replace)
    }

    fn retains_keys(self) -> bool {
        self.0.is_some_and(|patch| patch.retain_keys)
    }

    fn merge_key(self) -> Option<&'a str> {
        self.0.and_then(|patch| patch.merge_key.as_deref())
    }
}

type Object = Map<String, Value>;

// mergeMap
fn merge(mut original: Object, mut patch: Object, of: Type<'_>) -> Result<Object> {
    if let Some(directive) = patch.get(DIRECTIVE) {
        return match directive.as_str() {
            Some("replace") => {
                patch.remove(DIRECTIVE);
                Ok(patch)
            }
            Some("delete") => Ok(Object::new()),
            _ => Err(unknown_directive(&patch)),
        };
    }
    retain_keys(&mut original, &mut patch)?;
    list::order_all(&mut original, &mut patch, of)?;
    for (key, change) in patch {
        merge_field(&mut original, key, change, of)?;
    }
    Ok(original)
}

fn merge_field(original: &mut Object, key: String, change: Value, of: Type<'_>) -> Result<()> {
    let deletes = key.starts_with(DELETE);
    let key = match deletes {
        true => directive_key(&key, DELETE, "invalid patch format of primitive list")?.to_owned(),
        false => key,
    };
    if change.is_null() {
        original.remove(&key);
        return Ok(());
    }
    let merged = match (original.remove(&key), change) {
        (Some(Value::Object(original)), Value::Object(change)) => {
            let (of, strategy) = of.field(&key)?;
            match strategy.replaces() {
                true => Value::Object(change),
                false => Value::Object(merge(original, change, of)?),
            }
        }
        (Some(Value::Array(original)), Value::Array(change)) => {
            let (of, strategy) = of.items(&key)?;
            let change = match deletes {
                true => list::Change::Delete(change),
                false => list::Change::Merge(change),
            };
            Value::Array(list::merge(original, change, of, strategy)?)
        }
        (known, _) if deletes => match known {
            Some(known) => known,
            None => return Ok(()),
        },
        // What is new, or was something else, is taken without what only directs.
        (known, mut change) => {
            if known.as_ref().is_none_or(|known| kind(known) != kind(&change)) {
                discard_nulls(&mut change);
            }
            match without_directives(change) {
                Some(change) => change,
                None => return Ok(()),
            }
        }
    };
    original.insert(key, merged);
    Ok(())
}

/// Clears what the patch does not list as kept.
// applyRetainKeysDirective
fn retain_keys(original: &mut Object, patch: &mut Object) -> Result<()> {
    const WRONG: MergeError = MergeError::Malformed("invalid patch format of retainKeys");
    let Some(keys) = patch.remove(RETAIN_KEYS) else {
        return Ok(());
    };
    let Value::Array(keys) = keys else { return Err(WRONG) };
    let kept = |name: &str| keys.iter().any(|key| key == name);
    let directs = |name: &str| name.starts_with(DELETE) || name.starts_with(ORDER);
    if patch.iter().any(|(name, value)| !value.is_null() && !directs(name) && !kept(name)) {
        return Err(WRONG);
    }
    original.retain(|name, _| kept(name));
    Ok(())
}

/// The field that a directive such as `$setElementOrder/containers` is about.
fn directive_key<'a>(key: &'a str, directive: &str, wrong: &'static str) -> Result<&'a str> {
    match key.split_once('/') {
        Some((prefix, field)) if prefix == directive => Ok(field),
        _ => Err(MergeError::Malformed(wrong)),
    }
}

fn discard_nulls(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            fields.retain(|_, value| !value.is_null());
            fields.values_mut().for_each(discard_nulls);
        }
        Value::Array(items) => items.iter_mut().for_each(discard_nulls),
        _ => {}
    }
}

/// The value without objects that carry a directive; none if it is such an object.
// removeDirectives
fn without_directives(value: Value) -> Option<Value> {
    match value {
        Value::Object(fields) if fields.contains_key(DIRECTIVE) => None,
        Value::Object(fields) => {
            let kept = fields.into_iter().filter_map(|(name, value)| Some((name, without_directives(value)?)));
            Some(Value::Object(kept.collect()))
        }
        Value::Array(items) => Some(Value::Array(items.into_iter().filter_map(without_directives).collect())),
        other => Some(other),
    }
}

fn unknown_directive(object: &Object) -> MergeError {
    let directive = match &object[DIRECTIVE] {
        Value::String(text) => text.clone(),
        other => format!("%!s({}={})", kind(other), go_text::plain(other)),
    };
    let shown = go_text::plain(&Value::Object(object.clone()));
    MergeError::Unfit(format!("unknown patch type: {directive} in map: {shown}"))
}

fn bad_type(expected: &str, found: &Value) -> MergeError {
    MergeError::Unfit(format!("expected a {expected}, but received a {}", kind(found)))
}

/// The type that Go decodes a value to.
fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "%!s(<nil>)",
        Value::Bool(_) => "bool",
        Value::Number(number) if number.is_i64() => "int64",
        Value::Number(_) => "float64",
        Value::String(_) => "string",
        Value::Array(_) => "[]interface {}",
        Value::Object(_) => "map[string]interface {}",
    }
}
