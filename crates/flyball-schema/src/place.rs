//! Where in a value a verb is, without allocating until something is wrong there.

/// A place in a value, linked to the places that enclose it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Place<'a> {
    parent: Option<&'a Place<'a>>,
    step: Step<'a>,
}

#[derive(Clone, Copy, Debug)]
enum Step<'a> {
    Root,
    /// A declared field.
    Field(&'a str),
    /// A key that nobody declared.
    Key(&'a str),
    Index(usize),
}

impl<'a> Place<'a> {
    pub(crate) fn root() -> Place<'static> {
        Place { parent: None, step: Step::Root }
    }

    pub(crate) fn field(&'a self, name: &'a str) -> Place<'a> {
        Place { parent: Some(self), step: Step::Field(name) }
    }

    pub(crate) fn key(&'a self, name: &'a str) -> Place<'a> {
        Place { parent: Some(self), step: Step::Key(name) }
    }

    pub(crate) fn index(&'a self, index: usize) -> Place<'a> {
        Place { parent: Some(self), step: Step::Index(index) }
    }

    /// `spec.ports[0].labels.app`: how schema validation and strict decoding write it.
    pub(crate) fn dotted(&self) -> String {
        self.written(|path, key| {
            path.push_str(if path.is_empty() { "" } else { "." });
            path.push_str(key);
        })
    }

    /// `spec.ports[0].labels[app]`: how field errors write it.
    pub(crate) fn subscripted(&self) -> String {
        self.written(|path, key| {
            path.push('[');
            path.push_str(key);
            path.push(']');
        })
    }

    fn written(&self, key: impl Fn(&mut String, &str)) -> String {
        let mut steps = vec![self.step];
        let mut parent = self.parent;
        while let Some(place) = parent {
            steps.push(place.step);
            parent = place.parent;
        }
        let mut path = String::new();
        for step in steps.into_iter().rev() {
            match step {
                Step::Root => {}
                Step::Field(name) => {
                    path.push_str(if path.is_empty() { "" } else { "." });
                    path.push_str(name);
                }
                Step::Key(name) => key(&mut path, name),
                Step::Index(index) => path.push_str(&format!("[{index}]")),
            }
        }
        path
    }
}
