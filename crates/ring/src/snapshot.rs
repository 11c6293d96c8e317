// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A region as `weft top` sees it: read from a copy of its file, without mapping it
//! (docs/shm-layout.md, clauses 1, 2 and 9). Called by the doctor; stands on the layout alone.

use crate::identity::Identity;
use crate::layout::{LANES_OFFSET, LAYOUT_VERSION, MAGIC, SLOT_BYTES, SLOT_COUNT, SLOTS_OFFSET};
use crate::published::{Counters, PUBLISHED_OFFSET, WORDS};

/// Bytes from the start of a region that a [`Snapshot`] is read from: the header and the slots.
pub const SNAPSHOT_BYTES: usize = LANES_OFFSET;

/// What one remote has sent to an endpoint.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Inflow {
    /// Who sends.
    pub from: Identity,
    /// Messages that arrived.
    pub messages: u64,
    /// Their bytes.
    pub bytes: u64,
}

/// An endpoint as its region showed it at one moment.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Snapshot {
    /// Whose region it is.
    pub owner: Identity,
    /// Whether it still receives.
    pub is_open: bool,
    /// Whether it sleeps until a message comes.
    pub sleeps: bool,
    /// Its counts.
    pub counters: Counters,
    /// Its remotes that have claimed a slot, in order of slots.
    pub inflows: Vec<Inflow>,
}

/// Why bytes are no snapshot.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SnapshotError {
    /// They do not begin like a region, or are too few.
    NotARegion,
    /// They are of another layout, with this version.
    OtherVersion(u64),
}

impl Snapshot {
    /// Reads the first [`SNAPSHOT_BYTES`] bytes of a region file.
    ///
    /// # Errors
    /// Each variant of [`SnapshotError`] as its name says.
    pub fn read(bytes: &[u8]) -> Result<Self, SnapshotError> {
        if bytes.len() < SNAPSHOT_BYTES || word(bytes, 0) != MAGIC {
            return Err(SnapshotError::NotARegion);
        }
        let version = word(bytes, 1);
        if version != LAYOUT_VERSION {
            return Err(SnapshotError::OtherVersion(version));
        }
        let words: [u64; WORDS] =
            core::array::from_fn(|index| word(bytes, PUBLISHED_OFFSET / 8 + index));
        let slot = |index: usize| {
            let first = (SLOTS_OFFSET + index * SLOT_BYTES) / 8;
            crate::region::is_active(word(bytes, first)).then(|| Inflow {
                from: identity(bytes, first + 1),
                messages: word(bytes, first + 6),
                bytes: word(bytes, first + 7),
            })
        };
        Ok(Self {
            owner: identity(bytes, 3),
            is_open: word(bytes, 10) == crate::region::STATE_OPEN,
            sleeps: word(bytes, 17) != 0,
            counters: Counters::from_words(&words),
            inflows: (0..SLOT_COUNT).filter_map(slot).collect(),
        })
    }
}

/// The word of that number; the caller has checked the length.
fn word(bytes: &[u8], index: usize) -> u64 {
    let mut eight = [0; 8];
    eight.copy_from_slice(&bytes[index * 8..index * 8 + 8]);
    u64::from_le_bytes(eight)
}

fn identity(bytes: &[u8], first: usize) -> Identity {
    Identity::from_words(core::array::from_fn(|index| word(bytes, first + index)))
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::layout::REGION_BYTES;
    use crate::published::CLASS_COUNT;
    use crate::region::Region;
    use std::os::fd::AsFd;
    use std::os::unix::fs::FileExt;

    #[test]
    #[cfg_attr(miri, ignore = "Miri knows no memfd_create(2)")]
    fn what_is_published_is_what_a_snapshot_shows() {
        let file = weft_os::region_file::create_memfd("weft-published", REGION_BYTES as u64)
            .expect("memfd");
        let identity = |port: u16| Identity {
            address: ([127, 0, 0, 1], port).into(),
            incarnation: 8,
            process: weft_os::process_id::ProcessId {
                pid: 6,
                ..Default::default()
            },
        };
        let region = Region::create(file.as_fd(), &identity(1), (0, 0)).expect("region");
        let slot = region.slots().claim(&identity(2)).expect("slot");
        let mut counters = Counters {
            written_ns: 7,
            sent: core::array::from_fn(|index| [index as u64, 100 + index as u64]),
            received: [8, 9],
            remotes_count: 10,
            lost_count: 11,
            waiting_count: 12,
            moving_count: 13,
            offered_count: 14,
            wide_lanes_count: 15,
            choices: [0; CLASS_COUNT],
            direct: [[16, 17], [18, 19]],
        };
        (counters.choices[17], counters.choices[63]) = (1, 3);
        region.publish(&counters);
        region.slots().publish_inflow(slot, 21, 22);
        region.doorbell().begin_sleep();
        let mut bytes = vec![0; SNAPSHOT_BYTES];
        std::fs::File::from(file)
            .read_exact_at(&mut bytes, 0)
            .expect("read");
        let snapshot = Snapshot::read(&bytes).expect("a region");
        assert_eq!((snapshot.owner, snapshot.counters), (identity(1), counters));
        assert!(snapshot.is_open && snapshot.sleeps);
        let inflow = Inflow {
            from: identity(2),
            messages: 21,
            bytes: 22,
        };
        assert_eq!(snapshot.inflows, [inflow]);
        bytes[8] = 99;
        assert_eq!(Snapshot::read(&bytes), Err(SnapshotError::OtherVersion(99)));
        assert_eq!(
            Snapshot::read(&bytes[..4096]),
            Err(SnapshotError::NotARegion)
        );
    }
}
