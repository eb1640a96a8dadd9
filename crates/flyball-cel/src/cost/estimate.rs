//! What an expression may cost, estimated from its types and the sizes that its caller knows (checker/cost.go).

mod call;
mod size;

pub use size::{CostEstimate, SizeEstimate};

use crate::ast::{Comprehension, ExprId, ExprKind, Literal};
use crate::check::{Checked, Reference};
use crate::cost::{LIST_COST, MAP_COST, STRUCT_COST};
use crate::env::Options;
use crate::typing::Type;
use crate::value::code_points;
use std::collections::HashMap;
use std::sync::Arc;

/// The way from a variable to a part of it: names of fields, `@items`, `@values`, `@keys` and `@indices`.
pub type Path = Vec<Arc<str>>;

/// Knows how large the parts of variables may be.
pub trait SizeEstimator {
    /// The size of what is found along this way from a variable, if that is known. The way is empty for what no variable holds.
    fn estimate_size(&self, path: &[Arc<str>], kind: &Type) -> Option<SizeEstimate>;
}

/// Knows nothing: every text and list may be of any size.
#[derive(Clone, Copy, Debug, Default)]
pub struct UnknownSizes;

impl SizeEstimator for UnknownSizes {
    fn estimate_size(&self, _path: &[Arc<str>], _kind: &Type) -> Option<SizeEstimate> {
        None
    }
}

pub(crate) fn estimate(checked: &Checked, sizes: &dyn SizeEstimator, options: Options) -> CostEstimate {
    let mut coster = Coster {
        checked,
        sizes,
        options,
        paths: HashMap::new(),
        computed: HashMap::new(),
        entries: HashMap::new(),
        locals: HashMap::new(),
    };
    coster.cost(checked.tree.root)
}

/// Sizes of the keys and values of a list or map.
#[derive(Clone, Copy)]
struct EntrySize {
    is_list: bool,
    key: SizeEstimate,
    value: SizeEstimate,
}

impl EntrySize {
    fn union(one: Option<EntrySize>, other: Option<EntrySize>) -> Option<EntrySize> {
        let (one, other) = (one?, other?);
        Some(EntrySize {
            is_list: one.is_list,
            key: one.key.union(other.key),
            value: one.value.union(other.value),
        })
    }
}

/// A local variable: where its value comes from and how large it is.
struct Local {
    path: Path,
    size: Option<SizeEstimate>,
    entry: Option<EntrySize>,
}

/// An argument of a call as the estimators of functions see it.
struct Argument {
    id: Option<ExprId>,
    path: Path,
    kind: Type,
    size: Option<SizeEstimate>,
}

struct Coster<'a> {
    checked: &'a Checked,
    sizes: &'a dyn SizeEstimator,
    options: Options,
    paths: HashMap<ExprId, Path>,
    computed: HashMap<ExprId, SizeEstimate>,
    entries: HashMap<ExprId, EntrySize>,
    locals: HashMap<Arc<str>, Vec<Local>>,
}

impl Coster<'_> {
    fn cost(&mut self, id: ExprId) -> CostEstimate {
        let checked = self.checked;
        if let Some(name) = self.name(id) {
            return self.ident(id, &name);
        }
        match &checked.tree.expr(id).kind {
            ExprKind::Unspecified | ExprKind::Literal(_) => CostEstimate::default(),
            ExprKind::Ident(name) => self.ident(id, name),
            ExprKind::Select { operand, field, test_only } => self.select(id, *operand, field, *test_only),
            ExprKind::Call { target, args, .. } => self.call(id, *target, args),
            ExprKind::List { elements, .. } => self.list(id, elements),
            ExprKind::Map(entries) => self.map(id, entries),
            ExprKind::Struct { fields, .. } => {
                let costs = fields.iter().map(|field| self.cost(field.value));
                costs.fold(CostEstimate::fixed(STRUCT_COST), CostEstimate::add)
            }
            ExprKind::Comprehension(fold) => match self.is_binding(fold) {
                true => self.binding(id, fold),
                false => self.comprehension(id, fold),
            },
        }
    }

    /// The name that an expression stands for; a selection may be the name of a variable as a whole.
    fn name(&self, id: ExprId) -> Option<Arc<str>> {
        match (&self.checked.tree.expr(id).kind, &self.checked.references[id as usize]) {
            (ExprKind::Ident(_) | ExprKind::Select { .. }, Some(Reference::Name(name))) => Some(name.clone()),
            _ => None,
        }
    }

    fn local(&self, id: ExprId) -> Option<&Local> {
        self.locals.get(&self.name(id)?)?.last()
    }

    fn ident(&mut self, id: ExprId, name: &Arc<str>) -> CostEstimate {
        let path = self.locals.get(name).and_then(|locals| locals.last()).map(|local| local.path.clone());
        self.paths.insert(id, path.unwrap_or_else(|| vec![name.clone()]));
        CostEstimate::fixed(1)
    }

    fn select(&mut self, id: ExprId, operand: ExprId, field: &Arc<str>, test_only: bool) -> CostEstimate {
        let cost = self.cost(operand);
        if test_only {
            return cost.add(CostEstimate::fixed(u64::from(!self.options.kubernetes_costs)));
        }
        let mut path = self.path(operand);
        path.push(field.clone());
        self.paths.insert(id, path);
        match self.checked.type_of(operand) {
            Type::Map(..) | Type::Struct(_) | Type::Param(_) | Type::Var(_) => cost.add(CostEstimate::fixed(1)),
            _ => cost,
        }
    }

    fn path(&self, id: ExprId) -> Path {
        match self.local(id) {
            Some(local) => local.path.clone(),
            None => self.paths.get(&id).cloned().unwrap_or_default(),
        }
    }

    fn list(&mut self, id: ExprId, elements: &[ExprId]) -> CostEstimate {
        let mut cost = CostEstimate::fixed(LIST_COST);
        let mut item = SizeEstimate { min: if elements.is_empty() { 0 } else { u64::MAX }, max: 0 };
        for element in elements {
            cost = cost.add(self.cost(*element));
            item = item.union(self.size_or_unknown(*element));
        }
        self.entries
            .insert(id, EntrySize { is_list: true, key: SizeEstimate::fixed(1), value: item });
        cost
    }

    fn map(&mut self, id: ExprId, entries: &[crate::ast::Entry]) -> CostEstimate {
        let mut cost = CostEstimate::fixed(MAP_COST);
        let none = SizeEstimate { min: if entries.is_empty() { 0 } else { u64::MAX }, max: 0 };
        let (mut key, mut value) = (none, none);
        for entry in entries {
            cost = cost.add(self.cost(entry.key)).add(self.cost(entry.value));
            key = key.union(self.size_or_unknown(entry.key));
            value = value.union(self.size_or_unknown(entry.value));
        }
        self.entries.insert(id, EntrySize { is_list: false, key, value });
        cost
    }

    fn comprehension(&mut self, id: ExprId, fold: &Comprehension) -> CostEstimate {
        let mut cost = self.cost(fold.range).add(self.cost(fold.init));
        self.push_value_of(&fold.accumulator, fold.init);
        self.push_iteration(fold);
        let condition = self.cost(fold.condition);
        let step = self.cost(fold.step);
        self.pop(&fold.variable);
        if let Some(second) = &fold.second_variable {
            self.pop(second);
        }
        cost = cost.add(self.cost(fold.result));
        self.pop(&fold.accumulator);
        let range = self.size_or_unknown(fold.range);
        cost = cost.add(range.times_cost(step.add(condition)));
        match &self.checked.tree.expr(fold.init).kind {
            ExprKind::Literal(_) => {
                let size = self.size(fold.init);
                self.set_size(id, size);
            }
            ExprKind::List { .. } | ExprKind::Map(_) => {
                self.set_size(id, Some(range));
                let entry = self.entry_size(fold.step);
                self.set_entry(id, entry);
            }
            _ => {}
        }
        cost
    }

    fn push_iteration(&mut self, fold: &Comprehension) {
        let entry = self.entry_size(fold.range);
        let is_list = match entry {
            Some(entry) => entry.is_list,
            None => matches!(self.checked.type_of(fold.range), Type::List(_)),
        };
        let path = self.path(fold.range);
        let below = |step: &str| {
            let mut path = path.clone();
            path.push(step.into());
            path
        };
        let (key, value) = (entry.map(|entry| entry.key), entry.map(|entry| entry.value));
        match &fold.second_variable {
            Some(second) => {
                self.push(&fold.variable, below(if is_list { "@indices" } else { "@keys" }), key, None);
                self.push(second, below(if is_list { "@items" } else { "@values" }), value, None);
            }
            None if is_list => self.push(&fold.variable, below("@items"), value, None),
            None => self.push(&fold.variable, below("@keys"), key, None),
        }
    }

    fn push(&mut self, name: &Arc<str>, path: Path, size: Option<SizeEstimate>, entry: Option<EntrySize>) {
        self.locals.entry(name.clone()).or_default().push(Local { path, size, entry });
    }

    fn push_value_of(&mut self, name: &Arc<str>, id: ExprId) {
        let (path, size, entry) = (self.path(id), self.size(id), self.entry_size(id));
        self.push(name, path, size, entry);
    }

    fn pop(&mut self, name: &Arc<str>) {
        if let Some(locals) = self.locals.get_mut(name) {
            locals.pop();
        }
    }

    /// Whether a comprehension only gives its accumulator a name.
    fn is_binding(&self, fold: &Comprehension) -> bool {
        let range = &self.checked.tree.expr(fold.range).kind;
        let condition = &self.checked.tree.expr(fold.condition).kind;
        matches!(range, ExprKind::List { elements, .. } if elements.is_empty())
            && matches!(condition, ExprKind::Literal(Literal::Bool(false)))
            && &*fold.accumulator != "__result__"
    }

    fn binding(&mut self, id: ExprId, fold: &Comprehension) -> CostEstimate {
        let cost = self.cost(fold.range).add(self.cost(fold.init));
        self.push_value_of(&fold.accumulator, fold.init);
        let cost = cost.add(self.cost(fold.result));
        self.pop(&fold.accumulator);
        self.copy_sizes(id, fold.result);
        cost
    }

    fn copy_sizes(&mut self, to: ExprId, from: ExprId) {
        let (size, entry) = (self.size(from), self.entry_size(from));
        self.set_size(to, size);
        self.set_entry(to, entry);
    }

    fn set_size(&mut self, id: ExprId, size: Option<SizeEstimate>) {
        if let Some(size) = size {
            self.computed.insert(id, size);
        }
    }

    fn set_entry(&mut self, id: ExprId, entry: Option<EntrySize>) {
        if let Some(entry) = entry {
            self.entries.insert(id, entry);
        }
    }

    fn entry_size(&self, id: ExprId) -> Option<EntrySize> {
        self.entries.get(&id).copied().or_else(|| self.local(id)?.entry)
    }

    fn size_or_unknown(&mut self, id: ExprId) -> SizeEstimate {
        self.size(id).unwrap_or(SizeEstimate::UNKNOWN)
    }

    fn size(&mut self, id: ExprId) -> Option<SizeEstimate> {
        if let Some(size) = self.computed.get(&id) {
            return Some(*size);
        }
        if let Some(size) = self.literal_size(id) {
            return Some(SizeEstimate::fixed(size));
        }
        let kind = self.checked.type_of(id);
        if let Some(size) = self.sizes.estimate_size(&self.path(id), kind) {
            self.computed.insert(id, size);
            return Some(size);
        }
        if is_scalar(kind) {
            return Some(SizeEstimate::fixed(1));
        }
        self.local(id).and_then(|local| local.size)
    }

    fn literal_size(&self, id: ExprId) -> Option<u64> {
        match &self.checked.tree.expr(id).kind {
            ExprKind::Literal(Literal::String(text)) => Some(code_points(text) as u64),
            ExprKind::Literal(Literal::Bytes(bytes)) => Some(bytes.len() as u64),
            ExprKind::Literal(_) => Some(1),
            ExprKind::List { elements, .. } => Some(elements.len() as u64),
            ExprKind::Map(entries) => Some(entries.len() as u64),
            _ => None,
        }
    }

    fn argument(&mut self, id: ExprId) -> Argument {
        let path = self.path(id);
        let accumulated = path.first().is_some_and(|name| matches!(&**name, "__result__" | crate::ast::ACCUMULATOR));
        let path = if accumulated { Path::new() } else { path };
        Argument {
            id: Some(id),
            path,
            kind: self.checked.type_of(id).clone(),
            size: self.size(id),
        }
    }
}

fn is_scalar(kind: &Type) -> bool {
    match kind {
        Type::Bool | Type::Double | Type::Duration | Type::Int | Type::Timestamp | Type::Uint => true,
        other => other.optional_inner().is_some_and(is_scalar),
    }
}
