// SPDX-License-Identifier: Apache-2.0 OR MIT
//! An address vector: the user's numbers for addresses. Serves both FI_AV_TABLE and FI_AV_MAP.
//! fi_av(3).
//!
//! Changed through the domain, which tells every endpoint bound to it (remotes.rs keeps what sends
//! look up).

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};
use std::net::SocketAddr;

use crate::ids::FiAddr;
use crate::settings::VectorKind;

/// The vector.
#[derive(Debug)]
pub(crate) struct AddressVector {
    kind: VectorKind,
    slots: Vec<Option<SocketAddr>>,
    /// Places below `slots.len()` that are empty; the lowest is filled first (fi_av(3),
    /// FI_AV_TABLE).
    free: BinaryHeap<Reverse<u32>>,
    /// Every place of an address, lowest first.
    places: HashMap<SocketAddr, Vec<u32>>,
    /// How addresses are reported that the user named itself (FI_AV_USER_ID).
    sources: HashMap<SocketAddr, FiAddr>,
}

impl AddressVector {
    pub(crate) fn new(kind: VectorKind) -> Self {
        Self {
            kind,
            slots: Vec::new(),
            free: BinaryHeap::new(),
            places: HashMap::new(),
            sources: HashMap::new(),
        }
    }

    pub(crate) fn kind(&self) -> VectorKind {
        self.kind
    }

    /// Puts `address` at the lowest empty place. An address that is there already gets another
    /// place.
    pub(crate) fn insert(&mut self, address: SocketAddr) -> FiAddr {
        let place = match self.free.pop() {
            Some(Reverse(place)) => {
                self.slots[place as usize] = Some(address);
                place
            }
            None => {
                self.slots.push(Some(address));
                (self.slots.len() - 1) as u32
            }
        };
        let places = self.places.entry(address).or_default();
        let at = places.partition_point(|&other| other < place);
        places.insert(at, place);
        FiAddr(u64::from(place))
    }

    /// Empties a place; answers what was there.
    pub(crate) fn remove(&mut self, name: FiAddr) -> Option<SocketAddr> {
        let place = u32::try_from(name.0).ok()?;
        let address = self.slots.get_mut(place as usize)?.take()?;
        self.free.push(Reverse(place));
        if let Some(places) = self.places.get_mut(&address) {
            places.retain(|&other| other != place);
            if places.is_empty() {
                self.places.remove(&address);
                self.sources.remove(&address);
            }
        }
        Some(address)
    }

    /// The address at a place.
    pub(crate) fn lookup(&self, name: FiAddr) -> Option<SocketAddr> {
        *self.slots.get(usize::try_from(name.0).ok()?)?
    }

    /// Has an address that is there reported as `source`.
    pub(crate) fn set_source(&mut self, address: SocketAddr, source: FiAddr) {
        self.sources.insert(address, source);
    }

    /// How an address is reported: as the user said, else its lowest place, or [`FiAddr::UNSPEC`]
    /// if it has none.
    pub(crate) fn reported(&self, address: &SocketAddr) -> FiAddr {
        if let Some(&source) = self.sources.get(address) {
            return source;
        }
        self.places
            .get(address)
            .map_or(FiAddr::UNSPEC, |places| FiAddr(u64::from(places[0])))
    }

    /// All places that are filled.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (FiAddr, SocketAddr)> {
        let filled = self.slots.iter().enumerate();
        filled.filter_map(|(place, slot)| slot.map(|address| (FiAddr(place as u64), address)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(port: u16) -> SocketAddr {
        SocketAddr::from(([127, 0, 0, 1], port))
    }

    #[test]
    fn addresses_are_numbered_from_zero_and_the_lowest_empty_place_is_filled_first() {
        let mut vector = AddressVector::new(VectorKind::Table);
        assert_eq!(
            [1, 2, 3].map(|port| vector.insert(address(port)).0),
            [0, 1, 2]
        );
        assert_eq!(vector.remove(FiAddr(2)), Some(address(3)));
        assert_eq!(vector.remove(FiAddr(0)), Some(address(1)));
        assert_eq!(vector.remove(FiAddr(0)), None);
        assert_eq!(
            [4, 5, 6].map(|port| vector.insert(address(port)).0),
            [0, 2, 3]
        );
    }

    #[test]
    fn an_address_inserted_twice_has_two_places_and_the_lower_is_reported() {
        let mut vector = AddressVector::new(VectorKind::Map);
        assert_eq!(
            (vector.insert(address(7)), vector.insert(address(7))),
            (FiAddr(0), FiAddr(1))
        );
        assert_eq!(vector.reported(&address(7)), FiAddr(0));
        vector.remove(FiAddr(0));
        assert_eq!(vector.reported(&address(7)), FiAddr(1));
        vector.remove(FiAddr(1));
        assert_eq!(vector.reported(&address(7)), FiAddr::UNSPEC);
        assert_eq!(vector.lookup(FiAddr(u64::MAX)), None);
    }

    #[test]
    fn an_address_that_the_user_named_is_reported_by_that_name_while_it_is_there() {
        let mut vector = AddressVector::new(VectorKind::Table);
        vector.insert(address(7));
        vector.set_source(address(7), FiAddr(1 << 40));
        assert_eq!(vector.reported(&address(7)), FiAddr(1 << 40));
        vector.remove(FiAddr(0));
        assert_eq!(vector.reported(&address(7)), FiAddr::UNSPEC);
    }
}
