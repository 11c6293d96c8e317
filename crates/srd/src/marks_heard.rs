// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What a receiver has seen of the network's congestion marks, for each path, and the section that
//! says so (srd-protocol 4.1). Called by ack. Source: RFC 9000, 13.4.1.
//!
//! While nothing is marked nothing is kept, and nothing is said.

use weft_wire::marks::{Ecn, MARKS_BYTES, Marks};
use weft_wire::{Header, PATH_COUNT, Path};

/// Counts of one path, saturating.
#[derive(Clone, Copy, Debug, Default)]
struct Count {
    ce: u32,
    in_row: u32,
}

/// Paths of which there is something to say, as sets.
#[derive(Clone, Copy, Debug, Default)]
struct Seen {
    marked: u64,
    mangled: u64,
}

/// See the module.
#[derive(Debug, Default)]
pub(crate) struct MarksHeard(Option<Box<Known>>);

/// What is kept from the first mark on.
#[derive(Debug)]
struct Known {
    counts: [Count; PATH_COUNT],
    /// Since the last section, and between that and the one before.
    now: Seen,
    before: Seen,
}

impl MarksHeard {
    /// A reliable packet came, for the first time or again, with this in its IP header. Fast path
    /// while nothing is marked.
    #[inline]
    pub(crate) fn on_packet(&mut self, header: &Header, ecn: Ecn) {
        if header.ect && ecn != Ecn::Unknown && (ecn != Ecn::Ect0 || self.0.is_some()) {
            self.count(header.path, ecn);
        }
    }

    #[cold]
    fn count(&mut self, path: Path, ecn: Ecn) {
        let known = self.0.get_or_insert_with(|| {
            Box::new(Known {
                counts: [Count::default(); PATH_COUNT],
                now: Seen::default(),
                before: Seen::default(),
            })
        });
        let count = &mut known.counts[path.index()];
        match ecn {
            Ecn::Ce => {
                known.now.marked |= path.bit();
                count.ce = count.ce.saturating_add(1);
                count.in_row = count.in_row.saturating_add(1);
            }
            Ecn::NotEct | Ecn::Ect1 => known.now.mangled |= path.bit(),
            Ecn::Ect0 | Ecn::Unknown => count.in_row = 0,
        }
    }

    /// What the section takes, in bytes.
    #[inline]
    pub(crate) fn section_bytes(&self) -> u64 {
        match &self.0 {
            Some(known) if !known.is_silent() => MARKS_BYTES as u64,
            _ => 0,
        }
    }

    /// The section, to be sent now with an echo of this path; `None` if there is nothing to say.
    #[inline]
    pub(crate) fn take(&mut self, echoed: Path) -> Option<Marks> {
        let known = self.0.as_mut().filter(|known| !known.is_silent())?;
        Some(known.take(echoed))
    }

    /// Bytes outside of this structure.
    pub(crate) fn footprint_bytes(&self) -> usize {
        self.0.as_ref().map_or(0, |known| size_of_val(&**known))
    }
}

impl Known {
    fn is_silent(&self) -> bool {
        self.now.marked | self.now.mangled | self.before.marked | self.before.mangled == 0
    }

    fn take(&mut self, echoed: Path) -> Marks {
        let count = self.counts[echoed.index()];
        let marks = Marks {
            paths_marked: self.now.marked | self.before.marked,
            paths_mangled: self.now.mangled | self.before.mangled,
            ce_count: count.ce,
            in_row_count: count.in_row,
        };
        self.before = std::mem::take(&mut self.now);
        marks
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use weft_wire::time::Instant;

    fn header(path: Path) -> Header {
        Header {
            ect: true,
            ..Header::unreliable(path, 1, 2, Instant(1))
        }
    }

    #[test]
    fn two_sections_tell_of_a_mark_and_the_row_ends_with_what_comes_unmarked() {
        let (one, other) = (Path::from_ports(0, 1), Path::from_ports(2, 3));
        let mut heard = MarksHeard::default();
        heard.on_packet(&header(one), Ecn::Ect0);
        assert_eq!((heard.take(one), heard.footprint_bytes()), (None, 0));
        for ecn in [Ecn::Ce, Ecn::Ce, Ecn::Ect0, Ecn::Ce] {
            heard.on_packet(&header(one), ecn);
        }
        heard.on_packet(&header(other), Ecn::NotEct);
        let told = heard.take(one).expect("marks");
        assert_eq!(
            (told.paths_marked, told.paths_mangled),
            (one.bit(), other.bit())
        );
        assert_eq!((told.ce_count, told.in_row_count), (3, 1));
        assert_eq!(heard.take(other).expect("again").ce_count, 0);
        assert_eq!(heard.take(one), None);
    }

    /// It may have been told to leave without, or be another's that says nothing.
    #[test]
    fn what_did_not_leave_with_ect_counts_nothing() {
        let path = Path::from_ports(0, 0);
        let mut heard = MarksHeard::default();
        for ecn in [Ecn::Ce, Ecn::NotEct] {
            heard.on_packet(&Header::unreliable(path, 1, 2, Instant(1)), ecn);
        }
        heard.on_packet(&header(path), Ecn::Unknown);
        assert_eq!(heard.take(path), None);
    }
}
