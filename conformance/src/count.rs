//! How many cases there are of each sort, counted in the files that hold them.

use serde_json::Value;

use crate::answers;
use crate::cel::{self, rules};
use crate::corpus::{self, family, recorded};
use crate::requests::{self, script};
use crate::sequences;

/// A sort of cases, how many there are, and how many there have to be.
#[derive(Debug)]
pub struct Count {
    /// What is counted.
    pub of: &'static str,
    /// How many there are.
    pub found: usize,
    /// The fewest there may be.
    pub least: usize,
}

/// Counts every sort.
pub fn all() -> Result<Vec<Count>, String> {
    let documents = sequences::read_all()?;
    let several = documents
        .iter()
        .flat_map(sequences::Document::sequences)
        .filter(|sequence| (2..=5).contains(&sequences::managers(sequence)))
        .count();
    let families = family::read_all(&corpus::directory())?;
    let in_families = |is_meant: fn(&str) -> bool| -> usize {
        let meant = families.iter().filter(|family| is_meant(&family.name));
        meant.map(|family| family.cases.len()).sum()
    };
    let count = |of, found, least| Count { of, found, least };
    Ok(vec![
        count("apply sequences of two to five managers", several, 100),
        count("strategic merges", strategic()?, 80),
        count("validation and defaulting of custom resources", in_families(is_custom), 100),
        count("validation and defaulting of built-in kinds", in_families(is_built_in), 150),
        count("non-structural definitions", non_structural()?, 40),
        count("validation rules in CEL", rules::count(&rules::read_all(&cel::directory())?), 300),
        count("protobuf round trips", answers::read()?.len(), 60),
        count("cases in all", families.iter().map(|family| family.cases.len()).sum(), 500),
    ])
}

fn is_custom(family: &str) -> bool {
    family.starts_with("custom-") || family == "crd-ratcheting"
}

fn is_built_in(family: &str) -> bool {
    !is_custom(family) && !family.starts_with("crd")
}

fn strategic() -> Result<usize, String> {
    let scripts = script::read_all(&requests::directory()).map_err(|error| error.to_string())?;
    let requests = scripts.iter().flat_map(|script| &script.requests);
    let is_strategic = |request: &&script::Request| {
        request
            .headers
            .values()
            .any(|value| value.starts_with("application/strategic-merge-patch"))
    };
    Ok(requests.filter(is_strategic).count())
}

/// Definitions that the real server refused for their schema.
fn non_structural() -> Result<usize, String> {
    let outcomes = recorded::read(&corpus::directory().join("recorded"))?;
    let is_about_schema = |outcome: &&Value| {
        let causes = outcome["body"]["details"]["causes"].as_array().into_iter().flatten();
        let mut fields = causes.filter_map(|cause| cause["field"].as_str());
        outcome["body"]["details"]["kind"] == "CustomResourceDefinition"
            && fields.any(|field| field.contains("openAPIV3Schema"))
    };
    Ok(outcomes.values().filter(is_about_schema).count())
}
