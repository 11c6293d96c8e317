// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Which route of the list leads to a remote: decided once from its address, and changed when a
//! route turns the remote away. Asked by routes.rs for every send.

use std::net::{IpAddr, SocketAddr};

use weft_contract::RemoteId;
use weft_os::interface;

/// The most routes of one endpoint. Chosen: the table keeps a bit of a byte for each.
pub const ROUTE_LIMIT: usize = u8::BITS as usize;

/// Which remotes a route serves.
#[derive(Clone, Copy, Debug, Default)]
pub enum Scope {
    /// Remotes whose address belongs to an interface of this network namespace.
    #[default]
    Host,
    /// All.
    Everybody,
    /// None, not even ourselves.
    Nobody,
    /// Those that the function says, given our address and theirs.
    By(fn(SocketAddr, SocketAddr) -> bool),
}

/// The route to one remote.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum RouteTo {
    First,
    /// The other route of this index.
    Other(u8),
    /// The same, after all sends that an earlier route gave back have gone there.
    Rerouted(u8),
    /// No open route serves it.
    Nowhere,
}

/// The routes to all remotes.
#[derive(Debug)]
pub(super) struct RoutingTable {
    /// By id.
    routes: Vec<RouteTo>,
    /// By id, the routes that serve the remote, as a set: bit 0 is the first route.
    serving: Vec<u8>,
    scopes: Vec<Scope>,
    own: SocketAddr,
    interfaces: Vec<IpAddr>,
}

impl RoutingTable {
    /// A table without remotes. `scopes`: of all open routes, in the order of the list. Setup.
    pub(super) fn new(scopes: Vec<Scope>, own: SocketAddr) -> Self {
        let interfaces = interface::addresses().unwrap_or_default().into_iter();
        Self {
            routes: Vec::new(),
            serving: Vec::new(),
            scopes,
            own,
            interfaces: interfaces.map(|entry| entry.address).collect(),
        }
    }

    /// Learns of a remote, whose id is the next one. Slow path.
    pub(super) fn add(&mut self, remote: RemoteId, address: SocketAddr) {
        debug_assert!(self.is_next(remote), "ids are dense");
        let serves = |scope: &Scope| u8::from(self.serves(*scope, address));
        let serving = self.scopes.iter().enumerate();
        let serving = serving.fold(0, |set, (number, scope)| set | serves(scope) << number);
        self.serving.push(serving);
        self.routes.push(match serving.trailing_zeros() {
            0 => RouteTo::First,
            u8::BITS => RouteTo::Nowhere,
            number => RouteTo::Other(number as u8 - 1),
        });
    }

    /// Whether `remote` is not known yet.
    pub(super) fn is_next(&self, remote: RemoteId) -> bool {
        remote.index() == self.routes.len()
    }

    fn serves(&self, scope: Scope, address: SocketAddr) -> bool {
        let ip = address.ip();
        match scope {
            Scope::Host => ip == self.own.ip() || ip.is_loopback() || self.interfaces.contains(&ip),
            Scope::Everybody => true,
            Scope::Nobody => false,
            Scope::By(rule) => rule(self.own, address),
        }
    }

    /// The route to a remote. Fast path.
    #[inline(always)]
    pub(super) fn to(&self, remote: RemoteId) -> RouteTo {
        self.routes
            .get(remote.index())
            .copied()
            .unwrap_or(RouteTo::Nowhere)
    }

    /// Route `number` of the list does not reach a remote: takes the next one that serves it, if
    /// there is any, to send again by; answers the index among the others. Slow path.
    pub(super) fn turn_away(&mut self, remote: RemoteId, number: usize) -> Option<usize> {
        let serving = self.serving.get_mut(remote.index())?;
        *serving &= u8::MAX.checked_shl(number as u32 + 1).unwrap_or(0);
        let index = (serving.trailing_zeros() as u8)
            .checked_sub(1)
            .filter(|_| *serving != 0)?;
        self.routes[remote.index()] = RouteTo::Rerouted(index);
        Some(usize::from(index))
    }

    /// All that was given back has gone the new way. Slow path.
    pub(super) fn end_rerouting(&mut self, remote: RemoteId) {
        if let Some(route) = self.routes.get_mut(remote.index())
            && let RouteTo::Rerouted(index) = *route
        {
            *route = RouteTo::Other(index);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SOMEBODY: RemoteId = RemoteId(0);

    fn table(scopes: &[Scope]) -> RoutingTable {
        let own = SocketAddr::from(([192, 0, 2, 1], 7));
        let mut table = RoutingTable::new(scopes.to_vec(), own);
        table.add(SOMEBODY, SocketAddr::from(([192, 0, 2, 2], 8)));
        table
    }

    #[test]
    fn the_first_route_that_serves_a_remote_leads_to_it() {
        use Scope::{By, Everybody, Nobody};
        let ourselves = By(|own, other| own == other);
        for (scopes, expected) in [
            (&[Everybody, Everybody][..], RouteTo::First),
            (&[ourselves, Everybody], RouteTo::Other(0)),
            (&[ourselves, Nobody, Everybody], RouteTo::Other(1)),
            (&[ourselves, Nobody], RouteTo::Nowhere),
        ] {
            assert_eq!(table(scopes).to(SOMEBODY), expected, "{scopes:?}");
        }
        assert_eq!(table(&[Everybody]).to(RemoteId(1)), RouteTo::Nowhere);
    }

    #[test]
    fn a_remote_that_is_turned_away_takes_the_next_route_that_serves_it() {
        use Scope::{Everybody, Nobody};
        let mut table = table(&[Everybody, Nobody, Everybody, Everybody]);
        assert_eq!(table.turn_away(SOMEBODY, 0), Some(1));
        assert_eq!(table.to(SOMEBODY), RouteTo::Rerouted(1));
        table.end_rerouting(SOMEBODY);
        assert_eq!(table.to(SOMEBODY), RouteTo::Other(1));
        assert_eq!(table.turn_away(SOMEBODY, 2), Some(2));
        assert_eq!(table.turn_away(SOMEBODY, 3), None, "there is no other");
        assert_eq!(table.to(SOMEBODY), RouteTo::Rerouted(2), "nothing changes");
    }
}
