//! What a controller declares to do with each kind. The declaration is what its Role is made of, so an undeclared write, which
//! would be forbidden in production, is refused in tests too.

use crate::cache::kind::Kind;
use crate::declare::controller::ControllerSpec;
use kube::api::{ApiResource, DynamicObject};

/// The kinds that a controller declares, and the verbs that it may use on them.
#[derive(Debug)]
pub(crate) struct Declared {
    owned: Vec<Kind>,
    needed: Vec<(Kind, Vec<String>)>,
    /// Those that are known at run time only.
    dynamic: Vec<Kind>,
}

/// A kind is written that the controller does not declare.
#[derive(Debug, thiserror::Error)]
#[error("{verb} {kind}: the controller does not own {kind}: add `{declaration}` to it")]
pub(crate) struct UndeclaredError {
    verb: &'static str,
    kind: String,
    declaration: String,
}

impl Declared {
    pub(crate) fn of(controller: &ControllerSpec) -> Declared {
        let kinds = controller.kinds().chain(controller.needed.iter().map(|(kind, _)| kind));
        Declared {
            owned: controller.owned.clone(),
            needed: controller.needed.clone(),
            dynamic: kinds.filter(|kind| kind.dynamic).cloned().collect(),
        }
    }

    /// A kind that is known at run time only, with what the controller says of it.
    pub(crate) fn dynamic(&self, resource: &ApiResource) -> Kind {
        let kind = Kind::new::<DynamicObject>(resource.clone());
        match self.dynamic.iter().find(|declared| declared.resource == *resource) {
            Some(declared) => Kind { scope: declared.scope, ..kind },
            None => kind,
        }
    }

    /// The kinds that the controller owns, in the order of their declaration.
    pub(crate) fn owned(&self) -> &[Kind] {
        &self.owned
    }

    pub(crate) fn owns(&self, kind: &Kind) -> bool {
        self.owned.iter().any(|owned| owned.is_same_resource(kind))
    }

    pub(crate) fn is_optional(&self, kind: &Kind) -> bool {
        self.owned.iter().any(|owned| owned.optional && owned.is_same_resource(kind))
    }

    /// Refuses an apply of a kind that the controller neither owns nor needs to patch.
    pub(crate) fn check_apply(&self, kind: &Kind) -> Result<(), UndeclaredError> {
        match self.needs("patch", kind) {
            true => Ok(()),
            false => self.check_owned("apply", kind),
        }
    }

    /// Refuses a write of a kind that the controller does not own.
    pub(crate) fn check_owned(&self, verb: &'static str, kind: &Kind) -> Result<(), UndeclaredError> {
        match self.owns(kind) {
            true => Ok(()),
            false => Err(UndeclaredError {
                verb,
                kind: kind.name().into(),
                declaration: kind.declaration("owns", ""),
            }),
        }
    }

    /// Refuses a verb on a kind that the controller neither owns nor needs it on.
    pub(crate) fn check(&self, verb: &'static str, kind: &Kind) -> Result<(), UndeclaredError> {
        match self.owns(kind) || self.needs(verb, kind) {
            true => Ok(()),
            false => Err(UndeclaredError {
                verb,
                kind: kind.name().into(),
                declaration: kind.declaration("needs", &format!("[{verb:?}]")),
            }),
        }
    }

    fn needs(&self, verb: &str, kind: &Kind) -> bool {
        let mut needed = self.needed.iter().filter(|(needed, _)| needed.is_same_resource(kind));
        needed.any(|(_, verbs)| verbs.iter().any(|needed| needed == verb || needed == "*"))
    }
}
