//! Quantities.

use crate::{check_all, same, text};
use flyball_schema::quantity::Quantity;
use serde_json::json;

#[test]
fn quantities_print_as_kubernetes_prints_them() {
    check_all("quantities.yaml", |case| match text(case, "text").parse::<Quantity>() {
        Ok(quantity) => same(&json!(quantity.to_string()), &case["prints"]),
        Err(error) => same(&json!(error.to_string()), &case["error"]),
    });
}

#[test]
fn quantities_compare_by_amount_whatever_their_notation() {
    let sorted = [
        "-1e30", "-1", "-500m", "0", "1n", "1m", "0.5", "999m", "1", "1023", "1Ki", "1.1k", "1M", "1Mi", "1e30",
    ];
    let quantities: Vec<Quantity> = sorted.iter().map(|text| text.parse().expect("a quantity")).collect();
    assert!(quantities.windows(2).all(|pair| pair[0] < pair[1]), "{quantities:?}");
    for (one, other) in [
        ("1", "1000m"),
        ("0.5", "500m"),
        ("1Ki", "1024"),
        ("0", "-0"),
        ("1e3", "1k"),
        ("1.0", "1.000"),
    ] {
        let parse = |text: &str| text.parse::<Quantity>().expect("a quantity");
        assert_eq!(parse(one), parse(other), "{one} is {other}");
    }
}
