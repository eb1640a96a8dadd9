//! Request bodies into values, as strictly and with the same complaints as Kubernetes' own decoder.
//! A [`Document`] is well-formed JSON or YAML; a type makes a value of it.

mod json;
mod path;
mod time;
mod tree;
mod typed;
mod yaml;

use crate::schema::Node;
use serde_json::Value;
use tree::Tree;

/// How deep lists and objects may lie in each other. Go stops at 10,000; every verb here recurses, on a small stack, and
/// `serde_json` reads back at most 127 levels, of which `managedFields` and a list around the object take some.
pub const MAX_DEPTH: usize = 110;

/// Well-formed JSON or YAML that no type has been applied to: fields in their order, numbers as written.
#[derive(Clone, Debug)]
pub struct Document {
    tree: Tree,
    /// What YAML's own strictness has against it.
    complaint: Option<String>,
}

/// A value, and what strict field validation has against the text it came from.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Decoded {
    /// The value.
    pub value: Value,
    /// `unknown field "spec.foo"` and `duplicate field "spec.bar"`, in the order of the text.
    pub complaints: Vec<String>,
}

/// What a document says that it is; both are empty where it does not say.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TypeMeta {
    /// Its `apiVersion`.
    pub api_version: String,
    /// Its `kind`.
    pub kind: String,
}

/// Why a body cannot be decoded, in the words of Go's `encoding/json`.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DecodeError {
    /// It is no JSON, or no object that could have a kind.
    #[error("couldn't get version/kind; json parse error: {0}")]
    Json(String),
    /// It is no YAML.
    #[error("{0}")]
    Yaml(String),
    /// It is JSON, but a value does not fit its type.
    #[error("{0}")]
    Type(String),
}

impl Document {
    /// Reads JSON.
    pub fn json(bytes: &[u8]) -> Result<Document, DecodeError> {
        let tree = json::parse(bytes).map_err(DecodeError::Json)?;
        Ok(Document { tree, complaint: None })
    }

    /// Reads YAML as Kubernetes does: version 1.1's booleans and numbers, keys made strings.
    pub fn yaml(bytes: &[u8]) -> Result<Document, DecodeError> {
        let yaml::Parsed { tree, complaint } = yaml::parse(bytes).map_err(DecodeError::Yaml)?;
        Ok(Document { tree, complaint })
    }

    /// What it says that it is.
    // apimachinery/pkg/runtime/serializer/json/meta.go, Interpret
    pub fn type_meta(&self) -> Result<TypeMeta, DecodeError> {
        const TARGET: &str =
            r#"struct { APIVersion string "json:\"apiVersion,omitempty\""; Kind string "json:\"kind,omitempty\"" }"#;
        let mut meta = TypeMeta::default();
        let fields = match &self.tree {
            Tree::Object(fields) => fields.as_slice(),
            Tree::Null => &[],
            other => {
                let kind = other.kind();
                let error = format!("json: cannot unmarshal {kind} into Go value of type {TARGET}");
                return Err(DecodeError::Json(error));
            }
        };
        for (name, value) in fields {
            let slot = match name.as_str() {
                "apiVersion" => &mut meta.api_version,
                "kind" => &mut meta.kind,
                _ => continue,
            };
            match value {
                Tree::Null => {}
                Tree::String(text) => slot.clone_from(text),
                other => {
                    let kind = other.kind();
                    let error = format!("json: cannot unmarshal {kind} into Go struct field .{name} of type string");
                    return Err(DecodeError::Json(error));
                }
            }
        }
        Ok(meta)
    }

    /// Makes a value of it, whatever its type; only duplicate fields are complained about.
    pub fn untyped(self) -> Result<Decoded, DecodeError> {
        let mut complaints = path::Complaints::beginning_with(self.complaint);
        let value = self.tree.into_value(&path::At::root(), &mut complaints);
        let value = value.map_err(DecodeError::Type)?;
        Ok(Decoded { value, complaints: complaints.into_vec() })
    }

    /// Makes a value of a built-in type of it, as Go would: what does not fit is an error, unknown fields are
    /// dropped and complained about, nulls and empty lists vanish, times and quantities become canonical.
    pub fn typed(self, node: Node<'_>) -> Result<Decoded, DecodeError> {
        typed::coerce(self.tree, self.complaint, node, &path::At::root())
    }
}

/// Makes a value fit a built-in type in place, as [`Document::typed`] does, and says which fields were unknown.
pub fn coerce(value: &mut Value, node: Node<'_>) -> Result<Vec<String>, DecodeError> {
    coerce_under("", value, node)
}

/// The same for a value that is part of another, under a path such as `metadata`.
pub(crate) fn coerce_under(path: &str, value: &mut Value, node: Node<'_>) -> Result<Vec<String>, DecodeError> {
    let root = path::At::root();
    let at = if path.is_empty() {
        path::At::root()
    } else {
        root.key(path)
    };
    let Decoded { value: coerced, complaints } = typed::coerce(Tree::from(value.take()), None, node, &at)?;
    *value = coerced;
    Ok(complaints)
}

/// Whether lists and objects lie in each other deeper than this; decoding never lets them exceed [`MAX_DEPTH`].
pub fn is_deeper_than(value: &Value, depth: usize) -> bool {
    let Some(left) = depth.checked_sub(usize::from(value.is_array() || value.is_object())) else {
        return true;
    };
    match value {
        Value::Array(items) => items.iter().any(|item| is_deeper_than(item, left)),
        Value::Object(fields) => fields.values().any(|field| is_deeper_than(field, left)),
        _ => false,
    }
}

/// The beginning of a body, as messages about undecodable bodies show it.
// apimachinery/pkg/runtime/codec_check.go and serializer/recognizer: summarizeData
pub fn summary(bytes: &[u8]) -> String {
    const MOST: usize = 30;
    let (shown, dots) = if bytes.len() > MOST {
        (&bytes[..MOST], " ...")
    } else {
        (bytes, "")
    };
    match bytes.first() {
        None => "<empty>".to_owned(),
        Some(b'{') => format!("{}{dots}", String::from_utf8_lossy(shown)),
        Some(_) => shown.iter().map(|byte| format!("{byte:02x}")).collect::<String>() + dots,
    }
}
