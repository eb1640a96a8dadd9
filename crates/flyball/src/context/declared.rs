//! The kinds that a controller declares to write. The declaration is what its Role is made of, so an undeclared write, which
//! would be forbidden in production, is refused in tests too.

use crate::cache::kind::Kind;
use crate::declare::controller::ControllerSpec;
use std::collections::HashSet;

/// The kinds that a controller may write, by group and plural.
#[derive(Debug)]
pub(crate) struct DeclaredWrites {
    owned: HashSet<(String, String)>,
    patched: HashSet<(String, String)>,
}

/// A kind is written that the controller does not declare.
#[derive(Debug, thiserror::Error)]
#[error("{verb} {kind}: the controller does not own {kind}: add `.owns::<{kind}>()` to it")]
pub(crate) struct UndeclaredError {
    verb: &'static str,
    kind: String,
}

impl DeclaredWrites {
    pub(crate) fn of(controller: &ControllerSpec) -> DeclaredWrites {
        let patches = |verbs: &[String]| verbs.iter().any(|verb| verb == "patch" || verb == "*");
        let needed = controller.needed.iter().filter(|(_, verbs)| patches(verbs));
        DeclaredWrites {
            owned: controller.owned.iter().map(Kind::group_resource).collect(),
            patched: needed.map(|(kind, _)| kind.group_resource()).collect(),
        }
    }

    /// Refuses an apply of a kind that the controller neither owns nor needs to patch.
    pub(crate) fn check_apply(&self, kind: &Kind) -> Result<(), UndeclaredError> {
        if self.patched.contains(&kind.group_resource()) {
            return Ok(());
        }
        self.check_owned("apply", kind)
    }

    /// Refuses a write of a kind that the controller does not own.
    pub(crate) fn check_owned(&self, verb: &'static str, kind: &Kind) -> Result<(), UndeclaredError> {
        match self.owned.contains(&kind.group_resource()) {
            true => Ok(()),
            false => Err(UndeclaredError { verb, kind: kind.name().into() }),
        }
    }
}
