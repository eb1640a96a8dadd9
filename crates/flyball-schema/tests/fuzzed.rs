//! Every public function of this crate is an entry point, and the fuzzer knows it.

use std::fs;
use std::path::Path;

/// What takes no input of others: tables that are built in, and questions about a name or a character.
const EXEMPT: [&str; 6] = [
    "builtin",
    "checksum",
    "is_print",
    "mandatory_flow",
    "mandatory_level",
    "number_text",
];

#[test]
fn every_entry_point_is_fuzzed() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let fuzzed = texts(&root.join("examples/fuzz")).concat();
    let words: Vec<&str> = fuzzed.split(|letter: char| !letter.is_alphanumeric() && letter != '_').collect();
    for text in texts(&root.join("src")) {
        let functions = text.lines().filter_map(|line| line.strip_prefix("pub fn "));
        for name in functions.filter_map(|rest| rest.split(['(', '<']).next()) {
            assert!(words.contains(&name) || EXEMPT.contains(&name), "nothing fuzzes `{name}`");
        }
    }
}

fn texts(directory: &Path) -> Vec<String> {
    let entries = fs::read_dir(directory).expect("the directory is there");
    let paths = entries.map(|entry| entry.expect("it can be read").path());
    let text = |path: std::path::PathBuf| match path.is_dir() {
        true => texts(&path),
        false => vec![fs::read_to_string(path).expect("source is text")],
    };
    paths.flat_map(text).collect()
}
