//! Keeps one ConfigMap beside every `Greeting`.

use flyball::{Action, Context, Controller, Operator, Result};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::{CustomResource, CustomResourceExt};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// Asks for somebody to be greeted.
#[derive(CustomResource, Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[kube(group = "example.dev", version = "v1", kind = "Greeting")]
#[kube(namespaced, status = "GreetingStatus")]
struct GreetingSpec {
    who: String,
}

#[derive(Clone, Debug, Default, Deserialize, Serialize, JsonSchema)]
struct GreetingStatus {
    greeted: String,
}

async fn reconcile(greeting: Arc<Greeting>, ctx: Context) -> Result {
    let text = format!("hello {}", greeting.spec.who);
    let data = Some([("greeting".into(), text.clone())].into());
    ctx.apply(ConfigMap { data, ..Default::default() }).await?;
    ctx.set_status(GreetingStatus { greeted: text }).await?;
    Ok(Action::await_change())
}

fn operator() -> Operator {
    Operator::new("greeter")
        .crd(Greeting::crd())
        .controller(Controller::new(reconcile).owns::<ConfigMap>())
}

#[tokio::main]
async fn main() -> Result<()> {
    flyball::run(operator()).await
}

#[cfg(test)]
mod tests;
