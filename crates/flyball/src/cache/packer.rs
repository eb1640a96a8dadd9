//! Chooses the object that the others of a mirror are kept as differences to.

use crate::cache::object::{Object, Template};
use std::sync::Arc;

/// After so many objects in a row that are not like the template, the next one becomes it.
const MAX_UNLIKE: u32 = 8;

/// Packs the objects that a mirror keeps.
#[derive(Default)]
pub(super) struct Packer {
    template: Option<Arc<Template>>,
    /// How many objects in a row were not like it.
    unlike: u32,
}

impl Packer {
    /// The same object, in less memory where that is possible.
    pub(super) fn pack(&mut self, object: Object) -> Object {
        if self.template.is_none() || self.unlike >= MAX_UNLIKE {
            (self.template, self.unlike) = (Template::new(&object.text()).map(Arc::new), 0);
        }
        let Some(template) = &self.template else {
            return object;
        };
        let whole = object.bytes();
        let object = object.packed(template);
        self.unlike = if object.bytes() < whole { 0 } else { self.unlike + 1 };
        object
    }

    /// How much memory the template takes, about.
    pub(super) fn bytes(&self) -> usize {
        self.template.as_ref().map_or(0, |template| template.bytes())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn object(of: &str, number: usize) -> Object {
        let text = of.repeat(50);
        Object::parse(format!(r#"{{"metadata":{{"name":"a-{number}"}},"text":"{text}"}}"#)).unwrap()
    }

    #[test]
    fn objects_that_are_like_each_other_take_less() {
        let mut packer = Packer::default();
        let whole = object("some", 1).bytes();
        for number in 0..10 {
            let packed = packer.pack(object("some", number));
            assert!(packed.bytes() < whole / 2 + size_of::<Object>(), "{} of {whole}", packed.bytes());
            assert_eq!(*packed.json(), *object("some", number).json());
        }
    }

    #[test]
    fn a_template_that_is_like_nothing_any_more_is_replaced() {
        let mut packer = Packer::default();
        packer.pack(object("some", 0));
        let packed: Vec<_> = (0..20).map(|number| packer.pack(object("else", number)).bytes()).collect();
        assert!(packed[19] < packed[0] / 2 + size_of::<Object>(), "{packed:?}");
    }
}
