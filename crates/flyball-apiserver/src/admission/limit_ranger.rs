//! LimitRanger: new pods get the default resources of their namespace's LimitRanges; pods and claims that break one are
//! refused.
// plugin/pkg/admission/limitranger/admission.go

use crate::admission::chain::Plugin;
use crate::admission::{Attributes, Operation};
use crate::endpoints::Subresource;
use crate::kinds::core::{PERSISTENT_VOLUME_CLAIM, POD};
use crate::registry::object;
use crate::status::Result;
use flyball_schema::builtin::limit;
use futures::future::{BoxFuture, FutureExt};
use serde_json::Value;

/// The plugin.
pub(super) struct LimitRanger;

impl Plugin for LimitRanger {
    fn handles(&self, attributes: &Attributes<'_>) -> bool {
        let kind = &attributes.request.kind;
        let measured = match attributes.operation {
            Operation::Create => kind.is(&POD) || kind.is(&PERSISTENT_VOLUME_CLAIM),
            Operation::Update => kind.is(&PERSISTENT_VOLUME_CLAIM),
            Operation::Delete => false,
        };
        measured && attributes.subresource == Subresource::Whole && !attributes.old.is_some_and(object::is_deleting)
    }

    fn admit<'a>(&'a self, attributes: &'a mut Attributes<'_>) -> BoxFuture<'a, Result<()>> {
        async move {
            if attributes.request.kind.is(&POD) {
                for range in ranges(attributes).await? {
                    limit::fill_pod(&range, &mut attributes.object);
                }
            }
            Ok(())
        }
        .boxed()
    }

    fn validate<'a>(&'a self, attributes: &'a mut Attributes<'_>) -> BoxFuture<'a, Result<()>> {
        async move {
            let is_claim = attributes.request.kind.is(&PERSISTENT_VOLUME_CLAIM);
            for range in ranges(attributes).await? {
                let mut broken = limit::broken(&range, &attributes.object, is_claim);
                match broken.len() {
                    0 => {}
                    1 => return Err(attributes.forbidden(broken.remove(0))),
                    _ => return Err(attributes.forbidden(format!("[{}]", broken.join(", ")))),
                }
            }
            Ok(())
        }
        .boxed()
    }
}

async fn ranges(attributes: &Attributes<'_>) -> Result<Vec<Value>> {
    let Some(namespace) = attributes.namespace else {
        return Ok(Vec::new());
    };
    attributes.list(format!("core/limitranges/{namespace}/")).await
}
