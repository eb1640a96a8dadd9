//! Which crate may depend on which, read from `cargo metadata`. Dev-dependencies are excepted.

use crate::Complaint;
use cargo_metadata::{DependencyKind, Metadata, PackageId};
use std::collections::{BTreeSet, HashMap};

/// Pairs that must not be connected, directly or through others, and why.
const NEVER: [(&str, &str, &str); 19] = [
    ("flyball", "flyball-apiserver", "an operator does not ship a server"),
    ("flyball", "flyball-store", "an operator does not ship a store"),
    ("flyball-apiserver", "flyball", "a server does not know its clients"),
    ("flyball-apiserver", "kube", "a server does not know its clients"),
    ("flyball-apiserver", "k8s-openapi", "the table of kinds is data"),
    ("flyball-cel", "tokio", "pure functions need no runtime"),
    ("flyball-cel", "http", "pure functions need no network"),
    ("flyball-cel", "hyper", "pure functions need no network"),
    ("flyball-cel", "kube", "a language does not know its users"),
    ("flyball-cel", "k8s-openapi", "a language does not know its users"),
    ("flyball-cel", "flyball-schema", "a language does not know its users"),
    ("flyball-cel", "flyball-apiserver", "a language does not know its users"),
    ("flyball-schema", "tokio", "pure functions need no runtime"),
    ("flyball-schema", "http", "pure functions need no network"),
    ("flyball-store", "kube", "the store does not know what it stores"),
    ("flyball-store", "k8s-openapi", "the store does not know what it stores"),
    ("flyball-store", "serde_json", "the store does not know what it stores"),
    ("flyball-host", "k8s-openapi", "the machine knows no Kubernetes"),
    ("*", "flyball-cli", "nothing builds on the command line"),
];

/// Complains of forbidden connections, of manifests that do not inherit from the workspace, and of libraries that choose a
/// Kubernetes version for their users.
pub fn complaints(metadata: &Metadata) -> Vec<Complaint> {
    let graph = Graph::new(metadata);
    let mut complaints = Vec::new();
    for package in metadata.workspace_packages() {
        complaints.extend(forbidden(&package.name, &graph.reached_from(&package.id)));
        complaints.extend(versions_chosen(package));
    }
    complaints
}

fn forbidden<'a>(name: &'a str, reached: &'a BTreeSet<&str>) -> impl Iterator<Item = Complaint> + 'a {
    let rules = NEVER
        .iter()
        .filter(move |(from, to, _)| (*from == "*" || *from == name) && reached.contains(to));
    rules.map(move |(_, to, why)| format!("{name} → {to}: never, because {why}"))
}

fn versions_chosen(package: &cargo_metadata::Package) -> Vec<Complaint> {
    let folder = package.manifest_path.as_str();
    let library = folder.contains("/crates/") && package.name.as_str() != "flyball-cli";
    let chosen = package.dependencies.iter().filter(|dependency| {
        library
            && dependency.kind == DependencyKind::Normal
            && dependency.name == "k8s-openapi"
            && dependency
                .features
                .iter()
                .any(|feature| feature.starts_with("v1_") || feature == "latest")
    });
    chosen
        .map(|_| format!("{} enables a version of k8s-openapi: that is the application's choice", package.name))
        .collect()
}

struct Graph<'a> {
    names: HashMap<&'a PackageId, &'a str>,
    edges: HashMap<&'a PackageId, Vec<&'a PackageId>>,
}

impl<'a> Graph<'a> {
    fn new(metadata: &'a Metadata) -> Graph<'a> {
        let names = metadata.packages.iter().map(|package| (&package.id, package.name.as_str())).collect();
        let resolve = metadata.resolve.as_ref().expect("cargo metadata resolves");
        let edges = resolve.nodes.iter().map(|node| {
            let normal = node
                .deps
                .iter()
                .filter(|dep| dep.dep_kinds.iter().any(|kind| kind.kind == DependencyKind::Normal));
            (&node.id, normal.map(|dep| &dep.pkg).collect())
        });
        Graph { names, edges: edges.collect() }
    }

    fn reached_from(&self, start: &'a PackageId) -> BTreeSet<&'a str> {
        let mut seen = BTreeSet::new();
        let mut waiting = vec![start];
        let mut names = BTreeSet::new();
        while let Some(id) = waiting.pop() {
            for next in self.edges.get(id).into_iter().flatten().copied() {
                if seen.insert(next) {
                    names.insert(self.names[next]);
                    waiting.push(next);
                }
            }
        }
        names
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_forbidden_edge_is_complained_of_with_its_reason() {
        let reached = BTreeSet::from(["kube", "flyball-apiserver"]);
        let complaints: Vec<_> = forbidden("flyball", &reached).collect();
        assert_eq!(
            complaints,
            ["flyball → flyball-apiserver: never, because an operator does not ship a server"]
        );
        assert_eq!(forbidden("flyball-cluster", &reached).count(), 0);
    }

    #[test]
    fn nothing_builds_on_the_command_line() {
        assert_eq!(forbidden("bench", &BTreeSet::from(["flyball-cli"])).count(), 1);
    }

    #[test]
    fn the_graph_reaches_through_dependencies() {
        let metadata = cargo_metadata::MetadataCommand::new().exec().expect("cargo metadata answers");
        let tidy = metadata
            .workspace_packages()
            .into_iter()
            .find(|package| package.name == "tidy")
            .expect("this crate");
        let graph = Graph::new(&metadata);
        let reached = graph.reached_from(&tidy.id);
        assert!(reached.contains("serde_json"), "cargo_metadata brings it: {reached:?}");
        assert!(!reached.contains("tokio"), "{reached:?}");
    }
}
