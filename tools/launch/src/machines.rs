// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Which of the named hosts are one machine (containers, network namespaces), and what that means
//! for cores: each MPI counts the cores of every host from the first, so that two hosts of one
//! machine would bind their ranks to the same ones.
//!
//! Called by `job.rs` with what the node agents found; pure. Two hosts are one machine if the boot
//! ids of their kernels are the same (random(4), /proc/sys/kernel/random/boot_id). Virtual machines
//! that were started from one snapshot may have the same too; their ranks are then left unbound.

use std::collections::BTreeSet;

/// A host with its ranks.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Place {
    /// Its name.
    pub host: String,
    /// Ranks on it.
    pub ranks: u32,
    /// The boot id of its kernel, where it can be read.
    pub boot: Option<String>,
    /// How many ranks can run at once there.
    pub usable: u32,
    /// The cores that the ranks may use, by names that are the same in every namespace of the
    /// machine.
    pub cores: BTreeSet<String>,
}

/// What holds for the machine that has least room.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Room {
    /// Ranks on the machine that has most.
    pub ranks: u32,
    /// Ranks that can run at once on the machine that has fewest cores; at least 1.
    pub cores: u32,
    /// The hosts of a machine that is several of them.
    pub one_machine: Vec<String>,
}

/// Looks at all hosts of a job.
#[must_use]
pub fn room(places: &[Place]) -> Room {
    let mut room = Room {
        cores: u32::MAX,
        ..Room::default()
    };
    for place in places {
        let same: Vec<&Place> = places.iter().filter(|other| is_one(place, other)).collect();
        let ranks = same
            .iter()
            .map(|one| one.ranks)
            .fold(0, u32::saturating_add);
        let usable = same
            .iter()
            .map(|one| one.usable)
            .fold(0, u32::saturating_add);
        let cores: BTreeSet<&String> = same.iter().flat_map(|one| &one.cores).collect();
        let cores = u32::try_from(cores.len()).unwrap_or(u32::MAX);
        // Hosts that share their cores do not have them twice.
        let cores = if cores == 0 {
            usable
        } else {
            usable.min(cores)
        };
        room.ranks = room.ranks.max(ranks);
        room.cores = room.cores.min(cores.max(1));
        if same.len() > 1 && room.one_machine.is_empty() {
            room.one_machine = same.iter().map(|one| one.host.clone()).collect();
        }
    }
    room
}

fn is_one(one: &Place, other: &Place) -> bool {
    one.host == other.host || (one.boot.is_some() && one.boot == other.boot)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(host: &str, ranks: u32, boot: Option<&str>, cores: &[&str]) -> Place {
        Place {
            host: host.to_owned(),
            ranks,
            boot: boot.map(str::to_owned),
            usable: u32::try_from(cores.len()).unwrap(),
            cores: cores.iter().map(|&name| name.to_owned()).collect(),
        }
    }

    #[test]
    fn hosts_of_one_machine_share_its_cores() {
        let (a, b) = (Some("x"), Some("x"));
        let both = [place("a", 2, a, &["0", "1"]), place("b", 2, b, &["0", "1"])];
        let found = room(&both);
        assert_eq!((found.ranks, found.cores), (4, 2));
        assert_eq!(found.one_machine, ["a", "b"]);
        // Each has a core of its own, and still both count from the first.
        let apart = [place("a", 1, a, &["0"]), place("b", 1, b, &["1"])];
        let found = room(&apart);
        assert_eq!((found.ranks, found.cores), (2, 2));
        assert_eq!(found.one_machine, ["a", "b"]);
    }

    #[test]
    fn machines_of_their_own_are_judged_one_by_one() {
        for boots in [[Some("x"), Some("y")], [None, None]] {
            let hosts = [
                place("a", 2, boots[0], &["0", "1"]),
                place("b", 1, boots[1], &["0"]),
            ];
            let found = room(&hosts);
            assert_eq!((found.ranks, found.cores), (2, 1));
            assert!(found.one_machine.is_empty());
        }
    }
}
