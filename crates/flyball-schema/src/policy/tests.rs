//! What expressions of admission may say, and what they cost.

use super::*;

use serde_json::json;

fn evaluate(compiler: &Compiler, input: Input<'_>, text: &str) -> Result<Value, String> {
    let expression = compiler.compile(text, &[])?;
    let mut evaluator = Evaluator::new(compiler, input, MAX_POLICY_COST);
    let value = evaluator.evaluate(&expression).map_err(|error| error.to_string())??;
    Ok(value.to_json().expect("a value that JSON has"))
}

#[derive(Debug)]
struct Verbs(&'static [&'static str]);

impl Authorizer for Verbs {
    fn authorize(&self, check: &AccessCheck) -> Decision {
        let reason = format!("{} {}/{}", check.verb, check.group, check.resource);
        Decision { allowed: self.0.contains(&&*check.verb), reason, error: None }
    }
}

#[test]
fn variables_have_upstreams_types() {
    let compiler = Compiler::new();
    let refused = |text: &str| compiler.compile(text, &[Type::Bool]).map(drop).unwrap_err();
    assert!(refused("request.reason == ''").contains("undefined field 'reason'"));
    assert!(refused("request.userInfo.groups == 'a'").contains("applied to '(list(string), string)'"));
    assert!(refused("namespaceObject.metadata.uid == ''").contains("undefined field 'uid'"));
    assert!(refused("namespaceObject.metadata.creationTimestamp == ''").contains("applied to '(timestamp, string)'"));
    assert!(refused("params.a == 1").contains("undeclared reference to 'params'"));
    assert!(refused("variables.a == 1").contains("undeclared reference to 'variables'"));
    assert!(refused("authorizer.path('/').check('get').allowed()").contains("undeclared reference to 'authorizer'"));
    assert_eq!(refused("object.spec.replicas"), "must evaluate to bool but got dyn");
    let kinds = [Type::String, Type::Null];
    let message = compiler.compile("request.userInfo.extra", &kinds).map(drop).unwrap_err();
    assert_eq!(message, "must evaluate to one of [string null_type] but got map(string, list(string))");
}

#[test]
fn values_come_from_the_request() {
    let request = json!({"operation": "UPDATE", "userInfo": {"username": "ada", "groups": ["staff"]}});
    let (object, old, params) = (json!({"spec": {"replicas": 3}}), json!({"spec": {"replicas": 1}}), json!({"max": 2}));
    let namespace = json!({"metadata": {"name": "web", "labels": {"tier": "front"}}});
    let input = || Input {
        old_object: &old,
        params: &params,
        namespace: &namespace,
        ..Input::new(&object, &request)
    };
    let compiler = Compiler::new().with_params();
    let value = |text: &str| evaluate(&compiler, input(), text);
    assert_eq!(value("object.spec.replicas - oldObject.spec.replicas <= params.max"), Ok(json!(true)));
    assert_eq!(value("request.userInfo.groups.exists(group, group == 'staff')"), Ok(json!(true)));
    assert_eq!(value("namespaceObject.metadata.labels['tier']"), Ok(json!("front")));
    assert_eq!(value("has(request.dryRun)"), Ok(json!(false)));
    assert_eq!(
        value("request.dryRun"),
        Err("expression 'request.dryRun' resulted in error: no such key: dryRun".into())
    );
    let created = evaluate(&compiler, Input::new(&object, &request), "oldObject == null && params == null");
    assert_eq!(created, Ok(json!(true)));
}

#[test]
fn variables_are_composed_in_order() {
    let (object, request) = (json!({"spec": {"replicas": 3}}), json!({}));
    let mut compiler = Compiler::new().with_variables();
    let early = compiler.add_variable("early", "variables.replicas").unwrap_err();
    assert!(early.contains("undefined field 'replicas'"), "{early}");
    compiler.add_variable("replicas", "int(object.spec.replicas)").expect("valid");
    compiler.add_variable("double", "variables.replicas * 2").expect("valid");
    compiler.add_variable("broken", "object.spec.missing").expect("valid");
    let value = |text: &str| evaluate(&compiler, Input::new(&object, &request), text);
    assert_eq!(value("variables.double + variables.replicas"), Ok(json!(9)));
    assert_eq!(value("has(variables.double) && variables.?double.hasValue()"), Ok(json!(true)));
    assert_eq!(value("dyn(variables).double"), Ok(json!(6)));
    let typed = value("variables.double + 'a'").unwrap_err();
    assert!(typed.contains("applied to '(int, string)'"), "{typed}");
    let broken = "expression 'variables.broken' resulted in error: composited variable \"broken\" fails to evaluate: \
                  no such key: missing";
    assert_eq!(value("variables.broken"), Err(broken.into()));
    let early = value("variables.early").unwrap_err();
    assert!(
        early.contains("composited variable \"early\" fails to compile: compilation failed: ERROR"),
        "{early}"
    );
    assert_eq!(value("variables.broken == 1 || true"), Ok(json!(true)));
}

#[test]
fn a_variable_is_evaluated_and_paid_once() {
    let (object, request) = (json!({"items": [1, 2, 3]}), json!({}));
    let mut compiler = Compiler::new().with_variables();
    compiler.add_variable("sum", "object.items.map(item, item + 1).size()").expect("valid");
    let expression = compiler.compile("variables.sum == 3", &[Type::Bool]).expect("valid");
    let mut evaluator = Evaluator::new(&compiler, Input::new(&object, &request), MAX_POLICY_COST);
    let mut cost = || {
        let before = evaluator.budget();
        assert_eq!(evaluator.evaluate(&expression), Ok(Ok(Cel::Bool(true))));
        before - evaluator.budget()
    };
    let (first, second) = (cost(), cost());
    assert_eq!(second, 3);
    assert!(first > second + 30, "{first}");
}

#[test]
fn the_caller_decides_what_is_authorized() {
    let (object, request) = (json!({}), json!({}));
    let compiler = Compiler::new().with_authorizer();
    let input = || Input {
        authorizer: Some(Arc::new(Verbs(&["create"]))),
        request_resource: AccessCheck {
            group: "apps".into(),
            resource: "deployments".into(),
            ..AccessCheck::default()
        },
        ..Input::new(&object, &request)
    };
    let value = |text: &str| evaluate(&compiler, input(), text);
    assert_eq!(value("authorizer.group('').resource('pods').check('create').allowed()"), Ok(json!(true)));
    assert_eq!(value("authorizer.group('').resource('pods').check('delete').allowed()"), Ok(json!(false)));
    assert_eq!(
        value("authorizer.requestResource.check('delete').reason()"),
        Ok(json!("delete apps/deployments"))
    );
    let check = "authorizer.requestResource.check('create').allowed()";
    assert_eq!(value(&[check; 2].join(" && ")), Ok(json!(true)));
    let third = value(&[check; 3].join(" && ")).unwrap_err();
    assert!(third.ends_with("operation cancelled: actual cost limit exceeded"), "{third}");
}

#[test]
fn the_budget_of_match_conditions_ends_after_seven_checks() {
    let (object, request) = (json!({}), json!({}));
    let compiler = Compiler::new().with_authorizer();
    let input = Input {
        authorizer: Some(Arc::new(Verbs(&["get"]))),
        ..Input::new(&object, &request)
    };
    let text = "authorizer.path('/healthz').check('get').allowed()";
    let expression = compiler.compile(text, &[Type::Bool]).expect("valid");
    let mut evaluator = Evaluator::new(&compiler, input, MAX_MATCH_CONDITIONS_COST);
    for _ in 0..7 {
        assert_eq!(evaluator.evaluate(&expression), Ok(Ok(Cel::Bool(true))));
    }
    assert_eq!(evaluator.evaluate(&expression), Err(OutOfBudget));
}

/// The patch that a mutation makes of a deployment with one container and three replicas.
fn patch(patch_type: PatchType, text: &str) -> Result<Value, String> {
    let object = json!({"metadata": {"name": "web"}, "spec": {"replicas": 3, "containers": [{"name": "a"}]}});
    let (compiler, request) = (Compiler::new(), json!({}));
    let expression = compiler.compile_patch(text, patch_type)?;
    let mut evaluator = Evaluator::new(&compiler, Input::new(&object, &request), MAX_POLICY_COST);
    let value = evaluator.evaluate(&expression).map_err(|error| error.to_string())??;
    patch_type.patch(&value)
}

#[test]
fn a_json_patch_is_a_list_of_operations() {
    let patch = |text: &str| patch(PatchType::JsonPatch, text);
    let made = patch(
        "[JSONPatch{op: 'test', path: '/spec/replicas', value: object.spec.replicas},
          JSONPatch{op: 'add', path: '/metadata/labels/' + jsonpatch.escapeKey('example.com/a~b'), value: 'x'},
          JSONPatch{op: 'move', from: '/a', path: '/b'}]
         + [JSONPatch{op: 'add', path: '/spec/containers/-', value: Object.spec.containers{
              name: object.metadata.name, ports: [Object.spec.containers.ports{containerPort: 8080}]}}]",
    );
    let expected = json!([
        {"op": "test", "path": "/spec/replicas", "value": 3},
        {"op": "add", "path": "/metadata/labels/example.com~1a~0b", "value": "x"},
        {"op": "move", "path": "/b", "from": "/a"},
        {"op": "add", "path": "/spec/containers/-", "value": {"name": "web", "ports": [{"containerPort": 8080}]}},
    ]);
    assert_eq!(made, Ok(expected));
    let large = patch("[JSONPatch{value: 9223372036854775807}]");
    assert_eq!(large, Ok(json!([{"op": "", "path": "", "value": "9223372036854775807"}])));
}

#[test]
fn json_patches_are_refused_in_upstreams_words() {
    let refused = |text: &str| patch(PatchType::JsonPatch, text).unwrap_err();
    assert!(
        refused("[JSONPatch{op: 1}]").contains("expected type of field 'op' is 'string' but provided type is 'int'")
    );
    assert!(refused("[JSONPatch{foo: 1}]").contains("undefined field 'foo'"));
    assert_eq!(refused("JSONPatch{}"), "must evaluate to list(JSONPatch) but got JSONPatch");
    assert!(refused("[JSONPatch{op: dyn(1)}]").ends_with("unexpected type int64 for JSONPatchType 'op' field"));
    assert_eq!(
        refused("[JSONPatch{value: Object.spec{a: Object.wrong{}}}]"),
        "type mismatch: unexpected type name \"Object.wrong\", expected \"Object.spec.a\", which matches field name path \
         from root Object type"
    );
    assert_eq!(
        refused("[JSONPatch{value: ip('1.1.1.1')}]"),
        "JSONPath valueExpression evaluated to a type that could not marshal to JSON: type conversion error from 'IP' to \
         '*structpb.Value'"
    );
    assert!(refused("JSONPatch == JSONPatch ? [JSONPatch{}] : []").ends_with("reference to undefined type: JSONPatch"));
}

#[test]
fn a_json_patch_has_fields() {
    let value = |text: &str| {
        let made = patch(PatchType::JsonPatch, &format!("[JSONPatch{{value: {text}}}]"));
        made.map(|made| made[0]["value"].clone())
    };
    assert_eq!(value("JSONPatch{op: 'a'}.op + JSONPatch{}.path + 'b'"), Ok(json!("ab")));
    assert_eq!(value("JSONPatch{}.value == null && JSONPatch{value: 1}.value == 1"), Ok(json!(true)));
    assert_eq!(value("has(JSONPatch{op: 'a'}.op) && !has(JSONPatch{op: ''}.op)"), Ok(json!(true)));
    assert_eq!(value("has(JSONPatch{value: null}.value) && !has(JSONPatch{}.value)"), Ok(json!(true)));
    assert_eq!(value("JSONPatch{op: 'a', value: 1} == JSONPatch{op: 'a', value: 1}"), Ok(json!(true)));
    assert_eq!(value("JSONPatch{value: 1} == JSONPatch{}"), Ok(json!(false)));
}

#[test]
fn an_apply_configuration_is_an_object() {
    let patch = |text: &str| patch(PatchType::ApplyConfiguration, text);
    let made = patch(
        "Object{metadata: Object.metadata{labels: {'a': 'b'}},
                spec: Object.spec{replicas: object.spec.replicas + 1, ?paused: optional.none(),
                                  containers: object.spec.containers.map(c, Object.spec.containers{name: c.name})}}",
    );
    let expected = json!({
        "metadata": {"labels": {"a": "b"}},
        "spec": {"replicas": 4, "containers": [{"name": "a"}]},
    });
    assert_eq!(made, Ok(expected));
    assert_eq!(patch("Object{a: has(Object{b: 1}.b) && Object{}.b == null}"), Ok(json!({"a": true})));
    assert_eq!(patch("Object.spec{}"), Err("must evaluate to Object but got Object.spec".into()));
    assert_eq!(patch("object"), Err("must evaluate to Object but got dyn".into()));
    let wrong = patch("Object{spec: [Object.wrong{}]}").unwrap_err();
    assert!(
        wrong.starts_with("type mismatch: unexpected type name \"Object.wrong\", expected \"Object.spec\""),
        "{wrong}"
    );
    assert!(patch("Object{at: duration('1s')}").unwrap_err().ends_with("invalid type: time.Duration"));
}

#[test]
fn only_mutations_know_the_types_of_patches() {
    let compiler = Compiler::new();
    for text in [
        "Object{} == null",
        "JSONPatch{} == null",
        "jsonpatch.escapeKey('a') == 'a'",
    ] {
        let refused = compiler.compile(text, &[]).map(drop).unwrap_err();
        assert!(refused.contains("undeclared reference to"), "{refused}");
    }
    let received = compiler.compile("kubernetes.UserInfo{} == request.userInfo", &[]).expect("valid");
    let (object, request) = (json!({}), json!({}));
    let mut evaluator = Evaluator::new(&compiler, Input::new(&object, &request), MAX_POLICY_COST);
    let error = evaluator.evaluate(&received).expect("within budget").unwrap_err();
    assert!(error.ends_with("unknown type 'kubernetes.UserInfo'"), "{error}");
}
