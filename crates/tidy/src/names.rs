//! Names that say nothing: modules such as `utils`, types such as `PodManager`.

use crate::{Complaint, source::Source};
use syn::{Ident, visit::Visit};

const MODULES: [&str; 9] = [
    "utils", "util", "helpers", "helper", "common", "misc", "types", "v2", "mod",
];
const ENDINGS: [&str; 9] = [
    "Manager", "Helper", "Util", "Impl", "Handler", "Wrapper", "Data", "Info", "Base",
];

/// Names that Kubernetes gave.
const KUBERNETES: [&str; 3] = ["FieldManager", "RequestInfo", "ResourceInfo"];

/// Complains of a file or inline module under a forbidden name, and of types with a forbidden ending.
pub fn complaints(source: &Source) -> Vec<Complaint> {
    let mut names = Names { path: &source.path, complaints: Vec::new() };
    let stem = source.path.rsplit('/').next().unwrap_or_default().trim_end_matches(".rs");
    names.module(stem, 1);
    if let Ok(file) = syn::parse_file(&source.text) {
        names.visit_file(&file);
    }
    names.complaints
}

struct Names<'a> {
    path: &'a str,
    complaints: Vec<Complaint>,
}

impl Names<'_> {
    fn module(&mut self, name: &str, line: usize) {
        if MODULES.contains(&name) {
            self.complaints
                .push(format!("{}:{line}: `{name}` is no noun: name the module after its job", self.path));
        }
    }

    fn kind(&mut self, name: &Ident) {
        let text = name.to_string();
        if KUBERNETES.contains(&text.as_str()) {
            return;
        }
        if let Some(ending) = ENDINGS.iter().find(|ending| text.ends_with(*ending) && text != **ending) {
            let line = name.span().start().line;
            self.complaints
                .push(format!("{}:{line}: type {text}: `{ending}` says nothing: name what it is", self.path));
        }
    }
}

impl<'ast> Visit<'ast> for Names<'_> {
    fn visit_item_mod(&mut self, module: &'ast syn::ItemMod) {
        if module.content.is_some() {
            self.module(&module.ident.to_string(), module.ident.span().start().line);
        }
        syn::visit::visit_item_mod(self, module);
    }

    fn visit_item_struct(&mut self, item: &'ast syn::ItemStruct) {
        self.kind(&item.ident);
    }

    fn visit_item_enum(&mut self, item: &'ast syn::ItemEnum) {
        self.kind(&item.ident);
    }

    fn visit_item_trait(&mut self, item: &'ast syn::ItemTrait) {
        self.kind(&item.ident);
        syn::visit::visit_item_trait(self, item);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(path: &str, text: &str) -> usize {
        complaints(&Source { path: path.into(), text: text.into() }).len()
    }

    #[test]
    fn a_module_called_utils_is_complained_of() {
        assert_eq!(of("crates/a/src/utils.rs", ""), 1);
        assert_eq!(of("crates/a/src/mod.rs", ""), 1);
        assert_eq!(of("crates/a/src/lib.rs", "mod helpers {}"), 1);
        assert_eq!(of("crates/a/src/queue.rs", "mod tests {}"), 0);
    }

    #[test]
    fn a_manager_is_complained_of_and_an_event_is_not() {
        assert_eq!(of("a.rs", "struct PodManager; enum QueueInfo {} trait ClientImpl {}"), 3);
        assert_eq!(of("a.rs", "struct Event; struct Metadata2;"), 0);
    }
}
