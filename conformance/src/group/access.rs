//! Group `access`: random roles and bindings on both servers, and what 40 users may do of 60 things by them.

use flyball_store::testing::Chance;
use http::Request;
use kube::Client;
use serde_json::{Value, json};
use std::time::Duration;

use crate::reference::{Error, Reference};
use crate::report::{Finding, sentence};

const USERS: usize = 40;
const REQUESTS: usize = 60;
const RBAC: &str = "/apis/rbac.authorization.k8s.io/v1";
const NAMESPACES: [&str; 3] = ["access-a", "access-b", "access-c"];
/// How long the real server may take until it knows every role and binding.
const WITHIN: Duration = Duration::from_secs(30);

/// Asks both servers.
pub async fn run(text: &str) -> Vec<Finding> {
    let seed = std::env::var("FLYBALL_SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or(17);
    let world = World::new(&mut Chance::new(seed));
    let reference = match Reference::start().await {
        Ok(reference) => reference,
        Err(Error::NoGo) => return vec![Finding::skipped("real", Error::NoGo.to_string())],
        Err(error) => return vec![Finding::check("real", Err(sentence(&error)))],
    };
    let decided = async {
        let real = reference.admin.client().map_err(|error| sentence(&error))?;
        let ours = crate::ours::client().await?;
        Ok::<_, String>((world.decide(&real).await?, world.decide(&ours).await?))
    };
    let (real, ours) = match decided.await {
        Ok(decided) => decided,
        Err(error) => return vec![Finding::check("decide", Err(error))],
    };
    let mut findings = world.compare(seed, &real, &ours);
    findings.push(Finding::check("some are allowed and some are not", both_happen(&real)));
    findings.retain(|finding| finding.case.contains(text));
    findings
}

/// What is created, and what is asked.
struct World {
    objects: Vec<(String, Value)>,
    users: Vec<Value>,
    requests: Vec<Value>,
}

fn pick<'a>(chance: &mut Chance, from: &[&'a str]) -> &'a str {
    from[chance.below(from.len())]
}

/// One to three of these.
fn some(chance: &mut Chance, from: &[&str]) -> Vec<String> {
    let count = 1 + chance.below(3);
    (0..count).map(|_| pick(chance, from).to_owned()).collect()
}

const VERBS: [&str; 8] = ["get", "list", "watch", "create", "update", "delete", "impersonate", "*"];
const GROUPS: [&str; 4] = ["", "apps", "example.dev", "*"];
const RESOURCES: [&str; 8] = [
    "pods",
    "pods/log",
    "*/scale",
    "deployments",
    "deployments/scale",
    "secrets",
    "*",
    "*/*",
];
const NAMES: [&str; 3] = ["a", "b", "c"];
const PATHS: [&str; 6] = ["/metrics", "/metrics/*", "/healthz", "/debug/*", "*", "/logs"];

impl World {
    fn new(chance: &mut Chance) -> World {
        let mut objects = Vec::new();
        for name in NAMESPACES {
            objects.push(("/api/v1/namespaces".to_owned(), json!({"metadata": {"name": name}})));
        }
        for number in 0..12 {
            objects.push((format!("{RBAC}/clusterroles"), role(chance, &format!("c{number}"), true)));
        }
        for namespace in NAMESPACES {
            for number in 0..6 {
                let path = format!("{RBAC}/namespaces/{namespace}/roles");
                objects.push((path, role(chance, &format!("r{number}"), false)));
            }
        }
        for number in 0..20 {
            let bound = binding(chance, &format!("b{number}"), false);
            objects.push((format!("{RBAC}/clusterrolebindings"), bound));
        }
        for namespace in NAMESPACES {
            for number in 0..16 {
                let path = format!("{RBAC}/namespaces/{namespace}/rolebindings");
                objects.push((path, binding(chance, &format!("b{number}"), true)));
            }
        }
        World {
            objects,
            users: (0..USERS).map(|number| user(chance, number)).collect(),
            requests: (0..REQUESTS).map(|_| request(chance)).collect(),
        }
    }

    /// Creates everything, and asks about each user and request.
    async fn decide(&self, client: &Client) -> Result<Vec<Vec<Value>>, String> {
        for (path, object) in &self.objects {
            post(client, path, object).await?;
        }
        until_known(client).await?;
        let mut decisions = Vec::new();
        for user in &self.users {
            let mut of_user = Vec::new();
            for request in &self.requests {
                of_user.push(review(client, user, request).await?);
            }
            decisions.push(of_user);
        }
        Ok(decisions)
    }

    fn compare(&self, seed: u64, real: &[Vec<Value>], ours: &[Vec<Value>]) -> Vec<Finding> {
        let compared = self.users.iter().zip(real.iter().zip(ours));
        let finding = |(user, (real, ours)): (&Value, (&Vec<Value>, &Vec<Value>))| {
            let different = self.requests.iter().zip(real.iter().zip(ours)).filter(|(_, (real, ours))| real != ours);
            let shown: Vec<String> = different
                .map(|(request, (real, ours))| format!("{request}: real {real}, ours {ours}"))
                .collect();
            let outcome = match shown.is_empty() {
                true => Ok(()),
                false => Err(format!("seed {seed}, user {user}\n{}", shown.join("\n"))),
            };
            Finding::check(format!("user {}", user["user"].as_str().unwrap_or_default()), outcome)
        };
        compared.map(finding).collect()
    }
}

fn role(chance: &mut Chance, name: &str, cluster: bool) -> Value {
    let rules: Vec<Value> = (0..1 + chance.below(3)).map(|_| rule(chance, cluster)).collect();
    json!({"metadata": {"name": name}, "rules": rules})
}

fn rule(chance: &mut Chance, cluster: bool) -> Value {
    if cluster && chance.sometimes(4) {
        return json!({"verbs": some(chance, &VERBS), "nonResourceURLs": some(chance, &PATHS)});
    }
    let mut rule = json!({
        "verbs": some(chance, &VERBS),
        "apiGroups": some(chance, &GROUPS),
        "resources": some(chance, &RESOURCES),
    });
    if chance.sometimes(3) {
        rule["resourceNames"] = some(chance, &NAMES).into();
    }
    rule
}

fn binding(chance: &mut Chance, name: &str, namespaced: bool) -> Value {
    // Some refer to roles that are absent.
    let (kind, role) = match namespaced && chance.sometimes(2) {
        true => ("Role", format!("r{}", chance.below(7))),
        false => ("ClusterRole", format!("c{}", chance.below(13))),
    };
    let subjects: Vec<Value> = (0..1 + chance.below(4)).map(|_| subject(chance)).collect();
    json!({
        "metadata": {"name": name},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": kind, "name": role},
        "subjects": subjects,
    })
}

fn subject(chance: &mut Chance) -> Value {
    let group = "rbac.authorization.k8s.io";
    match chance.below(3) {
        0 => json!({"apiGroup": group, "kind": "User", "name": format!("u{}", chance.below(30))}),
        1 => json!({"apiGroup": group, "kind": "Group", "name": format!("g{}", chance.below(10))}),
        _ => {
            json!({"kind": "ServiceAccount", "name": format!("s{}", chance.below(5)), "namespace": pick(chance, &NAMESPACES)})
        }
    }
}

fn user(chance: &mut Chance, number: usize) -> Value {
    if number >= 30 {
        let (namespace, name) = (pick(chance, &NAMESPACES), format!("s{}", number % 5));
        let groups = ["system:serviceaccounts", "system:authenticated"];
        return json!({"user": format!("system:serviceaccount:{namespace}:{name}"), "groups": groups});
    }
    let groups: Vec<String> = (0..chance.below(4)).map(|_| format!("g{}", chance.below(10))).collect();
    json!({"user": format!("u{number}"), "groups": groups})
}

fn request(chance: &mut Chance) -> Value {
    if chance.sometimes(5) {
        let path = pick(
            chance,
            &[
                "/metrics",
                "/metrics/slis",
                "/healthz",
                "/debug/pprof",
                "/logs",
                "/",
                "/logs/a",
            ],
        );
        return json!({"nonResourceAttributes": {"verb": pick(chance, &VERBS), "path": path}});
    }
    let mut attributes = json!({
        "verb": pick(chance, &VERBS),
        "group": pick(chance, &GROUPS),
        "resource": pick(chance, &["pods", "deployments", "secrets", "widgets", "*"]),
        "subresource": pick(chance, &["", "", "log", "scale", "status", "*"]),
        "name": pick(chance, &["", "a", "b", "d"]),
    });
    if !chance.sometimes(4) {
        attributes["namespace"] = pick(chance, &NAMESPACES).into();
    }
    json!({"resourceAttributes": attributes})
}

/// Waits until the last of each kind is known: a server learns of each kind in order.
async fn until_known(client: &Client) -> Result<(), String> {
    let rules = json!([{"verbs": ["probe"], "apiGroups": ["probe.dev"], "resources": ["probes"]}]);
    let bound = |kind: &str| {
        let subject = json!({"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": kind});
        let role = json!({"apiGroup": "rbac.authorization.k8s.io", "kind": kind, "name": "probe"});
        json!({"metadata": {"name": "probe"}, "roleRef": role, "subjects": [subject]})
    };
    let local = format!("{RBAC}/namespaces/{}", NAMESPACES[2]);
    let role = json!({"metadata": {"name": "probe"}, "rules": rules});
    post(client, &format!("{RBAC}/clusterroles"), &role).await?;
    post(client, &format!("{local}/roles"), &role).await?;
    post(client, &format!("{RBAC}/clusterrolebindings"), &bound("ClusterRole")).await?;
    post(client, &format!("{local}/rolebindings"), &bound("Role")).await?;
    let probe = json!({"resourceAttributes": {"verb": "probe", "group": "probe.dev", "resource": "probes", "namespace": NAMESPACES[2]}});
    let known = async {
        for user in ["ClusterRole", "Role"] {
            while review(client, &json!({"user": user}), &probe).await?["allowed"] != true {
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
        }
        Ok(())
    };
    let late = || Err("the server does not know the last role and binding".to_owned());
    tokio::time::timeout(WITHIN, known).await.unwrap_or_else(|_| late())
}

/// What a server says of a user and a request. The reason is left out: which of several bindings allows it is chance.
async fn review(client: &Client, user: &Value, request: &Value) -> Result<Value, String> {
    let mut spec = user.clone();
    for (field, value) in request.as_object().into_iter().flatten() {
        spec[field] = value.clone();
    }
    let path = "/apis/authorization.k8s.io/v1/subjectaccessreviews";
    let answer = post(client, path, &json!({"spec": spec})).await?;
    let mut status = answer["status"].clone();
    if let Some(status) = status.as_object_mut() {
        status.remove("reason");
    }
    Ok(status)
}

async fn post(client: &Client, path: &str, object: &Value) -> Result<Value, String> {
    let body = serde_json::to_vec(object).map_err(|error| error.to_string())?;
    let request = Request::post(path).header("content-type", "application/json").body(body);
    let request = request.map_err(|error| error.to_string())?;
    client
        .request(request)
        .await
        .map_err(|error| format!("POST {path}: {}", sentence(&error)))
}

fn both_happen(decisions: &[Vec<Value>]) -> Result<(), String> {
    let all = decisions.iter().flatten().count();
    let allowed = decisions.iter().flatten().filter(|status| status["allowed"] == true).count();
    match allowed > all / 20 && allowed < all {
        true => Ok(()),
        false => Err(format!("{allowed} of {all} are allowed: the roles are badly chosen")),
    }
}
