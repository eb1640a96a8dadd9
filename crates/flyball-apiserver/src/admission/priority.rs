//! Priority: a new pod gets the priority and the preemption policy of its PriorityClass.
// plugin/pkg/admission/priority/admission.go

use crate::admission::chain::Plugin;
use crate::admission::{Attributes, Operation};
use crate::endpoints::Subresource;
use crate::kinds::core::POD;
use crate::registry::object;
use crate::status::Result;
use futures::future::{BoxFuture, FutureExt};

/// The plugin.
pub(super) struct Priority;

impl Plugin for Priority {
    fn handles(&self, attributes: &Attributes<'_>) -> bool {
        let is_new = attributes.operation == Operation::Create && attributes.subresource == Subresource::Whole;
        is_new && attributes.request.kind.is(&POD)
    }

    fn admit<'a>(&'a self, attributes: &'a mut Attributes<'_>) -> BoxFuture<'a, Result<()>> {
        async move {
            let class = attributes.object["spec"]["priorityClassName"].as_str().unwrap_or_default();
            if class.is_empty() {
                return Ok(());
            }
            let Some(entry) = attributes.get(format!("scheduling.k8s.io/priorityclasses/{class}")).await? else {
                return Err(attributes.forbidden(format!("no PriorityClass with name {class} was found")));
            };
            let mut class = object::decode(&entry.value);
            let spec = &mut attributes.object["spec"];
            spec["priority"] = class["value"].take();
            spec["preemptionPolicy"] = class["preemptionPolicy"].take();
            Ok(())
        }
        .boxed()
    }
}
