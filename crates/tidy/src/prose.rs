//! What stands in comments and documents: no orphaned mark, no ignored test, no path of one machine.

use crate::{Complaint, source::Source};

// Split, so that this file does not break its own rule.
const MARKS: [&str; 3] = [concat!("TO", "DO"), concat!("FIX", "ME"), concat!("X", "XX:")];
const IGNORED: &str = concat!("#[ig", "nore");
const MACHINE: [&str; 3] = [concat!("/ro", "ot/"), concat!("/wo", "rk/"), concat!("/ho", "me/")];

/// Complains of a mark without an issue (`#12`) or decision (`docs/decisions/…`) behind it, of ignored tests, and of
/// absolute paths of a machine.
pub fn complaints(source: &Source) -> Vec<Complaint> {
    let mut complaints = Vec::new();
    for (index, line) in source.text.lines().enumerate() {
        let place = format!("{}:{}", source.path, index + 1);
        if MARKS.iter().any(|mark| mentions(line, mark)) && !has_reason(line) {
            complaints.push(format!("{place}: name the issue (#12) or decision (docs/decisions/…) behind it"));
        }
        if line.contains(IGNORED) {
            complaints.push(format!("{place}: a test that does not run is no test"));
        }
        if MACHINE.iter().any(|folder| line.contains(folder)) {
            complaints.push(format!("{place}: a path of one machine"));
        }
    }
    complaints
}

fn mentions(line: &str, mark: &str) -> bool {
    line.match_indices(mark).any(|(start, _)| {
        let before = line[..start].chars().next_back();
        let after = line[start + mark.len()..].chars().next();
        !before.is_some_and(char::is_alphanumeric) && !after.is_some_and(char::is_alphanumeric)
    })
}

fn has_reason(line: &str) -> bool {
    line.contains("docs/decisions/")
        || line.split('#').skip(1).any(|rest| rest.starts_with(|c: char| c.is_ascii_digit()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str) -> usize {
        complaints(&Source { path: "a.rs".into(), text: text.into() }).len()
    }

    #[test]
    fn a_mark_needs_an_issue_or_a_decision() {
        assert_eq!(of(&format!("// {}: later", MARKS[0])), 1);
        assert_eq!(of(&format!("// {}(#12): later", MARKS[0])), 0);
        assert_eq!(of(&format!("// {}: see docs/decisions/store.md", MARKS[1])), 0);
        assert_eq!(of(&format!("// {}LIST is a word of its own", MARKS[0])), 0);
    }

    #[test]
    fn an_ignored_test_and_a_machine_path_are_complained_of() {
        assert_eq!(of(IGNORED), 1);
        assert_eq!(of(&format!("cd {}x", MACHINE[0])), 1);
    }
}
