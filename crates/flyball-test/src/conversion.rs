//! The round trips of a conversion, with random objects that the schemas allow.

use crate::generate;
use fastrand::Rng;
use flyball::Operator;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use serde_json::Value;

/// Checks that conversions of an operator lose nothing: `count` random objects of each kind that it converts are converted to each
/// other version, back, and there again, and must be the same both times.
///
/// An object that fails is printed with its seed, and is the same in the next run.
///
/// ```
/// # use flyball::Operator;
/// # fn operator() -> Operator { Operator::new("disks") }
/// flyball_test::check_conversion(&operator(), 1_000);
/// ```
///
/// # Panics
/// If a round trip changes an object, or a conversion fails.
#[track_caller]
pub fn check_conversion(operator: &Operator, count: u64) {
    for crd in operator.crds().iter().filter(|crd| crd.spec.versions.len() > 1) {
        for seed in 0..count {
            if let Err(failure) = round_trips(operator, crd, seed) {
                panic!("{}, seed {seed}: {failure}", crd.spec.names.kind);
            }
        }
    }
}

fn round_trips(operator: &Operator, crd: &CustomResourceDefinition, seed: u64) -> Result<(), String> {
    let mut random = Rng::with_seed(seed);
    let versions = &crd.spec.versions;
    let from = &versions[random.usize(..versions.len())];
    let schema = from.schema.as_ref().and_then(|schema| schema.open_api_v3_schema.as_ref());
    let schema = serde_json::to_value(schema).map_err(|error| error.to_string())?;
    let name = |version: &str| format!("{}/{version}", crd.spec.group);
    let first = generate::object(&mut random, &schema, &name(&from.name), &crd.spec.names.kind);
    let convert = |object: &Value, version: &str| {
        let converted = operator.convert(object, &name(version));
        converted.map_err(|error| format!("to {version}: {error}\n{}", shown(object)))
    };
    for to in versions.iter().filter(|version| version.name != from.name) {
        let there = convert(&first, &to.name)?;
        let back = convert(&there, &from.name)?;
        same(&first, &back, &format!("{} to {} and back", from.name, to.name))?;
        let again = convert(&back, &to.name)?;
        same(&there, &again, &format!("{} to {}, the second time", from.name, to.name))?;
    }
    Ok(())
}

fn same(before: &Value, after: &Value, what: &str) -> Result<(), String> {
    match before == after {
        true => Ok(()),
        false => Err(format!("{what} changes it\nbefore: {}\nafter: {}", shown(before), shown(after))),
    }
}

fn shown(object: &Value) -> String {
    serde_saphyr::to_string(object).unwrap_or_else(|_| object.to_string())
}
