//! The plugins that add to pods and nodes what every cluster wants of them: DefaultTolerationSeconds,
//! TaintNodesByCondition and PodTopologyLabels.
// plugin/pkg/admission/{defaulttolerationseconds,nodetaint,podtopologylabels}/admission.go

use crate::admission::chain::Plugin;
use crate::admission::{Attributes, Operation};
use crate::endpoints::Subresource;
use crate::kinds::core::{NODE, POD};
use crate::registry::object;
use crate::status::Result;
use flyball_schema::builtin;
use futures::future::{BoxFuture, FutureExt, ready};
use serde_json::Value;

/// The labels of a node that its pods get.
const TOPOLOGY: [&str; 2] = ["topology.kubernetes.io/zone", "topology.kubernetes.io/region"];

/// Pods tolerate nodes that are not ready or not reachable for five minutes, unless they say otherwise.
pub(super) struct DefaultTolerationSeconds;

impl Plugin for DefaultTolerationSeconds {
    fn handles(&self, attributes: &Attributes<'_>) -> bool {
        attributes.writes(&POD) && attributes.operation != Operation::Delete
    }

    fn admit<'a>(&'a self, attributes: &'a mut Attributes<'_>) -> BoxFuture<'a, Result<()>> {
        builtin::pod::tolerate(&mut attributes.object);
        ready(Ok(())).boxed()
    }
}

/// A new node has the taint of nodes that are not ready.
pub(super) struct TaintNodesByCondition;

impl Plugin for TaintNodesByCondition {
    fn handles(&self, attributes: &Attributes<'_>) -> bool {
        attributes.creates(&NODE)
    }

    fn admit<'a>(&'a self, attributes: &'a mut Attributes<'_>) -> BoxFuture<'a, Result<()>> {
        builtin::node::taint(&mut attributes.object);
        ready(Ok(())).boxed()
    }
}

/// A pod gets the zone and the region of its node as labels: when it is bound, or created on a node.
pub(super) struct PodTopologyLabels;

impl Plugin for PodTopologyLabels {
    fn handles(&self, attributes: &Attributes<'_>) -> bool {
        let is_bound = matches!(attributes.subresource, Subresource::Whole | Subresource::Binding);
        attributes.operation == Operation::Create && is_bound && attributes.request.kind.is(&POD)
    }

    fn admit<'a>(&'a self, attributes: &'a mut Attributes<'_>) -> BoxFuture<'a, Result<()>> {
        async move {
            let object = &attributes.object;
            let node = match attributes.subresource {
                Subresource::Binding if object["target"]["kind"] == "Node" => &object["target"]["name"],
                Subresource::Binding => return Ok(()),
                _ => &object["spec"]["nodeName"],
            };
            let Some(node) = node.as_str().filter(|node| !node.is_empty()) else {
                return Ok(());
            };
            let Some(entry) = attributes.get(format!("core/nodes/{node}")).await? else {
                return Ok(());
            };
            let node = object::decode(&entry.value);
            for label in TOPOLOGY {
                if let Some(value) = node["metadata"]["labels"].get(label) {
                    set_label(&mut attributes.object, label, value);
                }
            }
            Ok(())
        }
        .boxed()
    }
}

fn set_label(object: &mut Value, label: &str, value: &Value) {
    let labels = &mut object["metadata"]["labels"];
    if !labels.is_object() {
        *labels = serde_json::json!({});
    }
    labels[label] = value.clone();
}
