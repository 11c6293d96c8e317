// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Which ranks are neighbours in the neighbourhood collectives: -N cart:DIMENSIONS:RADIUS.
//!
//! Called by runner, which makes the communicator, and by contents. The ranks form a grid that is
//! as square as its dimensions allow and periodic in each of them. The neighbours of a rank are all
//! other ranks within the radius along one dimension.

use weft_ranks::refusal::BadOption;

/// A grid of ranks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Grid {
    /// How many dimensions, at least 1.
    pub dimensions: usize,
    /// How far neighbours reach along each, at least 1.
    pub radius: usize,
}

impl Default for Grid {
    /// A ring in which each rank talks to the one before and the one after (OSU's default).
    fn default() -> Self {
        Self {
            dimensions: 1,
            radius: 1,
        }
    }
}

/// Dimensions at most (chosen).
const DIMENSION_LIMIT: usize = 6;
/// Radius at most (chosen).
const RADIUS_LIMIT: usize = 16;

impl Grid {
    /// Reads `cart:DIMENSIONS:RADIUS`.
    ///
    /// # Errors
    /// The option, its value and what is allowed.
    pub fn parse(text: &str) -> Result<Self, BadOption> {
        let bad = || {
            let allowed = format!(
                "must be cart:DIMENSIONS:RADIUS with 1 to {DIMENSION_LIMIT} dimensions and a \
                 radius of 1 to {RADIUS_LIMIT}, such as cart:1:1; graphs from a file are not \
                 offered"
            );
            BadOption::with_value("-N", text, allowed)
        };
        let mut words = text.strip_prefix("cart:").ok_or_else(bad)?.split(':');
        let mut number = |limit: usize| {
            let word = words.next()?.parse().ok()?;
            (1..=limit).contains(&word).then_some(word)
        };
        let grid = Self {
            dimensions: number(DIMENSION_LIMIT).ok_or_else(bad)?,
            radius: number(RADIUS_LIMIT).ok_or_else(bad)?,
        };
        match words.next() {
            None => Ok(grid),
            Some(_) => Err(bad()),
        }
    }

    /// Ranks along each dimension, the largest first; their product is `ranks`.
    fn sides(&self, ranks: usize) -> Vec<usize> {
        let mut sides = vec![1; self.dimensions];
        let mut rest = ranks;
        let mut factors = Vec::new();
        let mut factor = 2;
        while rest > 1 {
            while rest.is_multiple_of(factor) {
                factors.push(factor);
                rest /= factor;
            }
            factor += 1;
        }
        for factor in factors.into_iter().rev() {
            let least = sides.iter_mut().min().expect("at least one dimension");
            *least *= factor;
        }
        sides.sort_unstable_by(|one, other| other.cmp(one));
        sides
    }

    /// The neighbours of a rank, which are both those it takes from and those it gives to. A rank
    /// stands here as often as there are ways to it; itself is left out, unless it is alone in
    /// every dimension.
    pub fn of(&self, rank: usize, ranks: usize) -> Vec<usize> {
        let mut neighbours = Vec::new();
        let mut stride = 1;
        for side in self.sides(ranks) {
            let own = rank / stride % side;
            for distance in 1..=self.radius {
                for there in [
                    (own + side - distance % side) % side,
                    (own + distance) % side,
                ] {
                    let other = rank - own * stride + there * stride;
                    if other != rank {
                        neighbours.push(other);
                    }
                }
            }
            stride *= side;
        }
        neighbours
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ring_has_the_one_before_and_the_one_after() {
        assert_eq!(Grid::default().of(0, 4), [3, 1]);
        assert_eq!(Grid::default().of(3, 4), [2, 0]);
        assert_eq!(Grid::default().of(0, 2), [1, 1]);
    }

    #[test]
    fn sides_are_as_square_as_can_be_and_hold_every_rank() {
        let grid = |dimensions| Grid {
            dimensions,
            radius: 1,
        };
        assert_eq!(grid(2).sides(12), [4, 3]);
        assert_eq!(grid(3).sides(8), [2, 2, 2]);
        assert_eq!(grid(2).sides(7), [7, 1]);
        for ranks in 1..40 {
            assert_eq!(grid(3).sides(ranks).iter().product::<usize>(), ranks);
        }
    }

    #[test]
    fn whoever_gives_is_taken_from_as_often() {
        for (dimensions, radius) in [(1, 1), (1, 3), (2, 1), (3, 2)] {
            let grid = Grid { dimensions, radius };
            for ranks in 2..13 {
                for rank in 0..ranks {
                    for other in 0..ranks {
                        let count = |of: usize, whom: usize| {
                            grid.of(of, ranks)
                                .iter()
                                .filter(|rank| **rank == whom)
                                .count()
                        };
                        assert_eq!(count(rank, other), count(other, rank));
                    }
                }
            }
        }
    }

    #[test]
    fn text_is_a_grid_or_refused_with_what_is_allowed() {
        assert_eq!(
            Grid::parse("cart:2:3"),
            Ok(Grid {
                dimensions: 2,
                radius: 3
            })
        );
        for text in [
            "cart",
            "cart:0:1",
            "cart:1",
            "cart:1:1:1",
            "graph:file",
            "cart:7:1",
            "cart:1:17",
        ] {
            let refusal = Grid::parse(text).unwrap_err().to_string();
            assert!(
                refusal.contains(text) && refusal.contains("cart:1:1"),
                "{refusal}"
            );
        }
    }
}
