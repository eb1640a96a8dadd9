//! Random schemas and random objects: what has to hold whatever they are. A failure names its seed.

use crate::random::{Random, fitting, object, schema};
use flyball_schema::crd::{self, Status, Structural};
use flyball_schema::managed_fields::{self, Request};
use flyball_schema::{builtin, default, prune, validate};
use serde_json::{Value, json};

const SEEDS: u64 = 200;

#[test]
fn defaulting_again_changes_nothing() {
    for seed in 0..SEEDS {
        let mut random = Random::new(seed);
        let (schema, structural) = schema(&mut random, seed);
        let mut once = object(&mut random, 4);
        default::default(structural.node(), &mut once);
        let mut twice = once.clone();
        default::default(structural.node(), &mut twice);
        assert_eq!(once, twice, "seed {seed}: {schema}");
    }
}

#[test]
fn pruning_again_finds_nothing() {
    for seed in 0..SEEDS {
        let mut random = Random::new(seed);
        let (schema, structural) = schema(&mut random, seed);
        let mut object = object(&mut random, 4);
        prune::prune(structural.node(), &mut object);
        let pruned = object.clone();
        let again = prune::prune(structural.node(), &mut object);
        assert_eq!((again, &object), (Vec::new(), &pruned), "seed {seed}: {schema}");
    }
}

#[test]
fn what_was_defaulted_is_not_pruned() {
    for seed in 0..SEEDS {
        let mut random = Random::new(seed);
        let (schema, structural) = schema(&mut random, seed);
        let mut object = object(&mut random, 4);
        prune::prune(structural.node(), &mut object);
        default::default(structural.node(), &mut object);
        assert_eq!(prune::prune(structural.node(), &mut object), [""; 0], "seed {seed}: {schema}");
    }
}

#[test]
fn built_in_kinds_are_defaulted_once_and_never_panic() {
    let kinds: [fn(&mut Value); 6] = [
        builtin::pod::default,
        builtin::workload::default_deployment,
        builtin::workload::default_stateful_set,
        builtin::batch::default_job,
        builtin::service::default,
        builtin::network::default_policy,
    ];
    for seed in 0..SEEDS {
        let mut random = Random::new(seed);
        for fill in kinds {
            let mut once = json!({"metadata": {"name": "a"}, "spec": pod(&mut random)});
            fill(&mut once);
            let mut twice = once.clone();
            fill(&mut twice);
            assert_eq!(once, twice, "seed {seed}");
        }
    }
}

#[test]
fn a_schema_that_was_written_and_read_back_says_the_same() {
    for seed in 0..SEEDS / 4 {
        let mut random = Random::new(seed);
        let (schema, structural) = schema(&mut random, seed);
        let written = structural.to_schema();
        let again = crd::read(&written, "schema", Status::Plain);
        let again = again.unwrap_or_else(|wrong| panic!("seed {seed}: {wrong:?} in {written} of {schema}"));
        assert_eq!(again.to_schema(), written, "seed {seed}: {schema}");
        for _ in 0..5 {
            let (new, old) = (fitting(&mut random, &schema, 6), fitting(&mut random, &schema, 6));
            let (before, after) = (verdicts(&structural, &new, &old), verdicts(&again, &new, &old));
            assert_eq!(before, after, "seed {seed}: {new} after {old}, {schema} written as {written}");
        }
    }
}

/// All that a schema decides about an object: what is pruned, defaulted, coerced, wrong, wrong anew, and who owns what.
fn verdicts(structural: &Structural, new: &Value, old: &Value) -> Value {
    let node = structural.node();
    let lines = |violations: Vec<_>| violations.iter().map(ToString::to_string).collect::<Vec<String>>();
    let (mut pruned, mut filled, mut coerced) = (new.clone(), new.clone(), new.clone());
    let dropped = prune::prune(node, &mut pruned);
    default::default(node, &mut filled);
    let complaints = structural.coerce(&mut coerced).map_err(|error| error.to_string());
    let request = Request {
        node,
        live: None,
        manager: "one",
        api_version: "example.dev/v1",
        kind: "Any",
        subresource: None,
        reset: &[],
        versions: &[],
        now: "2026-01-02T15:04:05Z",
    };
    let applied = managed_fields::apply(&request, new, false).map_err(|error| error.to_string());
    json!({
        "pruned": [pruned, dropped],
        "filled": filled,
        "coerced": [coerced, format!("{complaints:?}")],
        "wrong": lines(validate::validate(node, new)),
        "wrong anew": lines(validate::validate_update(node, new, old)),
        "applied": format!("{applied:?}"),
    })
}

/// A spec in which some lists hold what has defaults of its own.
fn pod(random: &mut Random) -> Value {
    let image = ["a", "a:1", "a@sha256:0"][random.below(3)];
    let kind = ["ClusterIP", "NodePort", "LoadBalancer"][random.below(3)];
    let probe = json!({"httpGet": {"port": random.below(9)}});
    let container = json!({
        "image": image,
        "ports": [{"containerPort": random.below(9), "port": random.below(9)}],
        "livenessProbe": probe,
        "resources": {"limits": {"cpu": "1"}},
    });
    let volume = [
        json!({"name": "v"}),
        json!({"name": "v", "secret": {}}),
        json!({"name": "v", "hostPath": {}}),
    ];
    let spec = json!({
        "containers": [container.clone(), container],
        "volumes": [volume[random.below(3)]],
        "hostNetwork": random.below(2) == 0,
        "type": kind,
        "ports": [{"port": random.below(9)}],
        "egress": [{"ports": [{"port": 80}]}],
        "volumeClaimTemplates": [{"metadata": {"name": "c"}}],
    });
    match random.below(3) {
        0 => json!({"template": {"spec": spec}}),
        1 => object(random, 3),
        _ => spec,
    }
}
