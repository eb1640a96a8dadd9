//! One table a server: a line a figure, a column a framework, and how many times better Flyball is than each.

use super::{Framework, Server, measure, program::Program};
use crate::figure::Figure;
use std::{collections::BTreeSet, fmt};

/// The first column, and each of the others, in characters.
const WIDTHS: (usize, usize) = (27, 19);

/// What was measured on one server.
pub struct Table {
    server: Server,
    frameworks: Vec<Framework>,
    lines: Vec<Line>,
    /// How many lines have been printed.
    printed: usize,
}

struct Line {
    what: String,
    /// How many times better than controller-runtime it should be, ahead of the others being enough; or nothing is aimed at.
    aim: Option<f64>,
    /// By framework, as in the table.
    figures: Vec<Measured>,
}

/// What is known of one framework's figure.
#[derive(Clone, Debug)]
pub enum Measured {
    /// This.
    Exactly(Figure),
    /// More than this, since it was given up; and how far it had come.
    Beyond(Figure, String),
    /// Nothing, and why.
    Nothing(String),
}

impl Measured {
    fn figure(&self) -> Option<Figure> {
        match self {
            Measured::Exactly(figure) | Measured::Beyond(figure, _) => Some(*figure),
            Measured::Nothing(_) => None,
        }
    }

    fn remark(&self) -> Option<&str> {
        match self {
            Measured::Exactly(_) => None,
            Measured::Beyond(_, remark) | Measured::Nothing(remark) => Some(remark),
        }
    }
}

impl Table {
    pub fn new(server: Server, programs: &[Program]) -> Table {
        Table {
            server,
            frameworks: programs.iter().map(|program| program.framework).collect(),
            lines: Vec::new(),
            printed: 0,
        }
    }

    /// Adds a line in which Flyball should be ahead of everybody.
    pub fn add(&mut self, what: impl Into<String>, figures: Vec<Measured>) {
        self.lines.push(Line { what: what.into(), aim: Some(1.0), figures });
    }

    /// Adds a line that is there to be known: what the frameworks have others do.
    pub fn add_beside(&mut self, what: impl Into<String>, figures: Vec<Measured>) {
        self.lines.push(Line { what: what.into(), aim: None, figures });
    }

    /// Adds a line in which Flyball should need at most a third of controller-runtime's.
    pub fn add_memory(&mut self, what: impl Into<String>, figures: Vec<Measured>) {
        self.lines.push(Line { what: what.into(), aim: Some(3.0), figures });
    }

    /// Prints what has been added since this was called last: a run that is cut short has shown what it knew.
    pub fn print(&mut self) {
        if self.printed == 0 {
            println!("{}", self.header());
        }
        self.lines[self.printed..].iter().for_each(|line| println!("{}", self.row(line)));
        self.printed = self.lines.len();
    }

    /// Prints what is to be said below the table.
    pub fn print_remarks(&self) {
        println!("{}", self.remarks());
    }

    /// What is aimed at, and whether it was reached: one for each peer that was measured.
    pub fn aims(&self) -> impl Iterator<Item = (String, bool)> {
        self.lines.iter().flat_map(|line| {
            let peers = self.frameworks.iter().zip(&line.figures);
            peers.filter_map(|(framework, figure)| {
                let (ratio, aim) = (self.ratio(line, *framework, figure)?, line.aim?);
                let aim = if measure::is_memory_peer(*framework) { aim } else { 1.0 };
                let what = format!("{} ({}: {ratio:.2} ×, aim {aim} ×)", line.what.trim(), framework.name());
                Some((what, ratio >= aim))
            })
        })
    }

    fn ratio(&self, line: &Line, framework: Framework, figure: &Measured) -> Option<f64> {
        let ours = self.frameworks.iter().position(|framework| *framework == Framework::Flyball)?;
        if framework == Framework::Flyball {
            return None;
        }
        line.figures[ours].figure()?.times_better_than(figure.figure()?)
    }

    fn header(&self) -> String {
        let names = self.frameworks.iter().map(|framework| framework.name().to_owned());
        aligned(&format!("on {}", self.server.name()), names)
    }

    fn row(&self, line: &Line) -> String {
        let cell = |(framework, measured): (&Framework, &Measured)| {
            let Some(figure) = measured.figure() else {
                return "none".to_owned();
            };
            let ratio = self.ratio(line, *framework, measured).map(|ratio| format!(" {ratio:.1}×"));
            let beyond = if measured.remark().is_some() { "> " } else { "" };
            format!("{beyond}{figure}{}", ratio.unwrap_or_default())
        };
        aligned(&line.what, self.frameworks.iter().zip(&line.figures).map(cell))
    }

    /// Why figures are missing or are bounds only, each reason once, and which aims were missed.
    fn remarks(&self) -> String {
        let remarks = self.lines.iter().flat_map(|line| {
            let figures = self.frameworks.iter().zip(&line.figures);
            figures.filter_map(|(framework, figure)| Some(format!("{}: {}", framework.name(), figure.remark()?)))
        });
        let remarks: BTreeSet<String> = remarks.collect();
        let missed = self.aims().filter(|(_, reached)| !reached).map(|(what, _)| format!("missed: {what}"));
        remarks.into_iter().chain(missed).map(|line| line + "\n").collect()
    }
}

fn aligned(first: &str, cells: impl Iterator<Item = String>) -> String {
    let cells = cells.map(|cell| format!(" | {cell:<width$}", width = WIDTHS.1));
    let line = format!("{first:<width$}", width = WIDTHS.0) + &cells.collect::<String>();
    line.trim_end().to_owned()
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}", self.header())?;
        self.lines.iter().try_for_each(|line| writeln!(f, "{}", self.row(line)))?;
        f.write_str(&self.remarks())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    fn table(figures: [Measured; 3]) -> Table {
        let frameworks = vec![Framework::Flyball, Framework::ControllerRuntime, Framework::Kopf];
        let mut table = Table {
            server: Server::Reference,
            frameworks,
            lines: Vec::new(),
            printed: 0,
        };
        table.add_memory("memory", figures.to_vec());
        table
    }

    #[test]
    fn each_peer_is_shown_with_how_many_times_better_flyball_is() {
        let figures = [10.0, 40.0, 5.0].map(|bytes| Measured::Exactly(Figure::Bytes(bytes * 1048576.0)));
        let text = table(figures).to_string();
        let shown = "memory                      | 10.0 MiB            | 40.0 MiB 4.0×       | 5.0 MiB 0.5×\n";
        assert!(text.contains(shown), "{text}");
        assert!(text.ends_with("missed: memory (kopf: 0.50 ×, aim 1 ×)\n"), "{text}");
    }

    #[test]
    fn who_could_not_be_measured_is_named_with_the_reason() {
        let time = Measured::Exactly(Figure::Time(Duration::from_secs(1)));
        let table = table([time.clone(), time, Measured::Nothing("no python3 on the PATH".into())]);
        let text = table.to_string();
        assert!(text.contains("kopf: no python3 on the PATH"), "{text}");
        assert_eq!(table.aims().filter(|(_, reached)| *reached).count(), 0);
        assert_eq!(table.aims().count(), 1, "a peer without a figure is no aim");
    }

    #[test]
    fn what_the_server_needed_is_shown_and_no_aim() {
        let time = |seconds| Measured::Exactly(Figure::Time(Duration::from_secs(seconds)));
        let mut table = table([time(1), time(3), time(3)]);
        table.add_beside("  the server's", vec![time(4), time(2), time(8)]);
        let text = table.to_string();
        assert!(text.contains("| 4.00 s              | 2.00 s 0.5×         | 8.00 s 2.0×\n"), "{text}");
        assert_eq!((table.aims().count(), text.contains("missed")), (2, false), "{text}");
    }

    #[test]
    fn who_was_given_up_is_shown_with_what_it_took_at_least_and_how_far_it_came() {
        let time = |seconds| Figure::Time(Duration::from_secs(seconds));
        let late = Measured::Beyond(time(60), "only 800 reconciled after 60 s".into());
        let table = table([Measured::Exactly(time(1)), Measured::Exactly(time(3)), late]);
        let text = table.to_string();
        assert!(text.contains("| > 60.00 s 60.0×\nkopf: only 800 reconciled after 60 s\n"), "{text}");
        assert_eq!(table.aims().filter(|(_, reached)| *reached).count(), 2);
    }
}
