// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What this route has sent, by protocol. Counted where a protocol is chosen; read by the
//! endpoint's report.

/// How a message was sent, as users see it: `weft_facts::protocol` has the words.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Protocol {
    /// In one cache line.
    Inline,
    /// Copied in and out at once.
    Eager,
    /// Copied in and out in pieces, both sides at the same time.
    Streamed,
    /// Fetched by the receiver from the sender's memory.
    SingleCopy,
    /// Through chunks that the receiver lent.
    Pipelined,
    /// Copied by the receiver out of the sender's shared heap, which the receiver has mapped.
    Mapped,
}

impl Protocol {
    /// All of them, in order of size.
    pub const ALL: [Self; 6] = [
        Self::Inline,
        Self::Eager,
        Self::Streamed,
        Self::SingleCopy,
        Self::Pipelined,
        Self::Mapped,
    ];

    /// Its name in reports.
    pub fn name(self) -> &'static str {
        [
            "inline",
            "eager",
            "streamed",
            "single_copy",
            "pipelined",
            "mapped",
        ][self as usize]
    }
}

/// Messages and bytes of one protocol.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Count {
    /// Messages sent.
    pub messages: u64,
    /// Their payload.
    pub bytes: u64,
}

impl Count {
    /// Counts one more.
    #[inline(always)]
    pub(crate) fn add(&mut self, bytes: u64) {
        self.messages += 1;
        self.bytes += bytes;
    }
}

/// What was sent, by protocol.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(crate) struct Sent([Count; 6]);

impl Sent {
    #[inline(always)]
    pub(crate) fn count(&mut self, protocol: Protocol, bytes: u64) {
        self.0[protocol as usize].add(bytes);
    }
}

/// What was sent so far.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Statistics {
    pub(crate) sent: Sent,
    /// Messages and bytes received up to the last tick.
    pub(crate) received: [u64; 2],
    /// Accesses of remotes' registered memory by load and store, without their help.
    pub mapped: Count,
    /// The same by single copy.
    pub copied: Count,
    /// Remotes that were in contact.
    pub remotes: u64,
    /// Remotes that died or broke the protocol.
    pub lost: u64,
}

impl Statistics {
    /// What one protocol carried.
    pub fn sent(&self, protocol: Protocol) -> Count {
        self.sent.0[protocol as usize]
    }
}
