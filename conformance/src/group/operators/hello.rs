//! What `hello` promises: a ConfigMap beside every Greeting, whatever is done to it, and gone with it.

use serde_json::{Value, json};

use super::{Outcome, Trial, step};
use crate::report::Finding;
use crate::scenario::World;

const GREETINGS: &str = "/apis/example.dev/v1/namespaces/default/greetings";
const ADA: &str = "/apis/example.dev/v1/namespaces/default/greetings/ada";
const MAP: &str = "/api/v1/namespaces/default/configmaps/ada";

pub async fn run(trial: &Trial<'_>, findings: &mut Vec<Finding>) {
    let operator = match trial.start("hello") {
        Ok(operator) => operator,
        Err(message) => return findings.push(Finding::check("hello: starts", Err(message))),
    };
    let world = &trial.world;
    step(findings, "hello: serves its kind", &operator, served(world).await);
    step(findings, "hello: greets", &operator, greets(world).await);
    step(findings, "hello: greets somebody else", &operator, greets_another(world).await);
    step(findings, "hello: corrects drift", &operator, corrects_drift(world).await);
    step(findings, "hello: makes again what was deleted", &operator, makes_again(world).await);
    drop(operator);
    let changed = world.merge(ADA, &json!({"spec": {"who": "Barbara"}})).await;
    match changed.and_then(|_| trial.start("hello")) {
        Err(message) => findings.push(Finding::check("hello: starts again", Err(message))),
        Ok(operator) => {
            step(
                findings,
                "hello: catches up after being away",
                &operator,
                greeting(world, "hello Barbara").await,
            );
            step(findings, "hello: its children go with it", &operator, goes(world).await);
        }
    }
}

async fn served(world: &World) -> Outcome {
    world.until(GREETINGS, |seen| seen["kind"] == "GreetingList").await.map(drop)
}

async fn greets(world: &World) -> Outcome {
    let ada = json!({
        "apiVersion": "example.dev/v1",
        "kind": "Greeting",
        "metadata": {"name": "ada"},
        "spec": {"who": "Ada"},
    });
    let ada = world.create(GREETINGS, &ada).await?;
    greeting(world, "hello Ada").await?;
    let owned = |map: &Value| map["metadata"]["ownerReferences"][0]["uid"] == ada["metadata"]["uid"];
    world.until(MAP, owned).await.map(drop)
}

/// The map says it, and so does the status.
async fn greeting(world: &World, text: &str) -> Outcome {
    world.until(MAP, |map| map["data"]["greeting"] == text).await?;
    world.until(ADA, |ada| ada["status"]["greeted"] == text).await.map(drop)
}

async fn greets_another(world: &World) -> Outcome {
    world.merge(ADA, &json!({"spec": {"who": "Grace"}})).await?;
    greeting(world, "hello Grace").await
}

async fn corrects_drift(world: &World) -> Outcome {
    world.merge(MAP, &json!({"data": {"greeting": "tampered"}})).await?;
    greeting(world, "hello Grace").await
}

async fn makes_again(world: &World) -> Outcome {
    world.delete(MAP).await?;
    greeting(world, "hello Grace").await
}

async fn goes(world: &World) -> Outcome {
    world.delete(ADA).await?;
    world.until_gone(ADA).await?;
    world.until_gone(MAP).await
}
