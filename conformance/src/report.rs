//! What a run found: a verdict a case, a line a group, and the closing line that scripts read.

use std::fmt::{self, Display, Formatter};
use std::time::Duration;

/// What became of one comparison.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Both sides agree.
    Same,
    /// They differ, for the reason given.
    Explained(String),
    /// They differ, as shown.
    Different(String),
    /// Nothing was compared, for the reason given.
    Skipped(String),
}

/// One comparison and its verdict.
#[derive(Clone, Debug)]
pub struct Finding {
    /// The comparison's name, unique in its group.
    pub case: String,
    /// What became of it.
    pub verdict: Verdict,
}

impl Finding {
    /// A check that passes or says what is wrong.
    pub fn check(case: impl Into<String>, outcome: Result<(), String>) -> Self {
        let verdict = outcome.map_or_else(Verdict::Different, |()| Verdict::Same);
        Self { case: case.into(), verdict }
    }

    /// A comparison that could not be made.
    pub fn skipped(case: impl Into<String>, reason: impl Into<String>) -> Self {
        Self { case: case.into(), verdict: Verdict::Skipped(reason.into()) }
    }
}

/// How many comparisons ended how.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Both sides agree.
    pub same: usize,
    /// They differ for a known reason.
    pub explained: usize,
    /// They differ.
    pub different: usize,
    /// Not compared.
    pub skipped: usize,
}

impl Counts {
    fn of<'a>(findings: impl IntoIterator<Item = &'a Finding>) -> Self {
        let mut counts = Self::default();
        for finding in findings {
            match finding.verdict {
                Verdict::Same => counts.same += 1,
                Verdict::Explained(_) => counts.explained += 1,
                Verdict::Different(_) => counts.different += 1,
                Verdict::Skipped(_) => counts.skipped += 1,
            }
        }
        counts
    }
}

/// The closing line; it speaks of skipped comparisons only where there are any.
impl Display for Counts {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        write!(
            formatter,
            "{} same, {} explained, {} different",
            self.same, self.explained, self.different
        )?;
        if self.skipped > 0 {
            write!(formatter, ", {} skipped", self.skipped)?;
        }
        Ok(())
    }
}

/// Everything that a run found, by group.
#[derive(Debug, Default)]
pub struct Report {
    groups: Vec<(&'static str, Vec<Finding>, Duration)>,
}

impl Report {
    /// Adds a group's findings and how long they took.
    pub fn add(&mut self, group: &'static str, findings: Vec<Finding>, took: Duration) {
        self.groups.push((group, findings, took));
    }

    /// How everything ended.
    pub fn counts(&self) -> Counts {
        Counts::of(self.groups.iter().flat_map(|(_, findings, _)| findings))
    }

    /// What the process exits with: 1 for a difference, 77 where something was skipped, else 0.
    pub fn exit_code(&self) -> u8 {
        let counts = self.counts();
        match (counts.different, counts.skipped) {
            (0, 0) => 0,
            (0, _) => 77,
            _ => 1,
        }
    }
}

/// Each case that is not the same, then the table by group, then the closing line.
impl Display for Report {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        for (group, findings, _) in &self.groups {
            for Finding { case, verdict } in findings {
                match verdict {
                    Verdict::Same => {}
                    Verdict::Explained(reason) => writeln!(formatter, "explained  {group}/{case}: {reason}")?,
                    Verdict::Skipped(reason) => writeln!(formatter, "skipped    {group}/{case}: {reason}")?,
                    Verdict::Different(detail) => {
                        writeln!(formatter, "different  {group}/{case}\n{}", indented(detail))?
                    }
                }
            }
        }
        writeln!(
            formatter,
            "{:12} {:>6} {:>10} {:>10} {:>8} {:>9}",
            "group", "same", "explained", "different", "skipped", "time"
        )?;
        for (group, findings, took) in &self.groups {
            let Counts { same, explained, different, skipped } = Counts::of(findings);
            let seconds = took.as_secs_f64();
            writeln!(
                formatter,
                "{group:12} {same:>6} {explained:>10} {different:>10} {skipped:>8} {seconds:>7.1} s"
            )?;
        }
        write!(formatter, "\n{}", self.counts())
    }
}

/// An error with all its causes, in one line.
pub fn sentence(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text = format!("{text}: {error}");
        cause = error.source();
    }
    text
}

fn indented(text: &str) -> String {
    text.lines().map(|line| format!("    {line}\n")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report(verdicts: &[Verdict]) -> Report {
        let findings = verdicts.iter().map(|verdict| Finding { case: "case".into(), verdict: verdict.clone() });
        let mut report = Report::default();
        report.add("group", findings.collect(), Duration::from_millis(1500));
        report
    }

    #[test]
    fn the_closing_line_counts_each_verdict() {
        let report = report(&[Verdict::Same, Verdict::Same, Verdict::Explained("why".into())]);
        assert!(report.to_string().ends_with("\n2 same, 1 explained, 0 different"), "{report}");
        assert_eq!(report.exit_code(), 0);
    }

    #[test]
    fn a_difference_is_shown_and_fails_the_run() {
        let report = report(&[
            Verdict::Different("- 200\n+ 404".into()),
            Verdict::Skipped("no Go".into()),
        ]);
        assert!(report.to_string().contains("different  group/case\n    - 200\n    + 404\n"), "{report}");
        assert!(report.to_string().ends_with("0 same, 0 explained, 1 different, 1 skipped"), "{report}");
        assert_eq!(report.exit_code(), 1);
    }

    #[test]
    fn skipped_is_never_passed() {
        assert_eq!(report(&[Verdict::Same, Verdict::Skipped("no Go".into())]).exit_code(), 77);
    }
}
