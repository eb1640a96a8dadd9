//! The preconditions of a delete.

use crate::kinds::spec::Delay;
use crate::registry::{Kind, object};
use crate::request::options::DeleteOptions;
use crate::status::{Result, Status};
use serde_json::Value;

/// Refuses to delete an object that does not meet the preconditions.
// apiserver/pkg/registry/rest/delete.go, BeforeDelete; the storages of namespaces and definitions check by themselves.
pub(crate) fn check(kind: &Kind, live: &Value, options: &DeleteOptions) -> Result<()> {
    let Some(preconditions) = &options.preconditions else {
        return Ok(());
    };
    let by_storage = matches!(kind.spec.deletion.delay, Delay::Namespace | Delay::Definition);
    let wanted = [
        ("UID", &preconditions.uid, "uid", "deleted and then recreated"),
        ("ResourceVersion", &preconditions.resource_version, "resourceVersion", "modified"),
    ];
    for (what, wanted, field, else_) in wanted {
        let Some(wanted) = wanted else { continue };
        let found = object::text(live, field);
        if wanted == found {
            continue;
        }
        let name = object::name(live);
        if by_storage {
            let why = format!("Precondition failed: {what} in precondition: {wanted}, {what} in object meta: {found}");
            return Err(Status::conflict(&kind.resource, name, why));
        }
        let why = format!(
            "the {what} in the precondition ({wanted}) does not match the {what} in record ({found}). \
             The object might have been {else_}"
        );
        return Err(Status::precondition_failed(&kind.resource, name, why));
    }
    Ok(())
}
