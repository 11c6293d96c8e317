// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A two-level leaf-spine network without oversubscription: its links, and the links that a packet
//! passes.
//!
//! Called by fabric. Links are numbered in this order: hosts up, hosts down, leaves up, spines
//! down.

use weft_srd::random::Random;

use crate::hash::FiveTuple;

/// The links of one way, first to last.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Route {
    /// The first `count` hold.
    pub links: [u32; 4],
    /// 2 within a leaf, else 4.
    pub count: u8,
}

/// Hosts, leaves and spines.
#[derive(Clone, Debug)]
pub struct Topology {
    host_count: usize,
    hosts_per_leaf: usize,
    leaf_count: usize,
    spine_count: usize,
    /// Of every leaf's hash.
    salts: Vec<u64>,
}

impl Topology {
    /// As square as it gets: as many spines as a leaf has hosts.
    pub fn new(host_count: usize, random: &mut Random) -> Self {
        let mut hosts_per_leaf = 2;
        while hosts_per_leaf * hosts_per_leaf < host_count {
            hosts_per_leaf *= 2;
        }
        let leaf_count = host_count.div_ceil(hosts_per_leaf);
        Self {
            host_count,
            hosts_per_leaf,
            leaf_count,
            spine_count: hosts_per_leaf,
            salts: (0..leaf_count).map(|_| random.number()).collect(),
        }
    }

    /// Two hosts, each on a leaf of its own, and so many paths between them.
    pub fn pair(path_count: usize, random: &mut Random) -> Self {
        Self::racks(1, path_count, random)
    }

    /// Two leaves with so many hosts each, and so many paths between them.
    pub fn racks(hosts_per_leaf: usize, path_count: usize, random: &mut Random) -> Self {
        Self {
            host_count: 2 * hosts_per_leaf,
            hosts_per_leaf,
            leaf_count: 2,
            spine_count: path_count,
            salts: vec![random.number(), random.number()],
        }
    }

    /// Hosts.
    pub fn host_count(&self) -> usize {
        self.host_count
    }

    /// Spines, and hosts of a leaf.
    pub fn spine_count(&self) -> usize {
        self.spine_count
    }

    /// Leaves.
    pub fn leaf_count(&self) -> usize {
        self.leaf_count
    }

    /// All links, in one direction each.
    pub fn link_count(&self) -> usize {
        2 * self.host_count + 2 * self.leaf_count * self.spine_count
    }

    /// The link out of a host's card.
    pub fn host_up(&self, host: usize) -> u32 {
        host as u32
    }

    fn host_down(&self, host: usize) -> u32 {
        (self.host_count + host) as u32
    }

    fn leaf_up(&self, leaf: usize, spine: usize) -> u32 {
        (2 * self.host_count + leaf * self.spine_count + spine) as u32
    }

    fn spine_down(&self, spine: usize, leaf: usize) -> u32 {
        (2 * self.host_count + (self.leaf_count + leaf) * self.spine_count + spine) as u32
    }

    /// All links into and out of a spine.
    pub fn spine_links(&self, spine: usize) -> Vec<u32> {
        let both = |leaf| [self.leaf_up(leaf, spine), self.spine_down(spine, leaf)];
        (0..self.leaf_count).flat_map(both).collect()
    }

    /// Whether two hosts hang on one leaf.
    pub fn same_leaf(&self, source: usize, target: usize) -> bool {
        source / self.hosts_per_leaf == target / self.hosts_per_leaf
    }

    /// The way of a packet.
    pub fn route(&self, tuple: &FiveTuple) -> Route {
        let (source, target) = (tuple.source as usize, tuple.target as usize);
        let (up, down) = (self.host_up(source), self.host_down(target));
        if self.same_leaf(source, target) {
            return Route {
                links: [up, down, 0, 0],
                count: 2,
            };
        }
        let (from, to) = (source / self.hosts_per_leaf, target / self.hosts_per_leaf);
        let spine = tuple.choose(self.salts[from], self.spine_count as u32) as usize;
        let links = [
            up,
            self.leaf_up(from, spine),
            self.spine_down(spine, to),
            down,
        ];
        Route { links, count: 4 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_link_has_one_number() {
        let topology = Topology::new(50, &mut Random::new(1));
        let mut seen: Vec<u32> = (0..50)
            .flat_map(|host| [topology.host_up(host), topology.host_down(host)])
            .collect();
        for spine in 0..topology.spine_count() {
            seen.extend(topology.spine_links(spine));
        }
        seen.sort_unstable();
        assert_eq!(seen, (0..topology.link_count() as u32).collect::<Vec<_>>());
    }

    #[test]
    fn a_packet_enters_at_its_source_and_leaves_at_its_target() {
        let topology = Topology::new(64, &mut Random::new(1));
        let tuple = FiveTuple {
            source: 3,
            target: 60,
            source_port: 1,
            target_port: 2,
            protocol: 17,
        };
        let route = topology.route(&tuple);
        assert_eq!(
            (route.count, route.links[0], route.links[3]),
            (4, 3, 64 + 60)
        );
        let near = FiveTuple { target: 4, ..tuple };
        assert_eq!(topology.route(&near).links[..2], [3, 64 + 4]);
    }
}
