//! How long files and functions may be. Tables may be longer, modules may not.

use crate::{Complaint, source::Source};
use syn::{spanned::Spanned, visit::Visit};

/// The most lines that a file may have, its test modules not counted.
pub const FILE: usize = 600;
/// The most lines that a function may have.
pub const FUNCTION: usize = 60;

/// Complains of files over [`FILE`] lines that do not say `// tidy: table`, and of functions over [`FUNCTION`].
pub fn complaints(source: &Source) -> Vec<Complaint> {
    if source.text.contains("// tidy: table\n") {
        return Vec::new();
    }
    let file = match syn::parse_file(&source.text) {
        Ok(file) => file,
        Err(error) => return vec![format!("{}: does not parse: {error}", source.path)],
    };
    let tests: usize = file.items.iter().filter(|item| is_test_module(item)).map(lines).sum();
    let length = source.text.lines().count() - tests;
    let mut functions = Functions { path: &source.path, complaints: Vec::new() };
    if length > FILE {
        functions
            .complaints
            .push(format!("{}: {length} lines, at most {FILE}: split it by noun", source.path));
    }
    functions.visit_file(&file);
    functions.complaints
}

struct Functions<'a> {
    path: &'a str,
    complaints: Vec<Complaint>,
}

impl Functions<'_> {
    fn look(&mut self, name: &syn::Ident, block: &syn::Block) {
        let length = lines(block);
        if length > FUNCTION {
            let line = name.span().start().line;
            self.complaints
                .push(format!("{}:{line}: fn {name} has {length} lines, at most {FUNCTION}", self.path));
        }
    }
}

impl<'ast> Visit<'ast> for Functions<'_> {
    fn visit_item_fn(&mut self, function: &'ast syn::ItemFn) {
        self.look(&function.sig.ident, &function.block);
        syn::visit::visit_item_fn(self, function);
    }

    fn visit_impl_item_fn(&mut self, function: &'ast syn::ImplItemFn) {
        self.look(&function.sig.ident, &function.block);
        syn::visit::visit_impl_item_fn(self, function);
    }
}

fn is_test_module(item: &syn::Item) -> bool {
    match item {
        syn::Item::Mod(module) => module.attrs.iter().any(|attr| {
            attr.path().is_ident("cfg") && attr.parse_args::<syn::Ident>().is_ok_and(|word| word == "test")
        }),
        _ => false,
    }
}

fn lines(spanned: &impl Spanned) -> usize {
    let span = spanned.span();
    span.end().line + 1 - span.start().line
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: String) -> Vec<Complaint> {
        complaints(&Source { path: "a.rs".into(), text })
    }

    #[test]
    fn a_long_file_is_complained_of() {
        assert_eq!(of("const A: u8 = 0;\n".repeat(601)).len(), 1);
        assert_eq!(of("const A: u8 = 0;\n".repeat(600)), [""; 0]);
    }

    #[test]
    fn a_table_may_be_long() {
        assert_eq!(of(format!("// tidy: table\n{}", "const A: u8 = 0;\n".repeat(601))), [""; 0]);
    }

    #[test]
    fn test_modules_do_not_count() {
        let tests = format!("#[cfg(test)]\nmod tests {{\n{}}}\n", "const A: u8 = 0;\n".repeat(601));
        assert_eq!(of(tests), [""; 0]);
    }

    #[test]
    fn a_long_function_is_complained_of_by_name_and_line() {
        let long = format!("\nfn long() {{\n{}}}\n", "    a();\n".repeat(60));
        assert_eq!(of(long), ["a.rs:2: fn long has 62 lines, at most 60"]);
    }
}
