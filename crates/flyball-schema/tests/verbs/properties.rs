//! Random schemas and random objects: what has to hold whatever they are. A failure names its seed.

use flyball_schema::crd::{self, Status, Structural};
use flyball_schema::{builtin, default, prune};
use serde_json::{Map, Value, json};

const SEEDS: u64 = 200;

#[test]
fn defaulting_again_changes_nothing() {
    for seed in 0..SEEDS {
        let mut random = Random(seed);
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
        let mut random = Random(seed);
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
        let mut random = Random(seed);
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
        let mut random = Random(seed);
        for fill in kinds {
            let mut once = json!({"metadata": {"name": "a"}, "spec": pod(&mut random)});
            fill(&mut once);
            let mut twice = once.clone();
            fill(&mut twice);
            assert_eq!(once, twice, "seed {seed}");
        }
    }
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

fn schema(random: &mut Random, seed: u64) -> (Value, Structural) {
    let mut properties = Map::new();
    for name in ["a", "b", "c"] {
        properties.insert(name.into(), any_type(random, 3));
    }
    let schema = json!({"type": "object", "properties": properties});
    let structural = crd::read(&schema, "schema", Status::Plain);
    let structural = structural.unwrap_or_else(|wrong| panic!("seed {seed}: {wrong:?} in {schema}"));
    (schema, structural)
}

fn any_type(random: &mut Random, depth: usize) -> Value {
    let scalars = [
        json!({"type": "string"}),
        json!({"type": "string", "default": "x"}),
        json!({"type": "integer", "default": 7}),
        json!({"type": "boolean"}),
        json!({"type": "string", "nullable": true, "default": "y"}),
        json!({"x-kubernetes-int-or-string": true}),
        json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true}),
    ];
    match random.below(if depth == 0 { 1 } else { 5 }) {
        0 => scalars[random.below(scalars.len())].clone(),
        1 => json!({"type": "array", "items": any_type(random, depth - 1)}),
        2 => json!({"type": "object", "additionalProperties": any_type(random, depth - 1)}),
        3 => {
            json!({"type": "object", "default": {}, "properties": {"a": any_type(random, depth - 1), "d": any_type(random, depth - 1)}})
        }
        _ => {
            json!({"type": "object", "properties": {"b": any_type(random, depth - 1), "c": any_type(random, depth - 1)}})
        }
    }
}

/// An object that may fit the schema or not.
fn object(random: &mut Random, depth: usize) -> Value {
    let names = ["a", "b", "c", "d", "e"];
    let fields = (0..random.below(5)).map(|_| (names[random.below(5)].to_owned(), value(random, depth)));
    Value::Object(fields.collect::<Vec<_>>().into_iter().collect())
}

fn value(random: &mut Random, depth: usize) -> Value {
    match random.below(if depth == 0 { 4 } else { 7 }) {
        0 => json!("text"),
        1 => json!(random.below(100)),
        2 => json!(true),
        3 => Value::Null,
        4 => (0..random.below(3)).map(|_| value(random, depth - 1)).collect(),
        _ => object(random, depth - 1),
    }
}

/// Marsaglia's xorshift.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: usize) -> usize {
        let mut state = self.0.wrapping_mul(0x9e37_79b9_7f4a_7c15).wrapping_add(0x1234_5678_9abc_def1);
        state ^= state >> 12;
        state ^= state << 25;
        state ^= state >> 27;
        self.0 = state;
        (state.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33) as usize % bound
    }
}
