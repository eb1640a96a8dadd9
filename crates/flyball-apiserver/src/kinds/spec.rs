//! What the server knows of a kind beyond its type: one [`ResourceSpec`] per kind. No field has a default, so that a new
//! kind, or a new field, is asked about everywhere.
// pkg/registry/*/strategy.go

use crate::request::options::DeleteOptions;
use flyball_schema::names::NameRule;
use flyball_schema::violation::Violation;
use serde_json::Value;

/// A kind beyond its type.
pub struct ResourceSpec {
    /// The API group; empty for the core group.
    pub group: &'static str,
    /// The plural name.
    pub plural: &'static str,
    /// The group and the name under which objects are stored and named in errors, where they are not the kind's own.
    pub stored_as: Option<(&'static str, &'static str)>,
    /// The names that objects may have.
    pub names: NameRule,
    /// What a POST does.
    pub create: Create,
    /// Whether a PUT or an apply of an absent object creates it (AllowCreateOnUpdate).
    pub create_on_update: bool,
    /// Whether a PUT may leave out the resource version (AllowUnconditionalUpdate).
    pub unconditional_update: bool,
    /// When `metadata.generation` is incremented.
    pub generation: Generation,
    /// Fills in absent fields.
    pub default: fn(&mut Value),
    /// PrepareForCreate and PrepareForUpdate: resets fields that users may not write and fills derived ones. Gets the
    /// stored object on an update.
    pub prepare: fn(&mut Value, Option<&Value>),
    /// Validate and ValidateUpdate: violations beyond the type. Gets the stored object on an update.
    pub validate: fn(&Value, Option<&Value>) -> Vec<Violation>,
    /// Whether `validate` covers what the type says, too.
    pub rules: Rules,
    /// WarningsOnCreate and WarningsOnUpdate.
    pub warnings: fn(&Value) -> Vec<String>,
    /// Fields that a write of the whole object never changes (GetResetFields).
    pub resets: &'static [&'static str],
    /// The strategy of `status`; none if the kind has no such subresource.
    pub status: Option<StatusStrategy>,
    /// The handler of each subresource that discovery lists.
    pub subresources: &'static [(&'static str, SubresourceEndpoint)],
    /// What the server allocates for objects.
    pub allocation: Option<Allocation>,
    /// How objects are deleted.
    pub deletion: DeletionStrategy,
    /// The conversion of a version that is not the storage version.
    pub conversion: Option<Conversion>,
    /// The fields that selectors may name besides `metadata.name` and `metadata.namespace`.
    pub fields: &'static [SelectableField],
    /// The Warning header of every request to a deprecated kind.
    pub deprecation: Option<&'static str>,
    /// Whether the server acts on objects as a real one does.
    pub enforcement: Enforcement,
}

/// What a POST to a collection does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Create {
    /// Stores the object.
    Store,
    /// Answers a review; nothing is stored.
    Review,
    /// Binds the pod that a Binding names.
    Binding,
}

/// When `metadata.generation` is incremented.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Generation {
    /// Never: objects have none.
    Untracked,
    /// Never: it stays 1.
    Once,
    /// With every change outside of metadata and status.
    Spec,
    /// The same, and with changes of annotations.
    SpecAndAnnotations,
}

/// Whether a kind's validation covers what its type says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rules {
    /// It does, in upstream's order.
    Complete,
    /// Values that the type does not list are found by walking the type.
    Partial,
}

/// How a write of `status` is prepared and validated.
pub struct StatusStrategy {
    /// What it keeps of the stored object besides all members other than `metadata` and `status`.
    pub keeps: KeptMetadata,
    /// Fields that it never changes (GetResetFields).
    pub resets: &'static [&'static str],
    /// PrepareForUpdate beyond that.
    pub prepare: fn(&mut Value, &Value),
    /// ValidateUpdate.
    pub validate: fn(&Value, &Value) -> Vec<Violation>,
}

/// The metadata that a write of `status` keeps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeptMetadata {
    /// These fields.
    Fields(&'static [&'static str]),
    /// All but `managedFields` and `resourceVersion`.
    All,
}

/// The handler of a subresource.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SubresourceEndpoint {
    /// `status`.
    Status,
    /// `finalize` of a Namespace.
    Finalize,
    /// `scale`; says how `spec.selector` is written.
    Scale(Selector),
    /// `binding` of a Pod.
    Binding,
    /// `eviction` of a Pod.
    Eviction,
    /// `token` of a ServiceAccount.
    Token,
    /// Listed by discovery, refused by name.
    Unsupported,
}

/// How `spec.selector` of a scalable kind is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Selector {
    /// As labels that must be equal.
    Labels,
    /// As a LabelSelector.
    LabelSelector,
    /// Elsewhere: the definition names its path.
    Path,
}

/// What the server allocates for objects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Allocation {
    /// Cluster IPs and node ports.
    Service,
    /// The key that new quotas of a namespace write, which goes with the namespace.
    Namespace,
}

/// How objects are deleted.
pub struct DeletionStrategy {
    /// Whether a DELETE answers with the object instead of a Status (ReturnDeletedObject).
    pub returns_object: bool,
    /// What becomes of dependents when a DELETE does not say.
    pub dependents: Dependents,
    /// What delays the removal besides finalizers.
    pub delay: Delay,
    /// The warning of a DELETE without a propagation policy.
    pub warning: Option<&'static str>,
}

/// What becomes of dependents when a DELETE does not say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dependents {
    /// The garbage collector deletes them.
    Deleted,
    /// They stay, without their owner.
    Orphaned,
    /// The kind never has any.
    Unsupported,
}

/// What delays the removal of a deleted object besides finalizers.
#[derive(Clone, Copy)]
pub enum Delay {
    /// Nothing.
    None,
    /// A grace period, in seconds (CheckGracefulDelete).
    GracePeriod(fn(&Value, &DeleteOptions) -> i64),
    /// The finalizers in `spec` of a Namespace, whose phase becomes `Terminating`.
    Namespace,
    /// The objects of a CustomResourceDefinition, which gets a condition `Terminating`.
    Definition,
}

/// The conversion between a version and the storage version.
pub struct Conversion {
    /// The version that is not the storage version.
    pub version: &'static str,
    /// From the storage version.
    pub from_storage: fn(&mut Value),
    /// To the storage version.
    pub to_storage: fn(&mut Value),
}

/// A field that selectors may name.
pub struct SelectableField {
    /// Its name in a selector.
    pub name: &'static str,
    /// Where its value is in an object of the requested version; the first one that is not empty counts.
    pub paths: &'static [&'static str],
    /// The text of an absent value: the zero value of its type.
    pub zero: &'static str,
}

impl SelectableField {
    /// A text, absent as empty.
    pub const fn text(name: &'static str, paths: &'static [&'static str]) -> SelectableField {
        SelectableField { name, paths, zero: "" }
    }

    /// A boolean, absent as false.
    pub const fn boolean(name: &'static str, paths: &'static [&'static str]) -> SelectableField {
        SelectableField { name, paths, zero: "false" }
    }

    /// A number, absent as zero.
    pub const fn number(name: &'static str, paths: &'static [&'static str]) -> SelectableField {
        SelectableField { name, paths, zero: "0" }
    }
}

/// Whether the server acts on objects as a real one does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Enforcement {
    /// It does, or a controller does.
    Enforced,
    /// Objects are stored and nothing more; a Warning header says so.
    StoredOnly,
}

/// Leaves an object as it is.
pub(super) fn no_default(_object: &mut Value) {}

/// Prepares nothing.
pub(super) fn no_preparation(_object: &mut Value, _live: Option<&Value>) {}

/// Finds no violation.
pub(super) fn no_rules(_object: &Value, _live: Option<&Value>) -> Vec<Violation> {
    Vec::new()
}

/// Prepares nothing of a status.
pub(super) fn no_status_preparation(_object: &mut Value, _live: &Value) {}

/// Finds no violation in a status.
pub(super) fn no_status_rules(_object: &Value, _live: &Value) -> Vec<Violation> {
    Vec::new()
}

/// Warns of nothing.
pub(super) fn no_warnings(_object: &Value) -> Vec<String> {
    Vec::new()
}
