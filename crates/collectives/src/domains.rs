// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The cache domains of a team as one rank sees them (docs/collectives.md, clause 4.12): who leads
//! which ranks. Made by team.rs from a shape; asked by by_domain.rs.

use crate::shape::Shape;

/// Where a rank stands.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Place {
    /// The first rank of its domain.
    pub(crate) leader: usize,
    /// Its place among the ranks of its domain, in the order of ranks.
    pub(crate) at: usize,
}

/// Two domains or more, of which one has two ranks or more.
#[derive(Debug)]
pub(crate) struct Domains {
    rank: usize,
    /// Of each rank.
    places: Box<[Place]>,
    /// The first ranks of all domains.
    leaders: Box<[usize]>,
    /// The ranks of this rank's domain.
    own: Box<[usize]>,
    /// How many ranks the largest domain has.
    most_ranks: usize,
}

impl Domains {
    /// Those of a shape; `None` if all ranks have one domain, or each has its own. Set-up.
    pub(crate) fn of(shape: &Shape, rank: usize) -> Option<Self> {
        let mut places: Vec<Place> = Vec::new();
        for (one, domain) in shape.domains.iter().enumerate() {
            let before = &shape.domains[..one];
            let first = before.iter().position(|other| other == domain);
            places.push(Place {
                leader: first.unwrap_or(one),
                at: before.iter().filter(|other| *other == domain).count(),
            });
        }
        let own_leader = places.get(rank)?.leader;
        let all = || places.iter().enumerate();
        let is_first = |(one, place): (usize, &Place)| (place.leader == one).then_some(one);
        let leaders: Box<[usize]> = all().filter_map(is_first).collect();
        let is_own = |(one, place): (usize, &Place)| (place.leader == own_leader).then_some(one);
        let own = all().filter_map(is_own).collect();
        let most_ranks = places.iter().map(|place| place.at + 1).max()?;
        let is_of_use = leaders.len() > 1 && most_ranks > 1;
        is_of_use.then(|| Self {
            rank,
            leaders,
            own,
            most_ranks,
            places: places.into(),
        })
    }

    /// This rank's leader, maybe itself.
    #[inline]
    pub(crate) fn leader(&self) -> usize {
        self.own[0]
    }

    /// Whether this rank leads its domain.
    #[inline]
    pub(crate) fn leads(&self) -> bool {
        self.leader() == self.rank
    }

    /// The others of this rank's domain, but its leader.
    #[inline]
    pub(crate) fn followers(&self) -> impl Iterator<Item = usize> + use<'_> {
        self.own.iter().copied().skip(1)
    }

    /// All of this rank's domain, in the order of ranks.
    #[inline]
    pub(crate) fn own_ranks(&self) -> impl Iterator<Item = usize> + use<'_> {
        self.own.iter().copied()
    }

    /// The leaders of all domains, in the order of ranks.
    #[inline]
    pub(crate) fn leaders(&self) -> impl Iterator<Item = usize> + use<'_> {
        self.leaders.iter().copied()
    }

    /// The leaders of the other domains.
    #[inline]
    pub(crate) fn other_leaders(&self) -> impl Iterator<Item = usize> + use<'_> {
        self.leaders().filter(|leader| *leader != self.leader())
    }

    /// Whether two ranks are in one domain.
    #[inline]
    pub(crate) fn are_together(&self, one: usize, other: usize) -> bool {
        self.places[one].leader == self.places[other].leader
    }

    /// Where a rank stands.
    #[inline]
    pub(crate) fn place(&self, rank: usize) -> Place {
        self.places[rank]
    }

    /// How many ranks the largest domain has.
    #[inline]
    pub(crate) fn most_ranks(&self) -> usize {
        self.most_ranks
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    fn of(domains: &[u32], rank: usize) -> Option<Domains> {
        let shape = Shape {
            domains: domains.to_vec(),
            oversubscribed: false,
        };
        Domains::of(&shape, rank)
    }

    #[test]
    fn one_domain_or_one_for_each_rank_is_as_good_as_none() {
        assert!(of(&[7; 4], 1).is_none());
        assert!(of(&[3, 1, 2], 0).is_none());
    }

    #[test]
    fn the_first_rank_of_a_domain_leads_it() {
        let second = of(&[5, 9, 5, 9, 9], 4).expect("two domains");
        assert!(!second.leads());
        assert_eq!(second.leader(), 1);
        assert_eq!(second.own_ranks().collect::<Vec<_>>(), [1, 3, 4]);
        assert_eq!(second.followers().collect::<Vec<_>>(), [3, 4]);
        assert_eq!(second.leaders().collect::<Vec<_>>(), [0, 1]);
        assert_eq!(second.other_leaders().collect::<Vec<_>>(), [0]);
        assert_eq!(second.place(2), Place { leader: 0, at: 1 });
        assert!(second.are_together(1, 4) && !second.are_together(0, 1));
        assert_eq!(second.most_ranks(), 3);
    }
}
