//! What `application` promises: a Deployment, a Service and a ConfigMap for every Application, and a true status.

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::{Outcome, Trial, step};
use crate::report::Finding;
use crate::scenario::World;

const APPLICATIONS: &str = "/apis/cloudnative.elide.dev/v1/namespaces/default/applications";
const APPLICATION: &str = "/apis/cloudnative.elide.dev/v1/namespaces/default/applications/web";
const DEPLOYMENT: &str = "/apis/apps/v1/namespaces/default/deployments/web";
const REPLICA_SETS: &str = "/apis/apps/v1/namespaces/default/replicasets";
const SERVICE: &str = "/api/v1/namespaces/default/services/web";
const MAP: &str = "/api/v1/namespaces/default/configmaps/web";
const PODS: &str = "/api/v1/namespaces/default/pods";

pub async fn run(trial: &Trial<'_>, findings: &mut Vec<Finding>) {
    let operator = match trial.start("application") {
        Ok(operator) => operator,
        Err(message) => return findings.push(Finding::check("application: starts", Err(message))),
    };
    let world = &trial.world;
    let kubelet = tokio::spawn(set_pods_ready(world.clone()));
    step(findings, "application: serves its kind", &operator, served(world).await);
    step(findings, "application: refuses 101 replicas", &operator, refuses(world).await);
    step(findings, "application: becomes Running", &operator, runs(world).await);
    step(findings, "application: scales", &operator, scales(world).await);
    step(findings, "application: a changed config rolls the pods", &operator, rolls(world).await);
    step(findings, "application: corrects drift", &operator, corrects_drift(world).await);
    step(
        findings,
        "application: creates and deletes through its HTTP API",
        &operator,
        http_api(trial.port, world).await,
    );
    step(findings, "application: changes its strategy", &operator, recreates(world).await);
    step(findings, "application: its children go with it", &operator, goes(world).await);
    kubelet.abort();
}

fn application(replicas: i64) -> Value {
    json!({
        "apiVersion": "cloudnative.elide.dev/v1",
        "kind": "Application",
        "metadata": {"name": "web"},
        "spec": {"replicas": replicas, "image": "nginx:1", "config": {"LOG_LEVEL": "info"}},
    })
}

async fn served(world: &World) -> Outcome {
    world.until(APPLICATIONS, |seen| seen["kind"] == "ApplicationList").await.map(drop)
}

async fn refuses(world: &World) -> Outcome {
    match world.refusal(APPLICATIONS, &application(101)).await? {
        422 => Ok(()),
        code => Err(format!("expected 422, refused with {code}")),
    }
}

async fn runs(world: &World) -> Outcome {
    world.create(APPLICATIONS, &application(2)).await?;
    world.until(MAP, |map| map["data"]["LOG_LEVEL"] == "info").await?;
    world.until(SERVICE, |service| service["spec"]["ports"][0]["port"] == 80).await?;
    running(world, 2).await.map(drop)
}

/// Every replica is ready, of the newest generation, and the conditions say so.
async fn running(world: &World, replicas: i64) -> Result<Value, String> {
    let condition = |seen: &Value, name: &str| {
        let conditions = seen["status"]["conditions"].as_array().cloned().unwrap_or_default();
        conditions
            .iter()
            .any(|condition| condition["type"] == name && condition["status"] == "True")
    };
    let running = |seen: &Value| {
        let status = &seen["status"];
        status["phase"] == "Running"
            && status["replicas"] == replicas
            && status["readyReplicas"] == replicas
            && status["observedGeneration"] == seen["metadata"]["generation"]
            && condition(seen, "Ready")
            && !condition(seen, "Progressing")
    };
    world.until(APPLICATION, running).await
}

async fn scales(world: &World) -> Outcome {
    let scale = format!("{APPLICATION}/scale");
    world.merge(&scale, &json!({"spec": {"replicas": 3}})).await?;
    running(world, 3).await?;
    world.until(&scale, |scale| scale["status"]["replicas"] == 3).await.map(drop)
}

async fn rolls(world: &World) -> Outcome {
    world.merge(APPLICATION, &json!({"spec": {"config": {"LOG_LEVEL": "debug"}}})).await?;
    let two = |sets: &Value| sets["items"].as_array().is_some_and(|sets| sets.len() == 2);
    world.until(REPLICA_SETS, two).await?;
    running(world, 3).await.map(drop)
}

async fn corrects_drift(world: &World) -> Outcome {
    world.merge(DEPLOYMENT, &json!({"spec": {"replicas": 9}})).await?;
    world.until(DEPLOYMENT, |deployment| deployment["spec"]["replicas"] == 3).await?;
    world.delete(SERVICE).await?;
    world.until(SERVICE, |service| service["spec"]["selector"].is_object()).await?;
    running(world, 3).await.map(drop)
}

/// The HTTP API acts with the operator's rights: a right that is missing in the printed manifests is a refusal here.
async fn http_api(port: u16, world: &World) -> Outcome {
    let mut posted = application(0);
    posted["metadata"]["name"] = "posted".into();
    let object = format!("{APPLICATIONS}/posted");
    expect(201, ask(port, "POST", APPLICATIONS, &posted.to_string()).await?)?;
    world.until(&object, |seen| seen["status"]["observedGeneration"] == 1).await?;
    expect(200, ask(port, "GET", "/events", "").await?)?;
    posted["spec"]["config"] = json!({});
    expect(200, ask(port, "PUT", &object, &posted.to_string()).await?)?;
    expect(200, ask(port, "DELETE", &object, "").await?)?;
    world.until_gone(&object).await
}

fn expect(code: u16, (found, answer): (u16, String)) -> Outcome {
    match found == code {
        true => Ok(()),
        false => Err(format!("expected {code}, got {found}: {answer}")),
    }
}

/// A request to the HTTP API, as with curl: the status code and the whole response.
async fn ask(port: u16, method: &str, path: &str, body: &str) -> Result<(u16, String), String> {
    let failed = |error: std::io::Error| format!("{method} {path} on port {port}: {error}");
    let mut stream = TcpStream::connect(("127.0.0.1", port)).await.map_err(failed)?;
    let length = body.len();
    let head = format!("{method} {path} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nConnection: close\r\n");
    let request = format!("{head}Content-Type: application/json\r\nContent-Length: {length}\r\n\r\n{body}");
    stream.write_all(request.as_bytes()).await.map_err(failed)?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.map_err(failed)?;
    let code = answer.split(' ').nth(1).and_then(|code| code.parse().ok());
    Ok((code.unwrap_or_default(), answer))
}

async fn recreates(world: &World) -> Outcome {
    world.merge(APPLICATION, &json!({"spec": {"strategy": "Recreate"}})).await?;
    let recreate = |deployment: &Value| {
        let strategy = &deployment["spec"]["strategy"];
        strategy["type"] == "Recreate" && strategy["rollingUpdate"].is_null()
    };
    world.until(DEPLOYMENT, recreate).await?;
    running(world, 3).await.map(drop)
}

async fn goes(world: &World) -> Outcome {
    world.delete(APPLICATION).await?;
    for path in [APPLICATION, DEPLOYMENT, REPLICA_SETS, PODS, SERVICE, MAP] {
        world.until_gone(path).await?;
    }
    Ok(())
}

/// What a node would do: every new pod becomes Ready. It asks again and again until the scenario ends.
async fn set_pods_ready(world: World) {
    let ready = json!({"status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}});
    let waiting = |pods: &Value| {
        let waits =
            |pod: &&Value| pod["status"]["phase"] == "Pending" && pod["metadata"]["deletionTimestamp"].is_null();
        pods["items"].as_array().and_then(|pods| pods.iter().find(waits).cloned())
    };
    loop {
        let pods = world.until(PODS, |pods| waiting(pods).is_some()).await;
        let Some(pod) = pods.ok().as_ref().and_then(waiting) else {
            continue;
        };
        let name = pod["metadata"]["name"].as_str().unwrap_or_default();
        // A pod may be deleted before it is ready; the next look shows it.
        drop(world.merge(&format!("{PODS}/{name}/status"), &ready).await);
    }
}
