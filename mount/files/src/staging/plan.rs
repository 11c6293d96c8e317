// SPDX-License-Identifier: Apache-2.0 OR MIT
//! How a file becomes parts of an upload. Bytes that the store has are copied inside the store; the
//! rest is sent. S3 allows at most 10,000 parts of 5 MiB to 5 GiB; only the last one may be
//! smaller. [`crate::staging::sending`] follows the plan.

use std::sync::Arc;

use weft_store::Range;

use crate::staging::extents::{Source, Stretch};
use crate::version::Version;

/// Chosen: parts that are sent.
pub const PART_BYTES: u64 = 8 << 20;
/// S3's least size of a part that is not the last.
pub const LEAST_PART_BYTES: u64 = 5 << 20;
/// S3's largest copy of one part is 5 GiB; chosen: less, side by side.
const COPY_BYTES: u64 = 1 << 30;
/// Chosen: after so many parts their size doubles, so that 10,000 parts are enough for 2 TB.
const PARTS_OF_A_SIZE: u32 = 1000;
/// S3's most parts are 10,000; chosen: room for parts that were planned before.
const MOST_PARTS: usize = 9_000;

/// One part.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Step {
    /// These bytes are sent.
    Send(Range),
    /// These bytes are copied, from this object and place.
    Copy(Range, Arc<Version>, u64),
}

impl Step {
    /// In the file.
    pub fn range(&self) -> Range {
        match self {
            Self::Send(range) | Self::Copy(range, ..) => *range,
        }
    }
}

/// How large a part of this number is, if enough bytes are there.
pub fn part_bytes(number: u32) -> u64 {
    PART_BYTES << (number / PARTS_OF_A_SIZE).min(6)
}

/// What to do with stretches that follow each other and have what the store has already.
#[derive(Debug, Clone, Copy)]
pub struct Aim {
    /// The number of the first part.
    pub first_number: u32,
    /// The stretches reach to the end of the file; else more follows, and what is less than a part
    /// waits for it.
    pub is_end: bool,
}

/// The parts.
pub fn plan(stretches: &[Stretch], aim: Aim) -> Vec<Step> {
    let mut least_copy_bytes = LEAST_PART_BYTES;
    loop {
        let steps = plan_with(stretches, aim, least_copy_bytes);
        if steps.len() <= MOST_PARTS {
            return steps;
        }
        // Many small changes in a large file: copies that are short are not worth a part.
        least_copy_bytes *= 2;
    }
}

fn plan_with(stretches: &[Stretch], aim: Aim, least_copy_bytes: u64) -> Vec<Step> {
    let mut steps = Steps {
        aim,
        found: Vec::new(),
    };
    let Some(last) = stretches.last() else {
        return steps.found;
    };
    let end = last.range.end;
    let mut changed_from = None;
    for stretch in stretches {
        let Range {
            mut start,
            end: stop,
        } = stretch.range;
        let Some(Source::Object(version, at)) = &stretch.source else {
            changed_from.get_or_insert(start);
            continue;
        };
        if let Some(from) = changed_from {
            start += LEAST_PART_BYTES.saturating_sub(start - from);
        }
        let left = stop.saturating_sub(start);
        let may_be_short = aim.is_end && stop == end && left > 0;
        if left < least_copy_bytes && !(may_be_short && changed_from.is_none()) {
            changed_from.get_or_insert(stretch.range.start);
            continue;
        }
        if let Some(from) = changed_from.take() {
            steps.send(Range::new(from, start), true);
        }
        steps.copy(
            Range::new(start, stop),
            version,
            at + start - stretch.range.start,
        );
    }
    if let Some(from) = changed_from {
        steps.send(Range::new(from, end), aim.is_end);
    }
    steps.found
}

struct Steps {
    aim: Aim,
    found: Vec<Step>,
}

impl Steps {
    /// Sends all of it, or as much as are whole parts.
    fn send(&mut self, range: Range, all: bool) {
        let mut at = range.start;
        while at < range.end {
            let number = self.aim.first_number + self.found.len() as u32;
            let part = part_bytes(number);
            let left = range.end - at;
            let size = if left >= part + LEAST_PART_BYTES || (!all && left >= part) {
                part
            } else if all {
                left
            } else {
                return;
            };
            self.found.push(Step::Send(Range::new(at, at + size)));
            at += size;
        }
    }

    fn copy(&mut self, range: Range, version: &Arc<Version>, from: u64) {
        let mut at = range.start;
        while at < range.end {
            let left = range.end - at;
            let size = if left < COPY_BYTES + LEAST_PART_BYTES {
                left
            } else {
                COPY_BYTES
            };
            let copied = Range::new(at, at + size);
            let place = from + at - range.start;
            self.found
                .push(Step::Copy(copied, Arc::clone(version), place));
            at += size;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::UNIX_EPOCH;

    use proptest::prelude::*;
    use weft_store::{ETag, ObjectInfo};

    use super::*;

    fn version() -> Arc<Version> {
        let info = ObjectInfo {
            size_bytes: 1 << 40,
            etag: ETag::new("\"1\""),
            modified: UNIX_EPOCH,
            is_archived: false,
        };
        Arc::new(Version::new("k".to_owned(), &info))
    }

    fn stretches(lengths: &[(u64, bool)]) -> Vec<Stretch> {
        let version = version();
        let mut at = 0;
        let stretch = |(length, is_known): &(u64, bool)| {
            let range = Range::new(at, at + length);
            at += length;
            let source = is_known.then(|| Source::Object(Arc::clone(&version), range.start));
            Stretch { range, source }
        };
        lengths.iter().map(stretch).collect()
    }

    const MIB: u64 = 1 << 20;

    #[test]
    fn change_in_the_middle_sends_little_and_copies_the_rest() {
        let file = stretches(&[(100 * MIB, true), (10, false), (100 * MIB, true)]);
        let aim = Aim {
            first_number: 1,
            is_end: true,
        };
        let steps = plan(&file, aim);
        let middle = Range::new(100 * MIB, 105 * MIB);
        assert_eq!(steps.len(), 3);
        assert_eq!(steps[1], Step::Send(middle));
        let Step::Copy(range, _, at) = &steps[2] else {
            panic!("{steps:?}");
        };
        assert_eq!((*at, range.start), (105 * MIB, 105 * MIB));
    }

    #[test]
    fn many_changes_in_a_huge_file_are_few_parts() {
        let pair = [(6 * MIB, true), (4096, false)];
        let file = stretches(&pair.repeat(20_000));
        let aim = Aim {
            first_number: 1,
            is_end: true,
        };
        assert!(plan(&file, aim).len() <= 10_000);
    }

    proptest! {
        #[test]
        fn parts_are_as_s3_wants_them_and_cover_the_file(
            lengths in prop::collection::vec((1..40 * MIB, any::<bool>()), 1..20),
            is_end in any::<bool>(),
        ) {
            let file = stretches(&lengths);
            let size = file.last().unwrap().range.end;
            let steps = plan(&file, Aim { first_number: 1, is_end });
            let mut at = 0;
            for (index, step) in steps.iter().enumerate() {
                let range = step.range();
                prop_assert_eq!(range.start, at);
                let is_last = is_end && index + 1 == steps.len();
                prop_assert!(is_last || range.byte_count() >= 5 * MIB, "{:?}", step);
                prop_assert!(range.byte_count() <= 5 << 30);
                if let Step::Copy(range, _, from) = step {
                    prop_assert_eq!(range.start, *from);
                    // Nothing that was changed is copied.
                    let touched = file.iter().filter(|one| one.source.is_none());
                    for one in touched {
                        prop_assert!(one.range.end <= range.start || one.range.start >= range.end);
                    }
                }
                at = range.end;
            }
            prop_assert!(at <= size && (!is_end || at == size));
            prop_assert!(is_end || size - at < 46 * MIB, "{} wait", size - at);
        }
    }
}
