//! How a journal ends: where a crash cut the last write short, which is left out, and not where a file is damaged.

use super::frame::{Broken, Frame, TRAILER};
use std::{
    fs::File,
    io::{self, Read},
    path::Path,
};

/// What a disk writes at once.
pub(crate) const SECTOR: usize = 512;

/// Reads a file without the zeros that make room at its end; says how long it is with them.
pub(crate) fn read(path: &Path) -> io::Result<(Vec<u8>, u64)> {
    let mut file = File::open(path)?;
    let mut bytes = Vec::new();
    let mut length = 0;
    let mut chunk = [0; 64 << 10];
    loop {
        let count = file.read(&mut chunk)?;
        if count == 0 {
            return Ok((bytes, length as u64));
        }
        if !chunk[..count].chunks(SECTOR).all(is_hole) {
            bytes.resize(length, 0);
            bytes.extend_from_slice(&chunk[..count]);
        }
        length += count;
    }
}

/// Whether nothing was ever written from here on.
pub(crate) fn is_end(bytes: &[u8], rest: usize) -> bool {
    bytes[rest..].chunks(SECTOR).all(is_hole)
}

/// Whether what follows is one frame that a crash cut short. A process that dies leaves the beginning of it; a machine
/// that dies may leave any of its sectors unwritten, which read as they were: as zeros, or, where the frame before ends in
/// the same sector, as zeros from there on. Nothing follows it in either case.
pub(crate) fn is_torn(bytes: &[u8], rest: usize) -> bool {
    let sectors = bytes.chunks(SECTOR).rposition(|sector| !is_hole(sector)).map_or(0, |last| last + 1);
    let written = &bytes[..bytes.len().min(sectors * SECTOR)];
    let written = &written[..written.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1)];
    let frame = &written[rest..];
    let ends = frame.windows(TRAILER.len()).enumerate().filter(|(_, window)| *window == TRAILER);
    let mut after_ends = ends.map(|(at, _)| &frame[at + TRAILER.len()..]);
    if after_ends.any(|next| Frame::read(next).is_ok()) {
        return false;
    }
    let is_beginning = matches!(Frame::read(frame), Err(Broken::Short)) && !frame.ends_with(TRAILER);
    let (first, others) = frame.split_at(frame.len().min(rest.next_multiple_of(SECTOR) - rest));
    is_beginning || (!first.is_empty() && is_hole(first)) || others.chunks(SECTOR).any(is_hole)
}

fn is_hole(sector: &[u8]) -> bool {
    sector == &[0; SECTOR][..sector.len()]
}
