// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Proof that a stranger lives now, at the address it writes from, before anything of it is taken
//! (srd-protocol 14.6): the cookie that it is to repeat.
//!
//! Called by contact, when packets may be played back: whenever there is a job key. No state is
//! kept for a stranger; its cookie can be computed again when it comes back.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::net::SocketAddr;
use weft_wire::time::{Instant, Nanos};

use weft_wire::Packet;

use crate::flows::Flows;

/// A cookie holds for this long, and for as long again (chosen: longer than a lost greeting and its
/// repetition).
const COOKIE_NS: Nanos = Nanos(4_000_000_000);

/// What a stranger is to repeat if it is asked now.
pub(crate) fn cookie(
    flows: &Flows,
    stranger: SocketAddr,
    incarnation: u64,
    now_ns: Instant,
) -> u64 {
    cookie_of(flows, stranger, incarnation, now_ns.0 / COOKIE_NS.0)
}

/// Not a secret: whoever could use one needs the job's key to write the packet around it. Who was
/// known at the address goes in, so that a cookie dies with the first that uses it.
fn cookie_of(flows: &Flows, stranger: SocketAddr, incarnation: u64, period: u64) -> u64 {
    let mut hasher = DefaultHasher::new();
    (flows.shared.incarnation, stranger, incarnation, period).hash(&mut hasher);
    let index = flows.remotes.at(stranger);
    if let Some(slot) = index.and_then(|index| flows.remotes.get(index)) {
        let known = slot.incarnation();
        // What a greeting has told us is not yet a contact.
        let known = if known == incarnation { 0 } else { known };
        (slot.former, known).hash(&mut hasher);
    } else {
        ([0u64; 2], 0u64).hash(&mut hasher);
    }
    hasher.finish().max(1)
}

/// Whether a stranger has repeated what we asked it to, lately.
pub(crate) fn is_fresh(
    flows: &Flows,
    stranger: SocketAddr,
    packet: &Packet<'_>,
    now_ns: Instant,
) -> bool {
    let Some(hello) = &packet.hello else {
        return false;
    };
    let period = now_ns.0 / COOKIE_NS.0;
    let source = packet.header.source;
    let now = cookie_of(flows, stranger, source, period);
    let before = cookie_of(flows, stranger, source, period.wrapping_sub(1));
    packet.header.target == flows.shared.incarnation
        && (hello.cookie == now || hello.cookie == before)
}
