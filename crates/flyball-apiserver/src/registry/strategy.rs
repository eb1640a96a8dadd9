//! BeforeCreate and BeforeUpdate: what all kinds share of defaulting, preparation and validation; what they do not
//! share is in their [`crate::kinds::spec::ResourceSpec`].

use crate::endpoints::Subresource;
use crate::kinds::spec::{Generation, KeptMetadata, Rules, StatusStrategy};
use crate::registry::object::{self, metadata, metadata_mut};
use crate::registry::{CrdVersion, Kind};
use crate::request::context::ResourceRequest;
use crate::request::options::causes;
use crate::status::{Result, Status};
use flyball_schema::builtin::typed;
use flyball_schema::metadata as meta_rules;
use flyball_schema::prune;
use flyball_schema::violation::{Reason, Violation};
use serde_json::{Map, Value};
use uuid::Uuid;

/// The letters of a generated suffix: no vowels, so that it is never a word.
const ALPHABET: &[u8; 27] = b"bcdfghjklmnpqrstvwxz2456789";
/// The most bytes of a `generateName` that are used.
const MAX_PREFIX_BYTES: usize = 58;

/// Removes the metadata of a new object that only the server may write.
// apiserver/pkg/registry/rest/meta.go, WipeObjectMetaSystemFields
pub(crate) fn wipe_system_fields(object: &mut Value) {
    let metadata = metadata_mut(object);
    for field in [
        "creationTimestamp",
        "uid",
        "deletionTimestamp",
        "deletionGracePeriodSeconds",
        "selfLink",
    ] {
        metadata.remove(field);
    }
}

/// Defaults absent fields, and those that are null in a custom resource.
pub(crate) fn default(kind: &Kind, object: &mut Value) {
    if let (Some(_), Some(node)) = (&kind.custom, kind.node()) {
        prune::prune_nulls(node, object);
    }
    default_merged(kind, object);
}

/// Defaults absent fields of an object that was merged: its nulls stay.
pub(crate) fn default_merged(kind: &Kind, object: &mut Value) {
    if let Some(node) = kind.node() {
        flyball_schema::default::default(node, object);
    }
    (kind.spec.default)(object);
    if let (None, Some(node)) = (&kind.custom, kind.node()) {
        typed::fill_times(node, object);
    }
}

/// Generates the name of an object that has a `generateName` only; returns whether it did.
pub(crate) fn generate_name(object: &mut Value) -> bool {
    let prefix = object::text(object, "generateName");
    if prefix.is_empty() || !object::name(object).is_empty() {
        return false;
    }
    let mut cut = prefix.len().min(MAX_PREFIX_BYTES);
    while !prefix.is_char_boundary(cut) {
        cut -= 1;
    }
    let name = format!("{}{}", &prefix[..cut], random_suffix());
    metadata_mut(object).insert("name".into(), name.into());
    true
}

/// The five letters that end a generated name.
// apiserver/pkg/storage/names/generate.go, simpleNameGenerator
pub(crate) fn random_suffix() -> String {
    let random = Uuid::new_v4();
    let letter = |byte: &u8| char::from(ALPHABET[usize::from(*byte) % ALPHABET.len()]);
    random.as_bytes()[..5].iter().map(letter).collect()
}

/// Prepares an object to be stored for the first time.
// apiserver/pkg/registry/rest/create.go, BeforeCreate
pub(crate) fn before_create(kind: &Kind, object: &mut Value, now: &str) {
    let metadata = metadata_mut(object);
    metadata.insert("uid".into(), Uuid::new_v4().to_string().into());
    metadata.insert("creationTimestamp".into(), now.into());
    if kind.spec.generation != Generation::Untracked {
        metadata.insert("generation".into(), 1.into());
    }
    if kind.has_status() {
        reset_status(kind, object, None);
    }
    (kind.spec.prepare)(object, None);
}

/// Prepares the new state of a stored object.
// apiserver/pkg/registry/rest/update.go, BeforeUpdate
pub(crate) fn before_update(kind: &Kind, subresource: Subresource, object: &mut Value, live: &Value) {
    keep_metadata(object, live, &["generation"]);
    match subresource {
        Subresource::Whole | Subresource::Scale if kind.has_status() => reset_status(kind, object, Some(live)),
        Subresource::Whole | Subresource::Scale => {}
        Subresource::Status => {
            if let Some(strategy) = &kind.spec.status {
                before_status_update(strategy, object, live);
            }
        }
        Subresource::Finalize => keep_all_but_finalizers(object, live),
        Subresource::Binding | Subresource::Eviction | Subresource::Token => {}
    }
    if matches!(subresource, Subresource::Whole | Subresource::Scale) {
        (kind.spec.prepare)(object, Some(live));
        if is_new_generation(kind, object, live) {
            let generation = object::generation(live) + 1;
            metadata_mut(object).insert("generation".into(), generation.into());
        }
    }
    if object::text(object, "uid").is_empty() {
        keep_metadata(object, live, &["uid"]);
    }
    keep_metadata(object, live, &["creationTimestamp"]);
    if object::is_deleting(live) {
        keep_metadata(object, live, &["deletionTimestamp"]);
    }
    if metadata(live).contains_key("deletionGracePeriodSeconds") {
        let given = metadata(object).get("deletionGracePeriodSeconds").cloned();
        if given.is_none_or(|seconds| seconds.is_null()) {
            keep_metadata(object, live, &["deletionGracePeriodSeconds"]);
        }
    }
}

fn keep_metadata(object: &mut Value, live: &Value, fields: &[&str]) {
    for field in fields {
        match metadata(live).get(*field) {
            Some(value) => metadata_mut(object).insert((*field).to_owned(), value.clone()),
            None => metadata_mut(object).remove(*field),
        };
    }
}

fn reset_status(kind: &Kind, object: &mut Value, live: Option<&Value>) {
    let status = live.map_or(Value::Null, |live| live["status"].clone());
    let Some(members) = object.as_object_mut() else { return };
    match status {
        Value::Null => members.remove("status"),
        status => members.insert("status".into(), status),
    };
    // Go writes an empty status where the type has one that is no pointer.
    if live.is_none() && kind.custom.is_none() {
        default(kind, object);
    }
}

fn before_status_update(strategy: &StatusStrategy, object: &mut Value, live: &Value) {
    let Some(members) = object.as_object_mut() else { return };
    let stored = live.as_object().expect("a stored object is an object");
    restore(members, stored, &["metadata", "status"]);
    if members.get("status").is_some_and(Value::is_null) {
        members.remove("status");
    }
    let (metadata, old_metadata) = (metadata_mut(object), stored["metadata"].as_object());
    let old_metadata = old_metadata.expect("a stored object has metadata");
    match strategy.keeps {
        KeptMetadata::All => restore(metadata, old_metadata, &["managedFields", "resourceVersion"]),
        KeptMetadata::Fields(fields) => fields.iter().for_each(|field| keep(metadata, old_metadata, field)),
    }
    (strategy.prepare)(object, live);
}

/// Gives the status that is sent for a custom resource the stored spec before the field manager compares the two.
pub(crate) fn keep_spec(kind: &Kind, object: &mut Value, live: &Value) {
    if let (Some(_), Some(new), Some(old)) = (&kind.custom, object.as_object_mut(), live.as_object()) {
        keep(new, old, "spec");
    }
}

/// Gives `new` the members of `old`, except for some. Equal members, which most are, are not copied.
fn restore(new: &mut Map<String, Value>, old: &Map<String, Value>, but: &[&str]) {
    new.retain(|name, _| but.contains(&name.as_str()) || old.contains_key(name));
    for (name, value) in old.iter().filter(|(name, _)| !but.contains(&name.as_str())) {
        if new.get(name) != Some(value) {
            new.insert(name.clone(), value.clone());
        }
    }
}

fn keep_all_but_finalizers(object: &mut Value, live: &Value) {
    let finalizers = object["spec"]["finalizers"].take();
    let mut spec = live["spec"].as_object().cloned().unwrap_or_default();
    match finalizers {
        Value::Array(finalizers) if !finalizers.is_empty() => spec.insert("finalizers".into(), finalizers.into()),
        _ => spec.remove("finalizers"),
    };
    object["spec"] = spec.into();
    object["status"] = live["status"].clone();
}

fn keep(new: &mut Map<String, Value>, old: &Map<String, Value>, field: &str) {
    match old.get(field) {
        Some(value) => new.insert(field.to_owned(), value.clone()),
        None => new.remove(field),
    };
}

fn is_new_generation(kind: &Kind, object: &Value, live: &Value) -> bool {
    let counted = |object: &Value| {
        let mut members = object.as_object().cloned().unwrap_or_default();
        members.remove("metadata");
        if kind.has_status() {
            members.remove("status");
        }
        members
    };
    match kind.spec.generation {
        Generation::Untracked | Generation::Once => false,
        Generation::Spec => counted(object) != counted(live),
        Generation::SpecAndAnnotations => {
            counted(object) != counted(live) || metadata(object).get("annotations") != metadata(live).get("annotations")
        }
    }
}

/// Refuses an object that is invalid.
pub(crate) fn validate(
    request: &ResourceRequest,
    subresource: Subresource,
    object: &Value,
    live: Option<&Value>,
) -> Result<()> {
    let kind = &request.kind;
    let mut violations = match live {
        Some(live) => update_violations(kind, subresource, object, live),
        None => create_violations(kind, object),
    };
    check_rules(request, object, live, &mut violations);
    if violations.is_empty() {
        return Ok(());
    }
    let group = kind.spec.stored_as.map_or(&*kind.resource.group, |(group, _)| group);
    Err(Status::invalid(group, &kind.resource.kind, object::name(object), causes(violations)))
}

/// Runs the validation rules of a custom kind, unless the object does not fit the types that they rely on.
// apiextensions-apiserver/pkg/registry/customresource/strategy.go, Validate and hasBlockingErr
fn check_rules(request: &ResourceRequest, object: &Value, live: Option<&Value>, violations: &mut Vec<Violation>) {
    let Some(validator) = request.kind.validator() else {
        return;
    };
    let blocks = |violation: &Violation| {
        let reasons = [
            Reason::NotSupported,
            Reason::Required,
            Reason::TooLong,
            Reason::TooMany,
            Reason::TypeInvalid,
        ];
        reasons.contains(&violation.reason)
    };
    if violations.iter().any(blocks) {
        let why = "some validation rules were not checked because the object was invalid; correct the existing errors to \
                   complete validation";
        violations.push(Violation::invalid("<nil>", Value::Null, why));
        return;
    }
    let found = validator.validate(object, live);
    violations.extend(found.violations);
    found.warnings.into_iter().for_each(|warning| request.warn(warning));
}

fn create_violations(kind: &Kind, object: &Value) -> Vec<Violation> {
    let (namespaced, names) = (kind.resource.namespaced, kind.spec.names);
    let mut violations = meta_rules::validate(&object["metadata"], namespaced, names, "metadata");
    match (&kind.custom, kind.node()) {
        (Some(custom), Some(node)) => {
            violations.extend(scale_violations(custom, "spec", object));
            violations.extend(flyball_schema::validate::validate(node, object));
        }
        _ => {
            violations.extend(finalizer_violations(object));
            violations.extend((kind.spec.validate)(object, None));
            violations.extend(unlisted(kind, object, &violations));
        }
    }
    violations
}

/// What is wrong with a new state. Metadata is looked at twice, as a real server does, and shown twice.
fn update_violations(kind: &Kind, subresource: Subresource, object: &Value, live: &Value) -> Vec<Violation> {
    let (namespaced, names) = (kind.resource.namespaced, kind.spec.names);
    let (new, old) = (&object["metadata"], &live["metadata"]);
    let mut violations = meta_rules::validate(new, namespaced, names, "metadata");
    let changes = meta_rules::validate_update(new, old, "metadata");
    violations.extend(changes.clone());
    violations.extend(changes);
    match (&kind.custom, kind.node()) {
        (Some(custom), Some(node)) if subresource == Subresource::Status => {
            violations.extend(scale_violations(custom, "status", object));
            if let Some(node) = node.field("status") {
                let (new, old) = (&object["status"], Some(&live["status"]));
                violations.extend(flyball_schema::validate::validate_part("status", node, new, old));
            }
        }
        (Some(custom), Some(node)) => {
            violations.extend(scale_violations(custom, "spec", object));
            violations.extend(flyball_schema::validate::validate_update(node, object, live));
        }
        _ if subresource == Subresource::Status => {
            let found = kind.spec.status.iter().flat_map(|strategy| (strategy.validate)(object, live));
            violations.extend(found);
        }
        _ if subresource == Subresource::Binding => {}
        _ => {
            violations.extend((kind.spec.validate)(object, Some(live)));
            violations.extend(unlisted(kind, object, &violations));
        }
    }
    violations
}

/// Values that their types do not list, unless the kind itself had something to say of them.
fn unlisted(kind: &Kind, object: &Value, known: &[Violation]) -> Vec<Violation> {
    let Some(node) = kind.node() else { return Vec::new() };
    if kind.spec.rules == Rules::Complete {
        return Vec::new();
    }
    let mut found = typed::validate(node, object, "");
    found.retain(|violation| !known.iter().any(|known| known.path == violation.path));
    found
}

/// Built-in kinds take only finalizers that say whose they are.
// pkg/apis/core/validation/validation.go, ValidateFinalizerName
fn finalizer_violations(object: &Value) -> Vec<Violation> {
    const STANDARD: [&str; 3] = ["kubernetes", "orphan", "foregroundDeletion"];
    let why = "name is neither a standard finalizer name nor is it fully qualified";
    let finalizers = object::finalizers(object).into_iter().enumerate();
    let unknown = finalizers.filter(|(_, name)| !name.contains('/') && !STANDARD.contains(name));
    unknown
        .map(|(index, name)| Violation::invalid(format!("metadata.finalizers[{index}]"), name, why))
        .collect()
}

/// What `scale` shows has to be numbers.
// apiextensions-apiserver/pkg/registry/customresource/validator.go, ValidateScaleSpec and ValidateScaleStatus
fn scale_violations(custom: &CrdVersion, subresource: &str, object: &Value) -> Option<Violation> {
    let scale = custom.scale.as_ref()?;
    let path = if subresource == "spec" {
        &scale.spec_replicas_path
    } else {
        &scale.status_replicas_path
    };
    let value = path.split('.').skip(1).fold(object, |value, name| &value[name]);
    let accessor = |shown: &str, found: &str| {
        let why = format!("{path} accessor error: {shown} is of the type {found}, expected int64");
        Some(Violation::invalid(path, 0, &why))
    };
    match value {
        Value::Null => None,
        Value::Number(number) => match number.as_i64() {
            Some(replicas) if replicas < 0 => {
                Some(Violation::invalid(path, replicas, "should be a non-negative integer"))
            }
            Some(_) => None,
            None => accessor(&number.to_string(), "float64"),
        },
        Value::String(text) => accessor(text, "string"),
        Value::Bool(flag) => accessor(&flag.to_string(), "bool"),
        Value::Array(_) => accessor("[]", "[]interface {}"),
        Value::Object(_) => accessor("map[]", "map[string]interface {}"),
    }
}
