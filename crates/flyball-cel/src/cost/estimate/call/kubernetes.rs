//! What Kubernetes' functions may cost (library/cost.go, EstimateCallCost).

use super::{Argument, CallEstimate, CostEstimate, Coster, SizeEstimate};
use crate::ast::{ExprKind, Literal};
use crate::cost::{LIST_COST, PATTERN_FACTOR, STRUCT_COST, TEXT_FACTOR};
use crate::typing::Type;

/// How long the longest pattern of a named format is taken to be.
const FORMAT_PATTERN: f64 = 128.0;
/// How long the longest name of a format is taken to be.
const FORMAT_NAME: u64 = 64;
/// An address has four or sixteen bytes.
const ADDRESS: SizeEstimate = SizeEstimate { min: 4, max: 16 };

impl Coster<'_> {
    pub(super) fn kubernetes(
        &self,
        function: &str,
        overload: &str,
        target: Option<&Argument>,
        args: &[Argument],
    ) -> Option<CallEstimate> {
        let text = |argument: &Argument| self.estimated(argument).at(TEXT_FACTOR);
        Some(match (function, target, args) {
            ("check", ..) => CallEstimate::fixed(350_000),
            ("fieldSelector" | "labelSelector", _, [only]) => selector(self.estimated(only)).into(),
            ("isSorted" | "sum" | "max" | "min" | "indexOf" | "lastIndexOf", Some(target), _) => self.aggregate(target),
            ("url" | "jsonpatch.escapeKey", _, [only]) => CallEstimate::sized(text(only), self.estimated(only)),
            ("lowerAscii" | "upperAscii" | "substring" | "trim", Some(target), _) => {
                CallEstimate::sized(text(target), self.estimated(target))
            }
            ("replace", Some(target), [from, to, ..]) => self.replace(target, from, to),
            ("split", Some(target), _) => self.split(target, args),
            ("join", Some(target), _) => self.join(target, args),
            ("find" | "findAll", Some(target), [pattern, ..]) => {
                let size = self.estimated(target);
                let walked = size.add(SizeEstimate::fixed(1)).at(TEXT_FACTOR);
                let cost = walked.times(self.estimated(pattern).at(PATTERN_FACTOR));
                CallEstimate::sized(cost, SizeEstimate { min: 0, max: size.max })
            }
            ("ip", ..) if overload == "cidr_ip" => CallEstimate::fixed(1),
            ("cidr" | "isIP" | "isCIDR" | "ip" | "quantity" | "isQuantity" | "semver" | "isSemver", _, [first, ..]) => {
                text(first).into()
            }
            ("ip.isCanonical", _, [first, ..]) => self.estimated(first).at(2.0 * TEXT_FACTOR).into(),
            ("containsIP" | "containsCIDR", _, [other, ..]) => self.contained(function, overload, other),
            ("validate", _, [first, ..]) => text(first).at(FORMAT_PATTERN * PATTERN_FACTOR).into(),
            ("_==_", _, [one, other]) => self.equality(one, other)?,
            _ if is_unit(function) => CallEstimate::fixed(1),
            _ => return None,
        })
    }

    /// Looks at each element, at the whole text of each if they are text.
    fn aggregate(&self, target: &Argument) -> CallEstimate {
        let size = self.estimated(target);
        match self.element(target) {
            Some(element) => {
                let mut cost = CostEstimate::fixed(1);
                if matches!(element.kind, Type::String | Type::Bytes) {
                    cost = cost.add(self.estimated(&element).at(TEXT_FACTOR));
                }
                size.times_cost(cost).into()
            }
            None => size.at(TEXT_FACTOR).into(),
        }
    }

    /// The elements of a list, as something of which the caller may know the size.
    fn element(&self, list: &Argument) -> Option<Argument> {
        let kind = match &list.kind {
            Type::List(element) => (**element).clone(),
            Type::Map(key, _) => (**key).clone(),
            Type::Opaque(_, params) => params.first()?.clone(),
            _ => return None,
        };
        let mut path = list.path.clone();
        if !path.is_empty() {
            path.push("@items".into());
        }
        Some(Argument { id: None, path, kind, size: None })
    }

    fn replace(&self, target: &Argument, from: &Argument, to: &Argument) -> CallEstimate {
        let (size, from, to) = (self.estimated(target), self.estimated(from), self.estimated(to));
        let parts = |whole: u64, part: u64| (whole as f64 / part as f64).ceil() as u64;
        let (mut count, mut kept) = (SizeEstimate::default(), SizeEstimate::default());
        if from.min == 0 {
            count.max = size.max.saturating_add(1);
            kept.max = size.max;
        } else if to.max <= from.min {
            kept.max = size.max;
        } else {
            count.max = parts(size.max, from.min);
        }
        if from.max == 0 {
            count.min = size.min.saturating_add(1);
            kept.min = size.min;
        } else if from.max <= to.min {
            kept.min = size.min;
        } else {
            count.min = parts(size.min, from.max);
        }
        CallEstimate::sized(size.at(2.0 * TEXT_FACTOR), count.times(to).add(kept))
    }

    fn split(&self, target: &Argument, args: &[Argument]) -> CallEstimate {
        let size = self.estimated(target);
        let limit = args.get(1).and_then(|limit| match &self.checked.tree.expr(limit.id?).kind {
            ExprKind::Literal(Literal::Int(limit)) => Some(*limit as u64),
            _ => None,
        });
        CallEstimate::sized(size.at(2.0 * TEXT_FACTOR), SizeEstimate { min: 0, max: limit.unwrap_or(size.max) })
    }

    fn join(&self, target: &Argument, args: &[Argument]) -> CallEstimate {
        let count = self.estimated(target);
        let mut size = SizeEstimate::default();
        if let Some(element) = self.element(target) {
            size = count.times(self.estimated(&element));
        }
        if let Some(separator) = args.first() {
            let separators = SizeEstimate {
                min: count.min.saturating_sub(1),
                max: count.max.saturating_sub(1),
            };
            size = size.add(self.estimated(separator).times(separators));
        }
        CallEstimate::sized(size.at(TEXT_FACTOR), size)
    }

    fn contained(&self, function: &str, overload: &str, other: &Argument) -> CallEstimate {
        let mut cost = ADDRESS.add(ADDRESS).at(TEXT_FACTOR);
        if function == "containsCIDR" {
            cost = cost.add(ADDRESS.at(TEXT_FACTOR)).add(CostEstimate::fixed(1));
        }
        if matches!(overload, "cidr_contains_ip_string" | "cidr_contains_cidr_string") {
            cost = cost.add(self.estimated(other).at(TEXT_FACTOR));
        }
        cost.into()
    }

    fn equality(&self, one: &Argument, other: &Argument) -> Option<CallEstimate> {
        if one.kind != other.kind {
            return None;
        }
        match &one.kind {
            Type::Opaque(name, _) if matches!(&**name, "net.IP" | "net.CIDR") => Some(CallEstimate::fixed(1)),
            Type::Struct(name) => match &**name {
                "kubernetes.NamedFormat" => Some(CostEstimate { min: 1, max: FORMAT_NAME }.at(TEXT_FACTOR).into()),
                "kubernetes.URL" => {
                    let max = other.size.map_or(1, |size| size.max);
                    Some(CostEstimate { min: 1, max }.at(TEXT_FACTOR).into())
                }
                "kubernetes.Quantity" | "kubernetes.Semver" => Some(CallEstimate::fixed(1)),
                name if name.starts_with("kubernetes.authorization.") => Some(CallEstimate::fixed(1)),
                _ => None,
            },
            _ => None,
        }
    }
}

fn selector(length: SizeEstimate) -> CostEstimate {
    let requirements = length.at(0.5).at((LIST_COST + STRUCT_COST) as f64);
    CostEstimate::fixed(LIST_COST).add(length.at(TEXT_FACTOR)).add(requirements)
}

/// Functions that cost one, whatever they are called with.
fn is_unit(function: &str) -> bool {
    matches!(
        function,
        "serviceAccount"
            | "path"
            | "group"
            | "resource"
            | "subresource"
            | "namespace"
            | "name"
            | "allowed"
            | "reason"
            | "error"
            | "errored"
            | "masked"
            | "prefixLength"
            | "family"
            | "isUnspecified"
            | "isLoopback"
            | "isLinkLocalMulticast"
            | "isLinkLocalUnicast"
            | "isGlobalUnicast"
            | "format.named"
            | "sign"
            | "asInteger"
            | "isInteger"
            | "asApproximateFloat"
            | "isGreaterThan"
            | "isLessThan"
            | "compareTo"
            | "add"
            | "sub"
            | "major"
            | "minor"
            | "patch"
            | "getScheme"
            | "getHostname"
            | "getHost"
            | "getPort"
            | "getEscapedPath"
            | "getQuery"
    )
}
