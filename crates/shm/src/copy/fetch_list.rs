// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The list of fetches, in the order in which their messages were accepted, and of how many remotes
//! they are. Owned by fetches.rs.

use std::collections::VecDeque;
use std::ops::{Index, IndexMut};

use weft_contract::RemoteId;

use crate::copy::fetch::Fetch;

/// See the module.
#[derive(Debug, Default)]
pub(super) struct FetchList {
    list: VecDeque<Fetch>,
    /// How many are from each remote.
    counts: Vec<usize>,
    /// Remotes that some are from.
    remote_count: usize,
}

impl FetchList {
    #[inline(always)]
    pub(super) fn len(&self) -> usize {
        self.list.len()
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Fetch> {
        self.list.iter()
    }

    pub(super) fn iter_mut(&mut self) -> impl Iterator<Item = &mut Fetch> {
        self.list.iter_mut()
    }

    /// Of how many remotes they are.
    pub(super) fn remote_count(&self) -> usize {
        self.remote_count
    }

    /// How many are from this remote.
    pub(super) fn count_of(&self, remote: RemoteId) -> usize {
        self.counts.get(remote.index()).copied().unwrap_or(0)
    }

    pub(super) fn push(&mut self, fetch: Fetch) {
        let index = fetch.offer.remote.index();
        if self.counts.len() <= index {
            self.counts.resize(index + 1, 0);
        }
        self.counts[index] += 1;
        self.remote_count += usize::from(self.counts[index] == 1);
        self.list.push_back(fetch);
    }

    /// Takes one out, which must be there; the others keep their order, by which they begin and
    /// follow in a pipe. Cheap at the front, where most end.
    pub(super) fn take_out(&mut self, index: usize) -> Fetch {
        let fetch = self.list.remove(index).expect("the caller found it there");
        let count = &mut self.counts[fetch.offer.remote.index()];
        *count -= 1;
        self.remote_count -= usize::from(*count == 0);
        fetch
    }
}

impl Index<usize> for FetchList {
    type Output = Fetch;

    #[inline]
    fn index(&self, index: usize) -> &Fetch {
        &self.list[index]
    }
}

impl IndexMut<usize> for FetchList {
    #[inline]
    fn index_mut(&mut self, index: usize) -> &mut Fetch {
        &mut self.list[index]
    }
}

#[cfg(test)]
mod tests {
    use weft_contract::{Landing, LandingToken};
    use weft_memory::UserBuffer;

    use super::*;
    use crate::copy::offer::RemoteOffer;

    fn fetch(remote: u32, send_id: u64) -> Fetch {
        let offer = RemoteOffer {
            remote: RemoteId(remote),
            send_id,
            address: None,
            is_shared: false,
            length_bytes: 1,
            wants_receipt: false,
        };
        let landing = Landing {
            token: LandingToken(send_id),
            buffer: UserBuffer::empty(),
        };
        Fetch::new(offer, landing, 0)
    }

    #[test]
    fn fetches_are_counted_by_remote_and_keep_their_order() {
        let mut list = FetchList::default();
        for (remote, send_id) in [(3, 1), (0, 2), (3, 3)] {
            list.push(fetch(remote, send_id));
        }
        let counts = |list: &FetchList| [0, 1, 3].map(|remote| list.count_of(RemoteId(remote)));
        assert_eq!((list.remote_count(), counts(&list)), (2, [1, 0, 2]));
        assert_eq!(list.take_out(1).offer.send_id, 2);
        assert_eq!((list.remote_count(), counts(&list)), (1, [0, 0, 2]));
        assert_eq!(list.take_out(0).offer.send_id, 1);
        assert_eq!((list.remote_count(), list.len()), (1, 1));
        assert_eq!(list.take_out(0).offer.send_id, 3);
        assert_eq!((list.remote_count(), counts(&list)), (0, [0; 3]));
    }
}
