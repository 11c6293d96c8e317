// SPDX-License-Identifier: Apache-2.0 OR MIT
//! How large datagrams may be: what both hosts carry is tried before it is used (srd-protocol 16).
//!
//! Called by receive (a hello, an echo), contact (what this host carries) and transmit (what leaves next). Source: RFC 8899.

use weft_wire::acknowledgement::NO_SEQUENCE;
use weft_wire::{Acknowledgement, Path};

use crate::events::Transmit;
use crate::flow::{Flow, Identity, Shared};
use crate::timers::NEVER;

/// Up to here nothing is tried, and more is never taken back (srd-protocol 16.5): what an Ethernet frame of 1500 bytes carries, over IPv6 and encrypted.
const PLAIN_BYTES: u16 = 1500 - 48 - 16;
/// Sizes below what the hosts carry (chosen: what common jumbo frames and tunnels through them leave).
const SIZES: [u16; 3] = [8000, 4000, 2000];
/// Probes of one size, each on another path, that must vanish before a smaller one is tried (RFC 8899: MAX_PROBES 3).
const TRIES: u8 = 3;
/// The least that an answer is waited for (chosen: a receiver that is scheduled out), and when a size that failed is tried
/// anew (RFC 8899, PMTU_RAISE_TIMER, is ten minutes; chosen shorter, since one datagram a minute costs nothing).
const WAIT_LEAST_NS: u64 = 10_000_000;
const RAISE_NS: u64 = 60_000_000_000;
/// The longest wait while the remote is silent: then nothing is known of the size.
const SILENT_WAIT_NS: u64 = 1_000_000_000;

/// What is being tried.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sizing {
    /// The size, 0 for none.
    trying_bytes: u16,
    tries: u8,
    /// The probe under way; 0 for none.
    sent_ns: u64,
    path: Path,
    due_ns: u64,
}

impl Default for Sizing {
    fn default() -> Self {
        Self {
            trying_bytes: 0,
            tries: 0,
            sent_ns: 0,
            path: Path::from_ports(0, 0),
            due_ns: NEVER,
        }
    }
}

impl Identity {
    /// Whether a size must be seen to arrive before it is used (srd-protocol 16.1).
    pub(crate) fn tries_sizes(&self) -> bool {
        !self.is_proven && self.answers_probes
    }

    /// What both hosts carry, as far as they know.
    pub(crate) fn datagram_limit_bytes(&self) -> u16 {
        self.own_datagram_bytes.min(self.its_datagram_bytes)
    }
}

impl Sizing {
    fn begin(bytes: u16, due_ns: u64) -> Self {
        Self {
            trying_bytes: bytes,
            due_ns,
            ..Self::default()
        }
    }

    /// Of a flow that has rested: what was found before holds, and more may be carried now.
    pub(crate) fn resume(identity: &Identity, now_ns: u64) -> Self {
        let limit = identity.datagram_limit_bytes();
        if identity.tries_sizes() && limit > identity.datagram_bytes {
            Self::begin(limit, now_ns)
        } else {
            Self::default()
        }
    }

    /// When something is to be done; [`NEVER`] when nothing is tried.
    pub(crate) fn due_ns(&self) -> u64 {
        self.due_ns
    }

    /// The time of a probe has come, or that of its answer has passed (srd-protocol 16.3). Answers the size to send now.
    fn next(&mut self, now_ns: u64, heard_ns: u64, in_use: u16, limit: u16) -> Option<u16> {
        if self.sent_ns != 0 {
            if heard_ns <= self.sent_ns {
                let waited_ns = now_ns.saturating_sub(self.sent_ns);
                self.due_ns = now_ns + waited_ns.clamp(WAIT_LEAST_NS, SILENT_WAIT_NS);
                return None;
            }
            self.sent_ns = 0;
            self.tries += 1;
        }
        if self.tries >= TRIES {
            self.tries = 0;
            let smaller = SIZES.iter().find(|size| **size < self.trying_bytes);
            match smaller.filter(|size| **size > in_use) {
                Some(size) => self.trying_bytes = *size,
                None => {
                    *self = Self::begin(limit, now_ns + RAISE_NS);
                    return None;
                }
            }
        }
        Some(self.trying_bytes)
    }
}

impl Flow {
    /// Something new is known of what the hosts carry (srd-protocol 16.1).
    pub(crate) fn size_datagrams(&mut self, now_ns: u64) {
        let identity = &mut self.identity;
        let limit = identity.datagram_limit_bytes();
        identity.datagram_bytes = if identity.tries_sizes() {
            limit.min(PLAIN_BYTES)
        } else {
            limit
        };
        self.sender.sizing = Sizing::resume(identity, now_ns);
        self.sender.window.set_packet_bytes(identity.datagram_bytes);
    }

    /// The size that is to be tried now, if any. Nothing long goes to who has not shown that it is there
    /// (srd-protocol 14.3). Fast path.
    #[inline]
    pub(crate) fn size_to_try(&mut self, now_ns: u64) -> Option<u16> {
        if self.sender.sizing.due_ns > now_ns || !self.identity.knows_us {
            return None;
        }
        let (in_use, limit) = (
            self.identity.datagram_bytes,
            self.identity.datagram_limit_bytes(),
        );
        let heard_ns = self.silence.heard_ns;
        self.sender.sizing.next(now_ns, heard_ns, in_use, limit)
    }

    /// srd-protocol 16.2.
    pub(crate) fn send_size_probe(
        &mut self,
        shared: &mut Shared,
        bytes: u16,
        now_ns: u64,
        place: &mut Transmit,
    ) {
        let path = self.sender.paths.pick(now_ns, None);
        let wait_ns = (2 * self.sender.round_trip.srtt_ns()).max(WAIT_LEAST_NS);
        let sizing = &mut self.sender.sizing;
        sizing.sent_ns = now_ns;
        sizing.path = path;
        sizing.due_ns = now_ns + wait_ns;
        self.send_probe(shared, path, now_ns, place);
        pad(place, bytes);
    }

    /// A path that is asked whether it works must carry what is in use (srd-protocol 16.4).
    pub(crate) fn send_path_probe(
        &mut self,
        shared: &mut Shared,
        path: Path,
        now_ns: u64,
        place: &mut Transmit,
    ) {
        let in_use = self.identity.datagram_bytes;
        self.send_probe(shared, path, now_ns, place);
        if !self.identity.is_proven && in_use > PLAIN_BYTES {
            pad(place, in_use);
        }
    }

    /// An answer to a probe of a size is word that it arrived whole (srd-protocol 16.2).
    #[inline]
    pub(crate) fn on_size_echo(&mut self, section: &Acknowledgement, now_ns: u64) {
        let sizing = &self.sender.sizing;
        let answers = sizing.sent_ns != 0
            && section.echo_sent_ns == sizing.sent_ns
            && section.echo_path == sizing.path
            && section.echo_sequence == NO_SEQUENCE;
        if answers {
            self.take_size(now_ns);
        }
    }

    #[cold]
    fn take_size(&mut self, now_ns: u64) {
        let bytes = self.sender.sizing.trying_bytes;
        let limit = self.identity.datagram_limit_bytes();
        self.identity.datagram_bytes = bytes.min(limit);
        self.sender.window.set_packet_bytes(bytes.min(limit));
        self.sender.sizing = if bytes < limit {
            Sizing::begin(limit, now_ns + RAISE_NS)
        } else {
            Sizing::default()
        };
    }
}

fn pad(probe: &mut Transmit, bytes: u16) {
    let padding = usize::from(bytes).saturating_sub(probe.length_bytes());
    probe.padding_bytes = padding as u16;
}
