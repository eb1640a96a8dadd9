//! What users may do: RBAC, reviews, escalation and impersonation.

use crate::ask::Server;
use flyball_apiserver::User;
use http::Method;
use http_body_util::BodyExt;
use serde_json::{Value, json};

const RBAC: &str = "/apis/rbac.authorization.k8s.io/v1";
const MAPS: &str = "/api/v1/namespaces/default/configmaps";

fn ada() -> User {
    User::new("ada", Vec::<String>::new())
}

fn rule(verbs: &[&str], groups: &[&str], resources: &[&str]) -> Value {
    json!({"verbs": verbs, "apiGroups": groups, "resources": resources})
}

fn role(name: &str, rules: &[Value]) -> Value {
    json!({"metadata": {"name": name}, "rules": rules})
}

fn binding(name: &str, kind: &str, role: &str, user: &str) -> Value {
    let subject = json!({"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": user});
    json!({
        "metadata": {"name": name},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": kind, "name": role},
        "subjects": [subject],
    })
}

/// Grants rules to a user in the whole cluster.
async fn grant(server: &Server, name: &str, user: &str, rules: &[Value]) {
    let created = server.post(&format!("{RBAC}/clusterroles"), role(name, rules)).await;
    assert_eq!(created.code, 201, "{}", created.body);
    let bound = binding(name, "ClusterRole", name, user);
    let created = server.post(&format!("{RBAC}/clusterrolebindings"), bound).await;
    assert_eq!(created.code, 201, "{}", created.body);
}

#[tokio::test(start_paused = true)]
async fn a_role_takes_effect_with_the_response_to_its_binding_and_ends_with_it() {
    let server = Server::start().await;
    let user = server.by(ada());
    assert_eq!(user.get(MAPS).await.code, 403);
    let rules = [rule(&["list"], &[""], &["configmaps"])];
    server.post(&format!("{RBAC}/namespaces/default/roles"), role("r", &rules)).await;
    assert_eq!(user.get(MAPS).await.code, 403);

    let bindings = format!("{RBAC}/namespaces/default/rolebindings");
    server.post(&bindings, binding("b", "Role", "r", "ada")).await;

    assert_eq!(user.get(MAPS).await.code, 200);
    assert_eq!(user.get(&format!("{MAPS}/a")).await.code, 403);
    assert_eq!(user.get("/api/v1/namespaces/kube-system/configmaps").await.code, 403);
    assert_eq!(user.get("/api/v1/configmaps").await.code, 403);
    server.delete(&format!("{bindings}/b"), Value::Null).await;
    let refused = user.get(MAPS).await;
    assert_eq!(refused.code, 403);
    let why = r#"configmaps is forbidden: User "ada" cannot list resource "configmaps" in API group "" in the namespace "default""#;
    assert_eq!(refused.body["message"], why);
}

#[tokio::test(start_paused = true)]
async fn a_put_that_creates_needs_the_right_to_create() {
    let server = Server::start().await;
    grant(
        &server,
        "updater",
        "ada",
        &[rule(&["update", "patch"], &["coordination.k8s.io"], &["leases"])],
    )
    .await;
    let user = server.by(ada());
    let path = "/apis/coordination.k8s.io/v1/namespaces/default/leases/a";

    let put = user.put(path, json!({"metadata": {"name": "a"}})).await;
    let apply = json!({"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": "a"}});
    let applied = user.patch("apply-patch+yaml", &format!("{path}?fieldManager=m"), apply).await;

    for refused in [put, applied] {
        assert_eq!(refused.code, 403, "{}", refused.body);
        let why = r#"leases.coordination.k8s.io "a" is forbidden: User "ada" cannot create resource "leases""#;
        assert!(refused.body["message"].as_str().unwrap().starts_with(why), "{}", refused.body["message"]);
    }
    assert_eq!(server.get(path).await.code, 404);
}

#[tokio::test(start_paused = true)]
async fn a_user_grants_only_what_it_holds() {
    let server = Server::start().await;
    let on_rbac = rule(&["create", "update", "patch"], &["rbac.authorization.k8s.io"], &["*"]);
    grant(&server, "granter", "ada", &[on_rbac, rule(&["get"], &[""], &["pods"])]).await;
    let user = server.by(ada());
    let roles = format!("{RBAC}/clusterroles");

    let more = user.post(&roles, role("more", &[rule(&["get", "delete"], &[""], &["pods"])])).await;
    assert_eq!(more.code, 403);
    let why = "clusterroles.rbac.authorization.k8s.io \"more\" is forbidden: user \"ada\" (groups=[\"system:authenticated\"]) is attempting to grant RBAC permissions not currently held:\n{APIGroups:[\"\"], Resources:[\"pods\"], Verbs:[\"delete\"]}";
    assert_eq!(more.body["message"], why);
    assert_eq!(user.post(&roles, role("same", &[rule(&["get"], &[""], &["pods"])])).await.code, 201);

    let bindings = format!("{RBAC}/clusterrolebindings");
    let admin = user.post(&bindings, binding("x", "ClusterRole", "cluster-admin", "ada")).await;
    assert_eq!(admin.code, 403);
    assert!(admin.body["message"].as_str().unwrap().contains("not currently held"), "{}", admin.body);
    let absent = user.post(&bindings, binding("x", "ClusterRole", "absent", "ada")).await;
    assert_eq!(absent.code, 404, "{}", absent.body);
    assert_eq!(user.post(&bindings, binding("x", "ClusterRole", "same", "bob")).await.code, 201);

    let all = json!([rule(&["*"], &["*"], &["*"])]);
    let patched = user.patch("merge-patch+json", &format!("{roles}/same"), json!({"rules": all})).await;
    assert_eq!(patched.code, 403, "{}", patched.body);
    let finalizers = json!({"metadata": {"finalizers": ["example.dev/x"]}});
    assert_eq!(
        user.patch("merge-patch+json", &format!("{roles}/cluster-admin"), finalizers).await.code,
        200
    );
}

#[tokio::test(start_paused = true)]
async fn escalate_and_bind_permit_to_grant_more() {
    let server = Server::start().await;
    let on_rbac = rule(&["create", "escalate", "bind"], &["rbac.authorization.k8s.io"], &["*"]);
    grant(&server, "granter", "ada", &[on_rbac]).await;
    let user = server.by(ada());

    let all = role("all", &[rule(&["*"], &["*"], &["*"])]);
    assert_eq!(user.post(&format!("{RBAC}/clusterroles"), all).await.code, 201);
    let bound = binding("all", "ClusterRole", "all", "ada");
    assert_eq!(user.post(&format!("{RBAC}/clusterrolebindings"), bound).await.code, 201);

    assert_eq!(user.get("/api/v1/secrets").await.code, 200);
}

async fn review(server: &Server, plural: &str, spec: Value) -> Value {
    let path = format!("/apis/authorization.k8s.io/v1/{plural}");
    let answer = server.post(&path, json!({"spec": spec})).await;
    assert_eq!(answer.code, 201, "{}", answer.body);
    answer.body["status"].clone()
}

#[tokio::test(start_paused = true)]
async fn reviews_say_what_a_user_may_do_and_by_which_binding() {
    let server = Server::start().await;
    grant(&server, "reader", "ada", &[rule(&["get"], &["apps"], &["deployments/scale"])]).await;
    let attributes = json!({"verb": "get", "group": "apps", "resource": "deployments", "subresource": "scale"});
    let allowed = json!({"allowed": true, "reason": "RBAC: allowed by ClusterRoleBinding \"reader\" of ClusterRole \"reader\" to User \"ada\""});

    let own = review(&server.by(ada()), "selfsubjectaccessreviews", json!({"resourceAttributes": attributes})).await;
    assert_eq!(own, allowed);
    let of_ada = json!({"user": "ada", "resourceAttributes": attributes});
    assert_eq!(review(&server, "subjectaccessreviews", of_ada.clone()).await, allowed);
    let of_bob = json!({"user": "bob", "resourceAttributes": attributes});
    assert_eq!(review(&server, "subjectaccessreviews", of_bob).await, json!({"allowed": false}));
    let refused = server
        .by(ada())
        .post("/apis/authorization.k8s.io/v1/subjectaccessreviews", json!({"spec": of_ada}))
        .await;
    assert_eq!(refused.code, 403);

    let rules = review(&server.by(ada()), "selfsubjectrulesreviews", json!({"namespace": "default"})).await;
    let resources = rules["resourceRules"].as_array().unwrap();
    let scale = json!({"verbs": ["get"], "apiGroups": ["apps"], "resources": ["deployments/scale"]});
    assert!(resources.contains(&scale), "{rules}");
}

/// Sends a request on behalf of a user, and returns the code and the user that the server saw.
async fn who_am_i(server: &Server, headers: &[(&str, &str)]) -> (u16, Value) {
    let path = "/apis/authentication.k8s.io/v1/selfsubjectreviews";
    let headers: Vec<(&str, &str)> = headers.iter().copied().chain([("content-type", "application/json")]).collect();
    let response = server.with_headers(Method::POST, path, &headers, "{}").await;
    let code = response.status().as_u16();
    let body = response.into_body().collect().await.unwrap().to_bytes();
    let body: Value = serde_json::from_slice(&body).unwrap();
    match code {
        201 => (code, body["status"]["userInfo"].clone()),
        _ => (code, body["message"].clone()),
    }
}

#[tokio::test(start_paused = true)]
async fn an_admin_acts_as_whom_it_names() {
    let server = Server::start().await;

    let (code, user) = who_am_i(&server, &[("impersonate-user", "ada"), ("impersonate-group", "dev")]).await;
    assert_eq!((code, user), (201, json!({"username": "ada", "groups": ["dev", "system:authenticated"]})));
    let (_, account) = who_am_i(&server, &[("impersonate-user", "system:serviceaccount:a:b")]).await;
    let groups = [
        "system:serviceaccounts",
        "system:serviceaccounts:a",
        "system:authenticated",
    ];
    assert_eq!(account["groups"], json!(groups));
    let (code, why) = who_am_i(&server, &[("impersonate-group", "dev")]).await;
    assert_eq!(code, 400);
    assert!(why.as_str().unwrap().ends_with("without impersonating a user name"), "{why}");
}

#[tokio::test(start_paused = true)]
async fn a_user_acts_only_as_whom_it_may_impersonate() {
    let server = Server::start().await;
    let mut users = rule(&["impersonate"], &[""], &["users"]);
    users["resourceNames"] = json!(["bob"]);
    grant(&server, "impersonator", "ada", &[users]).await;
    let ada = server.by(ada());

    assert_eq!(who_am_i(&ada, &[("impersonate-user", "bob")]).await.0, 201);
    for headers in [
        &[("impersonate-user", "eve")][..],
        &[("impersonate-user", "bob"), ("impersonate-group", "system:masters")],
        &[("impersonate-user", "bob"), ("impersonate-uid", "1")],
        &[("impersonate-user", "bob"), ("impersonate-extra-a.b%2fc", "d")],
        &[("impersonate-user", "system:serviceaccount:kube-system:x")],
    ] {
        let (code, why) = who_am_i(&ada, headers).await;
        assert_eq!(code, 403, "{headers:?}: {why}");
    }
}

#[tokio::test(start_paused = true)]
async fn bootstrap_roles_get_back_what_they_lost() {
    let store = flyball_store::Store::memory();
    let server = Server::over(store.clone()).await;
    let path = format!("{RBAC}/clusterroles/system:discovery");
    let rules = server.get(&path).await.body["rules"].clone();
    server.patch("merge-patch+json", &path, json!({"rules": []})).await;
    let kept = format!("{RBAC}/clusterroles/system:basic-user");
    let annotations = json!({"rbac.authorization.kubernetes.io/autoupdate": "false"});
    let emptied = json!({"metadata": {"annotations": annotations}, "rules": []});
    server.patch("merge-patch+json", &kept, emptied).await;

    let server = Server::over(store).await;

    let paths = |rules: &Value| -> Vec<Value> {
        let rules = rules.as_array().into_iter().flatten();
        rules
            .flat_map(|rule| rule["nonResourceURLs"].as_array().cloned().unwrap_or_default())
            .collect()
    };
    assert_eq!(paths(&server.get(&path).await.body["rules"]), paths(&rules));
    assert_eq!(server.get(&kept).await.body["rules"], Value::Null);
}

#[tokio::test(start_paused = true)]
async fn tricks_with_paths_reach_nothing_that_is_not_granted() {
    let server = Server::start().await;
    for namespace in ["a", "b"] {
        server.post("/api/v1/namespaces", json!({"metadata": {"name": namespace}})).await;
        let secrets = format!("/api/v1/namespaces/{namespace}/secrets");
        server
            .post(&secrets, json!({"metadata": {"name": "s"}, "stringData": {"k": "hidden"}}))
            .await;
    }
    let rules = [json!({"apiGroups": [""], "resources": ["configmaps"], "verbs": ["*"]})];
    grant(&server, "maps", "ada", &rules).await;
    let ada = server.by(User::new("ada", ["staff"]));
    for path in [
        "/api/v1/namespaces/b/secrets/s",
        "/api/v1/namespaces/default/configmaps/../../b/secrets/s",
        "/api/v1/namespaces/default/configmaps/%2e%2e/%2e%2e/b/secrets/s",
        "/api/v1/namespaces/default/configmaps/..%2f..%2fb%2fsecrets%2fs",
        "/api/v1/namespaces/default%2f..%2fb/secrets/s",
        "/api/v1/namespaces/b%2fsecrets/s",
        "/api/v1/namespaces/b/secrets%2fs",
        "/api/v1/namespaces/b/configmaps/..%2fsecrets/s",
        "/api/v1/namespaces/b/Secrets/s",
        "/API/v1/namespaces/b/secrets/s",
        "/api/V1/namespaces/b/secrets/s",
        "//api/v1/namespaces/b/secrets/s",
        "/api//v1/namespaces/b/secrets/s",
        "/./api/v1/namespaces/b/secrets/s",
        "/api/v1/namespaces/b/secrets;configmaps/s",
        "/api/v1/namespaces/b/secrets/s?resource=configmaps&namespace=default",
        "/api/v1/namespaces/b/secrets/s/",
        "/api/v1/namespaces/b/secrets/s%00",
        "/api/v1/watch/namespaces/b/secrets/s",
        "/api/v1/proxy/namespaces/b/secrets/s",
        "/api/v1/namespaces/default/configmaps/s/../../../b/secrets/s",
    ] {
        let answer = ada.get(path).await;
        assert!(
            matches!(answer.code, 301 | 400 | 403 | 404 | 405),
            "{path}: {} {}",
            answer.code,
            answer.body
        );
        assert!(!answer.body.to_string().contains("aGlkZGVu"), "{path} shows the secret");
    }
}
