//! What is written in a file of the journal, and how it ends: where a crash cut the last write short, which is left out, and
//! not where the file is damaged.

use super::{
    frame::{Broken, Frame, TRAILER},
    sector::{ROOM, SECTOR, Sector, is_zero},
};
use std::{
    fs::File,
    io::{self, Read},
    path::Path,
};

/// So much is read at once.
const CHUNK: usize = 64 << 10;

/// What is written in a file.
pub(crate) struct Written {
    /// Everything up to the end of the last sector that is written; zeros where one before it is not.
    pub bytes: Vec<u8>,
    /// How long the file is.
    pub length: u64,
    /// For each sector whether it is written.
    sectors: Vec<bool>,
}

impl Written {
    /// Reads a file with this number; where a sector is damaged, says at which byte it begins.
    pub fn read(path: &Path, number: u64) -> io::Result<Result<Written, u64>> {
        let mut file = File::open(path)?;
        let mut written = Written { bytes: Vec::new(), length: 0, sectors: Vec::new() };
        let mut chunk = Vec::with_capacity(CHUNK);
        while file.by_ref().take(CHUNK as u64).read_to_end(&mut chunk)? > 0 {
            for sector in chunk.chunks(SECTOR) {
                match Sector::read(sector, number) {
                    Sector::Written(room) => written.add(room),
                    Sector::Unwritten => {}
                    Sector::Damaged => return Ok(Err(written.length)),
                }
                written.length += sector.len() as u64;
            }
            chunk.clear();
        }
        Ok(Ok(written))
    }

    /// Adds the sector that follows so many bytes of the file.
    fn add(&mut self, room: &[u8]) {
        let at = self.length as usize / SECTOR;
        self.bytes.resize(at * ROOM, 0);
        self.bytes.extend_from_slice(room);
        self.sectors.resize(at, false);
        self.sectors.push(true);
    }

    /// Whether nothing was ever written from here on.
    pub fn is_end(&self, rest: usize) -> bool {
        self.sectors.len() <= rest.div_ceil(ROOM) && is_zero(&self.bytes[rest..])
    }

    /// Whether nothing was ever written beyond the first sector.
    pub fn is_within_a_sector(&self) -> bool {
        self.sectors.len() <= 1
    }

    /// Whether what follows is one frame that a crash cut short. A process that dies leaves the beginning of it; a machine
    /// that dies may leave any of its sectors unwritten, and where the frame before ends in the same sector, that sector as
    /// it was, with zeros from there on. Nothing follows it in either case.
    pub fn is_torn(&self, rest: usize) -> bool {
        let end = self.bytes.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1);
        let frame = &self.bytes[rest..end.max(rest)];
        let ends = frame.windows(TRAILER.len()).enumerate().filter(|(_, window)| *window == TRAILER);
        let mut after_ends = ends.map(|(at, _)| &frame[at + TRAILER.len()..]);
        if after_ends.any(|next| Frame::read(next).is_ok()) {
            return false;
        }
        let is_short = matches!(Frame::read(frame), Err(Broken::Short)) && !frame.ends_with(TRAILER);
        let is_beginning = is_short && !frame.is_empty();
        let first = &frame[..frame.len().min(rest.next_multiple_of(ROOM) - rest)];
        let has_hole = self.sectors.iter().skip(rest.div_ceil(ROOM)).any(|is_written| !is_written);
        is_beginning || (!first.is_empty() && is_zero(first)) || has_hole
    }
}
