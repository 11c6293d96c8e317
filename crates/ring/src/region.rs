// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A region as a whole: its header, who owns it, and the slots that senders claim
//! (docs/shm-layout.md, clauses 1 to 3). Made and attached by shm at setup and first contact.

use weft_memory::{Mapping, SharedLayout};
use weft_os::crash_point;

use crate::doorbell::Doorbell;
use crate::identity::{Identity, IdentityWords};
use crate::layout::{
    LANE_BYTES, LAYOUT_FINGERPRINT, LAYOUT_VERSION, MAGIC, REGION_BYTES, SHARED_BYTES,
    SLOTS_OFFSET, lane_offset,
};
use crate::published::{Counters, Published};
use crate::sync::{AtomicU64, Ordering};

mod slots;

pub use slots::Slots;
pub(crate) use slots::is_active;
#[cfg(all(test, loom))]
use slots::{SLOT_FREE, Slot};

/// The first page of a region.
#[repr(C, align(128))]
#[derive(Debug)]
struct RegionHeader {
    magic: AtomicU64,
    version: AtomicU64,
    fingerprint: AtomicU64,
    owner: IdentityWords,
    /// Address and value of a word in the owner's own memory, to try single copy on.
    probe: [AtomicU64; 2],
    /// 1 while the owner receives, 2 after it closed.
    state: AtomicU64,
    /// Where the next claim starts to look.
    claim_hint: AtomicU64,
    /// The file of the owner's shared memory (clause 11).
    heap: [AtomicU64; 4],
    doorbell: Doorbell,
    published: Published,
}

// SAFETY: repr(C), all fields atomic words; any bytes are valid.
unsafe impl SharedLayout for RegionHeader {}

#[cfg(not(loom))]
const _: () = assert!(
    size_of::<RegionHeader>() <= SLOTS_OFFSET,
    "the header fits its page"
);

#[cfg(not(loom))]
const _: () =
    assert!(std::mem::offset_of!(RegionHeader, published) == crate::published::PUBLISHED_OFFSET);

pub(crate) const STATE_OPEN: u64 = 1;
const STATE_CLOSED: u64 = 2;

/// Why a file is not a region we can use.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum AttachError {
    /// It could not be mapped, with the errno.
    NotMapped(i32),
    /// It does not start like a region.
    NotARegion,
    /// It has another layout: its version, and whether at equal versions the sizes differ.
    OtherLayout {
        /// Layout version of the remote.
        version: u64,
    },
    /// Its owner has closed it.
    Closed,
}

/// A region in this process: one's own, or a remote's.
#[derive(Clone, Debug)]
pub struct Region {
    mapping: Mapping,
    header: HeaderPointer,
}

impl RegionHeader {
    fn write(&self, identity: &Identity, probe: (u64, u64)) {
        self.owner.store(identity);
        self.probe[0].store(probe.0, Ordering::Relaxed);
        self.probe[1].store(probe.1, Ordering::Relaxed);
        self.version.store(LAYOUT_VERSION, Ordering::Relaxed);
        self.fingerprint
            .store(LAYOUT_FINGERPRINT, Ordering::Relaxed);
        self.state.store(STATE_OPEN, Ordering::Relaxed);
        crash_point!(1, "open: the header is written, not published");
        // Pairs with the load in `check`: who sees the magic sees the rest.
        self.magic.store(MAGIC, Ordering::Release);
    }

    fn check(&self) -> Result<(), AttachError> {
        // Pairs with the store in `write`.
        if self.magic.load(Ordering::Acquire) != MAGIC {
            return Err(AttachError::NotARegion);
        }
        let version = self.version.load(Ordering::Relaxed);
        if version != LAYOUT_VERSION
            || self.fingerprint.load(Ordering::Relaxed) != LAYOUT_FINGERPRINT
        {
            return Err(AttachError::OtherLayout { version });
        }
        if self.is_open() {
            Ok(())
        } else {
            Err(AttachError::Closed)
        }
    }

    fn is_open(&self) -> bool {
        self.state.load(Ordering::Acquire) == STATE_OPEN
    }

    fn close(&self) {
        self.state.store(STATE_CLOSED, Ordering::Release);
    }
}

/// Where the header lies, found once: bells are looked at in every round of progress.
#[derive(Clone, Copy, Debug)]
struct HeaderPointer(*const RegionHeader);

// SAFETY: the header lies in a mapping that belongs to the process, not to a thread, and is all
// atomic words.
unsafe impl Send for HeaderPointer {}

impl Region {
    /// Writes the header of a new region of one's own. The probe is the address and the value of a
    /// word in this process's memory. Setup.
    ///
    /// # Errors
    /// [`AttachError::NotMapped`].
    pub fn create(
        file: std::os::fd::BorrowedFd<'_>,
        identity: &Identity,
        probe: (u64, u64),
    ) -> Result<Self, AttachError> {
        let region = Self::over(map(file, 0, REGION_BYTES)?);
        region.header().write(identity, probe);
        Ok(region)
    }

    /// Maps what every sender needs of a remote's region, and checks that it is one, of our layout,
    /// and open. Slow path.
    ///
    /// # Errors
    /// Each variant of [`AttachError`] as its name says.
    pub fn attach(file: std::os::fd::BorrowedFd<'_>) -> Result<Self, AttachError> {
        let region = Self::over(map(file, 0, SHARED_BYTES)?);
        region.header().check()?;
        Ok(region)
    }

    fn over(mapping: Mapping) -> Self {
        let header = &mapping
            .values::<RegionHeader>(0, 1)
            .expect("every mapped region has its header page")[0];
        Self {
            header: HeaderPointer(header),
            mapping,
        }
    }

    #[inline(always)]
    fn header(&self) -> &RegionHeader {
        // SAFETY: found in `over` inside the mapping that self holds.
        unsafe { &*self.header.0 }
    }

    /// What is mapped: all of one's own region; of a remote's, all but the lanes.
    pub fn mapping(&self) -> &Mapping {
        &self.mapping
    }

    /// Its directory of senders. Slow path.
    pub fn slots(&self) -> Slots<'_> {
        Slots::of(&self.mapping, &self.header().claim_hint)
    }

    /// Its bells.
    #[inline(always)]
    pub fn doorbell(&self) -> &Doorbell {
        &self.header().doorbell
    }

    /// Whose region it is.
    pub fn owner(&self) -> Identity {
        self.header().owner.load()
    }

    /// Address and value of a word in the owner's memory.
    pub fn probe(&self) -> (u64, u64) {
        let probe = &self.header().probe;
        (
            probe[0].load(Ordering::Relaxed),
            probe[1].load(Ordering::Relaxed),
        )
    }

    /// Says where the owner's shared memory lies; by the owner, before anybody can find the region.
    /// Setup.
    pub fn show_heap(&self, words: [u64; 4]) {
        for (word, value) in self.header().heap.iter().zip(words) {
            word.store(value, Ordering::Relaxed);
        }
    }

    /// The file of the owner's shared memory: length, descriptor, number and the owner's first
    /// place; zeros if it shows none.
    pub fn heap(&self) -> [u64; 4] {
        let heap = &self.header().heap;
        core::array::from_fn(|index| heap[index].load(Ordering::Relaxed))
    }

    /// Whether its owner still receives.
    pub fn is_open(&self) -> bool {
        self.header().is_open()
    }

    /// Says that we receive no more.
    pub fn close(&self) {
        self.header().close();
    }

    /// Shows our counts to tools. Not for the fast path: a few dozen stores.
    pub fn publish(&self, counters: &Counters) {
        self.header().published.store(counters);
    }

    /// When the owner last made progress, to about a millisecond; CLOCK_MONOTONIC in nanoseconds, a
    /// remote's word.
    #[inline]
    pub fn last_progress_ns(&self) -> u64 {
        self.header().published.written_ns()
    }
}

/// Maps the lane of a slot, which a sender needs besides a remote's [`Region`]. Slow path.
///
/// # Errors
/// [`AttachError::NotMapped`]; [`AttachError::NotARegion`] if the file ends before it.
pub fn map_lane(file: std::os::fd::BorrowedFd<'_>, slot: usize) -> Result<Mapping, AttachError> {
    map(file, lane_offset(slot), LANE_BYTES)
}

fn map(
    file: std::os::fd::BorrowedFd<'_>,
    start_bytes: usize,
    length_bytes: usize,
) -> Result<Mapping, AttachError> {
    Mapping::part(file, start_bytes, length_bytes).map_err(|error| match error.kind() {
        std::io::ErrorKind::UnexpectedEof => AttachError::NotARegion,
        _ => AttachError::NotMapped(error.raw_os_error().unwrap_or(0)),
    })
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::slots::STAGE_CLAIMED;
    use super::*;
    use crate::layout::MAGIC;
    use crate::layout::SLOT_COUNT;
    use std::net::SocketAddr;
    use std::os::fd::AsFd;
    use weft_os::process_id::{ProcessId, START_BITS};

    fn identity(port: u16) -> Identity {
        Identity {
            address: SocketAddr::from(([127, 0, 0, 1], port)),
            incarnation: 76,
            process: ProcessId {
                pid: 4,
                namespace: 5,
                started_ticks: (1 << START_BITS) - 1,
            },
        }
    }

    fn new_file() -> std::os::fd::OwnedFd {
        weft_os::region_file::create_memfd("weft-region-test", REGION_BYTES as u64).expect("memfd")
    }

    #[test]
    #[cfg_attr(miri, ignore = "Miri knows no memfd_create(2)")]
    fn a_remote_sees_who_owns_the_region_and_the_owner_who_claimed_a_slot() {
        let file = new_file();
        let own = Region::create(file.as_fd(), &identity(1000), (5, 6)).expect("create");
        let theirs = Region::attach(file.as_fd()).expect("attach");
        assert_eq!((theirs.owner(), theirs.probe()), (identity(1000), (5, 6)));
        let v6 = Identity {
            address: "[2001:db8::7]:9".parse().expect("address"),
            ..identity(0)
        };
        let slots = [
            theirs.slots().claim(&identity(2000)).expect("slot"),
            theirs.slots().claim(&v6).expect("slot"),
        ];
        assert_ne!(slots[0], slots[1]);
        assert_eq!(own.slots().claimant(slots[0]), Some(identity(2000)));
        assert_eq!(own.slots().claimant(slots[1]), Some(v6));
    }

    #[test]
    #[cfg_attr(miri, ignore = "Miri knows no memfd_create(2)")]
    fn whoever_takes_a_slot_is_known_before_it_is_named() {
        let file = new_file();
        let region = Region::create(file.as_fd(), &identity(1), (0, 0)).expect("create");
        assert_eq!(region.slots().holder(3), None);
        let slot = region.slots().at(3).expect("a slot");
        let state = identity(2).incarnation | STAGE_CLAIMED;
        slot.state.store(state, Ordering::Relaxed);
        assert_eq!(
            (region.slots().holder(3), region.slots().claimant(3)),
            (Some(76), None)
        );
        region.slots().free(3);
        assert_eq!(region.slots().holder(3), None);
    }

    #[test]
    #[cfg_attr(miri, ignore = "Miri knows no memfd_create(2)")]
    fn a_refused_slot_says_so_to_its_claimant_and_is_still_held() {
        let file = new_file();
        let own = Region::create(file.as_fd(), &identity(1), (0, 0)).expect("create");
        let theirs = Region::attach(file.as_fd()).expect("attach");
        let claimant = identity(2);
        let slot = theirs.slots().claim(&claimant).expect("slot");
        assert!(!theirs.slots().is_refused(slot, claimant.incarnation));
        own.slots().refuse(slot);
        assert!(theirs.slots().is_refused(slot, claimant.incarnation));
        assert!(!theirs.slots().is_refused(slot, 80), "another one's");
        assert_eq!(
            (own.slots().claimant(slot), own.slots().holder(slot)),
            (None, Some(76))
        );
        theirs.slots().free(slot);
        assert_eq!(own.slots().holder(slot), None);
        assert!(!theirs.slots().is_refused(slot, claimant.incarnation));
    }

    #[test]
    #[cfg_attr(miri, ignore = "Miri knows no memfd_create(2)")]
    fn a_directory_that_is_full_says_so_and_a_freed_slot_is_found_again() {
        let file = new_file();
        let region = Region::create(file.as_fd(), &identity(1), (0, 0)).expect("create");
        for _ in 0..SLOT_COUNT {
            region.slots().claim(&identity(2)).expect("slot");
        }
        assert_eq!(region.slots().claim(&identity(3)), None);
        region.slots().free(17);
        assert_eq!(region.slots().claim(&identity(3)), Some(17));
    }

    #[test]
    #[cfg_attr(miri, ignore = "Miri knows no memfd_create(2)")]
    fn short_old_closed_and_other_files_are_told_apart() {
        let file = new_file();
        assert_eq!(
            Region::attach(file.as_fd()).expect_err("empty"),
            AttachError::NotARegion
        );
        let short = weft_os::region_file::create_memfd("weft-short", 4096).expect("memfd");
        assert_eq!(
            Region::attach(short.as_fd()).expect_err("short"),
            AttachError::NotARegion
        );
        let region = Region::create(file.as_fd(), &identity(1), (0, 0)).expect("create");
        region.header().version.store(99, Ordering::Relaxed);
        assert_eq!(
            Region::attach(file.as_fd()).expect_err("version"),
            AttachError::OtherLayout { version: 99 }
        );
        region
            .header()
            .version
            .store(LAYOUT_VERSION, Ordering::Relaxed);
        assert_eq!(region.header().magic.load(Ordering::Relaxed), MAGIC);
        region.close();
        assert_eq!(
            Region::attach(file.as_fd()).expect_err("closed"),
            AttachError::Closed
        );
    }
}

#[cfg(all(test, loom))]
#[path = "region_models.rs"]
mod models;
