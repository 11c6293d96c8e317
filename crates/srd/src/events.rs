// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What goes in and comes out of the machine besides datagrams: sends, events, arrivals, transmits,
//! statistics.

use core::fmt;
use std::net::SocketAddr;
use weft_wire::marks::Ecn;
use weft_wire::time::{Instant, Nanos};

use weft_wire::refusal::Reason;
use weft_wire::{Head, Message, Path, Segment};

/// The machine's number for a remote; valid as long as the machine.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, PartialOrd, Ord)]
pub struct Remote(pub u32);

/// A message to send. The payload stays with the caller, which lends it for each packet (see
/// [`Payload`]) until the token comes back.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Send {
    /// To whom.
    pub remote: Remote,
    /// For tagged messages.
    pub tag: Option<u64>,
    /// Remote completion data, if any.
    pub cq_data: Option<u64>,
    /// Of the payload.
    pub length_bytes: u64,
    /// Complete only when the remote's owner has said that it delivered the message.
    pub wants_receipt: bool,
    /// Somebody waits for the acknowledgement. If not, the acknowledgement may come a little later.
    pub is_awaited: bool,
    /// A message between the endpoints themselves, which is not matched; has a tag (0 if none is
    /// given).
    pub is_service: bool,
    /// The caller's name for it.
    pub token: u64,
}

/// Why a send was not taken.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PostError {
    /// 64 messages to this remote are under way: make progress and try again.
    Busy,
    /// The remote, or the offer, is not one of this machine's.
    Unknown,
    /// The remote has failed, and has not come back as another incarnation.
    Ended(Failure),
}

impl fmt::Display for PostError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Busy => f.write_str(
                "64 messages of this remote are under way, which is the limit; try again after \
                 progress",
            ),
            Self::Unknown => {
                f.write_str("this machine has no such remote or offer; ask `remote` for one first")
            }
            Self::Ended(why) => write!(f, "nothing can be sent: {why}"),
        }
    }
}

impl core::error::Error for PostError {}

/// Why a transfer failed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Failure {
    /// Nothing was heard for the time that [`crate::config::Timing::dead_after_ns`] sets, or the
    /// host refuses datagrams.
    Lost,
    /// The remote process was replaced by another at the same address.
    Restarted,
    /// The receiver refused the message.
    Refused(Reason),
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Lost => "the remote does not answer",
            Self::Restarted => "another process has taken the remote's address",
            Self::Refused(Reason::NoMemory) => "the remote has no memory for the message",
            Self::Refused(Reason::Canceled) => "the remote canceled the receive",
        })
    }
}

impl core::error::Error for Failure {}

/// What a datagram brought that the caller can use at once, straight from the datagram. Handle it
/// before the next call.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Arrival<'d> {
    /// The datagram itself contains nothing for the caller; it may have caused events.
    Nothing,
    /// A whole message, in its order.
    Message {
        /// From whom.
        remote: Remote,
        /// Of which life of that remote (see [`Offer::life`]).
        life: u32,
        /// What it is.
        message: Message,
        /// All of it.
        payload: &'d [u8],
    },
    /// The first piece of a message. The message is next in order, and its other pieces are under
    /// way. Answer with [`begin`](crate::remote_control::RemoteControl::begin), which says where
    /// they go.
    Begun {
        /// From whom.
        remote: Remote,
        /// Of which life of that remote (see [`Offer::life`]).
        life: u32,
        /// What the message is, and where in it the piece belongs.
        segment: Segment,
        /// The piece.
        payload: &'d [u8],
    },
    /// A piece of an accepted message, or of one that has begun. Every byte of the message comes
    /// exactly once.
    Data {
        /// From whom.
        remote: Remote,
        /// As the caller named it in `accept`.
        landing: u64,
        /// Where the piece goes.
        offset_bytes: u64,
        /// The piece.
        payload: &'d [u8],
    },
}

/// What has happened. Drained with `poll_event`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Event {
    /// A whole message that had to be put together, or had to wait for earlier messages.
    Message {
        /// From whom.
        remote: Remote,
        /// Of which life of that remote (see [`Offer::life`]).
        life: u32,
        /// What it is.
        message: Message,
        /// All of it.
        payload: Vec<u8>,
    },
    /// A message is announced; call `accept` or `refuse`, now or later.
    Offer {
        /// From whom.
        remote: Remote,
        /// Of which life of that remote (see [`Offer::life`]).
        life: u32,
        /// What it is; its id names the offer.
        message: Message,
    },
    /// Every byte of an accepted message has been handed out.
    Landed {
        /// As the caller named it.
        landing: u64,
    },
    /// The rest of an accepted message will not come.
    LandingFailed {
        /// As the caller named it.
        landing: u64,
        /// Why.
        why: Failure,
    },
    /// A send is complete; its payload is the caller's again.
    Sent {
        /// As the caller named it.
        token: u64,
    },
    /// A send failed; its payload is the caller's again.
    SendFailed {
        /// As the caller named it.
        token: u64,
        /// Why.
        why: Failure,
    },
    /// Everything that was under way with a remote has failed; its offers are void.
    RemoteLost {
        /// Which.
        remote: Remote,
        /// Why.
        why: Failure,
    },
}

/// Which bytes of which send follow a head.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Payload {
    /// The caller's name of the send.
    pub token: u64,
    /// Where in its payload.
    pub offset_bytes: u64,
    /// How many.
    pub length_bytes: u32,
}

/// A packet to send: a datagram, or a longer one that is to be cut into datagrams.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Transmit {
    /// To which port of which host.
    pub to: SocketAddr,
    /// Names our own port. Consecutive packets with equal paths may share one system call.
    pub path: Path,
    /// Its front.
    pub head: Head,
    /// Its back, to be gathered from the caller's memory.
    pub payload: Option<Payload>,
    /// This many zeros follow. If it is not 0, the datagram must not be fragmented: it must arrive
    /// whole or not at all (srd-protocol 16.1).
    pub padding_bytes: u16,
    /// If this is not 0 the packet is long: it leaves in pieces of at most this many bytes, their
    /// heads included (srd-protocol 19.3).
    pub cut_bytes: u16,
}

impl Transmit {
    /// A place to be written to.
    pub fn blank() -> Self {
        Self {
            to: SocketAddr::from(([0; 4], 0)),
            path: Path::from_ports(0, 0),
            head: Head::new(),
            payload: None,
            padding_bytes: 0,
            cut_bytes: 0,
        }
    }

    /// Length of the whole packet.
    #[inline]
    pub fn length_bytes(&self) -> usize {
        self.head.as_bytes().len()
            + self
                .payload
                .map_or(0, |payload| payload.length_bytes as usize)
            + usize::from(self.padding_bytes)
    }
}

/// Where a datagram came from, and how long ago it arrived at this host.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Origin {
    /// The sender's address and port.
    pub from: SocketAddr,
    /// Between its arrival and now; 0 if not known.
    pub waited_ns: Nanos,
    /// The ECN bits of its IP header; they are the same in all joined datagrams.
    pub ecn: Ecn,
}

/// Of a datagram that has just arrived.
impl From<SocketAddr> for Origin {
    fn from(from: SocketAddr) -> Self {
        Self {
            from,
            waited_ns: Nanos::ZERO,
            ecn: Ecn::Unknown,
        }
    }
}

/// An announced message that waits for a landing.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Offer {
    /// From whom.
    pub remote: Remote,
    /// Which of the processes that had the remote's address one after the other: the number of
    /// flows with the remote that ended before. An answer about a message of one process never
    /// reaches another one.
    pub life: u32,
    /// As `Event::Offer` named it.
    pub message_id: u64,
}

/// How things stand with one remote, for people to look at.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Condition {
    /// Smoothed round trip; 0 before the first.
    pub srtt_ns: Nanos,
    /// The congestion window: what may be in flight.
    pub cwnd_bytes: u64,
    /// What is.
    pub in_flight_bytes: u64,
    /// Paths that carry data, of those that may.
    pub good_path_count: u32,
    /// Those that may.
    pub path_count: u32,
    /// When something was last heard.
    pub heard_ns: Instant,
    /// Bytes of reliable packets that were sent, retransmissions included.
    pub sent_bytes: u64,
    /// How many packets were retransmitted.
    pub retransmitted_count: u64,
    /// The longest datagram in use.
    pub datagram_bytes: u16,
}

/// Counts since the machine began. None of them ever falls.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Statistics {
    /// Packets that were handed out; a long one counts once.
    pub sent_count: u64,
    /// Reliable packets sent again.
    pub retransmitted_count: u64,
    /// Packets found lost.
    pub lost_count: u64,
    /// Retransmission time-outs.
    pub rto_count: u64,
    /// Tail probes.
    pub tail_probe_count: u64,
    /// Paths that became suspect.
    pub suspect_count: u64,
    /// Greetings heeded (srd-protocol 14.6).
    pub greeted_count: u64,
    /// Packets that were handed in.
    pub received_count: u64,
    /// Reliable packets that came twice.
    pub duplicate_count: u64,
    /// Datagrams that are no packets of this version.
    pub malformed_count: u64,
    /// Packets for another incarnation, from a dead one, or from an unknown process.
    pub unknown_flow_count: u64,
    /// Packets that contradict the protocol (srd-protocol 7.6, 12.5).
    pub violation_count: u64,
    /// Packets dropped for want of room (srd-protocol 11.4, 14.4).
    pub dropped_count: u64,
}
