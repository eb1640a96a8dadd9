//! One table a server: a line a figure, a column a framework, and how many times better Flyball is than each.

use super::{Framework, Server, measure, program::Program};
use crate::figure::Figure;
use std::{collections::BTreeSet, fmt};

/// What was measured on one server.
pub struct Table {
    server: Server,
    frameworks: Vec<Framework>,
    lines: Vec<Line>,
}

struct Line {
    what: String,
    /// How many times better than controller-runtime it should be; ahead of the others is enough.
    aim: f64,
    /// By framework, as in the table.
    figures: Vec<Result<Figure, String>>,
}

impl Table {
    pub fn new(server: Server, programs: &[Program]) -> Table {
        Table {
            server,
            frameworks: programs.iter().map(|program| program.framework).collect(),
            lines: Vec::new(),
        }
    }

    /// Adds a line in which Flyball should be ahead of everybody.
    pub fn add(&mut self, what: impl Into<String>, figures: Vec<Result<Figure, String>>) {
        self.lines.push(Line { what: what.into(), aim: 1.0, figures });
    }

    /// Adds a line in which Flyball should need at most a third of controller-runtime's.
    pub fn add_memory(&mut self, what: impl Into<String>, figures: Vec<Result<Figure, String>>) {
        self.lines.push(Line { what: what.into(), aim: 3.0, figures });
    }

    /// What is aimed at, and whether it was reached: one for each peer that was measured.
    pub fn aims(&self) -> impl Iterator<Item = (String, bool)> {
        self.lines.iter().flat_map(|line| {
            let peers = self.frameworks.iter().zip(&line.figures);
            peers.filter_map(|(framework, figure)| {
                let ratio = self.ratio(line, *framework, figure)?;
                let aim = if measure::is_memory_peer(*framework) {
                    line.aim
                } else {
                    1.0
                };
                let what = format!("{} ({}: {ratio:.2} ×, aim {aim} ×)", line.what.trim(), framework.name());
                Some((what, ratio >= aim))
            })
        })
    }

    fn ratio(&self, line: &Line, framework: Framework, figure: &Result<Figure, String>) -> Option<f64> {
        let ours = self.frameworks.iter().position(|framework| *framework == Framework::Flyball)?;
        if framework == Framework::Flyball {
            return None;
        }
        line.figures[ours].as_ref().ok()?.times_better_than(*figure.as_ref().ok()?)
    }

    fn cells(&self, line: &Line) -> Vec<String> {
        let cell = |(framework, figure): (&Framework, &Result<Figure, String>)| match figure {
            Ok(figure) => match self.ratio(line, *framework, &Ok(*figure)) {
                Some(ratio) => format!("{figure} {ratio:.1}×"),
                None => figure.to_string(),
            },
            Err(_) => "none".into(),
        };
        let figures = self.frameworks.iter().zip(&line.figures).map(cell);
        std::iter::once(line.what.clone()).chain(figures).collect()
    }

    /// Why there is no figure, each reason once.
    fn reasons(&self) -> BTreeSet<String> {
        let reasons = self.lines.iter().flat_map(|line| {
            let failed = self.frameworks.iter().zip(&line.figures);
            failed.filter_map(|(framework, figure)| {
                let reason = figure.as_ref().err()?;
                Some(format!("none: {}: {reason}", framework.name()))
            })
        });
        reasons.collect()
    }
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = self.frameworks.iter().map(|framework| framework.name().to_owned());
        let header = std::iter::once(format!("on {}", self.server.name())).chain(names).collect();
        let lines: Vec<Vec<String>> =
            std::iter::once(header).chain(self.lines.iter().map(|line| self.cells(line))).collect();
        let width = |column: usize| lines.iter().map(|line| line[column].chars().count()).max().unwrap_or_default();
        let widths: Vec<usize> = (0..=self.frameworks.len()).map(width).collect();
        for line in &lines {
            let cells: Vec<String> = line.iter().zip(&widths).map(|(cell, width)| format!("{cell:<width$}")).collect();
            writeln!(f, "{}", cells.join(" | ").trim_end())?;
        }
        for reason in self.reasons() {
            writeln!(f, "{reason}")?;
        }
        for (what, _) in self.aims().filter(|(_, reached)| !reached) {
            writeln!(f, "missed: {what}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    fn table(figures: [Result<Figure, String>; 3]) -> Table {
        let frameworks = vec![Framework::Flyball, Framework::ControllerRuntime, Framework::Kopf];
        let mut table = Table { server: Server::Reference, frameworks, lines: Vec::new() };
        table.add_memory("memory", figures.to_vec());
        table
    }

    #[test]
    fn each_peer_is_shown_with_how_many_times_better_flyball_is() {
        let text = table([10.0, 40.0, 5.0].map(|bytes| Ok(Figure::Bytes(bytes * 1048576.0)))).to_string();
        let shown = "memory                   | 10.0 MiB | 40.0 MiB 4.0×      | 5.0 MiB 0.5×\n";
        assert!(text.contains(shown), "{text}");
        assert!(text.ends_with("missed: memory (kopf: 0.50 ×, aim 1 ×)\n"), "{text}");
    }

    #[test]
    fn who_could_not_be_measured_is_named_with_the_reason() {
        let time = Ok(Figure::Time(Duration::from_secs(1)));
        let table = table([time.clone(), time, Err("no python3 on the PATH".into())]);
        let text = table.to_string();
        assert!(text.contains("none: kopf: no python3 on the PATH"), "{text}");
        assert_eq!(table.aims().filter(|(_, reached)| *reached).count(), 0);
        assert_eq!(table.aims().count(), 1, "a peer without a figure is no aim");
    }
}
