// SPDX-License-Identifier: Apache-2.0 OR MIT
//! At which addresses of this host an endpoint's sockets are, and which pairs of addresses its
//! host's routes join (srd-protocol 17). Called by sockets.rs when it opens, and once for every
//! remote where either side has several addresses.

use std::net::{IpAddr, SocketAddr};

use weft_os::interface::InterfaceAddress;
use weft_os::udp_socket::UdpSocket;
use weft_os::{interface, route};
use weft_srd::{FURTHER_ADDRESSES, PORT_COUNT, PortAddresses};

use crate::settings::Settings;

/// The addresses that an endpoint at `first` uses besides.
pub(crate) fn addresses(settings: &Settings, first: IpAddr) -> PortAddresses {
    if !settings.together.contains(&first) {
        return PortAddresses::ONE;
    }
    // One that has gone since, or cannot be used yet, is left out.
    let fits = |address: &IpAddr| {
        *address != first
            && address.is_ipv4() == first.is_ipv4()
            && UdpSocket::bind(SocketAddr::new(*address, 0)).is_ok()
    };
    let further: Vec<IpAddr> = settings.together.iter().copied().filter(fits).collect();
    PortAddresses::dealt(&further[..further.len().min(FURTHER_ADDRESSES)])
}

/// One of our addresses, and the number of its interface.
#[derive(Clone, Copy, Debug)]
struct LocalAddress {
    address: IpAddr,
    interface: Option<u32>,
}

fn local(address: IpAddr, all: &[InterfaceAddress]) -> LocalAddress {
    let entry = all.iter().find(|entry| entry.address == address);
    LocalAddress {
        address,
        interface: entry.and_then(|entry| route::interface_number(&entry.name)),
    }
}

/// Whether packets from this address to that one leave through its own interface, for another host.
fn leads(from: LocalAddress, to: IpAddr) -> bool {
    from.interface.is_some()
        && !interface::is_own(to)
        && route::leaves_through(from.address, to) == from.interface
}

/// The paths from ports at these addresses to the targets, as a set, and the pairs of addresses
/// that they make: our port's index and the target. That between the first addresses is there in
/// any case. Slow path.
pub(crate) fn routes(
    first: IpAddr,
    own: &PortAddresses,
    targets: &[SocketAddr; PORT_COUNT],
) -> (u64, Vec<(usize, SocketAddr)>) {
    let all = interface::addresses().unwrap_or_default();
    let mut paths = 0;
    let mut pairs: Vec<(usize, SocketAddr)> = Vec::new();
    let mut judged: Vec<(IpAddr, IpAddr, bool)> = Vec::new();
    for (ours, theirs) in (0..PORT_COUNT * PORT_COUNT).map(|n| (n / PORT_COUNT, n % PORT_COUNT)) {
        let address = own.further_of(ours as u8).unwrap_or(first);
        let target = targets[theirs];
        let known = judged
            .iter()
            .find(|(from, to, _)| (*from, *to) == (address, target.ip()));
        let good = match known {
            Some((.., good)) => *good,
            None => {
                let firsts = address == first && target.ip() == targets[0].ip();
                let good = firsts || leads(local(address, &all), target.ip());
                judged.push((address, target.ip(), good));
                if good {
                    pairs.push((ours, target));
                }
                good
            }
        };
        paths |= u64::from(good) << (ours * PORT_COUNT + theirs);
    }
    (paths, pairs)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn targets(further: &str) -> [SocketAddr; PORT_COUNT] {
        let further: IpAddr = further.parse().expect("address");
        let first = IpAddr::from([127, 0, 0, 1]);
        core::array::from_fn(|port| {
            let address = if port % 2 == 0 { first } else { further };
            SocketAddr::new(address, 1000 + port as u16)
        })
    }

    #[test]
    fn what_no_route_of_the_interface_leads_to_is_no_path() {
        let first = IpAddr::from([127, 0, 0, 1]);
        let own = PortAddresses::dealt(&[IpAddr::from([127, 0, 0, 2])]);
        // Loopback does not lead to another host, and an address of this host is none.
        for further in ["192.0.2.77", "127.0.0.1", "127.0.0.3"] {
            let targets = targets(further);
            let (paths, pairs) = routes(first, &own, &targets);
            let expected = if further == "127.0.0.1" {
                0x00ff
            } else {
                0x0055
            };
            let expected = (0..4).fold(0, |set, row| set | expected << (row * 16));
            assert_eq!(paths, expected, "{further}");
            assert_eq!(pairs.len(), 1, "{further}");
        }
    }

    #[test]
    fn only_addresses_of_its_family_and_list_are_used_with_the_first() {
        let together: Vec<IpAddr> = ["127.0.0.1", "::1", "127.0.0.2", "192.0.2.77", "127.0.0.3"]
            .map(|text| text.parse().expect("address"))
            .to_vec();
        let settings = Settings {
            together,
            ..Settings::default()
        };
        let own = addresses(&settings, IpAddr::from([127, 0, 0, 1]));
        let expected = [[127, 0, 0, 2], [127, 0, 0, 3]].map(IpAddr::from);
        assert_eq!(own.further(), expected, "192.0.2.77 is not of this host");
        let stranger = addresses(&settings, IpAddr::from([127, 0, 0, 9]));
        assert!(stranger.is_one());
    }
}
