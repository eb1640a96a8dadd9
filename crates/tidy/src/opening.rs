//! Each file begins by saying its one job.

use crate::{Complaint, source::Source};

/// Complains of a file whose first line is not `//!`, or that opens with more than three such lines without being a crate root.
pub fn complaints(source: &Source) -> Vec<Complaint> {
    let opening = source.text.lines().take_while(|line| line.starts_with("//!")).count();
    let root = ["lib.rs", "main.rs"].iter().any(|name| source.path.ends_with(name));
    match opening {
        0 => vec![format!(
            "{}:1: begin with `//!`: the file's one job, and what it leaves to others",
            source.path
        )],
        4.. if !root => vec![format!("{}:1: {opening} opening lines, at most 3", source.path)],
        _ => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(path: &str, text: &str) -> usize {
        complaints(&Source { path: path.into(), text: text.into() }).len()
    }

    #[test]
    fn a_file_without_an_opening_is_complained_of() {
        assert_eq!(of("a.rs", "fn a() {}"), 1);
        assert_eq!(of("a.rs", "//! Does a.\nfn a() {}"), 0);
    }

    #[test]
    fn only_a_crate_root_may_open_at_length() {
        assert_eq!(of("src/a.rs", "//! 1\n//! 2\n//! 3\n//! 4\n"), 1);
        assert_eq!(of("src/lib.rs", "//! 1\n//! 2\n//! 3\n//! 4\n"), 0);
    }
}
