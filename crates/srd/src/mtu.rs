// SPDX-License-Identifier: Apache-2.0 OR MIT
//! How large datagrams may be: what both hosts carry is tried before it is used (srd-protocol 16).
//!
//! Called by flow (a hello, an echo, what this host carries) and by transmit (what leaves next).
//! Source: RFC 8899 (DPLPMTUD).

use weft_wire::acknowledgement::NO_SEQUENCE;
use weft_wire::hello::DATAGRAM_BYTES_LEAST;
use weft_wire::time::{Instant, Nanos};
use weft_wire::{Acknowledgement, Path};

/// Up to here nothing is tried, and more is never taken back (srd-protocol 16.5): what an Ethernet
/// frame of 1500 bytes carries, over IPv6 and encrypted.
const PLAIN_BYTES: u16 = 1500 - 48 - 16;
/// Sizes below what the hosts carry (chosen: what common jumbo frames and tunnels through them
/// leave).
const SIZES: [u16; 3] = [8000, 4000, 2000];
/// Probes of one size, each on a random path, that must vanish before a smaller one is tried (RFC
/// 8899: MAX_PROBES 3).
const TRIES: u8 = 3;
/// The least that an answer is waited for (chosen: a receiver that is scheduled out), and when a
/// size that failed is tried anew (RFC 8899, PMTU_RAISE_TIMER, is ten minutes; chosen shorter,
/// since one datagram a minute costs nothing).
const WAIT_LEAST_NS: Nanos = Nanos(10_000_000);
const RAISE_NS: Nanos = Nanos(60_000_000_000);
/// The longest wait while the remote is silent: then nothing is known of the size.
const SILENT_WAIT_NS: Nanos = Nanos(1_000_000_000);

/// How large datagrams to one remote are; kept while nothing is under way with it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct DatagramSize {
    /// The largest that we send.
    in_use_bytes: u16,
    /// What this host carries towards the remote.
    own_bytes: u16,
    /// What the remote says that it carries.
    its_bytes: u16,
    /// What this host says holds as far as the remote, so that no probe need show it (srd-protocol
    /// 16.1).
    is_proven: bool,
    /// The remote answers probes one by one.
    answers_probes: bool,
}

impl DatagramSize {
    /// What is larger than the least waits for the remote's word (srd-protocol 6.1).
    pub(crate) fn new(own_bytes: u16, is_proven: bool) -> Self {
        Self {
            in_use_bytes: DATAGRAM_BYTES_LEAST,
            own_bytes,
            its_bytes: DATAGRAM_BYTES_LEAST,
            is_proven,
            answers_probes: false,
        }
    }

    /// Of another process at the same address.
    pub(crate) fn anew(&self) -> Self {
        Self::new(self.own_bytes, self.is_proven)
    }

    #[inline]
    pub(crate) fn in_use_bytes(&self) -> u16 {
        self.in_use_bytes
    }

    pub(crate) fn own_bytes(&self) -> u16 {
        self.own_bytes
    }

    pub(crate) fn is_proven(&self) -> bool {
        self.is_proven
    }

    /// What this host carries.
    pub(crate) fn set_own(&mut self, bytes: u16, is_proven: bool) {
        self.own_bytes = bytes.max(DATAGRAM_BYTES_LEAST);
        self.is_proven = is_proven;
    }

    /// What the remote says of itself.
    pub(crate) fn learn(&mut self, its_bytes: u16, answers_probes: bool) {
        self.its_bytes = its_bytes;
        self.answers_probes = answers_probes;
    }

    /// Whether a size must be seen to arrive before it is used (srd-protocol 16.1).
    fn must_be_tried(&self) -> bool {
        !self.is_proven && self.answers_probes
    }

    /// What both hosts carry, as far as they know.
    fn limit_bytes(&self) -> u16 {
        self.own_bytes.min(self.its_bytes)
    }

    /// The length of a probe that asks whether a path works: it must carry what is in use
    /// (srd-protocol 16.4). `None` where the shortest will do.
    pub(crate) fn path_probe_bytes(&self) -> Option<u16> {
        (!self.is_proven && self.in_use_bytes > PLAIN_BYTES).then_some(self.in_use_bytes)
    }
}

/// The search for the largest size: what is being tried.
#[derive(Clone, Copy, Debug)]
pub(crate) struct MtuSearch {
    /// The size, 0 for none.
    trying_bytes: u16,
    tries: u8,
    /// The probe under way; 0 for none.
    sent_ns: Instant,
    path: Path,
    due_ns: Instant,
}

impl Default for MtuSearch {
    fn default() -> Self {
        Self {
            trying_bytes: 0,
            tries: 0,
            sent_ns: Instant::START,
            path: Path::from_ports(0, 0),
            due_ns: Instant::NEVER,
        }
    }
}

impl MtuSearch {
    fn begin(bytes: u16, due_ns: Instant) -> Self {
        Self {
            trying_bytes: bytes,
            due_ns,
            ..Self::default()
        }
    }

    /// Of a flow that has rested: what was found before holds, and more may be carried now.
    pub(crate) fn resume(size: &DatagramSize, now_ns: Instant) -> Self {
        let limit = size.limit_bytes();
        if size.must_be_tried() && limit > size.in_use_bytes {
            Self::begin(limit, now_ns)
        } else {
            Self::default()
        }
    }

    /// Something new is known of what the hosts carry (srd-protocol 16.1).
    pub(crate) fn restart(size: &mut DatagramSize, now_ns: Instant) -> Self {
        let limit = size.limit_bytes();
        size.in_use_bytes = if size.must_be_tried() {
            limit.min(PLAIN_BYTES)
        } else {
            limit
        };
        Self::resume(size, now_ns)
    }

    /// When something is to be done; [`Instant::NEVER`] when nothing is tried.
    #[inline]
    pub(crate) fn due_ns(&self) -> Instant {
        self.due_ns
    }

    /// The time of a probe has come, or that of its answer has passed (srd-protocol 16.3). Answers
    /// the size to send now; the remote was last heard at `heard_ns`.
    pub(crate) fn next(
        &mut self,
        size: &DatagramSize,
        now_ns: Instant,
        heard_ns: Instant,
    ) -> Option<u16> {
        if self.sent_ns != Instant::START {
            if heard_ns <= self.sent_ns {
                let waited_ns = now_ns.saturating_since(self.sent_ns);
                self.due_ns = now_ns + waited_ns.clamp(WAIT_LEAST_NS, SILENT_WAIT_NS);
                return None;
            }
            self.sent_ns = Instant::START;
            self.tries += 1;
        }
        if self.tries >= TRIES {
            self.tries = 0;
            let smaller = SIZES.iter().find(|size| **size < self.trying_bytes);
            match smaller.filter(|smaller| **smaller > size.in_use_bytes) {
                Some(smaller) => self.trying_bytes = *smaller,
                None => {
                    *self = Self::begin(size.limit_bytes(), now_ns + RAISE_NS);
                    return None;
                }
            }
        }
        Some(self.trying_bytes)
    }

    /// A probe leaves on this path (srd-protocol 16.2).
    pub(crate) fn on_sent(&mut self, path: Path, now_ns: Instant, srtt_ns: Nanos) {
        self.sent_ns = now_ns;
        self.path = path;
        self.due_ns = now_ns + (2 * srtt_ns).max(WAIT_LEAST_NS);
    }

    /// An answer to a probe of a size is word that it arrived whole (srd-protocol 16.2). Answers
    /// whether that changed the size in use.
    #[inline]
    pub(crate) fn on_echo(
        &mut self,
        size: &mut DatagramSize,
        section: &Acknowledgement,
        now_ns: Instant,
    ) -> bool {
        let answers = self.sent_ns != Instant::START
            && section.echo_sent_ns == self.sent_ns
            && section.echo_path == self.path
            && section.echo_sequence == NO_SEQUENCE;
        if answers {
            self.take(size, now_ns);
        }
        answers
    }

    #[cold]
    fn take(&mut self, size: &mut DatagramSize, now_ns: Instant) {
        let (bytes, limit) = (self.trying_bytes, size.limit_bytes());
        size.in_use_bytes = bytes.min(limit);
        *self = if bytes < limit {
            Self::begin(limit, now_ns + RAISE_NS)
        } else {
            Self::default()
        };
    }
}
