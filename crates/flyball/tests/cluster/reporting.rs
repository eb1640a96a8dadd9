//! How `set_status` writes the status of a custom kind: by one server-side apply that leaves the rest of the object alone.

use crate::world::{World, pass};
use flyball::{Action, Context, Controller, Operator, Result};
use kube::{CustomResource, CustomResourceExt};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;
use std::{sync::Arc, time::Duration};

const APPLY: &str = "PATCH /apis/example.dev/v1/namespaces/default/bells/ada/status?&force=true&fieldManager=ringer";

#[derive(CustomResource, Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[kube(
    group = "example.dev",
    version = "v1",
    kind = "Bell",
    namespaced,
    status = "BellStatus"
)]
struct BellSpec {
    times: u32,
}

#[derive(Clone, Debug, Default, Deserialize, Serialize, JsonSchema)]
struct BellStatus {
    rung: Option<u32>,
}

fn ringer() -> Operator {
    async fn ring(bell: Arc<Bell>, ctx: Context) -> Result {
        ctx.set_status(json!({ "rung": bell.spec.times })).await?;
        Ok(Action::await_change())
    }
    Operator::new("ringer").crd(Bell::crd()).controller(Controller::new(ring))
}

fn bell() -> Bell {
    let mut bell = Bell::new("ada", BellSpec { times: 1 });
    bell.metadata.labels = Some([("of".into(), "brass".into())].into());
    bell.metadata.annotations = Some([("cast".into(), "1864".into())].into());
    bell
}

/// Rings once more, and says what that took.
async fn ring_again(world: &World) -> (Vec<String>, Bell) {
    world.writes();
    world.merge::<Bell>("ada", json!({ "spec": { "times": 2 } })).await;
    let rung = |bell: &Bell| bell.status.as_ref().is_some_and(|status| status.rung == Some(2));
    let bell = world.until("ada", rung).await;
    pass(Duration::from_secs(1)).await;
    (world.writes(), bell)
}

#[tokio::test(start_paused = true)]
async fn a_status_is_applied_and_the_rest_of_the_object_stays() {
    let world = World::start().await;
    let _running = world.run(&ringer()).await;
    world.create(bell()).await;
    pass(Duration::from_secs(1)).await;

    let (writes, rung) = ring_again(&world).await;
    assert_eq!(writes, [APPLY]);
    assert_eq!(rung.spec.times, 2);
    assert_eq!(
        (rung.metadata.labels, rung.metadata.annotations),
        (bell().metadata.labels, bell().metadata.annotations)
    );
    let managed = rung.metadata.managed_fields.unwrap();
    let of_spec = managed.iter().filter(|entry| entry.subresource.is_none());
    assert!(of_spec.clone().any(|entry| entry.manager.as_deref() != Some("ringer")), "{managed:?}");
    assert!(of_spec.clone().all(|entry| entry.manager.as_deref() != Some("ringer")), "{managed:?}");
    for field in [
        "/f:metadata/f:labels/f:of",
        "/f:metadata/f:annotations/f:cast",
        "/f:spec/f:times",
    ] {
        let mut owned = of_spec.clone().filter_map(|entry| entry.fields_v1.as_ref()?.0.pointer(field));
        assert!(owned.next().is_some(), "nobody manages {field} any more: {managed:?}");
    }
}
