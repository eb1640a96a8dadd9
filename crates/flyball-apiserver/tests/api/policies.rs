//! ValidatingAdmissionPolicies: what they refuse, warn of and annotate. Their texts are a real server's, from
//! `conformance/policy.yaml`.

use crate::ask::{Answer, Server};
use flyball_apiserver::audit::{AuditEvent, AuditSink};
use flyball_apiserver::{ServerOptions, User};
use flyball_store::Store;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

const GROUP: &str = "/apis/admissionregistration.k8s.io/v1";
const MAPS: &str = "/api/v1/namespaces/default/configmaps";

fn rule(operations: &[&str], resource: &str) -> Value {
    json!({"operations": operations, "apiGroups": ["*"], "apiVersions": ["*"], "resources": [resource]})
}

/// A policy about ConfigMaps that refuses what an expression says.
fn spec(expression: &str) -> Value {
    json!({
        "matchConstraints": {"resourceRules": [rule(&["CREATE", "UPDATE"], "configmaps")]},
        "validations": [{"expression": expression, "message": "no"}],
    })
}

fn map(name: &str, data: Value) -> Value {
    json!({"metadata": {"name": name}, "data": data})
}

async fn made(server: &Server, path: &str, body: Value) {
    let answer = server.post(path, body).await;
    assert_eq!(answer.code, 201, "{}", answer.body);
}

async fn make_policy(server: &Server, name: &str, spec: Value) {
    let policy = json!({"metadata": {"name": name}, "spec": spec});
    made(server, &format!("{GROUP}/validatingadmissionpolicies"), policy).await;
}

async fn bind(server: &Server, name: &str, spec: Value) {
    let mut binding = json!({"metadata": {"name": name}, "spec": spec});
    binding["spec"]["policyName"] = name.into();
    if binding["spec"]["validationActions"].is_null() {
        binding["spec"]["validationActions"] = json!(["Deny"]);
    }
    made(server, &format!("{GROUP}/validatingadmissionpolicybindings"), binding).await;
}

/// A server with one policy, bound.
async fn with_policy(policy: Value, binding: Value) -> Server {
    let server = Server::start().await;
    make_policy(&server, "p", policy).await;
    bind(&server, "p", binding).await;
    server
}

fn refusal(answer: &Answer) -> String {
    let message = answer.body["message"].as_str().unwrap_or_default();
    let why = message.split_once("denied request: ").map_or(message, |(_, why)| why);
    format!("{} {why}", answer.code)
}

#[tokio::test(start_paused = true)]
async fn a_policy_takes_effect_with_the_response_to_its_binding_and_ends_with_it() {
    let server = Server::start().await;
    make_policy(&server, "p", spec("object.metadata.name != 'bad'")).await;
    assert_eq!(
        server.post(&format!("{MAPS}?dryRun=All"), map("bad", json!({}))).await.code,
        201,
        "unbound"
    );

    bind(&server, "p", json!({})).await;
    let refused = server.post(MAPS, map("bad", json!({}))).await;
    assert_eq!(refused.code, 422);
    let message = "ValidatingAdmissionPolicy 'p' with binding 'p' denied request: no";
    assert_eq!(refused.body["message"], format!("configmaps \"bad\" is forbidden: {message}"));
    assert_eq!(refused.body["reason"], "Invalid");
    assert_eq!(
        refused.body["details"],
        json!({"name": "bad", "kind": "configmaps", "causes": [{"message": message}]})
    );
    assert_eq!(server.post(MAPS, map("good", json!({}))).await.code, 201);

    let path = format!("{GROUP}/validatingadmissionpolicies/p");
    let change = json!([{"op": "replace", "path": "/spec/validations/0/expression", "value": "object.metadata.name != 'worse'"}]);
    assert_eq!(server.patch("json-patch+json", &path, change).await.code, 200);
    assert_eq!(server.post(MAPS, map("bad", json!({}))).await.code, 201);
    assert_eq!(refusal(&server.post(MAPS, map("worse", json!({}))).await), "422 no");

    server.delete(&format!("{GROUP}/validatingadmissionpolicybindings/p"), Value::Null).await;
    assert_eq!(server.post(MAPS, map("worse", json!({}))).await.code, 201);
}

#[tokio::test(start_paused = true)]
async fn policies_of_a_store_are_in_force_when_a_server_starts_over_it() {
    let store = Store::memory();
    let server = Server::over(store.clone()).await;
    make_policy(&server, "p", spec("object.metadata.name != 'bad'")).await;
    bind(&server, "p", json!({})).await;

    let other = Server::over(store).await;

    assert_eq!(refusal(&other.post(MAPS, map("bad", json!({}))).await), "422 no");
}

#[tokio::test(start_paused = true)]
async fn a_refusal_has_the_reason_and_the_message_of_its_validation() {
    let mut policy = spec("true");
    policy["validations"] = json!([
        {"expression": "object.metadata.name != 'a'", "reason": "Forbidden", "messageExpression": "'not ' + object.metadata.name"},
        {"expression": "object.metadata.name != 'b'", "reason": "RequestEntityTooLarge"},
        {"expression": "object.metadata.name != 'c'", "messageExpression": "'two\\nlines'", "message": "one line"},
    ]);
    let server = with_policy(policy, json!({})).await;
    for (name, expected) in [
        ("a", "403 not a"),
        ("b", "413 failed expression: object.metadata.name != 'b'"),
        ("c", "422 one line"),
    ] {
        assert_eq!(refusal(&server.post(MAPS, map(name, json!({}))).await), expected);
    }
}

#[tokio::test(start_paused = true)]
async fn an_error_is_a_refusal_unless_failures_are_ignored() {
    let mut policy = spec("object.data.missing == 'x'");
    let server = with_policy(policy.clone(), json!({})).await;
    let why = "422 expression 'object.data.missing == 'x'' resulted in error: no such key: missing";
    assert_eq!(refusal(&server.post(MAPS, map("a", json!({"k": "v"}))).await), why);

    policy["failurePolicy"] = "Ignore".into();
    let server = with_policy(policy, json!({})).await;
    assert_eq!(server.post(MAPS, map("a", json!({"k": "v"}))).await.code, 201);
}

#[tokio::test(start_paused = true)]
async fn match_conditions_decide_whether_a_policy_is_asked() {
    let mut policy = spec("false");
    policy["matchConditions"] = json!([
        {"name": "named", "expression": "object.metadata.name.startsWith('m')"},
        {"name": "errs", "expression": "object.metadata.name != 'merr' || object.data.missing == 'x'"},
    ]);
    let server = with_policy(policy, json!({})).await;
    assert_eq!(server.post(MAPS, map("other", json!({"k": "v"}))).await.code, 201);
    assert_eq!(refusal(&server.post(MAPS, map("match", json!({"k": "v"}))).await), "422 no");
    assert!(refusal(&server.post(MAPS, map("merr", json!({"k": "v"}))).await).ends_with("no such key: missing"));
}

#[tokio::test(start_paused = true)]
async fn expressions_see_the_request_the_namespace_and_what_the_user_may_do() {
    let mut policy = spec("true");
    let ada = "request.userInfo.username != 'ada' || ";
    policy["validations"] = json!([
        {"expression": format!("{ada}namespaceObject.metadata.name == 'default'"), "message": "namespace"},
        {"expression": format!("{ada}request.operation == 'CREATE' && request.options.kind == 'CreateOptions'"), "message": "request"},
        {"expression": format!("{ada}!authorizer.group('').resource('secrets').namespace('default').check('get').allowed()"), "message": "secrets"},
        {"expression": format!("{ada}authorizer.requestResource.check('create').allowed()"), "message": "own"},
        {"expression": format!("{ada}authorizer.requestResource.check('delete').allowed()"), "message": "may not delete"},
    ]);
    let server = with_policy(policy, json!({})).await;
    let rbac = "/apis/rbac.authorization.k8s.io/v1/namespaces/default";
    let rules = json!([{"apiGroups": [""], "resources": ["configmaps"], "verbs": ["create"]}]);
    made(&server, &format!("{rbac}/roles"), json!({"metadata": {"name": "r"}, "rules": rules})).await;
    let role = json!({"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "r"});
    let subjects = json!([{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "ada"}]);
    let binding = json!({"metadata": {"name": "b"}, "roleRef": role, "subjects": subjects});
    made(&server, &format!("{rbac}/rolebindings"), binding).await;

    let user = server.by(User::new("ada", Vec::<String>::new()));
    assert_eq!(refusal(&user.post(MAPS, map("a", json!({}))).await), "422 may not delete");
    assert_eq!(server.post(MAPS, map("a", json!({}))).await.code, 201);
}

#[tokio::test(start_paused = true)]
async fn parameters_are_found_by_name_or_selector_or_the_policy_says_what_then() {
    let mut policy = spec("object.data.size() <= int(params.data.max)");
    policy["paramKind"] = json!({"apiVersion": "v1", "kind": "ConfigMap"});
    policy["matchConditions"] = json!([{"name": "no-params", "expression": "!object.metadata.name.startsWith('max')"}]);
    let reference = |fields: Value| {
        let mut reference = json!({"parameterNotFoundAction": "Deny"});
        fields
            .as_object()
            .unwrap()
            .iter()
            .for_each(|(name, value)| reference[name] = value.clone());
        json!({"paramRef": reference})
    };
    let (one, three) = (json!({"a": "1"}), json!({"a": "1", "b": "2", "c": "3"}));
    let by_label = json!({"selector": {"matchLabels": {"max": "yes"}}});
    for (binding, data, expected) in [
        (reference(json!({"name": "max"})), &one, "201 "),
        (reference(json!({"name": "max"})), &three, "422 no"),
        (reference(json!({"name": "max", "namespace": "kube-system"})), &three, "201 "),
        (reference(by_label.clone()), &three, "422 no"),
        (reference(json!({"name": "absent", "parameterNotFoundAction": "Allow"})), &three, "201 "),
        (
            reference(json!({"name": "absent"})),
            &three,
            "422 failed to configure binding: no params found for policy binding with `Deny` parameterNotFoundAction",
        ),
        (
            json!({}),
            &three,
            "422 expression 'object.data.size() <= int(params.data.max)' resulted in error: no such key: data",
        ),
    ] {
        let server = Server::start().await;
        let labelled = json!({"metadata": {"name": "max", "labels": {"max": "yes"}}, "data": {"max": "2"}});
        made(&server, MAPS, labelled).await;
        made(&server, "/api/v1/namespaces/kube-system/configmaps", map("max", json!({"max": "9"}))).await;
        make_policy(&server, "p", policy.clone()).await;
        bind(&server, "p", binding.clone()).await;
        assert_eq!(refusal(&server.post(MAPS, map("a", data.clone())).await), expected, "{binding}");
    }
}

#[tokio::test(start_paused = true)]
async fn parameters_may_be_custom_resources_and_change_at_once() {
    let server = Server::start().await;
    let schema = json!({"openAPIV3Schema": {"type": "object", "properties": {"max": {"type": "integer"}}}});
    let definition = json!({"metadata": {"name": "ceilings.example.dev"}, "spec": {
        "group": "example.dev", "scope": "Cluster", "names": {"plural": "ceilings", "kind": "Ceiling"},
        "versions": [{"name": "v1", "served": true, "storage": true, "schema": schema}]}});
    let mut policy = spec("object.data.size() <= params.max");
    policy["paramKind"] = json!({"apiVersion": "example.dev/v1", "kind": "Ceiling"});
    make_policy(&server, "p", policy).await;
    bind(&server, "p", json!({"paramRef": {"name": "c", "parameterNotFoundAction": "Deny"}})).await;
    let unknown = "422 failed to configure policy: failed to find resource referenced by paramKind: 'example.dev/v1, Kind=Ceiling'";
    assert_eq!(refusal(&server.post(MAPS, map("a", json!({}))).await), unknown);

    made(&server, "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", definition).await;
    made(
        &server,
        "/apis/example.dev/v1/ceilings",
        json!({"apiVersion": "example.dev/v1", "kind": "Ceiling", "metadata": {"name": "c"}, "max": 1}),
    )
    .await;
    let two = json!({"a": "1", "b": "2"});
    assert_eq!(refusal(&server.post(MAPS, map("a", two.clone())).await), "422 no");
    server
        .patch("merge-patch+json", "/apis/example.dev/v1/ceilings/c", json!({"max": 2}))
        .await;
    assert_eq!(server.post(MAPS, map("a", two)).await.code, 201);
}

#[tokio::test(start_paused = true)]
async fn updates_deletes_and_subresources_are_matched() {
    let server = Server::start().await;
    let policy = |expression: &str, rule: Value| {
        let validations = json!([{"expression": expression, "message": expression}]);
        json!({"matchConstraints": {"resourceRules": [rule]}, "validations": validations})
    };
    let policies = [
        ("fixed", policy("object.data == oldObject.data", rule(&["UPDATE"], "configmaps"))),
        (
            "kept",
            policy("oldObject.metadata.name != 'a' && object == null", rule(&["DELETE"], "configmaps")),
        ),
        (
            "scaled",
            policy(
                "object.kind == 'Scale' && object.spec.replicas < 3",
                rule(&["UPDATE"], "deployments/scale"),
            ),
        ),
    ];
    for (name, policy) in policies {
        make_policy(&server, name, policy).await;
        bind(&server, name, json!({})).await;
    }
    made(&server, MAPS, map("a", json!({"k": "v"}))).await;
    let (labels, containers) = (json!({"app": "a"}), json!([{"name": "c", "image": "a:1"}]));
    let deployment = json!({"metadata": {"name": "d"}, "spec": {"selector": {"matchLabels": labels},
        "template": {"metadata": {"labels": labels}, "spec": {"containers": containers}}}});
    let deployments = "/apis/apps/v1/namespaces/default/deployments";
    made(&server, deployments, deployment).await;

    let changed = server.put(&format!("{MAPS}/a"), map("a", json!({"k": "w"}))).await;
    assert_eq!(refusal(&changed), "422 object.data == oldObject.data");
    assert_eq!(server.delete(&format!("{MAPS}/a"), Value::Null).await.code, 422);
    let scale = format!("{deployments}/d/scale");
    assert_eq!(server.patch("merge-patch+json", &scale, json!({"spec": {"replicas": 3}})).await.code, 422);
    assert_eq!(server.patch("merge-patch+json", &scale, json!({"spec": {"replicas": 2}})).await.code, 200);
}

#[tokio::test(start_paused = true)]
async fn a_policy_warns_and_audits_where_its_binding_says_so() {
    let audit = Arc::new(Annotations::default());
    let options = ServerOptions { audit_sink: Some(audit.clone()), ..ServerOptions::default() };
    let server = Server::with(Store::memory(), options).await;
    let mut policy = spec("object.metadata.name != 'bad'");
    policy["auditAnnotations"] = json!([
        {"key": "who", "valueExpression": "request.userInfo.username"},
        {"key": "none", "valueExpression": "null"},
    ]);
    make_policy(&server, "p", policy).await;
    bind(&server, "p", json!({"validationActions": ["Warn", "Audit"]})).await;

    let taken = server.post(MAPS, map("bad", json!({}))).await;

    assert_eq!(taken.code, 201);
    let warning = "299 - \"Validation failed for ValidatingAdmissionPolicy 'p' with binding 'p': no\"";
    assert_eq!(taken.headers["warning"], warning);
    let seen = audit.0.lock().unwrap().clone();
    let failure =
        r#"[{"message":"no","policy":"p","binding":"p","expressionIndex":0,"validationActions":["Warn","Audit"]}]"#;
    assert_eq!(seen["validation.policy.admission.k8s.io/validation_failure"], failure);
    assert_eq!(seen["p/who"], "admin");
    assert!(!seen.contains_key("p/none"));
}

/// Keeps the annotations of the last request that had any.
#[derive(Default)]
struct Annotations(Mutex<BTreeMap<String, String>>);

impl AuditSink for Annotations {
    fn record(&self, event: &AuditEvent) {
        if !event.annotations.is_empty() {
            self.0.lock().unwrap().clone_from(&event.annotations);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn no_policy_is_asked_about_policies_and_reviews_but_about_webhooks() {
    let mut policy = spec("false");
    policy["matchConstraints"] = json!({"resourceRules": [rule(&["*"], "*/*")]});
    let server = with_policy(policy, json!({})).await;

    make_policy(&server, "other", spec("true")).await;
    let review = json!({"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"});
    made(&server, "/apis/authentication.k8s.io/v1/selfsubjectreviews", review).await;
    let webhooks = format!("{GROUP}/validatingwebhookconfigurations");
    assert_eq!(server.post(&webhooks, json!({"metadata": {"name": "w"}})).await.code, 422);
    assert_eq!(
        server.delete(&format!("{GROUP}/validatingadmissionpolicies/p"), Value::Null).await.code,
        200
    );
    assert_eq!(server.post(&webhooks, json!({"metadata": {"name": "w"}})).await.code, 201);
}

#[tokio::test(start_paused = true)]
async fn expressions_that_cost_too_much_are_errors() {
    // A check costs 350,000, an expression may cost a million and a policy ten millions.
    let check = "authorizer.requestResource.check('create').allowed()";
    let mut policy = spec(&[check; 3].join(" && "));
    let server = with_policy(policy.clone(), json!({})).await;
    let refused = refusal(&server.post(MAPS, map("a", json!({}))).await);
    assert!(refused.ends_with("operation cancelled: actual cost limit exceeded"), "{refused}");

    let checks = [check; 2].join(" && ");
    let two = json!({"expression": checks});
    policy["validations"] = vec![two.clone(); 14].into();
    let server = with_policy(policy.clone(), json!({})).await;
    assert_eq!(server.post(MAPS, map("a", json!({}))).await.code, 201);
    policy["validations"] = vec![two; 15].into();
    let server = with_policy(policy, json!({})).await;
    let refused = refusal(&server.post(MAPS, map("a", json!({}))).await);
    let spent = "422 validation failed due to running out of cost budget, no further validation rules will be run";
    assert_eq!(refused, spent);
}

#[tokio::test(start_paused = true)]
async fn an_invalid_policy_is_refused_with_the_path_of_what_is_wrong() {
    let server = Server::start().await;
    let mut policy = json!({"metadata": {"name": "p"}, "spec": spec("object.")});
    policy["spec"]["matchConditions"] = json!([{"name": "a", "expression": "1"}]);
    policy["spec"]["variables"] = json!([{"name": "in", "expression": "true"}]);
    let refused = server.post(&format!("{GROUP}/validatingadmissionpolicies"), policy).await;
    assert_eq!(refused.code, 422);
    let causes = refused.body["details"]["causes"].as_array().unwrap();
    let fields: Vec<&str> = causes.iter().map(|cause| cause["field"].as_str().unwrap()).collect();
    let expected = [
        "spec.matchConditions[0].expression",
        "spec.variables[0].name",
        "spec.validations[0].expression",
    ];
    assert_eq!(fields, expected);
    let binding =
        json!({"metadata": {"name": "b"}, "spec": {"policyName": "p", "validationActions": ["Deny", "Warn"]}});
    let refused = server.post(&format!("{GROUP}/validatingadmissionpolicybindings"), binding).await;
    assert_eq!(refused.body["details"]["causes"][0]["field"], "spec.validationActions");
}

#[tokio::test(start_paused = true)]
async fn a_policy_about_parameters_needs_the_right_to_read_them() {
    let server = Server::start().await;
    let rbac = "/apis/rbac.authorization.k8s.io/v1";
    let rules = json!([{"apiGroups": ["admissionregistration.k8s.io"], "resources": ["*"], "verbs": ["*"]}]);
    made(
        &server,
        &format!("{rbac}/clusterroles"),
        json!({"metadata": {"name": "r"}, "rules": rules}),
    )
    .await;
    let role = json!({"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "r"});
    let subjects = json!([{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "ada"}]);
    let binding = json!({"metadata": {"name": "r"}, "roleRef": role, "subjects": subjects});
    made(&server, &format!("{rbac}/clusterrolebindings"), binding).await;
    let user = server.by(User::new("ada", Vec::<String>::new()));
    let mut policy = json!({"metadata": {"name": "p"}, "spec": spec("true")});
    policy["spec"]["paramKind"] = json!({"apiVersion": "v1", "kind": "ConfigMap"});
    let policies = format!("{GROUP}/validatingadmissionpolicies");

    let refused = user.post(&policies, policy.clone()).await;

    let why = "user &{ada  [system:authenticated] map[]} must have \"get\" permission on all objects of the referenced paramKind (kind=ConfigMap, apiVersion=v1)";
    assert_eq!(refused.body["details"]["causes"][0]["message"], format!("Forbidden: {why}"));
    policy["spec"].as_object_mut().unwrap().remove("paramKind");
    assert_eq!(user.post(&policies, policy).await.code, 201);
}
