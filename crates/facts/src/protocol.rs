// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The protocols by which a message is sent inside a host, as counters, `weft info` and `weft top`
//! name them.

use crate::limit::{INJECT_BYTES, INLINE_BYTES, STREAM_BYTES};

/// One protocol.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Protocol {
    /// Its name in text.
    pub name: &'static str,
    /// Its name in JSON.
    pub key: &'static str,
    /// Longest message that goes so; `None` for no limit but the longest message's.
    pub longest_bytes: Option<usize>,
    /// What happens to the message.
    pub meaning: &'static str,
}

/// All protocols, in the order in which endpoints publish their counts: shortest messages first.
pub const ALL: [Protocol; 6] = [
    Protocol {
        name: "inline",
        key: "inline",
        longest_bytes: Some(INLINE_BYTES),
        meaning: "header and message in one cache line, or in up to five of them",
    },
    Protocol {
        name: "eager",
        key: "eager",
        longest_bytes: Some(INJECT_BYTES),
        meaning: "message copied beside its header, then into the receiver's buffer",
    },
    Protocol {
        name: "streamed",
        key: "streamed",
        longest_bytes: Some(STREAM_BYTES),
        meaning: "as eager, but in pieces, so that both sides copy at the same time",
    },
    Protocol {
        name: "single copy",
        key: "single_copy",
        longest_bytes: None,
        meaning: "rendezvous; the receiver reads the sender's memory (Cross Memory Attach), alone \
                  or in cooperation with the sender",
    },
    Protocol {
        name: "pipelined",
        key: "pipelined",
        longest_bytes: None,
        meaning: "rendezvous; both sides copy at the same time, through chunks of shared memory, \
                  where Weft has measured that this is faster",
    },
    Protocol {
        name: "mapped",
        key: "mapped",
        longest_bytes: None,
        meaning: "rendezvous; the receiver copies out of memory that the sender shares (weft run \
                  --heap)",
    },
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_the_names_and_lengths_rise() {
        for one in &ALL {
            assert_eq!(one.key, one.name.replace(' ', "_"));
        }
        assert!(ALL.is_sorted_by_key(|one| one.longest_bytes.unwrap_or(usize::MAX)));
    }
}
