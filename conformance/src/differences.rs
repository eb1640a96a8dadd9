//! Reads `differences.md`: where we differ from kube-apiserver on purpose, and why.

use std::cell::Cell;
use std::fs;
use std::path::{Path, PathBuf};

use crate::requests::compare::Difference;

/// Where the explanations are: in the source tree, as the scripts are.
pub fn path() -> PathBuf {
    PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/differences.md"))
}

/// Every explanation, and which of them were needed.
#[derive(Debug, Default)]
pub struct Differences {
    lines: Vec<Line>,
}

/// ``- `script/request` `path`: reason``, where either name may hold `*` (any part) and `**` (anything).
#[derive(Debug)]
struct Line {
    case: String,
    path: String,
    reason: String,
    met: Cell<bool>,
    used: Cell<bool>,
}

impl Differences {
    /// Reads the list items that start with two names in backticks; the rest is prose.
    pub fn read(path: &Path) -> Result<Self, String> {
        let text = fs::read_to_string(path).map_err(|error| format!("read {}: {error}", path.display()))?;
        Self::parse(&text)
    }

    fn parse(text: &str) -> Result<Self, String> {
        let items = text.lines().enumerate().filter(|(_, line)| line.starts_with("- `"));
        let lines = items.map(|(number, line)| {
            let form = || format!("differences.md:{}: expected - `script/request` `path`: reason", number + 1);
            let mut parts = line.splitn(5, '`');
            let (case, path) = (parts.nth(1).ok_or_else(form)?, parts.nth(1).ok_or_else(form)?);
            let reason = parts.next().and_then(|rest| rest.strip_prefix(": ")).ok_or_else(form)?;
            Ok(Line {
                case: case.to_owned(),
                path: path.to_owned(),
                reason: reason.to_owned(),
                met: Cell::new(false),
                used: Cell::new(false),
            })
        });
        lines.collect::<Result<_, String>>().map(|lines| Self { lines })
    }

    /// Splits a case's differences into the reasons that explain some, and what nobody explains.
    pub fn explain(&self, case: &str, differences: Vec<Difference>) -> (Vec<&str>, Vec<Difference>) {
        let lines: Vec<&Line> = self.lines.iter().filter(|line| matches(&line.case, case)).collect();
        let mut reasons = Vec::new();
        let mut unexplained = Vec::new();
        for line in &lines {
            line.met.set(true);
        }
        for difference in differences {
            match lines.iter().find(|line| matches(&line.path, &difference.path)) {
                None => unexplained.push(difference),
                Some(line) => {
                    line.used.set(true);
                    reasons.push(line.reason.as_str());
                }
            }
        }
        reasons.sort_unstable();
        reasons.dedup();
        (reasons, unexplained)
    }

    /// The lines whose cases ran and that explained nothing.
    pub fn idle(&self) -> Vec<String> {
        let idle = self.lines.iter().filter(|line| line.met.get() && !line.used.get());
        idle.map(|line| format!("`{}` `{}`", line.case, line.path)).collect()
    }

    /// The lines that no case's name fits. Those of the corpus are met elsewhere.
    pub fn unmet(&self) -> Vec<String> {
        let unmet = self.lines.iter().filter(|line| !line.met.get() && !line.case.starts_with("corpus/"));
        unmet.map(|line| format!("`{}` `{}`", line.case, line.path)).collect()
    }
}

/// Whether `name` is what `pattern` says, part by part between slashes.
fn matches(pattern: &str, name: &str) -> bool {
    fn parts(pattern: &[&str], name: &[&str]) -> bool {
        match (pattern, name) {
            ([], []) => true,
            (["**", rest @ ..], _) => (0..=name.len()).any(|skipped| parts(rest, &name[skipped..])),
            (["*", pattern @ ..], [_, name @ ..]) => parts(pattern, name),
            ([first, pattern @ ..], [second, name @ ..]) if first == second => parts(pattern, name),
            _ => false,
        }
    }
    parts(&pattern.split('/').collect::<Vec<_>>(), &name.split('/').collect::<Vec<_>>())
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_schema_differs_in_at_most_twenty_lines() {
        let text = std::fs::read_to_string(super::path()).unwrap();
        let mut sections = text
            .split("\n## ")
            .filter(|section| section.lines().next().unwrap().ends_with("(schema)"));
        let lines: usize = sections.by_ref().map(|section| section.matches("\n- `").count()).sum();
        assert!((1..=20).contains(&lines), "{lines} lines");
    }

    use super::*;

    const TEXT: &str = "# Differences\n\nprose\n\n- `pod/*` `body/spec/tolerations/**`: no such admission.\n";

    fn difference(path: &str) -> Difference {
        Difference { path: path.into(), reference: None, ours: None }
    }

    #[test]
    fn a_line_explains_what_it_names_and_nothing_else() {
        let differences = Differences::parse(TEXT).unwrap();
        let found = vec![
            difference("body/spec/tolerations/0/key"),
            difference("body/spec/priority"),
        ];
        let (reasons, unexplained) = differences.explain("pod/create", found);
        assert_eq!(reasons, ["no such admission."]);
        assert_eq!(unexplained, [difference("body/spec/priority")]);
        assert!(differences.idle().is_empty());
    }

    #[test]
    fn a_line_that_explains_nothing_any_more_is_idle() {
        let differences = Differences::parse(TEXT).unwrap();
        differences.explain("pod/create", Vec::new());
        assert_eq!(differences.idle(), ["`pod/*` `body/spec/tolerations/**`"]);
    }

    #[test]
    fn a_line_whose_cases_did_not_run_is_not_idle_but_unmet() {
        let differences = Differences::parse(TEXT).unwrap();
        differences.explain("service/create", Vec::new());
        assert!(differences.idle().is_empty());
        assert_eq!(differences.unmet(), ["`pod/*` `body/spec/tolerations/**`"]);
    }

    #[test]
    fn stars_stand_for_parts() {
        assert!(matches("discovery/*", "discovery/groups"));
        assert!(matches("body/**/description", "body/components/schemas/a/description"));
        assert!(matches("body/spec/**", "body/spec"));
        assert!(!matches("body/*/description", "body/a/b/description"));
        assert!(!matches("body/spec", "body/spec/replicas"));
    }

    #[test]
    fn a_line_without_a_reason_is_refused() {
        let problem = Differences::parse("- `pod/create` `body`\n").unwrap_err();
        assert_eq!(problem, "differences.md:1: expected - `script/request` `path`: reason");
    }
}
