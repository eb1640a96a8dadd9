//! Label selectors: `app=web,tier in (front, back),!canary`.

mod parse;

use super::ParseSelectorError;
use serde_json::{Map, Value};
use std::fmt;
use std::str::FromStr;

/// What labels have to be; the empty selector takes everything.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LabelSelector {
    /// Every one of them has to hold; sorted by key.
    pub requirements: Vec<LabelRequirement>,
}

/// What one label has to be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LabelRequirement {
    /// The label's key.
    pub key: String,
    /// How its value relates to the values.
    pub operator: LabelOperator,
    /// The values, sorted; none for `Exists` and `DoesNotExist`.
    pub values: Vec<String>,
}

/// How a label's value relates to the values of a requirement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "each is the operator of its name")]
pub enum LabelOperator {
    Equals,
    DoubleEquals,
    NotEquals,
    In,
    NotIn,
    Exists,
    DoesNotExist,
    GreaterThan,
    LessThan,
}

impl FromStr for LabelSelector {
    type Err = ParseSelectorError;

    fn from_str(text: &str) -> Result<LabelSelector, ParseSelectorError> {
        let mut requirements = parse::requirements(text)?;
        requirements.sort_by(|one, other| one.key.cmp(&other.key));
        Ok(LabelSelector { requirements })
    }
}

impl LabelSelector {
    /// Reads `matchLabels` and `matchExpressions`; nothing if they say what cannot be.
    // apimachinery/pkg/apis/meta/v1/helpers.go, LabelSelectorAsSelector
    pub fn from_value(selector: &Value) -> Option<LabelSelector> {
        let labels = selector["matchLabels"].as_object();
        let mut requirements = labels.into_iter().flatten().map(equals).collect::<Option<Vec<_>>>()?;
        for expression in selector["matchExpressions"].as_array().into_iter().flatten() {
            requirements.push(from_expression(expression)?);
        }
        requirements.sort_by(|one, other| one.key.cmp(&other.key));
        Some(LabelSelector { requirements })
    }

    /// Whether nothing is asked for.
    pub fn is_empty(&self) -> bool {
        self.requirements.is_empty()
    }

    /// Whether an object with these labels (its `metadata.labels`) is meant.
    pub fn matches(&self, labels: Option<&Map<String, Value>>) -> bool {
        self.requirements
            .iter()
            .all(|one| one.matches(labels.and_then(|labels| labels.get(&one.key)?.as_str())))
    }
}

impl LabelRequirement {
    /// Whether the label's value, if it is there at all, is as it has to be.
    pub fn matches(&self, value: Option<&str>) -> bool {
        let listed = |value: &str| self.values.iter().any(|one| one == value);
        match self.operator {
            LabelOperator::Equals | LabelOperator::DoubleEquals | LabelOperator::In => value.is_some_and(listed),
            LabelOperator::NotEquals | LabelOperator::NotIn => !value.is_some_and(listed),
            LabelOperator::Exists => value.is_some(),
            LabelOperator::DoesNotExist => value.is_none(),
            LabelOperator::GreaterThan => self.compares(value, |value, bound| value > bound),
            LabelOperator::LessThan => self.compares(value, |value, bound| value < bound),
        }
    }

    fn compares(&self, value: Option<&str>, holds: impl Fn(i64, i64) -> bool) -> bool {
        let value = value.and_then(|value| value.parse().ok());
        let bound = self.values.first().and_then(|bound| bound.parse().ok());
        value.zip(bound).is_some_and(|(value, bound)| holds(value, bound))
    }
}

fn equals((key, value): (&String, &Value)) -> Option<LabelRequirement> {
    let values = vec![value.as_str()?.to_owned()];
    Some(LabelRequirement { key: key.clone(), operator: LabelOperator::Equals, values })
}

fn from_expression(expression: &Value) -> Option<LabelRequirement> {
    let operator = match expression["operator"].as_str()? {
        "In" => LabelOperator::In,
        "NotIn" => LabelOperator::NotIn,
        "Exists" => LabelOperator::Exists,
        "DoesNotExist" => LabelOperator::DoesNotExist,
        _ => return None,
    };
    let values = expression["values"].as_array().into_iter().flatten();
    let values = values.map(|value| value.as_str().map(str::to_owned)).collect::<Option<Vec<_>>>()?;
    Some(LabelRequirement {
        key: expression["key"].as_str()?.to_owned(),
        operator,
        values,
    })
}

impl fmt::Display for LabelSelector {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, requirement) in self.requirements.iter().enumerate() {
            let comma = if index > 0 { "," } else { "" };
            write!(formatter, "{comma}{requirement}")?;
        }
        Ok(())
    }
}

impl fmt::Display for LabelRequirement {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (key, values) = (&self.key, self.values.join(","));
        match self.operator {
            LabelOperator::Equals => write!(formatter, "{key}={values}"),
            LabelOperator::DoubleEquals => write!(formatter, "{key}=={values}"),
            LabelOperator::NotEquals => write!(formatter, "{key}!={values}"),
            LabelOperator::In => write!(formatter, "{key} in ({values})"),
            LabelOperator::NotIn => write!(formatter, "{key} notin ({values})"),
            LabelOperator::Exists => formatter.write_str(key),
            LabelOperator::DoesNotExist => write!(formatter, "!{key}"),
            LabelOperator::GreaterThan => write!(formatter, "{key}>{values}"),
            LabelOperator::LessThan => write!(formatter, "{key}<{values}"),
        }
    }
}
