//! Strategic merges of random objects: the patch that a difference makes gives the target. A failure names its seed.

use flyball_schema::kinds;
use flyball_schema::schema::Node;
use flyball_schema::strategic_merge::{self, MergeError};
use serde_json::{Value, json};

const SEEDS: u64 = 300;

fn deployment() -> Node<'static> {
    kinds::builtin().type_of("apps/v1", "Deployment").expect("Deployment is in the table")
}

#[test]
fn merging_the_difference_of_two_objects_gives_the_second() {
    for seed in 0..SEEDS {
        let mut random = Random(fastrand::Rng::with_seed(seed));
        let (original, modified) = (random.object(), random.object());
        let patch = strategic_merge::diff(&original, &modified, deployment()).expect("both are well formed");
        let mut merged = original.clone();
        strategic_merge::apply(&mut merged, &patch, deployment())
            .unwrap_or_else(|error| panic!("seed {seed}: {error}"));
        assert_eq!(merged, modified, "seed {seed}: {patch} on {original}");
        let again = strategic_merge::diff(&merged, &modified, deployment());
        assert_eq!(again, Ok(json!({})), "seed {seed}");
    }
}

#[test]
fn a_null_in_a_list_is_refused() {
    let mut object = json!({"metadata": {"finalizers": ["a"]}});
    let merged = strategic_merge::apply(&mut object, &json!({"metadata": {"finalizers": [null]}}), deployment());
    assert!(matches!(merged, Err(MergeError::Unfit(_))), "{merged:?}");
}

struct Random(fastrand::Rng);

impl Random {
    fn below(&mut self, count: u64) -> u64 {
        self.0.u64(..count)
    }

    /// Some of these, in any order.
    fn some(&mut self, names: &[&'static str]) -> Vec<&'static str> {
        let mut names: Vec<&str> = names.to_vec();
        for at in (1..names.len()).rev() {
            names.swap(at, self.below(at as u64 + 1) as usize);
        }
        names.truncate(self.below(names.len() as u64 + 1) as usize);
        names
    }

    fn text(&mut self) -> Value {
        format!("v{}", self.below(3)).into()
    }

    fn map(&mut self) -> Value {
        self.some(&["a", "b", "c"]).into_iter().map(|key| (key.to_owned(), self.text())).collect()
    }

    fn container(&mut self, name: &str) -> Value {
        let env = |random: &mut Self, name: &str| json!({"name": name, "value": random.text()});
        let env: Vec<Value> = self.some(&["A", "B", "C", "D"]).iter().map(|name| env(self, name)).collect();
        let ports: Vec<Value> = (0..self.below(3))
            .map(|port| json!({"containerPort": 80 + port, "name": self.text()}))
            .collect();
        json!({"name": name, "image": self.text(), "args": self.some(&["x", "y", "z"]), "env": env, "ports": ports,
            "resources": {"limits": self.map()}})
    }

    fn object(&mut self) -> Value {
        let names = self.some(&["one", "two", "three", "four"]);
        let containers: Vec<Value> = names.iter().map(|name| self.container(name)).collect();
        let volume = |random: &mut Self, name: &str| match random.below(2) {
            0 => json!({"name": name, "emptyDir": {}}),
            _ => json!({"name": name, "configMap": {"name": random.text()}}),
        };
        let volumes: Vec<Value> = self.some(&["v", "w"]).iter().map(|name| volume(self, name)).collect();
        let strategy = match self.below(2) {
            0 => json!({"type": "Recreate"}),
            _ => json!({"type": "RollingUpdate", "rollingUpdate": {"maxSurge": self.below(3)}}),
        };
        let finalizers = self.some(&["f/a", "f/b", "f/c", "f/d"]);
        let spec = json!({"containers": containers, "volumes": volumes, "nodeSelector": self.map()});
        json!({"metadata": {"name": "x", "labels": self.map(), "finalizers": finalizers},
            "spec": {"replicas": self.below(4), "strategy": strategy, "template": {"metadata": {"labels": self.map()}, "spec": spec}}})
    }
}
