// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The table that chooses the protocol of a message, once for each message. Called by the send
//! side, which gathers the facts; if two protocols are possible, a tuner finds the faster one.

use super::{EAGER_BYTES, EARLY_LIMIT_BYTES, INLINE_BYTES, MAPPED_BYTES, STREAM_BYTES};

/// How a message leaves. The names are those of docs/long-messages.md.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum SendProtocol {
    /// In a cell and the cells behind it.
    Inline,
    /// In one piece, beside its cell.
    Eager,
    /// In several pieces.
    Streamed,
    /// Described, its first bytes along with the RTS.
    EarlyRendezvous,
    /// Described by an RTS alone.
    Rendezvous,
}

/// The facts by which the choice is made.
#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct Facts {
    pub(crate) length_bytes: usize,
    /// The sender wants to know that the message is delivered.
    pub(crate) wants_receipt: bool,
    /// The receiver can copy the message out of memory that we share.
    pub(crate) is_shared: bool,
    /// Other such messages went to the receiver before, and nothing came back from it meanwhile.
    pub(crate) is_in_a_row: bool,
    /// Nothing else of ours is under way, the lane is wide and has room, and nobody asks for single
    /// copies.
    pub(crate) may_bring_early_data: bool,
    /// Ranks share processors.
    pub(crate) shares_cores: bool,
}

/// What follows from the facts.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Selection {
    /// This protocol.
    Fixed(SendProtocol),
    /// The faster one of these two; the first one until a tuner knows which is faster.
    Tuned([SendProtocol; 2]),
}

/// Chooses the protocol of a message. Fast path up to eager messages.
#[inline]
pub(crate) fn select(facts: &Facts) -> Selection {
    use SendProtocol::{Eager, EarlyRendezvous, Inline, Rendezvous, Streamed};
    let length_bytes = facts.length_bytes;
    if length_bytes <= INLINE_BYTES && !facts.wants_receipt {
        return Selection::Fixed(Inline);
    }
    if length_bytes <= EAGER_BYTES {
        return Selection::Fixed(Eager);
    }
    let is_shared = facts.is_shared && length_bytes >= MAPPED_BYTES;
    if length_bytes <= STREAM_BYTES {
        return match (is_shared, facts.is_in_a_row) {
            (false, _) => Selection::Fixed(Streamed),
            // If the receiver answers no message, a single copy gains most.
            (true, true) => Selection::Fixed(Rendezvous),
            // The same where ranks share cores, unless the tuner finds otherwise.
            (true, false) if facts.shares_cores => Selection::Tuned([Rendezvous, Streamed]),
            (true, false) => Selection::Tuned([Streamed, Rendezvous]),
        };
    }
    if length_bytes > EARLY_LIMIT_BYTES || !facts.may_bring_early_data {
        return Selection::Fixed(Rendezvous);
    }
    if is_shared {
        Selection::Tuned([Rendezvous, EarlyRendezvous])
    } else {
        Selection::Fixed(EarlyRendezvous)
    }
}

#[cfg(test)]
mod tests {
    use super::SendProtocol::{Eager, EarlyRendezvous, Inline, Rendezvous, Streamed};
    use super::*;

    /// What is chosen for a message of this length, after `change` has changed the default facts.
    fn with(length_bytes: usize, change: impl FnOnce(&mut Facts)) -> Selection {
        let mut facts = Facts {
            length_bytes,
            ..Facts::default()
        };
        change(&mut facts);
        select(&facts)
    }

    fn all(facts: &mut Facts) {
        facts.wants_receipt = true;
        facts.may_bring_early_data = true;
        facts.shares_cores = true;
    }

    #[test]
    fn messages_that_are_not_shared_go_by_length() {
        let table = [
            (0, Inline),
            (296, Inline),
            (297, Eager),
            (8 << 10, Eager),
            ((8 << 10) + 1, Streamed),
            (64 << 10, Streamed),
            ((64 << 10) + 1, Rendezvous),
            (1 << 30, Rendezvous),
        ];
        for (length, protocol) in table {
            let fixed = Selection::Fixed(protocol);
            assert_eq!(with(length, |_| {}), fixed, "{length}");
            assert_eq!(
                with(length, |facts| facts.is_in_a_row = true),
                fixed,
                "{length}"
            );
        }
    }

    #[test]
    fn short_messages_that_want_a_receipt_go_eager() {
        for length in [0, 40, 296, 8 << 10] {
            assert_eq!(with(length, all), Selection::Fixed(Eager), "{length}");
        }
    }

    #[test]
    fn early_data_comes_along_where_it_may_up_to_a_mebibyte() {
        let early = |facts: &mut Facts| facts.may_bring_early_data = true;
        let table = [
            (64 << 10, Streamed),
            ((64 << 10) + 1, EarlyRendezvous),
            (1 << 20, EarlyRendezvous),
            ((1 << 20) + 1, Rendezvous),
        ];
        for (length, protocol) in table {
            assert_eq!(with(length, early), Selection::Fixed(protocol), "{length}");
        }
        let shared =
            |facts: &mut Facts| (facts.is_shared, facts.may_bring_early_data) = (true, true);
        let tuned = Selection::Tuned([Rendezvous, EarlyRendezvous]);
        assert_eq!(with(1 << 20, shared), tuned);
    }

    #[test]
    fn of_shared_messages_the_faster_protocol_is_found() {
        let shared = |facts: &mut Facts| facts.is_shared = true;
        let cores = |facts: &mut Facts| (facts.is_shared, facts.shares_cores) = (true, true);
        let row = |facts: &mut Facts| (facts.is_shared, facts.is_in_a_row) = (true, true);
        assert_eq!(with((16 << 10) - 1, shared), Selection::Fixed(Streamed));
        for length in [16 << 10, 64 << 10] {
            let tuned = Selection::Tuned([Streamed, Rendezvous]);
            assert_eq!(with(length, shared), tuned);
            let tuned = Selection::Tuned([Rendezvous, Streamed]);
            assert_eq!(with(length, cores), tuned);
            assert_eq!(with(length, row), Selection::Fixed(Rendezvous));
        }
        assert_eq!(with(1 << 20, shared), Selection::Fixed(Rendezvous));
    }
}
