// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The shared memory of another process, mapped here for reading (docs/shm-layout.md, clause 11).
//! Made by shm for a remote that shows its file; long messages are copied straight out of it.
//!
//! The file is as long as a process's addresses go, so it is mapped in sections, each when a
//! message first lies there.

use std::io;
use std::ops::Range;

use weft_os::heap::{EDGES_AT, Heap, PLACES_EACH, map_edges_of, map_heap_of};
use weft_os::map::RawMap;

use crate::UserBuffer;
use crate::view::BytesView;

/// Specified: clause 11.
pub(crate) const PAGE_BYTES: usize = 4096;

/// Bytes of a place for the ends of a message: a page for either. Specified: clause 11.
pub(crate) const PLACE_BYTES: usize = 2 * PAGE_BYTES;

/// How many an endpoint has.
pub const PLACES: usize = PLACES_EACH as usize;

/// Bytes of a section. Chosen: most programs have their buffers in a few of them.
const SECTION_BYTES: u64 = 1 << 30;

/// Sections of one process at a time. Chosen: a remote costs 16 GiB of addresses at most.
const SECTIONS: usize = 16;

/// A message in another process's shared memory, as that process says.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Lying {
    /// Its address there.
    pub address: u64,
    /// Its length.
    pub length_bytes: u64,
    /// The place of its endpoint's that holds its ends.
    pub place: u64,
}

/// What lies before and behind the whole pages of a message: offsets into the message.
pub(crate) fn edges(address: u64, length_bytes: u64) -> (Range<u64>, Range<u64>) {
    let page = PAGE_BYTES as u64;
    let before = (address.wrapping_neg() % page).min(length_bytes);
    let behind = (address.wrapping_add(length_bytes) % page).min(length_bytes - before);
    (0..before, length_bytes - behind..length_bytes)
}

/// A part of the file, mapped.
#[derive(Debug)]
struct Section {
    index: u64,
    map: RawMap,
}

/// Another process's shared memory. Unmapped when dropped.
#[derive(Debug)]
pub struct RemoteHeap {
    pid: u32,
    heap: Heap,
    edges: RawMap,
    /// The one used last stands last.
    sections: Vec<Section>,
}

impl RemoteHeap {
    /// Maps what process `pid` claims to have, first the ends of messages. Slow path.
    ///
    /// # Errors
    /// `PermissionDenied` if we may not look; `NotFound` if there is no such file; the errno of
    /// mmap(2).
    pub fn map(pid: u32, heap: &Heap) -> io::Result<Self> {
        Ok(Self {
            pid,
            heap: *heap,
            edges: map_edges_of(pid, heap)?,
            sections: Vec::new(),
        })
    }

    #[cold]
    fn turn_to(&mut self, index: u64) -> Option<()> {
        let known = self
            .sections
            .iter()
            .position(|section| section.index == index);
        let section = match known {
            Some(known) => self.sections.remove(known),
            None => {
                let offset_bytes = index * SECTION_BYTES;
                let length_bytes = SECTION_BYTES as usize;
                let map = map_heap_of(self.pid, &self.heap, offset_bytes, length_bytes).ok()?;
                if self.sections.len() == SECTIONS {
                    self.sections.remove(0);
                }
                Section { index, map }
            }
        };
        self.sections.push(section);
        Some(())
    }

    /// Where bytes of a message from an offset on are mapped, and how many in a row; the section
    /// that holds them must have been turned to.
    #[inline]
    fn place_of(&self, message: &Lying, offset: u64) -> Option<(*const u8, u64)> {
        let (first, last) = edges(message.address, message.length_bytes);
        let address = message.address.checked_add(offset)?;
        let page = PAGE_BYTES as u64;
        if first.contains(&offset) || last.contains(&offset) {
            let place = usize::try_from(message.place)
                .ok()
                .filter(|&at| at < PLACES)?;
            let base = self.edges.base().wrapping_add(place * PLACE_BYTES);
            let (skipped, end) = if first.contains(&offset) {
                (address % page, first.end)
            } else {
                (page + (offset - last.start), last.end)
            };
            return Some((base.wrapping_add(skipped as usize), end - offset));
        }
        // All of what is mapped of the file lies below its end, whatever the message claims.
        let end = message.address.checked_add(last.start)?;
        if address >= end || end > EDGES_AT {
            return None;
        }
        let section = self.sections.last()?;
        let (index, skipped) = (address / SECTION_BYTES, address % SECTION_BYTES);
        let left = (end - address).min(SECTION_BYTES - skipped);
        let base = section.map.base().wrapping_add(skipped as usize);
        (section.index == index).then_some((base, left))
    }

    /// Sees to it that bytes of a message from an offset on are mapped; answers how many in a row
    /// [`Self::view`] then shows, 0 if none. Fast path if they were already.
    #[inline]
    pub fn reach(&mut self, message: &Lying, offset: u64) -> u64 {
        let found = self.place_of(message, offset);
        let found = found.or_else(|| {
            // Beyond the end of addresses lie the ends of messages, which are mapped.
            let address = message.address.checked_add(offset)?;
            if address >= EDGES_AT {
                return None;
            }
            self.turn_to(address / SECTION_BYTES)?;
            self.place_of(message, offset)
        });
        found.map_or(0, |(_, left)| left)
    }

    /// Bytes of a message from an offset on: as many as lie in a row, and at most so many; none
    /// before [`Self::reach`] has seen to it. The other process may change them at any time.
    #[inline]
    pub fn view(&self, message: &Lying, offset: u64, most_bytes: usize) -> BytesView<'_> {
        let Some((base, left)) = self.place_of(message, offset) else {
            return BytesView::from_slice(&[]);
        };
        let count = most_bytes.min(usize::try_from(left).unwrap_or(usize::MAX));
        // SAFETY: the stretch was just found in a mapping that lives while self does; its file
        // cannot become shorter.
        unsafe { BytesView::from_raw(base, count) }
    }

    /// Copies these `bytes` of a message into `target` at the same offset; answers how many that
    /// were: fewer if the rest is not mapped. Non-temporal stores if so wanted.
    /// What the other process changes meanwhile arrives as any mix of old and new.
    pub fn pull(
        &mut self,
        message: &Lying,
        target: &UserBuffer,
        bytes: Range<usize>,
        non_temporal: bool,
    ) -> usize {
        let mut done = 0;
        while done < bytes.len() {
            let offset = bytes.start + done;
            if self.reach(message, offset as u64) == 0 {
                break;
            }
            let view = self.view(message, offset as u64, bytes.len() - done);
            let count = view.length_bytes();
            let copied = if non_temporal {
                target.fill_non_temporal(offset, view)
            } else {
                target.fill(offset, view)
            };
            done += copied;
            if copied < count {
                break;
            }
        }
        done
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::own_heap::{Offering, leaked};

    fn lying(message: &UserBuffer, place: u64) -> Lying {
        Lying {
            address: message.address() as u64,
            length_bytes: message.length_bytes() as u64,
            place,
        }
    }

    fn bytes_of(buffer: &UserBuffer) -> Vec<u8> {
        let mut read = vec![0; buffer.length_bytes()];
        buffer.drain(0, &mut crate::BytesViewMut::from_slice(&mut read));
        read
    }

    #[test]
    fn what_is_no_whole_page_of_a_message_is_an_end() {
        for (address, length, first, last) in [
            (0x1000, 0x2000, 0..0, 0x2000..0x2000),
            (0x1001, 0x2000, 0..0xfff, 0x1fff..0x2000),
            (0x1ff0, 0x2000, 0..16, 0x1010..0x2000),
            (0x1ff0, 8, 0..8, 8..8),
            (0x1010, 100, 0..100, 100..100),
        ] {
            assert_eq!(
                edges(address, length),
                (first, last),
                "{address:x} {length:x}"
            );
        }
    }

    #[test]
    #[cfg_attr(miri, ignore = "Miri knows no memfd_create(2)")]
    fn a_message_is_pulled_with_its_ends_and_nothing_beside_it() {
        let (own, whole) = leaked(65536).expect("shared memory");
        let bytes: Vec<u8> = (0..65536_u32).map(|i| (i * 7 + i / 256) as u8).collect();
        whole.fill(0, BytesView::from_slice(&bytes));
        let mut remote = RemoteHeap::map(std::process::id(), &own.shown()).expect("it is ours");
        for (place, non_temporal, begin, length) in [
            (0, false, 16, 20000),
            (255, true, 4095, 40000),
            (7, true, 4096, 8192),
            (7, false, 5000, 9000),
        ] {
            let message = whole.part(begin, length);
            assert!(own.offers(&message, Offering::ONE) && own.put_edges(&message, place));
            let target = UserBuffer::leaked(&[30000, 5, 35531]);
            let (there, third) = (lying(&message, place as u64), length / 3);
            // In pieces, as it comes.
            for piece in [0..third, third..2 * third, 2 * third..length] {
                let copied = remote.pull(&there, &target, piece.clone(), non_temporal);
                assert_eq!(copied, piece.len());
            }
            let read = bytes_of(&target);
            assert_eq!(
                read[..length],
                bytes[begin..begin + length],
                "{begin} {length}"
            );
            assert!(read[length..].iter().all(|&byte| byte == 0));
        }
        assert!(
            !own.put_edges(&whole.part(1, 20000), PLACES),
            "there is no such place"
        );
        assert!(
            own.put_edges(&whole.part(0, 8192), PLACES),
            "nor is it needed"
        );
    }

    #[test]
    #[cfg_attr(miri, ignore = "Miri knows no memfd_create(2)")]
    fn of_a_message_that_cannot_be_there_nothing_is_read() {
        let (own, _) = leaked(8192).expect("shared memory");
        let mut remote = RemoteHeap::map(std::process::id(), &own.shown()).expect("it is ours");
        let target = UserBuffer::leaked(&[20000]);
        for (address, length_bytes, place) in [
            (EDGES_AT - 4096, 20000, 0),
            (u64::MAX - 4095, 20000, 0),
            (0x10010, 20000, 256),
            (0x10010, 20000, u64::MAX),
        ] {
            let message = Lying {
                address,
                length_bytes,
                place,
            };
            assert_eq!(
                remote.pull(&message, &target, 0..20000, false),
                0,
                "{message:?}"
            );
        }
    }
}
