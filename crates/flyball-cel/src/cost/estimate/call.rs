//! What calls may cost: cel-go's functions here, Kubernetes' in `kubernetes`.

mod kubernetes;

use super::{Argument, CostEstimate, Coster, EntrySize, SizeEstimate};
use crate::ast::{ExprId, ExprKind, Literal};
use crate::check::Reference;
use crate::cost::{LIST_COST, PATTERN_FACTOR, TEXT_FACTOR};

/// The cost of a call by itself, and the size of its result where that is known.
struct CallEstimate {
    cost: CostEstimate,
    size: Option<SizeEstimate>,
}

impl From<CostEstimate> for CallEstimate {
    fn from(cost: CostEstimate) -> CallEstimate {
        CallEstimate { cost, size: None }
    }
}

impl CallEstimate {
    fn fixed(cost: u64) -> CallEstimate {
        CostEstimate::fixed(cost).into()
    }

    fn sized(cost: CostEstimate, size: SizeEstimate) -> CallEstimate {
        CallEstimate { cost, size: Some(size) }
    }
}

impl Coster<'_> {
    pub(super) fn call(&mut self, id: ExprId, target: Option<ExprId>, args: &[ExprId]) -> CostEstimate {
        let Some(Reference::Function { name, overloads, member }) = self.checked.references[id as usize].clone() else {
            return CostEstimate::default();
        };
        if let ("dyn", [only]) = (name, args) {
            let cost = self.cost(*only);
            self.copy_sizes(id, *only);
            return cost.add(CostEstimate::fixed(1));
        }
        let mut costs = Vec::with_capacity(args.len());
        let mut arguments = Vec::with_capacity(args.len());
        for arg in args {
            costs.push(self.cost(*arg));
            arguments.push(self.argument(*arg));
        }
        let mut total = CostEstimate::default();
        let target = target.filter(|_| member).map(|target| {
            total = self.cost(target);
            self.argument(target)
        });
        let mut cost = CostEstimate { min: u64::MAX, max: 0 };
        let mut size: Option<SizeEstimate> = None;
        for overload in overloads {
            let estimate = self.overload(id, name, overload, target.as_ref(), &arguments, &costs);
            cost = cost.union(estimate.cost);
            size = match (size, estimate.size) {
                (Some(known), Some(other)) => Some(known.union(other)),
                (known, other) => known.or(other),
            };
            if let ("index_list" | "index_map", Some(container)) = (overload, args.first()) {
                size = self.entry_size(*container).map(|entry| entry.value);
                let mut path = self.path(*container);
                path.push(if overload == "index_list" {
                    "@items".into()
                } else {
                    "@values".into()
                });
                self.paths.insert(id, path);
            }
            if size.is_none() {
                size = self.size(id);
            }
        }
        self.set_size(id, size);
        total.add(cost)
    }

    /// One overload with its arguments.
    fn overload(
        &mut self,
        id: ExprId,
        function: &str,
        overload: &str,
        target: Option<&Argument>,
        args: &[Argument],
        costs: &[CostEstimate],
    ) -> CallEstimate {
        let lists = || self.options.list_costs.then(|| self.list_function(overload, target, args)).flatten();
        let kubernetes = || {
            let costs = self.options.kubernetes_costs;
            costs.then(|| self.kubernetes(function, overload, target, args)).flatten()
        };
        let text = || self.text_function(overload, target, args);
        if let Some(estimate) = self.set_function(overload, args).or_else(lists).or_else(kubernetes).or_else(text) {
            return with_arguments(estimate, costs);
        }
        match (overload, args, costs) {
            ("logical_or" | "logical_and", _, [one, other]) => {
                CostEstimate { min: one.min, max: one.add(*other).max }.into()
            }
            ("conditional", [_, truthy, falsy], [condition, if_true, if_false]) => {
                let size = known(truthy).union(known(falsy));
                let entry = EntrySize::union(self.entry_of(truthy), self.entry_of(falsy));
                self.set_entry(id, entry);
                CallEstimate::sized(condition.add(if_true.union(*if_false)), size)
            }
            ("add_string" | "add_bytes" | "add_list", [one, other], _) => {
                let size = known(one).add(known(other));
                let entry = EntrySize::union(self.entry_of(one), self.entry_of(other));
                self.set_entry(id, entry);
                let cost = if overload == "add_list" {
                    CostEstimate::fixed(1)
                } else {
                    size.at(TEXT_FACTOR)
                };
                with_arguments(CallEstimate::sized(cost, size), costs)
            }
            _ => with_arguments(CallEstimate::fixed(1), costs),
        }
    }

    fn entry_of(&self, argument: &Argument) -> Option<EntrySize> {
        self.entry_size(argument.id?)
    }

    /// Functions on text, and comparisons.
    fn text_function(&self, overload: &str, target: Option<&Argument>, args: &[Argument]) -> Option<CallEstimate> {
        Some(match (overload, target, args) {
            ("string_format", Some(target), _) => known(target).at(TEXT_FACTOR).into(),
            ("string_to_bytes", _, [only]) => {
                let size = known(only);
                let bytes = SizeEstimate { min: size.min, max: size.max.wrapping_mul(4) };
                CallEstimate::sized(size.at(TEXT_FACTOR), bytes)
            }
            ("bytes_to_string", _, [only]) => {
                let size = known(only);
                CallEstimate::sized(size.at(TEXT_FACTOR), SizeEstimate { min: size.min / 4, max: size.max })
            }
            ("strings_quote", _, [only]) => {
                let size = known(only);
                let max = size.max.wrapping_mul(2).wrapping_add(2);
                CallEstimate::sized(size.at(TEXT_FACTOR), SizeEstimate { min: size.min.wrapping_add(2), max })
            }
            ("starts_with_string" | "ends_with_string", _, [only]) => known(only).at(TEXT_FACTOR).into(),
            ("in_list", _, [_, list]) => known(list).at(1.0).into(),
            ("matches_string", Some(target), [pattern]) => {
                let text = known(target).add(SizeEstimate::fixed(1)).at(TEXT_FACTOR);
                text.times(known(pattern).at(PATTERN_FACTOR)).into()
            }
            ("contains_string", Some(target), [part]) => {
                known(target).at(TEXT_FACTOR).times(known(part).at(TEXT_FACTOR)).into()
            }
            (
                "less_string"
                | "greater_string"
                | "less_equals_string"
                | "greater_equals_string"
                | "less_bytes"
                | "greater_bytes"
                | "less_equals_bytes"
                | "greater_equals_bytes"
                | "equals"
                | "not_equals",
                _,
                [one, other],
            ) => {
                let max = known(one).max.min(known(other).max);
                CostEstimate { min: u64::from(max > 0), max }.at(TEXT_FACTOR).into()
            }
            _ => return None,
        })
    }

    fn set_function(&self, overload: &str, args: &[Argument]) -> Option<CallEstimate> {
        let factor = match overload {
            "list_sets_contains_list" | "list_sets_intersects_list" => 1.0,
            "list_sets_equivalent_list" => 2.0,
            _ => return None,
        };
        let [one, other] = args else { return None };
        let product = self.estimated(one).times(self.estimated(other));
        Some(product.at(factor).add(CostEstimate::fixed(1)).into())
    }

    /// cel-go's lists extension.
    fn list_function(&self, overload: &str, target: Option<&Argument>, args: &[Argument]) -> Option<CallEstimate> {
        let made = |factor: f64, size: SizeEstimate| {
            CallEstimate::sized(size.at(factor).add(CostEstimate::fixed(1 + LIST_COST)), size)
        };
        let squared = |argument: &Argument| {
            let size = self.estimated(argument);
            size.times(size)
        };
        let factor = if overload.starts_with("list_string_") || overload.starts_with("list_bytes_") {
            2.0 + TEXT_FACTOR
        } else {
            2.0
        };
        Some(match (overload, target, args) {
            ("list_slice", Some(target), [start, end]) => {
                let most = self.estimated(target).max;
                let count = self.int(end, most).wrapping_sub(self.int(start, 0));
                made(1.0, SizeEstimate::fixed(count))
            }
            ("lists_range", None, [count]) => made(1.0, SizeEstimate::fixed(self.int(count, u64::MAX))),
            ("list_reverse", Some(target), []) => made(1.0, self.estimated(target)),
            ("list_flatten", Some(target), []) => made(1.0, self.estimated(target)),
            ("list_flatten_int", Some(target), [depth]) => {
                made(self.int(depth, u64::MAX) as f64, self.estimated(target))
            }
            ("list_distinct", Some(target), []) => made(2.0, squared(target)),
            (other, Some(target), []) if other.ends_with("_sort") => made(factor, squared(target)),
            (other, Some(_), [keys]) if other.ends_with("_sortByAssociatedKeys") => made(factor, squared(keys)),
            _ => return None,
        })
    }

    /// An integer that is written in the source, not below zero.
    fn int(&self, argument: &Argument, otherwise: u64) -> u64 {
        match argument.id.map(|id| &self.checked.tree.expr(id).kind) {
            Some(ExprKind::Literal(Literal::Int(number))) => u64::try_from(*number).unwrap_or(0),
            _ => otherwise,
        }
    }

    /// The size of an argument, asked of the caller if it was not computed.
    fn estimated(&self, argument: &Argument) -> SizeEstimate {
        let asked = || self.sizes.estimate_size(&argument.path, &argument.kind);
        argument.size.or_else(asked).unwrap_or(SizeEstimate::UNKNOWN)
    }
}

fn known(argument: &Argument) -> SizeEstimate {
    argument.size.unwrap_or(SizeEstimate::UNKNOWN)
}

fn with_arguments(estimate: CallEstimate, costs: &[CostEstimate]) -> CallEstimate {
    let arguments = costs.iter().copied().fold(CostEstimate::default(), CostEstimate::add);
    CallEstimate { cost: estimate.cost.add(arguments), size: estimate.size }
}
