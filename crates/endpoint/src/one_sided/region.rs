// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Registered memory: what remotes may access, by key. Filled by the calls on regions; asked by
//! target.rs for every request. fi_mr(3).

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

use weft_contract::{DirectAccess, Range, Registration, Route};
use weft_memory::UserBuffer;

use crate::error::Error;
use crate::ids::CounterId;

/// Who picks the key of a region.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum KeyChoice {
    /// The user; it must not be in use.
    Theirs(u64),
    /// We do (FI_MR_PROV_KEY).
    Ours,
}

/// What to register.
#[derive(Clone, Debug)]
pub struct RegionSettings {
    /// The memory. It must stay valid while it is registered; see fi_mr(3).
    pub memory: UserBuffer,
    /// The address by which remotes name its first byte: its virtual address (FI_MR_VIRT_ADDR), or
    /// 0.
    pub base: u64,
    /// Remotes may read it (FI_REMOTE_READ).
    pub readable: bool,
    /// Remotes may write it (FI_REMOTE_WRITE).
    pub writable: bool,
    /// Its key.
    pub key: KeyChoice,
}

/// What an operation wants to do to a range.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct RequestedAccess {
    pub(crate) read: bool,
    pub(crate) write: bool,
}

#[derive(Debug)]
struct Region {
    settings: RegionSettings,
    /// Counts writes to it.
    counter: Option<CounterId>,
}

/// Spreads keys: most are small numbers or addresses.
#[derive(Default)]
struct KeyHasher(u64);

impl Hasher for KeyHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        bytes
            .iter()
            .for_each(|&byte| self.write_u64(u64::from(byte)));
    }

    #[inline(always)]
    fn write_u64(&mut self, key: u64) {
        // An odd constant near 2^64 divided by the golden ratio spreads over the upper bits; the
        // table uses both ends.
        let spread = (self.0 ^ key).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        self.0 = spread ^ spread >> 32;
    }
}

/// The regions of a domain.
#[derive(Debug, Default)]
pub(crate) struct Regions {
    by_key: HashMap<u64, Region, BuildHasherDefault<KeyHasher>>,
    next_key: u64,
    /// Regions that are being closed: their keys are invalid, but messages or remotes still use
    /// their memory.
    closing: Vec<(u64, Region)>,
}

impl Regions {
    pub(crate) fn insert(&mut self, settings: RegionSettings) -> Result<u64, Error> {
        let is_closing = |key| self.closing.iter().any(|&(closing, _)| closing == key);
        let key = match settings.key {
            KeyChoice::Theirs(key) if self.by_key.contains_key(&key) || is_closing(key) => {
                return Err(Error::KeyInUse);
            }
            KeyChoice::Theirs(key) => key,
            KeyChoice::Ours => {
                while self.by_key.contains_key(&self.next_key) {
                    self.next_key += 1;
                }
                // Never used again, so that a key that outlives its region leads nowhere.
                self.next_key += 1;
                self.next_key - 1
            }
        };
        let region = Region {
            settings,
            counter: None,
        };
        self.by_key.insert(key, region);
        Ok(key)
    }

    /// What remotes of this host may be shown of the region of a key: one piece of memory, the
    /// writes to which nobody counts.
    pub(crate) fn shown(&self, key: u64) -> Option<Registration> {
        let region = self.by_key.get(&key)?;
        let memory = &region.settings.memory;
        (memory.is_contiguous() && region.counter.is_none()).then(|| Registration {
            key,
            base: region.settings.base,
            length_bytes: memory.length_bytes() as u64,
            address: memory.address() as u64,
            readable: region.settings.readable,
            writable: region.settings.writable,
        })
    }

    /// Shows all regions through an endpoint's route, if remotes can access them there. Setup.
    pub(crate) fn publish_all<P: Route>(&self, route: &mut P) {
        let Some(direct) = route.direct() else { return };
        let shown = self.by_key.keys().filter_map(|&key| self.shown(key));
        shown.for_each(|registration| direct.publish_registration(&registration));
    }

    /// Has the key of a region lead nowhere; the region is kept until [`Self::forget`].
    ///
    /// # Errors
    /// [`Error::NoSuch`] if the key names no region, nor one that is being closed.
    pub(crate) fn begin_close(&mut self, key: u64) -> Result<(), Error> {
        match self.by_key.remove(&key) {
            Some(region) => self.closing.push((key, region)),
            None if self.closing.iter().any(|&(of, _)| of == key) => {}
            None => return Err(Error::NoSuch),
        }
        Ok(())
    }

    /// Nobody is at the memory of a region that was being closed any more.
    pub(crate) fn forget(&mut self, key: u64) {
        self.closing.retain(|&(of, _)| of != key);
    }

    /// Counts writes to a region from now on; `left` says that no remote is at it by itself.
    ///
    /// # Errors
    /// [`Error::NoSuch`] if the key names no region, [`Error::Busy`] if it has another counter, or
    /// a remote is at it.
    pub(crate) fn bind_counter(
        &mut self,
        key: u64,
        counter: CounterId,
        left: bool,
    ) -> Result<(), Error> {
        let region = self.by_key.get_mut(&key).ok_or(Error::NoSuch)?;
        if !left || region.counter.is_some_and(|bound| bound != counter) {
            return Err(Error::Busy);
        }
        region.counter = Some(counter);
        Ok(())
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.by_key.is_empty() && self.closing.is_empty()
    }

    /// The memory that a range names, if it may be accessed so. Nothing is asked about an empty
    /// range. Fast path.
    pub(crate) fn resolve(
        &self,
        range: &Range,
        requested: RequestedAccess,
    ) -> Result<UserBuffer, Error> {
        if range.length_bytes == 0 {
            return Ok(UserBuffer::empty());
        }
        let region = self.by_key.get(&range.key).ok_or(Error::KeyRejected)?;
        let RegionSettings {
            memory,
            base,
            readable,
            writable,
            ..
        } = &region.settings;
        if (requested.read && !readable) || (requested.write && !writable) {
            return Err(Error::AccessDenied);
        }
        let fits = range
            .address
            .checked_sub(*base)
            .filter(|offset| {
                let end = offset.checked_add(range.length_bytes);
                end.is_some_and(|end| end <= memory.length_bytes() as u64)
            })
            .ok_or(Error::OutOfRange)?;
        Ok(memory.part(fits as usize, range.length_bytes as usize))
    }

    /// The counter of writes to the region of a key, if it has one.
    pub(crate) fn counter_of(&self, key: u64) -> Option<CounterId> {
        match self.by_key.get(&key) {
            Some(region) => region.counter,
            None => self.counter_of_closing(key),
        }
    }

    /// What lands while its region is being closed is counted as ever.
    #[cold]
    fn counter_of_closing(&self, key: u64) -> Option<CounterId> {
        let mut closing = self.closing.iter();
        closing.find(|&&(of, _)| of == key)?.1.counter
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BOTH: RequestedAccess = RequestedAccess {
        read: true,
        write: true,
    };

    fn settings(key: KeyChoice) -> RegionSettings {
        RegionSettings {
            memory: UserBuffer::leaked(&[100]),
            base: 0,
            readable: true,
            writable: true,
            key,
        }
    }

    fn range(address: u64, length_bytes: u64, key: u64) -> Range {
        Range {
            address,
            length_bytes,
            key,
        }
    }

    #[test]
    fn a_range_is_found_only_inside_its_region() {
        for base in [0, 4096, u64::MAX - 99] {
            let mut regions = Regions::default();
            let key = regions
                .insert(RegionSettings {
                    base,
                    ..settings(KeyChoice::Theirs(7))
                })
                .unwrap();
            let found = |offset: u64, length| {
                let address = base.wrapping_add(offset);
                let found = regions.resolve(&range(address, length, key), BOTH);
                found.map(|buffer| buffer.length_bytes())
            };
            assert_eq!(found(0, 100), Ok(100));
            assert_eq!(found(99, 1), Ok(1));
            for (offset, length) in [(0, 101), (99, 2), (100, 1), (1, u64::MAX), (u64::MAX, 1)] {
                let refused = found(offset, length);
                assert_eq!(refused, Err(Error::OutOfRange), "{offset} and {length}");
            }
            assert_eq!(found(5000, 0), Ok(0), "nothing is asked of an empty range");
            let unknown = regions.resolve(&range(base, 1, 8), BOTH).unwrap_err();
            assert_eq!(unknown, Error::KeyRejected);
        }
    }

    #[test]
    fn rights_are_heeded() {
        for (readable, writable) in [(false, false), (false, true), (true, false), (true, true)] {
            let mut regions = Regions::default();
            let settings = RegionSettings {
                readable,
                writable,
                ..settings(KeyChoice::Ours)
            };
            let key = regions.insert(settings).unwrap();
            for (read, write) in [(false, true), (true, false), (true, true)] {
                let allowed = regions
                    .resolve(&range(0, 1, key), RequestedAccess { read, write })
                    .is_ok();
                assert_eq!(allowed, (readable || !read) && (writable || !write));
            }
        }
    }

    #[test]
    fn keys_are_used_once_and_ours_never_again() {
        let mut regions = Regions::default();
        regions.insert(settings(KeyChoice::Theirs(1))).unwrap();
        let again = regions.insert(settings(KeyChoice::Theirs(1)));
        assert_eq!(again, Err(Error::KeyInUse));
        let ours = [0; 3].map(|_| regions.insert(settings(KeyChoice::Ours)).unwrap());
        assert_eq!(ours, [0, 2, 3]);
        regions.by_key.remove(&2);
        assert_eq!(regions.insert(settings(KeyChoice::Ours)), Ok(4));
    }
}
