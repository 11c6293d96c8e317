// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Names for the objects of a domain, and the table that turns a name into its object.
//!
//! Handed to the provider, which keeps them in its `fid` structures; used by every call into the
//! domain.

/// An endpoint of one domain.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct EndpointId(pub u32);

/// A completion queue of one domain.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct QueueId(pub u32);

/// A counter of one domain.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct CounterId(pub u32);

/// An address vector of one domain.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct VectorId(pub u32);

/// An address as the user names it (`fi_addr_t`): its index in an address vector.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct FiAddr(pub u64);

impl FiAddr {
    /// Any source, where one may be named (FI_ADDR_UNSPEC); an unknown source, where one is
    /// reported (FI_ADDR_NOTAVAIL). Specified: both are the largest value.
    pub const UNSPEC: Self = Self(u64::MAX);
}

/// Objects by number. A number is used again only after its object was removed.
#[derive(Debug)]
pub(crate) struct Table<T> {
    slots: Vec<Option<Box<T>>>,
}

impl<T> Table<T> {
    pub(crate) const fn new() -> Self {
        Self { slots: Vec::new() }
    }

    /// Takes `value` in; answers its number. Setup.
    pub(crate) fn insert(&mut self, value: T) -> u32 {
        let value = Some(Box::new(value));
        match self.slots.iter().position(Option::is_none) {
            Some(free) => {
                self.slots[free] = value;
                free as u32
            }
            None => {
                self.slots.push(value);
                (self.slots.len() - 1) as u32
            }
        }
    }

    /// Fast path.
    #[inline(always)]
    pub(crate) fn get(&self, number: u32) -> Option<&T> {
        self.slots.get(number as usize)?.as_deref()
    }

    /// Fast path.
    #[inline(always)]
    pub(crate) fn get_mut(&mut self, number: u32) -> Option<&mut T> {
        self.slots.get_mut(number as usize)?.as_deref_mut()
    }

    /// Setup.
    pub(crate) fn remove(&mut self, number: u32) -> Option<T> {
        Some(*self.slots.get_mut(number as usize)?.take()?)
    }

    /// At least how many there are: also places of those that are gone. Fast path.
    #[inline(always)]
    pub(crate) fn count(&self) -> usize {
        self.slots.len()
    }

    /// The numbers of all objects. Setup.
    pub(crate) fn numbers(&self) -> impl Iterator<Item = u32> {
        let taken = |(number, slot): (usize, &Option<_>)| slot.is_some().then_some(number as u32);
        self.slots.iter().enumerate().filter_map(taken)
    }

    /// All objects. Setup.
    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = &mut T> {
        self.slots.iter_mut().filter_map(Option::as_deref_mut)
    }

    /// All objects. Setup.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &T> {
        self.slots.iter().filter_map(Option::as_deref)
    }
}
