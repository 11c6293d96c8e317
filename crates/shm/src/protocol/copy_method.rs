// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The table that chooses the copy method of a described message, once for each message when it is
//! its turn. Called by the receiving side, which gathers the facts; if several methods are
//! possible, a tuner finds the fastest one.

use crate::settings::SingleCopy;

/// Longest message that is copied out of a mapped heap by ordinary stores, without trying
/// non-temporal stores. Measured: docs/lab/2026-11-22-mapped-copy.md. Up to this length the
/// receiver's own time, the only one that can be measured here, would choose the slower stores.
const MAPPED_PLAIN_BYTES: u64 = 2 << 20;

/// A method. Names and numbers are those of `weft_facts::copy`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum CopyMethod {
    /// The receiver reads the sender's memory.
    SingleCopy = 0,
    /// Through a pipe.
    Pipelined = 1,
    /// Through a pipe, by non-temporal stores of the sender.
    PipelinedNonTemporal = 2,
    /// The receiver copies out of the sender's shared heap, which the receiver has mapped.
    Mapped = 3,
    /// The same by non-temporal stores.
    MappedNonTemporal = 4,
    /// The receiver reads the sender's memory, and the sender writes the receiver's.
    Cooperative = 5,
}

impl CopyMethod {
    /// All methods, as they are numbered.
    pub(crate) const ALL: [Self; 6] = [
        Self::SingleCopy,
        Self::Pipelined,
        Self::PipelinedNonTemporal,
        Self::Mapped,
        Self::MappedNonTemporal,
        Self::Cooperative,
    ];

    /// The number by which it is published, from 1 on.
    pub(crate) fn number(self) -> u8 {
        self as u8 + 1
    }

    /// The method that is published by this number.
    pub(crate) fn numbered(number: u64) -> Option<Self> {
        let index = usize::try_from(number).ok()?.checked_sub(1)?;
        Self::ALL.get(index).copied()
    }
}

/// The facts by which the choice is made.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Facts {
    /// How many bytes have to be copied.
    pub(crate) bytes: u64,
    /// The message lies in memory that we have mapped.
    pub(crate) is_mapped: bool,
    /// The receive's buffer is in one piece.
    pub(crate) is_contiguous: bool,
    /// What the user asks for.
    pub(crate) asked: SingleCopy,
    /// Ranks share processors.
    pub(crate) shares_cores: bool,
}

/// Which methods are possible for a message, besides pipes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Open {
    /// We may read the sender's memory.
    pub(crate) single_copy: bool,
    /// The sender may also write into our memory.
    pub(crate) cooperative: bool,
    /// The message lies in memory that we have mapped.
    pub(crate) mapped: bool,
}

impl Open {
    pub(crate) fn holds(self, method: CopyMethod) -> bool {
        match method {
            // No method is faster than one copy in user space, and trials of others would cost time
            // (docs/lab/2026-11-22-mapped-copy.md).
            CopyMethod::Mapped | CopyMethod::MappedNonTemporal => self.mapped,
            _ if self.mapped => false,
            CopyMethod::Pipelined | CopyMethod::PipelinedNonTemporal => true,
            CopyMethod::SingleCopy => self.single_copy,
            CopyMethod::Cooperative => self.cooperative,
        }
    }

    /// The method that is taken before anything was measured.
    pub(crate) fn default(self) -> CopyMethod {
        if self.mapped {
            CopyMethod::Mapped
        } else {
            CopyMethod::Pipelined
        }
    }
}

/// What follows from the facts.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Selection {
    /// This method.
    Fixed(CopyMethod),
    /// The fastest one of these, which a tuner finds.
    Tuned(Open),
}

/// Chooses how a described message is copied. It asks last whether the sender's memory may be read,
/// since finding that out takes a trial read.
pub(crate) fn select(facts: &Facts, may_read: impl FnOnce() -> bool) -> Selection {
    let mapped = facts.is_mapped && facts.asked != SingleCopy::Always;
    // Where ranks share processors, single copy is taken without measuring.
    if mapped && (facts.bytes <= MAPPED_PLAIN_BYTES || facts.shares_cores) {
        return Selection::Fixed(CopyMethod::Mapped);
    }
    let single_copy = facts.asked != SingleCopy::Never && may_read();
    if single_copy && prefers_single_copy(facts.asked, facts.shares_cores) {
        return Selection::Fixed(CopyMethod::SingleCopy);
    }
    Selection::Tuned(Open {
        single_copy,
        cooperative: single_copy && facts.is_contiguous,
        mapped,
    })
}

/// Whether single copy is taken wherever the kernel permits it, without measuring. Ranks that share
/// processors do so unless the user says otherwise: for a pipe both processes must run in turns,
/// and each turn is a switch between processes, which the time of a single transfer does not show
/// (docs/lab/2026-11-21-long-messages-on-shared-cores.md).
pub(crate) fn prefers_single_copy(asked: SingleCopy, shares_cores: bool) -> bool {
    match asked {
        SingleCopy::Always => true,
        SingleCopy::Auto => shares_cores,
        SingleCopy::Never => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SHORT: Facts = Facts {
        bytes: 128 << 10,
        is_mapped: false,
        is_contiguous: true,
        asked: SingleCopy::Auto,
        shares_cores: false,
    };

    fn tuned(single_copy: bool, cooperative: bool, mapped: bool) -> Selection {
        Selection::Tuned(Open {
            single_copy,
            cooperative,
            mapped,
        })
    }

    fn is_not_asked() -> bool {
        panic!("reading the sender's memory is not tried where the answer does not count")
    }

    #[test]
    fn what_may_be_read_is_tuned() {
        assert_eq!(select(&SHORT, || true), tuned(true, true, false));
        assert_eq!(select(&SHORT, || false), tuned(false, false, false));
        let scattered = Facts {
            is_contiguous: false,
            ..SHORT
        };
        assert_eq!(select(&scattered, || true), tuned(true, false, false));
    }

    #[test]
    fn mapped_messages_are_copied_there_and_only_stores_are_tuned_beyond_two_mebibytes() {
        let mapped = Facts {
            is_mapped: true,
            bytes: 2 << 20,
            ..SHORT
        };
        let fixed = Selection::Fixed(CopyMethod::Mapped);
        assert_eq!(select(&mapped, is_not_asked), fixed);
        let long = Facts {
            bytes: (2 << 20) + 1,
            ..mapped
        };
        assert_eq!(select(&long, || true), tuned(true, true, true));
        let shared = Facts {
            shares_cores: true,
            ..long
        };
        assert_eq!(select(&shared, is_not_asked), fixed);
    }

    #[test]
    fn single_copy_is_fixed_by_the_user_or_where_ranks_share_processors() {
        let fixed = Selection::Fixed(CopyMethod::SingleCopy);
        let always = Facts {
            asked: SingleCopy::Always,
            is_mapped: true,
            ..SHORT
        };
        assert_eq!(select(&always, || true), fixed);
        assert_eq!(select(&always, || false), tuned(false, false, false));
        let shared = Facts {
            shares_cores: true,
            ..SHORT
        };
        assert_eq!(select(&shared, || true), fixed);
        assert_eq!(select(&shared, || false), tuned(false, false, false));
        let never = Facts {
            asked: SingleCopy::Never,
            ..shared
        };
        assert_eq!(select(&never, is_not_asked), tuned(false, false, false));
    }

    #[test]
    fn a_mapped_heap_leaves_only_how_to_store() {
        let open = |mapped| Open {
            single_copy: true,
            cooperative: false,
            mapped,
        };
        let held = |open: Open| CopyMethod::ALL.map(|method| open.holds(method));
        assert_eq!(held(open(true)), [false, false, false, true, true, false]);
        assert_eq!(held(open(false)), [true, true, true, false, false, false]);
        assert!(held(open(true))[open(true).default() as usize]);
        assert!(held(open(false))[open(false).default() as usize]);
    }

    #[test]
    fn numbers_name_the_methods_that_tools_know_by_them() {
        use weft_facts::copy;
        let rows = [
            (CopyMethod::SingleCopy, copy::SINGLE_COPY),
            (CopyMethod::Pipelined, copy::PIPELINED),
            (
                CopyMethod::PipelinedNonTemporal,
                copy::PIPELINED_NON_TEMPORAL,
            ),
            (CopyMethod::Mapped, copy::MAPPED),
            (CopyMethod::MappedNonTemporal, copy::MAPPED_NON_TEMPORAL),
            (CopyMethod::Cooperative, copy::COOPERATIVE),
        ];
        assert_eq!(rows.len(), copy::ALL.len());
        for (method, row) in rows {
            assert_eq!(CopyMethod::numbered(method.number().into()), Some(method));
            assert_eq!(copy::numbered(method.number()), Some(&row));
        }
        assert_eq!([0, 7].map(CopyMethod::numbered), [None, None]);
    }

    #[test]
    fn ranks_that_share_processors_take_single_copy_unless_told_otherwise() {
        assert!(prefers_single_copy(SingleCopy::Auto, true));
        assert!(!prefers_single_copy(SingleCopy::Auto, false));
        assert!(!prefers_single_copy(SingleCopy::Never, true));
        assert!(prefers_single_copy(SingleCopy::Always, false));
    }
}
