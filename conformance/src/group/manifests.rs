//! Group `manifests`: what our operators print is taken by a real API server, by strict server-side apply and by kubectl; then
//! they run as the ServiceAccount that it made, with those rights and no others.

use std::io::Write;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use http::Request;
use kube::Client;
use serde_json::{Value, json};

use super::operators::{Outcome, Trial, built, scenarios};
use crate::reference::{Binaries, Error, Reference};
use crate::report::{Finding, sentence};

/// The crates whose programs are tried, and what their operators are called.
const OPERATORS: [(&str, &str); 2] = [("hello", "greeter"), ("application", "application")];

pub async fn run(text: &str) -> Vec<Finding> {
    let reference = match Reference::with_controllers().await {
        Err(error @ Error::NoGo) => return vec![Finding::skipped("start", error.to_string())],
        Err(error) => return vec![Finding::check("start", Err(sentence(&error)))],
        Ok(reference) => reference,
    };
    let mut findings = Vec::new();
    if let Err(message) = check(&reference, &mut findings).await {
        findings.push(Finding::check("start", Err(message)));
    }
    findings.retain(|finding| finding.case.contains(text));
    findings
}

async fn check(reference: &Reference, findings: &mut Vec<Finding>) -> Outcome {
    let mut trial = Trial::new(reference)?;
    let client = reference.admin.client().map_err(|error| sentence(&error))?;
    for (package, name) in OPERATORS {
        let manifests = printed(package, &["manifests", "--image", "example.dev/operator:1", "--replicas", "1"])?;
        let case = |what: &str| format!("{package}: {what}");
        let applied = apply_all(&client, &manifests).await;
        findings.push(Finding::check(case("is applied with strict validation"), applied));
        let first = kubectl_apply(reference, &manifests).await.map(drop);
        findings.push(Finding::check(case("is applied by kubectl"), first));
        let second = kubectl_apply(reference, &manifests).await.and_then(|said| unchanged(&said));
        findings.push(Finding::check(case("is applied by kubectl again, and nothing changes"), second));
        findings.push(Finding::check(case("may not read Secrets"), may_not(&trial, name).await));
        trial.accounts.insert(package, account(&trial, name).await?);
    }
    let before = forbidden(&client).await?;
    scenarios(&trial, findings).await;
    let after = forbidden(&client).await?;
    let outcome = if before == after {
        Ok(())
    } else {
        Err(format!("the API server forbade {} requests:\n{}", after.0 - before.0, after.1))
    };
    findings.push(Finding::check("nothing that the operators did was forbidden", outcome));
    Ok(())
}

/// What the program of a crate prints.
fn printed(package: &str, arguments: &[&str]) -> Result<String, String> {
    let output = Command::new(built(package)?).args(arguments).output();
    let output = output.map_err(|error| format!("{package}: {error}"))?;
    if !output.status.success() {
        return Err(format!("{package} {arguments:?}: {}", String::from_utf8_lossy(&output.stderr)));
    }
    String::from_utf8(output.stdout).map_err(|error| format!("{package}: {error}"))
}

async fn apply_all(client: &Client, manifests: &str) -> Outcome {
    let objects: Vec<Value> = serde_saphyr::from_multiple(manifests).map_err(|error| error.to_string())?;
    for object in objects {
        let path = format!("{}?fieldManager=conformance&fieldValidation=Strict", path(&object));
        let request = Request::patch(&path).header("Content-Type", "application/apply-patch+yaml");
        let request = request.body(object.to_string().into_bytes()).expect("a path is a URI");
        client
            .request::<Value>(request)
            .await
            .map_err(|error| format!("{path}: {}", sentence(&error)))?;
    }
    Ok(())
}

/// Where an object is served.
fn path(object: &Value) -> String {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let (version, kind) = (text(&object["apiVersion"]), text(&object["kind"]).to_lowercase());
    let prefix = if version.contains('/') { "apis" } else { "api" };
    let plural = match kind.strip_suffix('y') {
        Some(stem) => format!("{stem}ies"),
        None => format!("{kind}s"),
    };
    let metadata = &object["metadata"];
    match metadata["namespace"].as_str() {
        Some(namespace) => format!("/{prefix}/{version}/namespaces/{namespace}/{plural}/{}", text(&metadata["name"])),
        None => format!("/{prefix}/{version}/{plural}/{}", text(&metadata["name"])),
    }
}

/// What kubectl says about each object.
async fn kubectl_apply(reference: &Reference, manifests: &str) -> Result<String, String> {
    let binaries = Binaries::find_or_build().map_err(|error| sentence(&error))?;
    let mut kubectl = Command::new(&binaries.kubectl)
        .args(["apply", "--filename", "-", "--kubeconfig"])
        .arg(&reference.admin.kubeconfig)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(|error| format!("{}: {error}", binaries.kubectl.display()))?;
    let mut input = kubectl.stdin.take().expect("it was piped");
    input.write_all(manifests.as_bytes()).map_err(|error| error.to_string())?;
    drop(input);
    let output = kubectl.wait_with_output().map_err(|error| error.to_string())?;
    if output.status.success() {
        Ok(String::from_utf8_lossy(&output.stdout).into())
    } else {
        Err(String::from_utf8_lossy(&output.stderr).into())
    }
}

/// Of a PodDisruptionBudget kubectl always says `configured`: its selector has the patch strategy `replace`.
fn unchanged(said: &str) -> Outcome {
    let is_same = |line: &&str| line.ends_with(" unchanged") || line.starts_with("poddisruptionbudget.policy/");
    let changed: Vec<_> = said.lines().filter(|line| !is_same(line)).collect();
    if changed.is_empty() {
        Ok(())
    } else {
        Err(changed.join("\n"))
    }
}

/// The operator asks for no Secrets, so it must not have them.
async fn may_not(trial: &Trial<'_>, name: &str) -> Outcome {
    let review = json!({
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SubjectAccessReview",
        "spec": {
            "user": format!("system:serviceaccount:{name}-system:{name}"),
            "resourceAttributes": {"verb": "get", "resource": "secrets", "namespace": "default"},
        },
    });
    let review = trial.world.create("/apis/authorization.k8s.io/v1/subjectaccessreviews", &review).await?;
    if review["status"]["allowed"] == false {
        Ok(())
    } else {
        Err(review.to_string())
    }
}

/// Writes a kubeconfig of the operator's ServiceAccount, with a token as a pod gets it.
async fn account(trial: &Trial<'_>, name: &str) -> Result<PathBuf, String> {
    let namespace = format!("{name}-system");
    let request = json!({
        "apiVersion": "authentication.k8s.io/v1",
        "kind": "TokenRequest",
        "spec": {"expirationSeconds": 3600},
    });
    let path = format!("/api/v1/namespaces/{namespace}/serviceaccounts/{name}/token");
    let token = trial.world.create(&path, &request).await?["status"]["token"].clone();
    let directory = trial.reference.directory();
    let config = json!({
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "reference", "cluster": {
            "server": trial.reference.admin.config.cluster_url.to_string(),
            "certificate-authority": directory.join("ca.crt"),
        }}],
        "users": [{"name": name, "user": {"token": token}}],
        "contexts": [{"name": "reference", "context": {"cluster": "reference", "user": name, "namespace": namespace}}],
        "current-context": "reference",
    });
    let file = directory.join(format!("{name}-account.kubeconfig"));
    std::fs::write(&file, format!("{config:#}\n")).map_err(|error| error.to_string())?;
    Ok(file)
}

/// How many requests were answered with 403, and which.
async fn forbidden(client: &Client) -> Result<(u64, String), String> {
    let request = Request::get("/metrics").body(Vec::new()).expect("a constant request");
    let text = client.request_text(request).await.map_err(|error| sentence(&error))?;
    let counted = |line: &&str| line.starts_with("apiserver_request_total{") && line.contains("code=\"403\"");
    let lines: Vec<_> = text.lines().filter(counted).collect();
    let count = |line: &&str| line.rsplit(' ').next().and_then(|count| count.parse::<f64>().ok()).unwrap_or_default();
    Ok((lines.iter().map(count).sum::<f64>() as u64, lines.join("\n")))
}
