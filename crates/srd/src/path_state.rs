// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What is known of each path of a flow, kept for those alone of which something is known: a remote just met has used few of its 64,
//! and idle ones are many (srd-protocol 15). Read and written by path for every packet.

use std::ops::{Index, IndexMut};

use weft_wire::PATH_COUNT;

use crate::path::Health;

/// What is known of one path.
#[derive(Clone, Copy, Debug)]
pub(crate) struct State {
    /// Departure of the newest packet known to have arrived.
    pub(crate) delivered_ns: u64,
    /// Skip: when it ends. Suspect and denied: when the next probe is due.
    pub(crate) until_ns: u64,
    /// Suspect and denied: since when.
    pub(crate) since_ns: u64,
    pub(crate) rtt_ns: u32,
    pub(crate) health: Health,
    pub(crate) probe_count: u8,
    /// Packets in a row whose answer had to be fetched over another path.
    pub(crate) strike_count: u8,
    /// Whose state this is.
    pub(crate) path: u8,
}

/// Of a path of which nothing is known.
const UNKNOWN: State = State {
    delivered_ns: 0,
    until_ns: 0,
    since_ns: 0,
    rtt_ns: 0,
    health: Health::Good,
    probe_count: 0,
    strike_count: 0,
    path: 0,
};

/// The states of all paths of a flow, by the path's number. Writing to one of which nothing was known allocates, a few times in a
/// flow's life.
#[derive(Debug)]
pub(crate) struct States {
    /// One more than the place of a path in `known`; 0 if it has none.
    places: [u8; PATH_COUNT],
    known: Vec<State>,
}

impl States {
    /// Nothing is known.
    pub(crate) fn new() -> Self {
        Self {
            places: [0; PATH_COUNT],
            known: Vec::new(),
        }
    }

    /// Those of which something is known.
    pub(crate) fn known_mut(&mut self) -> impl Iterator<Item = &mut State> {
        self.known.iter_mut()
    }

    /// Bytes outside of this structure.
    pub(crate) fn footprint_bytes(&self) -> usize {
        self.known.capacity() * size_of::<State>()
    }

    #[cold]
    fn add(&mut self, path: usize) {
        self.known.push(State {
            path: path as u8,
            ..UNKNOWN
        });
        self.places[path] = self.known.len() as u8;
    }
}

impl Index<usize> for States {
    type Output = State;

    #[inline]
    fn index(&self, path: usize) -> &State {
        match self.places[path] {
            0 => &UNKNOWN,
            place => &self.known[usize::from(place) - 1],
        }
    }
}

impl IndexMut<usize> for States {
    #[inline]
    fn index_mut(&mut self, path: usize) -> &mut State {
        if self.places[path] == 0 {
            self.add(path);
        }
        &mut self.known[usize::from(self.places[path]) - 1]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_was_written_takes_room_and_is_read_again() {
        let mut states = States::new();
        for path in [63, 0, 17] {
            assert_eq!(states[path].rtt_ns, 0);
            states[path].rtt_ns = 100 + path as u32;
        }
        states[17].health = Health::Skip;
        assert_eq!([63, 0, 17].map(|path| states[path].rtt_ns), [163, 100, 117]);
        assert_eq!(states[1].health, Health::Good);
        let known: Vec<u8> = states.known_mut().map(|state| state.path).collect();
        assert_eq!(known, [63, 0, 17]);
        assert_eq!(size_of::<State>(), 32);
    }
}
