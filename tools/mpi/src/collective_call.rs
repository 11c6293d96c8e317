// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The call of each collective: how many parts it sends and receives, and the order of its
//! arguments.
//!
//! Called by prepared; calls entry. On each side the parts lie one after the other in one buffer,
//! and all have one size. Reductions that scatter divide one size among the ranks; if it does not
//! divide evenly, the first ranks get one element more.

use crate::abi::Datatype;
use crate::communicator::{Communicator, element_count};
use crate::entry::{self, End, Form};
use crate::error::{Error, Result};
use crate::layout::{Layout, TypedLayout};
use crate::library::Library;
use crate::table::{Handle, Source, Target};
use std::ffi::c_int;

macro_rules! collectives {
    ($($name:ident = $stem:literal, $signature:ident;)*) => {
        /// A collective operation.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[expect(missing_docs, reason = "each is MPI's collective of that name")]
        pub enum Collective { $($name,)* }

        impl Collective {
            /// All of them.
            pub const ALL: &'static [Collective] = &[$(Self::$name,)*];

            /// The name of its blocking form.
            pub const fn name(self) -> &'static str {
                match self { $(Self::$name => concat!("MPI_", $stem),)* }
            }
        }

        impl Call {
            /// Looks up the function of a collective in a form. Setup.
            pub(crate) fn load(library: &Library, which: Collective, form: Form) -> Result<Self> {
                Ok(match which {
                    $(Collective::$name => {
                        Self::$signature(entry::$signature::load(library, form, $stem)?)
                    })*
                })
            }
        }
    };
}

collectives! {
    Barrier = "Barrier", Nothing;
    Bcast = "Bcast", OneBuffer;
    Gather = "Gather", Rooted;
    Gatherv = "Gatherv", RootedUnevenTaken;
    Scatter = "Scatter", Rooted;
    Scatterv = "Scatterv", RootedUnevenGiven;
    Allgather = "Allgather", Even;
    Allgatherv = "Allgatherv", UnevenTaken;
    Alltoall = "Alltoall", Even;
    Alltoallv = "Alltoallv", Uneven;
    Alltoallw = "Alltoallw", Typed;
    Reduce = "Reduce", RootedReduction;
    Allreduce = "Allreduce", Reduction;
    ReduceScatter = "Reduce_scatter", ScatteredReduction;
    ReduceScatterBlock = "Reduce_scatter_block", Reduction;
    NeighborAllgather = "Neighbor_allgather", Even;
    NeighborAllgatherv = "Neighbor_allgatherv", UnevenTaken;
    NeighborAlltoall = "Neighbor_alltoall", Even;
    NeighborAlltoallv = "Neighbor_alltoallv", Uneven;
    NeighborAlltoallw = "Neighbor_alltoallw", NeighbourTyped;
}

impl Collective {
    /// How many parts a rank gives and takes.
    ///
    /// # Errors
    /// `Argument` for a neighbourhood collective on a communicator without neighbours.
    pub fn parts(self, communicator: &Communicator<'_>) -> Result<(usize, usize)> {
        let ranks = communicator.size();
        let neighbours = || {
            communicator.degrees.ok_or_else(|| {
                let limit = "make the communicator with Communicator::graph";
                Error::argument("communicator of a neighbourhood collective", "none", limit)
            })
        };
        Ok(match self {
            Self::Barrier => (0, 0),
            Self::Bcast => (0, 1),
            Self::Gather | Self::Gatherv | Self::Allgather | Self::Allgatherv => (1, ranks),
            Self::Scatter | Self::Scatterv => (ranks, 1),
            Self::Alltoall | Self::Alltoallv | Self::Alltoallw => (ranks, ranks),
            Self::Reduce | Self::Allreduce | Self::ReduceScatter | Self::ReduceScatterBlock => {
                (1, 1)
            }
            Self::NeighborAllgather | Self::NeighborAllgatherv => (1, neighbours()?.0),
            Self::NeighborAlltoall | Self::NeighborAlltoallv | Self::NeighborAlltoallw => {
                let (sources, targets) = neighbours()?;
                (targets, sources)
            }
        })
    }

    /// Whether it combines elements, so that it needs an operation.
    pub const fn reduces(self) -> bool {
        matches!(
            self,
            Self::Reduce | Self::Allreduce | Self::ReduceScatter | Self::ReduceScatterBlock
        )
    }

    /// Whether it goes over a communicator of neighbours.
    pub const fn is_between_neighbours(self) -> bool {
        matches!(
            self,
            Self::NeighborAllgather
                | Self::NeighborAllgatherv
                | Self::NeighborAlltoall
                | Self::NeighborAlltoallv
                | Self::NeighborAlltoallw
        )
    }

    /// Whether one rank is its root.
    pub const fn is_rooted(self) -> bool {
        matches!(
            self,
            Self::Bcast
                | Self::Gather
                | Self::Gatherv
                | Self::Scatter
                | Self::Scatterv
                | Self::Reduce
        )
    }

    /// How many elements rank `rank` takes of a reduction of `elements` that scatters.
    pub const fn share(self, elements: usize, rank: usize, ranks: usize) -> usize {
        let more = match self {
            Self::ReduceScatterBlock => 0,
            _ => (rank < elements % ranks) as usize,
        };
        elements / ranks + more
    }
}

/// Where the parts lie, in the size in use.
pub(crate) struct Places {
    /// Elements in one part.
    count: c_int,
    given_bytes: usize,
    taken_bytes: usize,
    given: Layout,
    taken: Layout,
    given_typed: TypedLayout,
    taken_typed: TypedLayout,
    /// The displacements of the typed layouts as addresses, which the neighbourhood form asks for.
    addresses: Vec<isize>,
}

impl Places {
    pub(crate) fn new(
        communicator: &Communicator<'_>,
        which: Collective,
        kind: Datatype,
        size_bytes: usize,
    ) -> Result<Self> {
        let count = element_count(size_bytes, kind)? as usize;
        let parts = which.parts(communicator)?;
        let even = |parts: usize| (0..parts).map(move |part| (count, part * count));
        let typed = |parts: usize| (0..parts).map(move |part| (count, part * size_bytes, kind));
        let mut places = Self {
            count: count as c_int,
            given_bytes: parts.0 * size_bytes,
            taken_bytes: parts.1 * size_bytes,
            given: Layout::new(even(parts.0))?,
            taken: Layout::new(even(parts.1))?,
            given_typed: TypedLayout::new(communicator, typed(parts.0))?,
            taken_typed: TypedLayout::new(communicator, typed(parts.1))?,
            addresses: (0..parts.0.max(parts.1))
                .map(|part| (part * size_bytes) as isize)
                .collect(),
        };
        let (rank, ranks) = (communicator.rank(), communicator.size());
        if which == Collective::ReduceScatter || which == Collective::ReduceScatterBlock {
            places.taken_bytes = which.share(count, rank, ranks) << kind.size_shift();
        }
        if which == Collective::ReduceScatter {
            places.taken =
                Layout::new((0..ranks).map(|rank| (which.share(count, rank, ranks), 0)))?;
        }
        if which == Collective::ReduceScatterBlock {
            let share = which.share(count, rank, ranks);
            places.count = share as c_int;
            places.given_bytes = (share * ranks) << kind.size_shift();
        }
        Ok(places)
    }

    #[inline]
    pub(crate) fn given_bytes(&self) -> usize {
        self.given_bytes
    }

    #[inline]
    pub(crate) fn taken_bytes(&self) -> usize {
        self.taken_bytes
    }
}

/// The arguments that the collectives draw on.
#[derive(Clone, Copy)]
pub(crate) struct Arguments {
    pub(crate) given: Source,
    pub(crate) taken: Target,
    pub(crate) kind: Handle,
    pub(crate) operation: Handle,
    pub(crate) root: c_int,
}

/// A collective's function.
pub(crate) enum Call {
    Nothing(entry::Nothing),
    OneBuffer(entry::OneBuffer),
    RootedReduction(entry::RootedReduction),
    Reduction(entry::Reduction),
    ScatteredReduction(entry::ScatteredReduction),
    Rooted(entry::Rooted),
    RootedUnevenTaken(entry::RootedUnevenTaken),
    RootedUnevenGiven(entry::RootedUnevenGiven),
    Even(entry::Even),
    UnevenTaken(entry::UnevenTaken),
    Uneven(entry::Uneven),
    Typed(entry::Typed),
    NeighbourTyped(entry::NeighbourTyped),
}

impl Call {
    /// # Safety
    /// `given` and `taken` hold what `places` says, until the request in `end` has ended; the
    /// handles are this library's.
    #[inline]
    pub(crate) unsafe fn run(&self, places: &Places, arguments: Arguments, end: End) -> c_int {
        let Arguments {
            given,
            taken,
            kind,
            operation,
            root,
        } = arguments;
        let count = places.count;
        let (from, to) = (&places.given, &places.taken);
        let (from_typed, to_typed) = (&places.given_typed, &places.taken_typed);
        let addresses = places.addresses.as_ptr();
        // SAFETY: in each arm the counts and displacements describe the buffers, which is the
        // caller's promise; the arrays have one entry per rank or neighbour and live in `places` as
        // long as the request.
        unsafe {
            match self {
                Self::Nothing(call) => call.call(end),
                Self::OneBuffer(call) => call.call(taken, count, kind, root, end),
                Self::RootedReduction(call) => {
                    call.call(given, taken, count, kind, operation, root, end)
                }
                Self::Reduction(call) => call.call(given, taken, count, kind, operation, end),
                Self::ScatteredReduction(call) => {
                    call.call(given, taken, to.counts(), kind, operation, end)
                }
                Self::Rooted(call) => call.call(given, count, kind, taken, count, kind, root, end),
                Self::RootedUnevenTaken(call) => {
                    let (counts, places) = (to.counts(), to.displacements());
                    call.call(given, count, kind, taken, counts, places, kind, root, end)
                }
                Self::RootedUnevenGiven(call) => {
                    let (counts, places) = (from.counts(), from.displacements());
                    call.call(given, counts, places, kind, taken, count, kind, root, end)
                }
                Self::Even(call) => call.call(given, count, kind, taken, count, kind, end),
                Self::UnevenTaken(call) => {
                    let (counts, places) = (to.counts(), to.displacements());
                    call.call(given, count, kind, taken, counts, places, kind, end)
                }
                Self::Uneven(call) => {
                    let (counts, places) = (from.counts(), from.displacements());
                    let (rooms, into) = (to.counts(), to.displacements());
                    call.call(given, counts, places, kind, taken, rooms, into, kind, end)
                }
                Self::Typed(call) => {
                    let (counts, places) = (from_typed.counts(), from_typed.displacements());
                    let (rooms, into) = (to_typed.counts(), to_typed.displacements());
                    let kinds = (from_typed.types(), to_typed.types());
                    call.call(
                        given, counts, places, kinds.0, taken, rooms, into, kinds.1, end,
                    )
                }
                Self::NeighbourTyped(call) => {
                    let (counts, rooms) = (from_typed.counts(), to_typed.counts());
                    let kinds = (from_typed.types(), to_typed.types());
                    call.call(
                        given, counts, addresses, kinds.0, taken, rooms, addresses, kinds.1, end,
                    )
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_of_a_scattered_reduction_add_up_and_the_first_take_one_more() {
        for ranks in 1..9 {
            for elements in 0..40 {
                let share = |rank| Collective::ReduceScatter.share(elements, rank, ranks);
                assert_eq!((0..ranks).map(share).sum::<usize>(), elements);
                assert!((1..ranks).all(|rank| share(rank) <= share(rank - 1)));
                assert!(share(0) - share(ranks - 1) <= 1);
            }
        }
        assert_eq!(Collective::ReduceScatterBlock.share(7, 0, 2), 3);
    }

    #[test]
    fn names_are_the_standards() {
        assert_eq!(
            Collective::ReduceScatterBlock.name(),
            "MPI_Reduce_scatter_block"
        );
        assert!(
            Collective::ALL
                .iter()
                .all(|which| which.name().starts_with("MPI_"))
        );
    }
}
