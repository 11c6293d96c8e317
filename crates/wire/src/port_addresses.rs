// SPDX-License-Identifier: Apache-2.0 OR MIT
//! At which of its host's addresses each port of an endpoint is (srd-protocol 3, 17). Part of the
//! hello.

use std::net::{IpAddr, Ipv4Addr};

use crate::bytes::{Head, Reader};
use crate::malformed::{Malformed, require};
use crate::path::{PATH_COUNT, PORT_COUNT, Path};

/// Addresses of an endpoint besides that of its first port (srd-protocol 17.1; chosen: no common
/// host has more than four interfaces of one kind, and each still has two ports).
pub const FURTHER_ADDRESSES: usize = 3;
/// Of one address.
const ADDRESS_BYTES: usize = 16;

/// The addresses of an endpoint's ports. Number 0 is the address of the first port, which is not
/// written here: it is the one that the endpoint is known by.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PortAddresses {
    further: [IpAddr; FURTHER_ADDRESSES],
    further_count: u8,
    of_port: [u8; PORT_COUNT],
}

impl PortAddresses {
    /// All ports at one address.
    pub const ONE: Self = Self {
        further: [IpAddr::V4(Ipv4Addr::UNSPECIFIED); FURTHER_ADDRESSES],
        further_count: 0,
        of_port: [0; PORT_COUNT],
    };

    /// Deals ports out to the first address and to up to three further ones, in turn. Those beyond
    /// are left out.
    pub fn dealt(further: &[IpAddr]) -> Self {
        let mut all = Self::ONE;
        for (place, address) in all.further.iter_mut().zip(further) {
            *place = *address;
            all.further_count += 1;
        }
        for (index, number) in all.of_port.iter_mut().enumerate() {
            *number = index as u8 % (all.further_count + 1);
        }
        all
    }

    /// The same with a port at the first address instead.
    #[must_use]
    pub fn with_first(mut self, port_index: usize) -> Self {
        self.of_port[port_index % PORT_COUNT] = 0;
        self
    }

    /// Whether there are no further addresses. Fast path.
    #[inline]
    pub fn is_one(&self) -> bool {
        self.further_count == 0
    }

    /// The further ones.
    pub fn further(&self) -> &[IpAddr] {
        &self.further[..usize::from(self.further_count)]
    }

    /// Which address a port has, 0 to 3.
    #[inline]
    pub fn number(&self, port_index: u8) -> u8 {
        self.of_port[usize::from(port_index) % PORT_COUNT]
    }

    /// The address of a port, if it is not the first one. Fast path.
    #[inline]
    pub fn further_of(&self, port_index: u8) -> Option<IpAddr> {
        let number = usize::from(self.number(port_index));
        (number > 0).then(|| self.further[number - 1])
    }

    /// The paths, as a set, that leave from ports at our first address and reach ports at the
    /// remote's first.
    pub fn first_paths(&self, remote: &Self) -> u64 {
        let paths = (0..PATH_COUNT as u8).filter_map(Path::from_number);
        let first = paths.filter(|path| {
            self.number(path.source_port_index()) == 0
                && remote.number(path.target_port_index()) == 0
        });
        first.fold(0, |set, path| set | path.bit())
    }

    /// How much longer a hello is with these.
    pub fn bytes(&self) -> usize {
        ADDRESS_BYTES * usize::from(self.further_count)
    }

    pub(crate) fn count(&self) -> u8 {
        self.further_count
    }

    /// Two ports to a byte, the lower one in the lower half.
    pub(crate) fn numbers(&self) -> u32 {
        let places = self.of_port.iter().enumerate();
        places.fold(0, |word, (index, number)| {
            word | u32::from(*number) << (4 * index)
        })
    }

    pub(crate) fn write(&self, head: &mut Head) {
        for address in self.further() {
            head.put_address(*address);
        }
    }

    /// `count` and `numbers` are of the hello's fixed part, and checked here.
    pub(crate) fn read(
        reader: &mut Reader<'_>,
        count: u8,
        numbers: u32,
        port_count: u8,
    ) -> Result<Self, Malformed> {
        let mut all = Self::ONE;
        require(
            usize::from(count) <= FURTHER_ADDRESSES,
            "further address count",
            u64::from(count),
            "an endpoint has at most 3 further addresses",
        )?;
        all.further_count = count;
        for (index, place) in all.of_port.iter_mut().enumerate() {
            *place = (numbers >> (4 * index) & 15) as u8;
            let most = if index == 0 || index >= usize::from(port_count) {
                0
            } else {
                count
            };
            require(
                *place <= most,
                "address of a port",
                u64::from(*place),
                "ports name addresses that are there, and the first port is at the first one",
            )?;
        }
        for place in &mut all.further[..usize::from(count)] {
            *place = reader.address("further address")?;
            let last = match place {
                IpAddr::V4(address) => address.octets()[3],
                IpAddr::V6(address) => address.octets()[15],
            };
            require(
                is_of_one_host(*place),
                "further address",
                u64::from(last),
                "it must be the address of one interface of one host (the value is its last byte)",
            )?;
        }
        Ok(all)
    }
}

/// Not everybody's, nobody's or the reader's own.
fn is_of_one_host(address: IpAddr) -> bool {
    let broadcast = address == IpAddr::V4(Ipv4Addr::BROADCAST);
    !(broadcast || address.is_unspecified() || address.is_loopback() || address.is_multicast())
}
