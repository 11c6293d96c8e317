// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The ways a message takes inside a machine, by its length, as a table.
//!
//! Called by `info.rs`. A test compares the lengths with those of the shared-memory route.

use serde::Serialize;
use weft_ring::INLINE_PAYLOAD_BYTES;

/// One way.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Protocol {
    /// Its name, as in the reports of `weft run`.
    pub name: &'static str,
    /// Longest message that takes it; `None` for no limit but the longest message's.
    pub longest_bytes: Option<u64>,
    /// What happens to the message.
    pub meaning: &'static str,
}

/// All ways, shortest messages first.
pub const PROTOCOLS: [Protocol; 6] = [
    Protocol {
        name: "inline",
        longest_bytes: Some(INLINE_PAYLOAD_BYTES as u64),
        meaning: "header and message in one cache line, or in up to five of them",
    },
    Protocol {
        name: "eager",
        longest_bytes: Some(8 * 1024),
        meaning: "message copied beside its header, then into the receiver's buffer",
    },
    Protocol {
        name: "streamed",
        longest_bytes: Some(64 * 1024),
        meaning: "as eager, in pieces",
    },
    Protocol {
        name: "single copy",
        longest_bytes: None,
        meaning: "offered first; the receiver reads the sender's memory (Cross Memory Attach)",
    },
    Protocol {
        name: "pipelined",
        longest_bytes: None,
        meaning: "offered first; both copy through chunks at once; taken where it is measured to be faster",
    },
    Protocol {
        name: "mapped",
        longest_bytes: None,
        meaning: "offered first; the receiver copies out of the sender's heap (weft run --heap)",
    },
];

#[cfg(test)]
mod tests {
    use super::*;

    fn constant(file: &str, name: &str) -> u64 {
        let path = format!("{}/../../{file}", env!("CARGO_MANIFEST_DIR"));
        let text = std::fs::read_to_string(&path).unwrap();
        let start = format!("const {name}: usize = ");
        let line = text
            .lines()
            .find_map(|line| line.split_once(&start))
            .unwrap_or_else(|| panic!("no {name} in {path}"))
            .1;
        line.trim_end_matches(';')
            .split('*')
            .map(|factor| factor.trim().parse::<u64>().unwrap())
            .product()
    }

    #[test]
    fn lengths_are_those_of_the_shared_memory_route() {
        let longest = |name: &str| {
            PROTOCOLS
                .iter()
                .find(|one| one.name == name)
                .unwrap()
                .longest_bytes
                .unwrap()
        };
        let shm = include_str!("../../../crates/shm/src/protocol.rs");
        assert!(shm.contains("pub const INLINE_BYTES: usize = INLINE_PAYLOAD_BYTES;"));
        assert_eq!((longest("inline"), INLINE_PAYLOAD_BYTES), (296, 296));
        assert_eq!(
            longest("eager"),
            constant("crates/shm/src/protocol.rs", "EAGER_BYTES")
        );
        assert_eq!(
            longest("streamed"),
            constant("crates/shm/src/protocol.rs", "STREAM_BYTES")
        );
    }
}
