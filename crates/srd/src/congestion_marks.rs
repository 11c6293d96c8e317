// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What a sender makes of the congestion marks that its remote has seen: which paths leave with
//! ECT(0), and how much of the window a mark costs (srd-protocol 10.12). Called by loss and
//! transmit. Sources: RFC 3168; RFC 9000, 13.4.2; RFC 9002, 7.1.

use weft_wire::Path;
use weft_wire::marks::Marks;
use weft_wire::time::Instant;

/// Marks in a row, on one path and while the window is small, after which the network is thought to
/// mark everything (chosen: no queue does that then).
const ALL_MARKED_COUNT: u32 = 16;
/// A window that makes no queue to speak of (chosen: seven packets of 9000 bytes, of which marks
/// in each round trip leave that many).
const SMALL_BYTES: u64 = 64 << 10;
/// Marks in a row after which a path is thought to do so, whatever the window (chosen).
const EVER_MARKED_COUNT: u32 = 64;
/// So many packets must be lost, and none acknowledged, for ECT(0) to be what keeps them from
/// arriving (chosen: RFC 9000, A.4, has ten).
const SWALLOWED_COUNT: u8 = 10;
/// Which paths are marked is judged when each was marked so often, on average (chosen: of marks
/// that hit all paths alike one in fifty paths is left out by then).
const JUDGED_AFTER: u32 = 4;

/// What of the window a round trip with marks concerns.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Concern {
    /// All of it.
    All,
    /// So many of so many paths.
    Part { marked_count: u32, heard_count: u32 },
}

/// See the module. Takes room only from the first packet with ECT on.
#[derive(Debug, Default)]
pub(crate) struct CongestionMarks(Option<Box<Known>>);

/// What is known.
#[derive(Debug)]
struct Known {
    /// Paths that leave without ECT, as a set.
    without: u64,
    /// Since the last judgement: paths heard, paths marked, and marks.
    heard: u64,
    marked: u64,
    mark_count: u32,
    /// The last judgement: marks are of these paths, and not of the others.
    minority: u64,
    /// What left before has been answered for.
    cut_ns: Instant,
    /// The first packet that left with ECT.
    first_sequence: u64,
    /// Whether anything that left with ECT has arrived; until then, how many were lost.
    has_arrived: bool,
    swallowed_count: u8,
}

impl CongestionMarks {
    /// Whether packets of a path may leave with ECT(0). Fast path.
    #[inline]
    pub(crate) fn are_used(&self, path: Path) -> bool {
        self.0
            .as_ref()
            .is_none_or(|known| known.without & path.bit() == 0)
    }

    /// Whether the network is known to carry what leaves with ECT, if anything has left so.
    pub(crate) fn are_carried(&self) -> bool {
        self.0.as_ref().is_none_or(|known| known.has_arrived)
    }

    /// Something was heard of these paths. Fast path.
    #[inline]
    pub(crate) fn on_heard(&mut self, paths: u64) {
        if let Some(known) = &mut self.0 {
            known.heard |= paths;
        }
    }

    /// A packet with this sequence leaves with ECT. Fast path, but for the first one.
    #[inline]
    pub(crate) fn on_sent(&mut self, sequence: u64) {
        if self.0.is_none() {
            self.begin(sequence);
        }
    }

    #[cold]
    fn begin(&mut self, first_sequence: u64) {
        self.0 = Some(Box::new(Known {
            without: 0,
            heard: 0,
            marked: 0,
            mark_count: 0,
            minority: 0,
            cut_ns: Instant::START,
            first_sequence,
            has_arrived: false,
            swallowed_count: 0,
        }));
    }

    /// Of a packet that left once, its first transmission has arrived. Fast path.
    #[inline]
    pub(crate) fn on_arrived(&mut self, sequence: u64) {
        if let Some(known) = &mut self.0 {
            known.has_arrived |= sequence >= known.first_sequence;
        }
    }

    /// A first transmission was lost. While none with ECT has arrived, that may be because of it:
    /// some devices drop what they do not know.
    pub(crate) fn on_lost(&mut self, sequence: u64) {
        let Some(known) = &mut self.0 else { return };
        if known.has_arrived || sequence < known.first_sequence {
            return;
        }
        known.swallowed_count = known.swallowed_count.saturating_add(1);
        if known.swallowed_count >= SWALLOWED_COUNT {
            known.without = u64::MAX;
        }
    }

    /// Paths that do not carry marks as they should are used without: those that the remote names,
    /// the echoed one if it marks everything, and all of them if that is so while the window is
    /// small: one that is used without alone would carry everything.
    pub(crate) fn validate(&mut self, marks: &Marks, echoed: Path, cwnd_bytes: u64) {
        let Some(known) = &mut self.0 else { return };
        known.without |= marks.paths_mangled;
        if cwnd_bytes <= SMALL_BYTES && marks.in_row_count >= ALL_MARKED_COUNT {
            known.without = u64::MAX;
        } else if marks.in_row_count >= EVER_MARKED_COUNT {
            known.without |= echoed.bit();
        }
    }

    /// The remote has seen marks, up to what left at `echo_sent_ns`. Answers what they concern, at
    /// most once in a round trip.
    pub(crate) fn on_marked(
        &mut self,
        marks: &Marks,
        echo_sent_ns: Instant,
        now_ns: Instant,
    ) -> Option<Concern> {
        let known = self.0.as_mut()?;
        let marked = marks.paths_marked & !known.without;
        if marked == 0 || echo_sent_ns <= known.cut_ns {
            return None;
        }
        known.cut_ns = now_ns;
        Some(known.judge(marked))
    }

    /// Gives memory back, but for what is known against paths.
    pub(crate) fn trim(&mut self) {
        self.0 = self.0.take().filter(|known| known.without != 0);
    }

    /// Bytes outside of this structure.
    pub(crate) fn footprint_bytes(&self) -> usize {
        self.0.as_ref().map_or(0, |known| size_of_val(&**known))
    }
}

impl Known {
    /// Whether marks are of a few paths again and again.
    fn judge(&mut self, marked: u64) -> Concern {
        self.marked |= marked;
        self.mark_count += marked.count_ones();
        let (marked_count, heard_count) = (self.marked.count_ones(), self.heard.count_ones());
        if self.mark_count >= JUDGED_AFTER * marked_count {
            let is_few = 2 * marked_count < heard_count;
            self.minority = if is_few { self.marked } else { 0 };
            (self.heard, self.marked, self.mark_count) = (0, 0, 0);
        }
        if self.minority == 0 || marked & !self.minority != 0 {
            return Concern::All;
        }
        let marked_count = self.minority.count_ones();
        Concern::Part {
            marked_count,
            heard_count: heard_count.max(marked_count),
        }
    }
}

/// A round trip that a mark costs on its path (srd-protocol 10.12).
pub(crate) fn is_marked(marks: Option<&Marks>, path: Path) -> bool {
    marks.is_some_and(|marks| marks.paths_marked & path.bit() != 0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use weft_wire::time::Nanos;

    const ALL: u64 = u64::MAX;
    const RTT_NS: Nanos = Nanos(10_000);

    fn begun() -> CongestionMarks {
        let mut marks = CongestionMarks::default();
        marks.on_sent(7);
        marks
    }

    fn seen(paths_marked: u64, in_row_count: u32) -> Marks {
        Marks {
            paths_marked,
            paths_mangled: 0,
            ce_count: in_row_count,
            in_row_count,
        }
    }

    /// What the `count` rounds of marks concern, each of the next paths in turn of `paths`.
    fn concerns(paths: u64, count: u64) -> Vec<Option<Concern>> {
        let mut marks = begun();
        let mut now_ns = Instant(1);
        let round = |turn: u64| {
            now_ns += RTT_NS;
            marks.on_heard(ALL);
            marks.on_marked(&seen(1 << (turn % paths), 1), now_ns, now_ns)
        };
        (0..count).map(round).collect()
    }

    #[test]
    fn marks_of_a_few_paths_again_and_again_concern_those_and_marks_of_all_concern_all() {
        let few = concerns(4, 64);
        assert_eq!(few[0], Some(Concern::All), "nothing is known yet");
        let part = Concern::Part {
            marked_count: 4,
            heard_count: 64,
        };
        assert_eq!(few.last(), Some(&Some(part)));
        assert!(
            concerns(64, 1000)
                .iter()
                .all(|one| *one == Some(Concern::All))
        );
    }

    #[test]
    fn one_round_trip_counts_once() {
        let mut marks = begun();
        let first = marks.on_marked(&seen(1, 1), Instant(50), Instant(100));
        assert_eq!(first, Some(Concern::All));
        assert_eq!(
            marks.on_marked(&seen(1, 2), Instant(100), Instant(140)),
            None
        );
        let later = marks.on_marked(&seen(1, 3), Instant(101), Instant(180));
        assert_eq!(later, Some(Concern::All));
    }

    #[test]
    fn a_path_that_mangles_or_marks_everything_is_used_without() {
        let mut marks = begun();
        let (one, other) = (Path::from_ports(0, 1), Path::from_ports(0, 2));
        marks.validate(&seen(one.bit(), 20), one, 1 << 20);
        assert!(marks.are_used(one), "a queue may mark a large window");
        marks.validate(&seen(one.bit(), 64), one, 1 << 20);
        let mangled = Marks {
            paths_mangled: other.bit(),
            ..seen(0, 0)
        };
        marks.validate(&mangled, one, 1 << 20);
        assert!(!marks.are_used(one) && !marks.are_used(other));
        assert!(marks.are_used(Path::from_ports(1, 1)));
        let mut small = begun();
        small.validate(&seen(one.bit(), 16), one, SMALL_BYTES);
        assert!(!small.are_used(other));
        let bad = one.bit() | other.bit();
        assert_eq!(
            marks.on_marked(&seen(bad, 1), Instant(9), Instant(10)),
            None
        );
    }

    #[test]
    fn where_nothing_with_ect_arrives_all_leaves_without() {
        let path = Path::from_ports(0, 0);
        let mut swallowed = begun();
        let mut lossy = begun();
        swallowed.on_arrived(6);
        lossy.on_arrived(7);
        for sequence in 7..7 + u64::from(SWALLOWED_COUNT) {
            swallowed.on_lost(sequence);
            lossy.on_lost(sequence);
        }
        assert!(!swallowed.are_used(path) && lossy.are_used(path));
    }
}
