// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Packets that are of no flow and wait to leave: answers to strangers and to those who mistake us
//! for another process, and farewells. Filled by contact, emptied by machine.

use std::net::SocketAddr;
use weft_wire::time::{Instant, Nanos};

use weft_wire::{Body, Head, Header, Packet};

use crate::events::Transmit;

/// Greetings that wait to leave; strangers beyond them ask again (chosen: 24 KiB).
const GREETING_LIMIT: usize = 64;
/// At most one stale answer in this time (srd-protocol 6.5).
const STALE_EVERY_NS: Nanos = Nanos(10_000_000);

/// See the module.
#[derive(Debug, Default)]
pub(crate) struct Replies {
    /// An answer to a packet for another incarnation of ours.
    stale: Option<Transmit>,
    stale_ns: Instant,
    /// Answers to strangers (srd-protocol 14.6).
    greetings: Vec<Transmit>,
    /// What is said to remotes when the endpoint closes (srd-protocol 13.4).
    pub(crate) farewells: Vec<Transmit>,
}

/// A packet of no flow (RFC 9000: stateless).
pub(crate) fn stateless(to: SocketAddr, header: Header, body: Body) -> Transmit {
    let path = header.path;
    let mut head = Head::new();
    Packet::write_parts(&header, None, None, &body, &mut head);
    Transmit {
        to,
        path,
        head,
        payload: None,
        padding_bytes: 0,
        cut_bytes: 0,
    }
}

impl Replies {
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.stale.is_none() && self.greetings.is_empty() && self.farewells.is_empty()
    }

    /// The next one to leave.
    #[cold]
    pub(crate) fn pop(&mut self) -> Option<Transmit> {
        let stale = self.stale.take();
        stale
            .or_else(|| self.greetings.pop())
            .or_else(|| self.farewells.pop())
    }

    /// Keeps a stale answer, unless there was one lately.
    pub(crate) fn push_stale(&mut self, now_ns: Instant, answer: impl FnOnce() -> Transmit) {
        if self.stale_ns == Instant::START || now_ns >= self.stale_ns + STALE_EVERY_NS {
            self.stale_ns = now_ns;
            self.stale = Some(answer());
        }
    }

    /// Keeps a greeting, unless too many wait.
    pub(crate) fn push_greeting(&mut self, greeting: impl FnOnce() -> Transmit) {
        if self.greetings.len() < GREETING_LIMIT {
            self.greetings.push(greeting());
        }
    }
}
