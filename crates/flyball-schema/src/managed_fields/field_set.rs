//! A set of paths as a sorted tree, with the algebra that ownership needs.
//! An interior node is in the set only if it says so itself (`"."` in FieldsV1).

use super::path::PathElement;
use super::shape::Type;
use std::cmp::Ordering;

/// As many elements are put into their places one by one.
const FEW: usize = 16;

/// A set of paths. No node of its tree is without a path: it is a member or has members below.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct FieldSet<'a> {
    pub(super) nodes: Vec<FieldNode<'a>>,
}

/// One element below a common prefix.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct FieldNode<'a> {
    pub(super) element: PathElement<'a>,
    /// Whether the path that ends here is in the set.
    pub(super) member: bool,
    pub(super) below: FieldSet<'a>,
}

impl<'a> FieldNode<'a> {
    fn is_dead(&self) -> bool {
        !self.member && self.below.is_empty()
    }
}

impl<'a> FieldSet<'a> {
    pub(super) fn is_empty(&self) -> bool {
        self.nodes.is_empty()
    }

    /// Makes a set of elements in any order, some of them more than once.
    pub(super) fn from_nodes(mut nodes: Vec<FieldNode<'a>>) -> FieldSet<'a> {
        nodes.retain(|node| !node.is_dead());
        if !nodes.is_sorted_by(|one, other| one.element < other.element) {
            nodes.sort_by(|one, other| one.element.cmp(&other.element));
            nodes.dedup_by(|again, first| {
                let same = again.element == first.element;
                if same {
                    first.member |= again.member;
                    first.below.unite(std::mem::take(&mut again.below));
                }
                same
            });
        }
        FieldSet { nodes }
    }

    /// Adds a path; the empty path is nobody's.
    pub(super) fn insert(&mut self, path: &[PathElement<'a>]) {
        let Some((first, rest)) = path.split_first() else {
            return;
        };
        let node = self.descend(first);
        if rest.is_empty() {
            node.member = true;
        } else {
            node.below.insert(rest);
        }
    }

    /// Adds one element with what is below it.
    pub(super) fn add(&mut self, element: PathElement<'a>, member: bool, below: FieldSet<'a>) {
        if !member && below.is_empty() {
            return;
        }
        match self.position(&element) {
            Ok(index) => {
                self.nodes[index].member |= member;
                self.nodes[index].below.unite(below);
            }
            Err(index) => self.nodes.insert(index, FieldNode { element, member, below }),
        }
    }

    fn descend(&mut self, element: &PathElement<'a>) -> &mut FieldNode<'a> {
        let index = self.position(element).unwrap_or_else(|index| {
            let node = FieldNode {
                element: element.clone(),
                member: false,
                below: FieldSet::default(),
            };
            self.nodes.insert(index, node);
            index
        });
        &mut self.nodes[index]
    }

    /// Where an element is, or where it would go. Elements mostly arrive sorted, so the end is looked at first.
    fn position(&self, element: &PathElement<'_>) -> Result<usize, usize> {
        match self.nodes.last() {
            None => Err(0),
            Some(last) if last.element < *element => Err(self.nodes.len()),
            Some(_) => self.nodes.binary_search_by(|node| node.element.cmp(element)),
        }
    }

    /// What the set says of one element.
    pub(super) fn get(&self, element: &PathElement<'_>) -> Option<&FieldNode<'a>> {
        self.nodes
            .binary_search_by(|node| node.element.cmp(element))
            .ok()
            .map(|index| &self.nodes[index])
    }

    /// Whether the path is in the set.
    pub(super) fn contains(&self, path: &[PathElement<'_>]) -> bool {
        match path {
            [] => false,
            [element] => self.get(element).is_some_and(|node| node.member),
            [element, rest @ ..] => self.get(element).is_some_and(|node| node.below.contains(rest)),
        }
    }

    /// Whether all paths of another set are in this one.
    pub(super) fn covers(&self, other: &FieldSet<'_>) -> bool {
        let mut ours = self.nodes.iter().peekable();
        other.nodes.iter().all(|node| {
            while ours.next_if(|our| our.element < node.element).is_some() {}
            ours.peek().is_some_and(|our| {
                our.element == node.element && our.member >= node.member && our.below.covers(&node.below)
            })
        })
    }

    /// Adds all paths of another set.
    pub(super) fn unite(&mut self, other: FieldSet<'a>) {
        if self.is_empty() {
            *self = other;
            return;
        }
        if other.nodes.len() > FEW {
            let mut nodes = std::mem::take(&mut self.nodes);
            nodes.extend(other.nodes);
            *self = FieldSet::from_nodes(nodes);
            return;
        }
        for node in other.nodes {
            self.add(node.element, node.member, node.below);
        }
    }

    /// Takes away the paths of another set, each alone; says whether any was there.
    pub(super) fn subtract(&mut self, other: &FieldSet<'_>) -> bool {
        let mut took = false;
        self.subtract_nodes(other, |node, taken| {
            took |= node.member && taken.member;
            node.member &= !taken.member;
            took |= node.below.subtract(&taken.below);
        });
        took
    }

    /// Takes away the paths of another set with everything below them.
    pub(super) fn subtract_trees(&mut self, other: &FieldSet<'_>) {
        self.subtract_nodes(other, |node, taken| {
            if taken.member {
                node.member = false;
                node.below.nodes.clear();
            } else {
                node.below.subtract_trees(&taken.below);
            }
        });
    }

    fn subtract_nodes(&mut self, other: &FieldSet<'_>, mut take: impl FnMut(&mut FieldNode<'a>, &FieldNode<'_>)) {
        if self.is_small_beside(other) {
            self.nodes.retain_mut(|node| match other.get(&node.element) {
                Some(taken) => {
                    take(node, taken);
                    !node.is_dead()
                }
                None => true,
            });
            return;
        }
        let mut others = other.nodes.iter().peekable();
        if others.peek().is_none() {
            return;
        }
        self.nodes.retain_mut(|node| {
            while others.next_if(|taken| taken.element < node.element).is_some() {}
            match others.peek() {
                Some(taken) if taken.element == node.element => {
                    take(node, taken);
                    !node.is_dead()
                }
                _ => true,
            }
        });
    }

    /// Whether it is cheaper to look for each element of this set than to walk through the other.
    fn is_small_beside(&self, other: &FieldSet<'_>) -> bool {
        self.nodes.len() * FEW < other.nodes.len()
    }

    /// The paths that are in both sets.
    pub(super) fn intersection(&self, other: &FieldSet<'_>) -> FieldSet<'a> {
        let mut both = FieldSet::default();
        if self.is_small_beside(other) {
            for node in &self.nodes {
                if let Some(same) = other.get(&node.element) {
                    let below = node.below.intersection(&same.below);
                    both.add(node.element.clone(), node.member && same.member, below);
                }
            }
            return both;
        }
        let (mut ours, mut theirs) = (self.nodes.iter().peekable(), other.nodes.iter().peekable());
        while let (Some(a), Some(b)) = (ours.peek(), theirs.peek()) {
            match a.element.cmp(&b.element) {
                Ordering::Less => drop(ours.next()),
                Ordering::Greater => drop(theirs.next()),
                Ordering::Equal => {
                    both.add(a.element.clone(), a.member && b.member, a.below.intersection(&b.below));
                    ours.next();
                    theirs.next();
                }
            }
        }
        both
    }

    /// Makes members of the declared fields that have members below, so that taking them away takes all of them.
    pub(super) fn with_named_fields(mut self, ty: Type<'_>) -> FieldSet<'a> {
        self.name_fields(ty);
        self
    }

    // structured-merge-diff, fieldpath/set.go, EnsureNamedFieldsAreMembers
    fn name_fields(&mut self, ty: Type<'_>) {
        let atom = ty.atom();
        for node in &mut self.nodes {
            if node.below.is_empty() {
                continue;
            }
            let below = match (&node.element, &atom.map, &atom.list) {
                (PathElement::Field(name), Some(map), _) => {
                    node.member |= map.declares(name);
                    map.field(name)
                }
                (PathElement::Key(_), _, Some(list)) => list.items,
                _ => Type::Undeclared,
            };
            node.below.name_fields(below);
        }
    }

    /// Only the members that have no member below.
    pub(super) fn leaves(&self) -> FieldSet<'a> {
        let mut leaves = FieldSet::default();
        for node in &self.nodes {
            leaves.add(node.element.clone(), node.below.is_empty(), node.below.leaves());
        }
        leaves
    }

    /// Calls `each` with every path, members before what is below, as structured-merge-diff does.
    pub(super) fn for_each(&self, each: &mut impl FnMut(&[PathElement<'a>])) {
        self.for_each_below(&mut Vec::new(), each);
    }

    // Members of one level come before anything deeper: fieldpath/set.go, iteratePrefix.
    fn for_each_below(&self, prefix: &mut Vec<PathElement<'a>>, each: &mut impl FnMut(&[PathElement<'a>])) {
        for node in self.nodes.iter().filter(|node| node.member) {
            prefix.push(node.element.clone());
            each(prefix);
            prefix.pop();
        }
        for node in self.nodes.iter().filter(|node| !node.below.is_empty()) {
            prefix.push(node.element.clone());
            node.below.for_each_below(prefix, each);
            prefix.pop();
        }
    }
}
