// SPDX-License-Identifier: Apache-2.0 OR MIT
//! By which protocol a message leaves: one table, asked once for each message. Called by the send
//! side, which gathers the facts; where two protocols are open, a tuner finds the faster one.

use super::{EAGER_BYTES, EARLY_LIMIT_BYTES, INLINE_BYTES, MAPPED_BYTES, STREAM_BYTES};

/// How a message leaves. The names are those of docs/long-messages.md.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum SendProtocol {
    /// In a cell and those behind it.
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

/// What the choice is made by.
#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct Facts {
    pub(crate) length_bytes: usize,
    /// Its sender wants to know that it is delivered.
    pub(crate) wants_receipt: bool,
    /// Its receiver can copy it out of memory that we share.
    pub(crate) is_shared: bool,
    /// Others of the kind went to its receiver, and nothing came from there meanwhile.
    pub(crate) is_in_a_row: bool,
    /// Nothing else of ours is under way, the lane is wide and has room, and nobody asks for single
    /// copies.
    pub(crate) may_bring_early_data: bool,
    /// Ranks share processors.
    pub(crate) shares_cores: bool,
}

/// What the facts say.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Selection {
    /// It is this one.
    Fixed(SendProtocol),
    /// The faster one of two is to be found; the first one is taken until then.
    Tuned([SendProtocol; 2]),
}

/// How a message leaves. Fast path up to eager messages.
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
            // One copy is worth more where nobody waits for each message.
            (true, true) => Selection::Fixed(Rendezvous),
            // And where ranks share cores, unless it is found otherwise.
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

    /// A message of so many bytes of which nothing else is so, and one of which this is.
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
