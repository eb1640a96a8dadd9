//! The table that a run prints: what | ours | peer | ratio | aim | ok.

use crate::figure::Figure;
use std::fmt::Write;

/// One line of the table.
pub struct Row {
    /// What was measured, such as `creates, 16 connections`.
    pub what: String,
    /// Flyball's figure.
    pub ours: Figure,
    /// The peer's name and figure from the same run; none where there is no peer.
    pub peer: Option<(&'static str, Figure)>,
    /// What DESIGN.md or the issue asks for.
    pub aim: Aim,
}

/// What a figure should reach.
#[derive(Clone, Copy)]
pub enum Aim {
    /// So many times better than the peer.
    Times(f64),
    /// At least this good, whatever a peer does.
    Within(Figure),
}

impl Row {
    /// How many times better than the peer.
    pub fn ratio(&self) -> Option<f64> {
        self.peer.and_then(|(_, peer)| self.ours.times_better_than(peer))
    }

    /// Whether the aim is reached.
    pub fn ok(&self) -> bool {
        match self.aim {
            Aim::Times(times) => self.ratio().is_some_and(|ratio| ratio >= times),
            Aim::Within(bound) => self.ours.times_better_than(bound).is_some_and(|ratio| ratio >= 1.0),
        }
    }

    fn cells(&self) -> [String; 6] {
        [
            self.what.clone(),
            self.ours.to_string(),
            self.peer.map_or("none".into(), |(name, figure)| format!("{figure} ({name})")),
            self.ratio().map_or("none".into(), |ratio| format!("{ratio:.2} ×")),
            match self.aim {
                Aim::Times(times) => format!("≥ {times} ×"),
                Aim::Within(bound @ Figure::Rate(_)) => format!("≥ {bound}"),
                Aim::Within(bound) => format!("≤ {bound}"),
            },
            if self.ok() { "yes".into() } else { "NO".into() },
        ]
    }
}

/// The rows as text, columns aligned.
pub fn table(rows: &[Row]) -> String {
    let header = ["what", "ours", "peer", "ratio", "aim", "ok"].map(String::from);
    let lines: Vec<[String; 6]> = std::iter::once(header).chain(rows.iter().map(Row::cells)).collect();
    let width = |column: usize| lines.iter().map(|line| line[column].chars().count()).max().unwrap_or_default();
    let widths: [usize; 6] = std::array::from_fn(width);
    let mut text = String::new();
    for line in &lines {
        let cells: Vec<String> = line.iter().zip(widths).map(|(cell, width)| format!("{cell:<width$}")).collect();
        writeln!(text, "{}", cells.join(" | ").trim_end()).expect("writing to a string");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    fn row(ours: u64, peer: u64) -> Row {
        let time = |ms| Figure::Time(Duration::from_millis(ms));
        Row {
            what: "start".into(),
            ours: time(ours),
            peer: Some(("peer", time(peer))),
            aim: Aim::Times(2.0),
        }
    }

    #[test]
    fn an_aim_is_reached_or_said_to_be_missed() {
        assert!(row(1, 2).ok());
        assert!(!row(1, 1).ok());
        assert!(table(&[row(1, 1)]).contains("NO"));
    }

    #[test]
    fn an_aim_without_a_peer_is_a_bound() {
        let bound = Aim::Within(Figure::Time(Duration::from_millis(5)));
        assert!(Row { peer: None, aim: bound, ..row(4, 0) }.ok());
        assert!(!Row { peer: None, aim: bound, ..row(6, 0) }.ok());
    }

    #[test]
    fn every_line_has_six_columns() {
        let text = table(&[row(1, 2), row(20, 3)]);
        assert_eq!(text.lines().count(), 3);
        assert!(text.lines().all(|line| line.split(" | ").count() == 6), "{text}");
    }
}
