//! Where in a document the decoder is, without allocating until something is wrong there.

use crate::go_text;
use std::collections::HashSet;

/// A place in a document, linked to the places that enclose it.
pub(super) struct At<'a> {
    parent: Option<&'a At<'a>>,
    step: Step<'a>,
}

enum Step<'a> {
    Root,
    /// A declared field of the named struct.
    Field(&'a str, &'a str),
    /// A key of a map, or of an object without a type.
    Key(&'a str),
    Index(usize),
}

impl<'a> At<'a> {
    pub(super) fn root() -> At<'static> {
        At { parent: None, step: Step::Root }
    }

    pub(super) fn field(&'a self, owner: &'a str, name: &'a str) -> At<'a> {
        At { parent: Some(self), step: Step::Field(owner, name) }
    }

    pub(super) fn key(&'a self, key: &'a str) -> At<'a> {
        At { parent: Some(self), step: Step::Key(key) }
    }

    pub(super) fn index(&'a self, index: usize) -> At<'a> {
        At { parent: Some(self), step: Step::Index(index) }
    }

    /// `spec.containers[0].name`: how strict decoding names a field here.
    fn path_to(&self, field: &str) -> String {
        let mut path = String::new();
        for step in self.steps() {
            match step {
                Step::Root => {}
                Step::Field(_, name) | Step::Key(name) => {
                    path.push_str(if path.is_empty() { "" } else { "." });
                    path.push_str(name);
                }
                Step::Index(index) => path.push_str(&format!("[{index}]")),
            }
        }
        if path.is_empty() {
            field.to_owned()
        } else {
            format!("{path}.{field}")
        }
    }

    /// `struct field PodSpec.spec.containers`: how type errors name this place, without keys and indexes.
    pub(super) fn target(&self) -> String {
        let steps = self.steps();
        let fields: Vec<_> = steps.iter().filter_map(|step| step.as_field()).collect();
        match fields.last() {
            None => "value".to_owned(),
            Some((owner, _)) => {
                let names: Vec<_> = fields.iter().map(|(_, name)| *name).collect();
                format!("struct field {owner}.{}", names.join("."))
            }
        }
    }

    fn steps(&self) -> Vec<&Step<'a>> {
        let mut steps = vec![&self.step];
        let mut parent = self.parent;
        while let Some(at) = parent {
            steps.push(&at.step);
            parent = at.parent;
        }
        steps.reverse();
        steps
    }
}

impl Step<'_> {
    fn as_field(&self) -> Option<(&str, &str)> {
        match self {
            Step::Field(owner, name) => Some((owner, name)),
            _ => None,
        }
    }
}

/// What strict decoding has to say, each thing once, and no more than a hundred.
// sigs.k8s.io/json, kubernetes_patch.go, saveStrictError
pub(super) struct Complaints {
    found: Vec<String>,
    seen: HashSet<String>,
}

impl Complaints {
    pub(super) fn beginning_with(complaint: Option<String>) -> Complaints {
        Complaints { found: complaint.into_iter().collect(), seen: HashSet::new() }
    }

    pub(super) fn unknown(&mut self, at: &At<'_>, field: &str) {
        self.add("unknown", at, field);
    }

    pub(super) fn duplicate(&mut self, at: &At<'_>, field: &str) {
        self.add("duplicate", at, field);
    }

    fn add(&mut self, what: &str, at: &At<'_>, field: &str) {
        if self.found.len() >= 100 {
            return;
        }
        let complaint = format!("{what} field {}", go_text::quote(&at.path_to(field)));
        if self.seen.insert(complaint.clone()) {
            self.found.push(complaint);
        }
    }

    pub(super) fn into_vec(self) -> Vec<String> {
        self.found
    }
}
