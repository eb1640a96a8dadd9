//! MutatingAdmissionPolicies: what they make of objects. Their texts are compared with a real server's in
//! `conformance/requests/mutation.yaml`.

use crate::ask::{Answer, Server};
use http::Method;
use serde_json::{Value, json};

const GROUP: &str = "/apis/admissionregistration.k8s.io/v1";
const MAPS: &str = "/api/v1/namespaces/default/configmaps";

fn apply(expression: &str) -> Value {
    json!({"patchType": "ApplyConfiguration", "applyConfiguration": {"expression": expression}})
}

fn json_patch(expression: &str) -> Value {
    json!({"patchType": "JSONPatch", "jsonPatch": {"expression": expression}})
}

fn spec(mutations: Value) -> Value {
    let rule =
        json!({"operations": ["CREATE", "UPDATE"], "apiGroups": ["*"], "apiVersions": ["*"], "resources": ["*"]});
    json!({"matchConstraints": {"resourceRules": [rule]}, "mutations": mutations, "reinvocationPolicy": "Never"})
}

async fn make(server: &Server, name: &str, spec: Value) {
    let policy = json!({"metadata": {"name": name}, "spec": spec});
    let made = server.post(&format!("{GROUP}/mutatingadmissionpolicies"), policy).await;
    assert_eq!(made.code, 201, "{}", made.body);
    let mut binding = json!({"metadata": {"name": name}, "spec": {"policyName": name}});
    if !made.body["spec"]["paramKind"].is_null() {
        binding["spec"]["paramRef"] = json!({"name": "param", "parameterNotFoundAction": "Deny"});
    }
    let bound = server.post(&format!("{GROUP}/mutatingadmissionpolicybindings"), binding).await;
    assert_eq!(bound.code, 201, "{}", bound.body);
}

async fn with_policy(spec: Value) -> Server {
    let server = Server::start().await;
    make(&server, "p", spec).await;
    server
}

fn map(name: &str, data: Value) -> Value {
    json!({"metadata": {"name": name}, "data": data})
}

fn deployment() -> Value {
    let (labels, containers) = (json!({"app": "a"}), json!([{"name": "c", "image": "a:1"}]));
    json!({"metadata": {"name": "d"}, "spec": {"replicas": 2, "selector": {"matchLabels": labels},
        "template": {"metadata": {"labels": labels}, "spec": {"containers": containers}}}})
}

fn refusal(answer: &Answer) -> String {
    let message = answer.body["message"].as_str().unwrap_or_default();
    format!(
        "{} {}",
        answer.code,
        message.split_once("denied request: ").map_or(message, |(_, why)| why)
    )
}

#[tokio::test(start_paused = true)]
async fn a_configuration_is_merged_and_the_result_defaulted() {
    let containers = "[Object.spec.template.spec.containers{name: 'side', image: 'car'}]";
    let template = format!("Object.spec.template{{spec: Object.spec.template.spec{{containers: {containers}}}}}");
    let mutation = format!("Object{{spec: Object.spec{{replicas: object.spec.replicas + 1, template: {template}}}}}");
    let server = with_policy(spec(json!([apply(&mutation)]))).await;

    let made = server.post("/apis/apps/v1/namespaces/default/deployments", deployment()).await;

    assert_eq!(made.code, 201, "{}", made.body);
    assert_eq!(made.body["spec"]["replicas"], 3);
    let containers = &made.body["spec"]["template"]["spec"]["containers"];
    let names: Vec<&str> = containers.as_array().unwrap().iter().map(|it| it["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["c", "side"]);
    assert_eq!(containers[1]["imagePullPolicy"], "Always", "the added container is defaulted");
}

#[tokio::test(start_paused = true)]
async fn operations_apply_in_order_and_a_failed_test_leaves_the_object_alone() {
    let first = json_patch("[JSONPatch{op: 'add', path: '/data/n', value: '1'}]");
    let second = json_patch("[JSONPatch{op: 'replace', path: '/data/n', value: string(int(object.data.n) + 1)}]");
    let tested =
        json_patch("[JSONPatch{op: 'test', path: '/data/t', value: 'x'}, JSONPatch{op: 'remove', path: '/data/n'}]");
    let server = with_policy(spec(json!([first, second, tested]))).await;

    assert_eq!(
        server.post(MAPS, map("a", json!({"t": "y"}))).await.body["data"],
        json!({"n": "2", "t": "y"})
    );
    assert_eq!(server.post(MAPS, map("b", json!({"t": "x"}))).await.body["data"], json!({"t": "x"}));
    let updated = server.put(&format!("{MAPS}/a"), map("a", json!({"t": "z"}))).await;
    assert_eq!(updated.body["data"], json!({"n": "2", "t": "z"}));
}

#[tokio::test(start_paused = true)]
async fn a_test_for_null_never_holds() {
    let patch =
        "[JSONPatch{op: 'test', path: '/data/absent', value: null}, JSONPatch{op: 'add', path: '/data/n', value: '1'}]";
    let server = with_policy(spec(json!([json_patch(patch)]))).await;
    assert_eq!(server.post(MAPS, map("a", json!({"t": "y"}))).await.body["data"], json!({"t": "y"}));
}

#[tokio::test(start_paused = true)]
async fn what_cannot_be_applied_is_a_refusal_unless_failures_are_ignored() {
    for (mutation, expected) in [
        (
            apply("Object{data: {'k': 'v'}, nothing: 1}"),
            "403 error applying patch: failed to convert patch object to typed object: .nothing: field not declared in schema",
        ),
        (
            apply("Object{metadata: Object.wrong{}}"),
            "403 type mismatch: unexpected type name \"Object.wrong\", expected \"Object.metadata\", which matches field \
             name path from root Object type",
        ),
        (
            json_patch("[JSONPatch{op: 'remove', path: '/data/missing'}]"),
            "403 JSON Patch: error in remove for path: '/data/missing': Unable to remove nonexistent key: missing: missing \
             value",
        ),
        (
            json_patch("[JSONPatch{op: 'add', path: '/nothing', value: 1}]"),
            "500 Internal error occurred: strict decoding error: unknown field \"nothing\"",
        ),
        (apply("Object{metadata: Object.metadata{name: object.data.missing}}"), ""),
    ] {
        let mut policy = spec(json!([mutation]));
        let server = with_policy(policy.clone()).await;
        let refused = server.post(MAPS, map("a", json!({"k": "v"}))).await;
        assert!(refusal(&refused).starts_with(expected), "{}", refused.body);
        assert!(refused.code >= 400);
        if refused.code == 403 {
            assert_eq!(refused.body["reason"], "Invalid");
            policy["failurePolicy"] = "Ignore".into();
            let server = with_policy(policy).await;
            assert_eq!(server.post(MAPS, map("a", json!({"k": "v"}))).await.code, 201);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn atomic_values_are_not_merged() {
    let server = with_policy(spec(json!([apply(
        "Object{spec: Object.spec{selector: Object.spec.selector{matchLabels: {'app': 'b'}}}}"
    )])))
    .await;
    let refused = server.post("/apis/apps/v1/namespaces/default/deployments", deployment()).await;
    let why = "403 error applying patch: invalid ApplyConfiguration: may not mutate atomic arrays, maps or structs: .spec.selector";
    assert_eq!(refusal(&refused), why);
}

#[tokio::test(start_paused = true)]
async fn a_mutation_is_validated_and_seen_by_validating_policies() {
    let server = with_policy(spec(json!([json_patch(
        "[JSONPatch{op: 'add', path: '/data', value: {'by': 'policy'}}]"
    )])))
    .await;
    let rule = json!({"operations": ["CREATE"], "apiGroups": [""], "apiVersions": ["v1"], "resources": ["configmaps"]});
    let validations =
        json!([{"expression": "object.data.by != 'policy' || object.metadata.name != 'bad'", "message": "seen"}]);
    let policy = json!({"metadata": {"name": "v"}, "spec": {"matchConstraints": {"resourceRules": [rule]}, "validations": validations}});
    server.post(&format!("{GROUP}/validatingadmissionpolicies"), policy).await;
    let binding = json!({"metadata": {"name": "v"}, "spec": {"policyName": "v", "validationActions": ["Deny"]}});
    server.post(&format!("{GROUP}/validatingadmissionpolicybindings"), binding).await;

    assert_eq!(refusal(&server.post(MAPS, map("bad", json!({}))).await), "422 seen");
    let made = server.post(MAPS, map("good", json!({}))).await;
    assert_eq!(made.body["data"], json!({"by": "policy"}));
    assert_eq!(server.get(&format!("{MAPS}/good")).await.body["data"], json!({"by": "policy"}));
}

#[tokio::test(start_paused = true)]
async fn variables_conditions_and_parameters_serve_mutations_too() {
    let server = Server::start().await;
    server.post(MAPS, map("param", json!({"label": "given"}))).await;
    let mut policy = spec(json!([apply("Object{metadata: Object.metadata{labels: variables.labels}}")]));
    policy["paramKind"] = json!({"apiVersion": "v1", "kind": "ConfigMap"});
    policy["variables"] = json!([{"name": "labels", "expression": "{'from': string(params.data.label)}"}]);
    policy["matchConditions"] = json!([{"name": "named", "expression": "object.metadata.name.startsWith('m')"}]);
    policy["matchConstraints"]["resourceRules"][0]["resources"] = json!(["configmaps"]);
    make(&server, "p", policy).await;

    assert_eq!(
        server.post(MAPS, map("mine", json!({}))).await.body["metadata"]["labels"],
        json!({"from": "given"})
    );
    assert_eq!(server.post(MAPS, map("other", json!({}))).await.body["metadata"]["labels"], Value::Null);
    server.delete(&format!("{MAPS}/param"), Value::Null).await;
    let why = "403 failed to configure binding: no params found for policy binding with `Deny` parameterNotFoundAction";
    assert_eq!(refusal(&server.post(MAPS, map("more", json!({}))).await), why);
}

#[tokio::test(start_paused = true)]
async fn a_policy_looks_again_if_needed() {
    let looking = "has(object.metadata.labels) && 'b' in object.metadata.labels
        ? Object{metadata: Object.metadata{labels: {'a': 'after b'}}} : Object{}";
    for (reinvocation, expected) in [
        ("Never", json!({"b": "yes"})),
        ("IfNeeded", json!({"a": "after-b", "b": "yes"})),
    ] {
        let server = Server::start().await;
        let mut first = spec(json!([apply(&looking.replace("after b", "after-b"))]));
        first["reinvocationPolicy"] = reinvocation.into();
        make(&server, "a", first).await;
        make(
            &server,
            "b",
            spec(json!([apply("Object{metadata: Object.metadata{labels: {'b': 'yes'}}}")])),
        )
        .await;
        let made = server.post(MAPS, map("m", json!({}))).await;
        assert_eq!(made.body["metadata"]["labels"], expected, "{reinvocation}");
    }
}

#[tokio::test(start_paused = true)]
async fn custom_resources_are_merged_by_their_schema_and_pruned() {
    let server = Server::start().await;
    let parts = json!({"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"],
        "items": {"type": "object", "required": ["name"], "properties": {"name": {"type": "string"}, "count": {"type": "integer", "default": 1}}}});
    let schema =
        json!({"openAPIV3Schema": {"type": "object", "properties": {"size": {"type": "integer"}, "parts": parts}}});
    let definition = json!({"metadata": {"name": "toys.example.dev"}, "spec": {
        "group": "example.dev", "scope": "Namespaced", "names": {"plural": "toys", "kind": "Toy"},
        "versions": [{"name": "v1", "served": true, "storage": true, "schema": schema}]}});
    server.post("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", definition).await;
    make(
        &server,
        "p",
        spec(json!([
            apply("Object{size: object.size * 2, parts: [Object.parts{name: 'wheel'}]}"),
            json_patch("[JSONPatch{op: 'add', path: '/unknown', value: 1}]"),
        ])),
    )
    .await;
    let toy = json!({"apiVersion": "example.dev/v1", "kind": "Toy", "metadata": {"name": "t"}, "size": 2, "parts": [{"name": "seat", "count": 4}]});

    let made = server.post("/apis/example.dev/v1/namespaces/default/toys", toy).await;

    assert_eq!(made.code, 201, "{}", made.body);
    assert_eq!(made.body["size"], 4);
    assert_eq!(made.body["parts"], json!([{"name": "seat", "count": 4}, {"name": "wheel", "count": 1}]));
    assert_eq!(made.body["unknown"], Value::Null);
}

/// Random numbers, the same ones each time.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % bound
    }

    /// An expression, most of which are valid.
    fn expression(&mut self, depth: usize) -> String {
        const LEAVES: [&str; 12] = [
            "object",
            "oldObject",
            "object.data",
            "object.metadata.name",
            "variables.v",
            "request",
            "namespaceObject",
            "dyn(1)",
            "dyn('a')",
            "dyn([dyn(1), dyn('b')])",
            "dyn({'a': dyn(2)})",
            "authorizer.requestResource.check('get').allowed()",
        ];
        if depth == 0 || self.below(5) == 0 {
            return LEAVES[self.below(LEAVES.len())].to_owned();
        }
        let (one, two) = (self.expression(depth - 1), self.expression(depth - 1));
        match self.below(9) {
            0 => format!("dyn({one} == {two})"),
            1 => format!("(dyn({one}) + {two})"),
            2 => format!("dyn({one}).map(x, dyn({two}))"),
            3 => format!("dyn(dyn({one}).all(x, {two} == x))"),
            4 => format!("(dyn({one}) == {two} ? dyn({one}) : dyn({two}))"),
            5 => format!("dyn(Object{{data: {one}, metadata: Object.metadata{{labels: {two}}}}})"),
            6 => format!("dyn([JSONPatch{{op: string({one}), path: '/data', value: {two}}}])"),
            7 => format!("dyn({one}).a"),
            _ => format!("dyn({one})[{two}]"),
        }
    }
}

#[tokio::test(start_paused = true)]
async fn no_policy_makes_the_server_panic_or_hang() {
    let seed = 7;
    let mut random = Random(seed);
    let server = Server::start().await;
    let mut stored = 0;
    for round in 0..300 {
        let patch = format!("Object{{data: {}, metadata: {}}}", random.expression(3), random.expression(2));
        let operation = ["add", "replace", "test", "copy"][random.below(4)];
        let list = format!(
            "[JSONPatch{{op: '{operation}', path: '/data', from: '/metadata', value: {}}}]",
            random.expression(4)
        );
        let mut mutating = spec(json!([apply(&patch), json_patch(&list)]));
        mutating["variables"] = json!([{"name": "v", "expression": format!("dyn(1) == {}", random.expression(1)).replace("variables.v", "1")}]);
        mutating["failurePolicy"] = if round % 2 == 0 { "Fail" } else { "Ignore" }.into();
        let name = format!("p{round}");
        let policy = json!({"metadata": {"name": name}, "spec": mutating});
        let made = server.post(&format!("{GROUP}/mutatingadmissionpolicies"), policy).await;
        assert!([201, 422].contains(&made.code), "seed {seed}, round {round}: {}", made.body);
        if made.code != 201 {
            continue;
        }
        stored += 1;
        let binding = json!({"metadata": {"name": name}, "spec": {"policyName": name}});
        server.post(&format!("{GROUP}/mutatingadmissionpolicybindings"), binding).await;
        let answer = server.post(&format!("{MAPS}?dryRun=All"), map("m", json!({"k": "v"}))).await;
        assert!([201, 403, 422, 500].contains(&answer.code), "seed {seed}, round {round}: {}", answer.body);
        let path = format!("{GROUP}/mutatingadmissionpolicies/{name}");
        assert_eq!(server.ask(Method::DELETE, &path, "").await.code, 200);
    }
    assert!(stored >= 100, "seed {seed}: {stored} policies were valid");
}
