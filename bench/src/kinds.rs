//! How long the table of built-in kinds takes to read.

use crate::{
    figure::{Figure, median},
    report::{Aim, Row},
};
use flyball_schema::kinds::{Kinds, TABLE};
use std::time::{Duration, Instant};

/// The whole table, from text to types.
pub fn rows() -> Vec<Row> {
    let times = (0..51).map(|_| {
        let start = Instant::now();
        let kinds = Kinds::read(TABLE).expect("the committed table reads");
        std::hint::black_box(&kinds);
        start.elapsed()
    });
    vec![Row {
        what: "table of kinds, read whole".into(),
        ours: Figure::Time(median(times.collect())),
        peer: None,
        aim: Aim::Within(Figure::Time(Duration::from_millis(5))),
    }]
}
