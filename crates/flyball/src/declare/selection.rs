//! Which objects of a kind are cached, and what is kept of them: label and field selectors, and a transform.

use crate::cache::object::Object;
use kube::core::{Selector, SelectorExt};
use serde_json::Value;
use std::{
    collections::BTreeMap,
    fmt,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Arc,
};

/// A part of a kind's objects; see [`Controller::select`](crate::Controller::select). All of them unless said otherwise.
///
/// ```
/// # use flyball::Selection;
/// # use kube::core::Expression;
/// let mine = Selection::default()
///     .labels(Expression::Equal("team".into(), "blue".into()))
///     .fields("status.phase!=Succeeded")
///     .transform(|pod| drop(pod["spec"].take()));
/// ```
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Selection {
    labels: Selector,
    fields: Vec<Field>,
    transform: Option<Transform>,
    /// What the author wrote wrongly; said when the operator starts.
    pub(crate) mistakes: Vec<String>,
}

/// One requirement of a field selector.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Field {
    path: String,
    equals: bool,
    value: String,
}

#[derive(Clone)]
struct Transform(Arc<dyn Fn(&mut Value) + Send + Sync>);

impl Eq for Transform {}

/// The same function, not one that does the same.
impl PartialEq for Transform {
    fn eq(&self, other: &Transform) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Selection {
    /// Objects with these labels, beside what was asked for before.
    pub fn labels(mut self, labels: impl Into<Selector>) -> Selection {
        self.labels.extend(labels.into());
        self
    }

    /// Objects with these fields, as in `spec.nodeName=ada,status.phase!=Failed`. Which fields can be selected by is up to the
    /// API server.
    pub fn fields(mut self, fields: &str) -> Selection {
        for field in fields.split(',').map(str::trim).filter(|field| !field.is_empty()) {
            match Field::parse(field) {
                Some(field) => self.fields.push(field),
                None => self.mistakes.push(format!("invalid field selector {field:?}")),
            }
        }
        self
    }

    /// Changes objects before they are cached; name, namespace, uid and version stay. Drop what is not read.
    ///
    /// What is read from the cache is then not what the API server has: patch such objects, never replace them.
    pub fn transform(mut self, transform: impl Fn(&mut Value) + Send + Sync + 'static) -> Selection {
        self.transform = Some(Transform(Arc::new(transform)));
        self
    }

    pub(crate) fn is_everything(&self) -> bool {
        *self == Selection::default()
    }

    /// Whether every object is selected, however much of it is kept.
    pub(crate) fn selects_all(&self) -> bool {
        self.labels.selects_all() && self.fields.is_empty()
    }

    /// Whether an object's metadata suffices to say whether it is selected.
    pub(crate) fn selects_by_metadata(&self) -> bool {
        self.fields.iter().all(|field| field.path.starts_with("metadata."))
    }

    pub(crate) fn label_selector(&self) -> Option<String> {
        (!self.labels.selects_all()).then(|| self.labels.to_string())
    }

    pub(crate) fn field_selector(&self) -> Option<String> {
        let fields: Vec<_> = self.fields.iter().map(Field::to_string).collect();
        (!fields.is_empty()).then(|| fields.join(","))
    }

    /// Whether the API server would select an object that this process wrote.
    pub(crate) fn selects(&self, object: &Object) -> bool {
        let labels = || -> BTreeMap<String, String> {
            let labels = object.json().meta().labels().and_then(|labels| serde_json::from_str(labels).ok());
            labels.unwrap_or_default()
        };
        (self.labels.selects_all() || self.labels.matches(&labels())) && self.has_fields(object)
    }

    fn has_fields(&self, object: &Object) -> bool {
        if self.fields.is_empty() {
            return true;
        }
        let whole: Value = serde_json::from_str(&object.json()).unwrap_or_default();
        self.fields.iter().all(|field| field.holds(&whole))
    }

    /// Whether less may be kept of an object than was sent.
    pub(crate) fn transforms(&self) -> bool {
        self.transform.is_some()
    }

    /// What is kept of an object.
    pub(crate) fn transformed(&self, object: Object) -> Object {
        let Some(Transform(transform)) = &self.transform else {
            return object;
        };
        let changed = catch_unwind(AssertUnwindSafe(|| {
            let mut value: Value = serde_json::from_str(&object.json()).ok()?;
            transform(&mut value);
            object.with_json(value.to_string()).ok()
        }));
        let same = |changed: &Object| {
            let id = |object: &Object| (object.key.clone(), object.uid.clone(), object.version);
            id(changed) == id(&object)
        };
        match changed.unwrap_or_default().filter(same) {
            Some(changed) => changed,
            None => {
                tracing::error!(key = %object.key, "a transform panicked or left no object; it is cached as it is");
                object
            }
        }
    }
}

impl Field {
    fn parse(text: &str) -> Option<Field> {
        let (path, equals, value) = match text.split_once("!=") {
            Some((path, value)) => (path, false, value),
            None => {
                let (path, value) = text.split_once("==").or_else(|| text.split_once('='))?;
                (path, true, value)
            }
        };
        let plain = |text: &str| !text.is_empty() && !text.contains(['=', '!', '\\']);
        (plain(path) && (value.is_empty() || plain(value))).then(|| Field {
            path: path.trim().into(),
            equals,
            value: value.trim().into(),
        })
    }

    /// A field that is not there is empty (apimachinery, `fields.Set.Get`); of a built-in kind, it may as well be false or 0
    /// (`spec.unschedulable` of a node). Which of them it is, the value that is asked for tells.
    fn holds(&self, object: &Value) -> bool {
        let found = self.path.split('.').try_fold(object, |value, name| value.get(name));
        let found = match found {
            None | Some(Value::Null) => return ["", "false", "0"].contains(&&*self.value) == self.equals,
            Some(Value::String(text)) => text.clone(),
            Some(other) => other.to_string(),
        };
        (found == self.value) == self.equals
    }
}

impl fmt::Display for Field {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let operator = if self.equals { "=" } else { "!=" };
        write!(f, "{}{operator}{}", self.path, self.value)
    }
}

/// The selectors, as they are sent.
impl fmt::Display for Selection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let selectors: Vec<_> = self.label_selector().into_iter().chain(self.field_selector()).collect();
        f.write_str(&selectors.join(" "))
    }
}

impl fmt::Debug for Selection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Selection {{ {self} }}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kube::core::Expression;

    fn pod(name: &str, phase: &str) -> Object {
        let metadata = format!(r#"{{"name":"{name}","namespace":"a","uid":"u","labels":{{"team":"blue"}}}}"#);
        Object::parse(format!(r#"{{"metadata":{metadata},"spec":{{"a":1}},"status":{{"phase":"{phase}"}}}}"#)).unwrap()
    }

    #[test]
    fn what_this_process_writes_is_selected_as_the_server_would() {
        let selects = |selection: Selection| selection.selects(&pod("ada", "Running"));
        let all = Selection::default;
        assert!(selects(all()) && all().is_everything());
        assert!(selects(all().labels(Expression::Equal("team".into(), "blue".into()))));
        assert!(!selects(all().labels(Expression::NotEqual("team".into(), "blue".into()))));
        assert!(selects(
            all().fields("metadata.name=ada,metadata.namespace==a,status.phase!=Failed,spec.nodeName=")
        ));
        assert!(!selects(all().fields("status.phase!=Running")));
        assert!(!selects(all().fields("spec.nodeName=ada")));
        assert!(selects(all().fields("spec.a=1")));
        assert!(selects(all().fields("spec.hostNetwork=false,spec.hostNetwork!=true")));
        assert!(!selects(all().fields("spec.hostNetwork!=false")));
    }

    #[test]
    fn selectors_are_sent_as_they_were_given() {
        let selection = Selection::default().fields("a=b, c!=d").labels(Expression::Exists("team".into()));
        assert_eq!(selection.field_selector().unwrap(), "a=b,c!=d");
        assert_eq!(selection.label_selector().unwrap(), "team");
        assert_eq!(Selection::default().fields("what").mistakes, [r#"invalid field selector "what""#]);
    }

    #[test]
    fn a_transform_drops_what_is_not_read_and_nothing_that_is_needed() {
        let drops = Selection::default().transform(|pod| drop(pod["spec"].take()));
        let kept = drops.transformed(pod("ada", "Running"));
        assert_eq!((kept.field("spec"), kept.key.name()), (Some(Value::Null), "ada"));
        let poison = Selection::default().transform(|pod| pod["metadata"]["name"] = "bob".into());
        assert_eq!(poison.transformed(pod("ada", "Running")).key.name(), "ada");
        assert_ne!(drops, poison);
        assert_eq!(drops, drops.clone());
    }
}
