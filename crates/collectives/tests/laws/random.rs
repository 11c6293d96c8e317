// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Random calls, with random lengths, roots and reductions, by threads as ranks, each compared with
//! a model that computes the result from all ranks' data at once.
//!
//! WEFT_SEED=N repeats a run; its number is printed when a test fails. WEFT_CASES=N makes so many
//! teams of each size.

use fastrand::Rng;
use weft_collectives::{Element, Operation, Reduction, Reductions, Shape, Team, Wait};
use weft_memory::{BytesView, BytesViewMut};

use crate::blocks::BlockCase;
use crate::threads::run;

/// Calls of one team. Chosen: flags come round many times.
const CALLS: usize = if cfg!(miri) { 6 } else { 60 };

/// One call, the same on all ranks.
#[derive(Clone, Debug)]
enum Call {
    Barrier,
    Bcast {
        root: usize,
        length_bytes: usize,
    },
    Combine(Combine),
    Scan {
        includes_own: bool,
        combine: Combine,
    },
}

/// A reduce, with its root, or an allreduce.
#[derive(Clone, Debug)]
struct Combine {
    root: Option<usize>,
    in_place: bool,
    count: usize,
    element: Element,
    operation: Operation,
}

/// Lengths about every limit of the algorithms, and any others.
fn length_bytes(rng: &mut Rng) -> usize {
    let limits = [0, 1, 8, 56, 120, 2048, 16384, 32768, 65536, 100_000];
    let limit = limits[rng.usize(..if cfg!(miri) { 5 } else { limits.len() })];
    if rng.bool() {
        rng.usize(..=limit)
    } else {
        (limit + rng.usize(..17)).saturating_sub(8)
    }
}

fn call(rng: &mut Rng, ranks: usize) -> Call {
    match rng.u8(..4) {
        0 => Call::Barrier,
        1 => Call::Bcast {
            root: rng.usize(..ranks),
            length_bytes: length_bytes(rng),
        },
        _ => {
            let kinds = [
                (Element::F64, Operation::Sum),
                (Element::F32, Operation::Product),
                (Element::I32, Operation::Max),
                (Element::U8, Operation::BitXor),
                (Element::F64I32, Operation::MinPlace),
                (Element::U16, Operation::Sum),
                (Element::Logical, Operation::LogicalOr),
            ];
            let (element, operation) = kinds[rng.usize(..kinds.len())];
            let mut combine = Combine {
                root: None,
                in_place: rng.bool(),
                count: length_bytes(rng) / element.size_bytes(),
                element,
                operation,
            };
            if rng.u8(..4) == 0 {
                return Call::Scan {
                    includes_own: rng.bool(),
                    combine,
                };
            }
            combine.root = rng.bool().then(|| rng.usize(..ranks));
            Call::Combine(combine)
        }
    }
}

/// What a rank gives to a call: any bytes, but numbers near 1 where they are fractions.
fn data(seed: u64, length_bytes: usize) -> Vec<u8> {
    let mut rng = Rng::with_seed(seed);
    let mut bytes: Vec<u8> = Vec::with_capacity(length_bytes + 8);
    while bytes.len() < length_bytes {
        bytes.extend((0.5 + rng.f64()).to_ne_bytes());
    }
    bytes.truncate(length_bytes);
    bytes
}

/// One element after the other, in the order of ranks.
fn model(combine: &Combine, given: &[Vec<u8>]) -> Vec<u8> {
    let reduction = Reduction::new(combine.element, combine.operation).expect("has a meaning");
    let size = combine.element.size_bytes();
    let mut sum = given[0].clone();
    for other in &given[1..] {
        for (a, b) in sum.chunks_exact_mut(size).zip(other.chunks_exact(size)) {
            reduction.combine(&mut BytesViewMut::from_slice(a), BytesView::from_slice(b));
        }
    }
    sum
}

/// A call with all ranks' data.
struct Case {
    call: Call,
    given: Vec<Vec<u8>>,
    /// What each rank that gets the result must get.
    results: Vec<Vec<u8>>,
}

impl Case {
    fn new(call: Call, ranks: usize, seed: u64) -> Self {
        let length_bytes = match &call {
            Call::Barrier => 0,
            Call::Bcast { length_bytes, .. } => *length_bytes,
            Call::Combine(combine) | Call::Scan { combine, .. } => {
                combine.count * combine.element.size_bytes()
            }
        };
        let given: Vec<_> = (0..ranks as u64)
            .map(|rank| data(seed ^ rank << 32, length_bytes))
            .collect();
        let results = match &call {
            Call::Barrier => Vec::new(),
            Call::Bcast { root, .. } => vec![given[*root].clone(); ranks],
            Call::Combine(combine) => vec![model(combine, &given); ranks],
            Call::Scan {
                includes_own,
                combine,
            } => (0..ranks)
                .map(|rank| rank + usize::from(*includes_own))
                .map(|count| match count {
                    0 => Vec::new(),
                    _ => model(combine, &given[..count]),
                })
                .collect(),
        };
        Self {
            call,
            given,
            results,
        }
    }

    fn make(&self, team: &mut Team, wait: &mut dyn Wait) {
        let own = team.rank();
        match &self.call {
            Call::Barrier => team.barrier(wait).expect("barrier"),
            Call::Bcast { root, .. } => {
                let mut buffer = self.given[own].clone();
                team.bcast(wait, BytesViewMut::from_slice(&mut buffer), *root)
                    .expect("bcast");
                assert!(buffer == self.results[own], "{:?} on rank {own}", self.call);
            }
            Call::Combine(combine) | Call::Scan { combine, .. } => {
                self.combine(combine, team, wait);
            }
        }
    }

    fn combine(&self, combine: &Combine, team: &mut Team, wait: &mut dyn Wait) {
        let own = team.rank();
        let reduction = Reduction::new(combine.element, combine.operation).expect("known");
        let mut buffer = match combine.in_place {
            true => self.given[own].clone(),
            false => vec![0xEE; self.given[own].len()],
        };
        let before = buffer.clone();
        let send = (!combine.in_place).then(|| BytesView::from_slice(&self.given[own]));
        let recv = BytesViewMut::from_slice(&mut buffer);
        match (&self.call, combine.root) {
            (Call::Scan { includes_own, .. }, _) if *includes_own => {
                team.scan(wait, send, recv, reduction)
            }
            (Call::Scan { .. }, _) => team.exscan(wait, send, recv, reduction),
            (_, Some(root)) => team.reduce(wait, send, recv, reduction, root),
            (_, None) => team.allreduce(wait, send, recv, reduction),
        }
        .expect("combined");
        let gets = combine.root.is_none_or(|root| root == own);
        let expected = match gets && !self.results[own].is_empty() {
            true => &self.results[own],
            false => &before,
        };
        assert!(buffer == *expected, "{:?} on rank {own}", self.call);
    }
}

/// A call of either sort.
enum Either {
    One(Case),
    Blocks(BlockCase),
}

impl Either {
    fn new(rng: &mut Rng, ranks: usize) -> Self {
        if rng.bool() {
            let longest_bytes = length_bytes(rng) / ranks;
            return Self::Blocks(BlockCase::new(rng, ranks, longest_bytes / 4 * 4));
        }
        Self::One(Case::new(call(rng, ranks), ranks, rng.u64(..)))
    }

    fn make(&self, team: &mut Team, wait: &mut dyn Wait) {
        match self {
            Self::One(case) => case.make(team, wait),
            Self::Blocks(case) => case.make(team, wait),
        }
    }
}

/// Ranks of two or three cache domains, in a row or mixed.
fn in_domains(rng: &mut Rng, ranks: usize) -> Shape {
    let domains = 2 + rng.u32(..2);
    let in_row = rng.bool();
    let mut domain = |rank: usize| match in_row {
        true => rank as u32 * domains / ranks as u32,
        false => rng.u32(..domains),
    };
    Shape {
        domains: (0..ranks).map(&mut domain).collect(),
        oversubscribed: true,
    }
}

/// Teams of so many ranks, each with random calls, in one cache domain and in several.
fn teams(ranks: usize) {
    let number = |name: &str| std::env::var(name).ok().and_then(|text| text.parse().ok());
    let seed: u64 = number("WEFT_SEED").unwrap_or_else(|| fastrand::u64(..));
    let count = number("WEFT_CASES").unwrap_or(1);
    println!("WEFT_SEED={seed}");
    for team in 0..count {
        let mut rng = Rng::with_seed(seed.wrapping_add(team));
        let cases: Vec<_> = (0..CALLS).map(|_| Either::new(&mut rng, ranks)).collect();
        for shape in [Shape::flat(ranks, true), in_domains(&mut rng, ranks)] {
            run(&shape, |team, wait| {
                cases.iter().for_each(|case| case.make(team, wait));
            });
        }
    }
}

#[test]
fn one_rank_alone_gets_what_it_gave() {
    teams(1);
}

#[test]
fn two_ranks_get_what_the_model_says() {
    teams(2);
}

#[test]
fn three_ranks_get_what_the_model_says() {
    teams(3);
}

#[test]
#[cfg_attr(miri, ignore = "many threads take Miri minutes")]
fn eight_ranks_get_what_the_model_says() {
    teams(8);
}

#[test]
#[cfg_attr(miri, ignore = "many threads take Miri minutes")]
fn nineteen_ranks_get_what_the_model_says() {
    teams(19);
}
