// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The machine of one endpoint: what its owner and its driver ask of it.
//!
//! Called by whoever has sockets and a clock, or simulates them. Stands on contact (whose packet it
//! is) and flows (whose turn it is).

use std::net::SocketAddr;
use weft_wire::time::Instant;

use weft_wire::refusal::Reason;
use weft_wire::{PORT_COUNT, Packet, Path};

use crate::config::{BadConfig, Config};
use crate::contact::{Came, Contact, say_farewell};
use crate::events::{Arrival, Event, Offer, Origin, PostError, Remote, Send, Transmit};
use crate::flow::{Moment, on_long_packet};
use crate::flows::Flows;
use crate::inspection::Inspection;
use crate::remote_control::RemoteControl;
use crate::replies::Replies;
use crate::sent::Piece;

/// The machine. All calls come from one thread at a time; time never goes backwards.
///
/// Calls are of four kinds: `post_send`, `accept`, `refuse`, `receipt` start something; `handle_*`
/// take in what has happened; `poll_*` return what is to be done; [`Machine::inspect`] answers
/// questions and [`Machine::at`] takes what is known of one remote. After every call, ask
/// `poll_event` until it is empty (at the latest before the next `handle_datagram`), then
/// `poll_transmit` until it is empty, then sleep until `poll_timeout`. Hand in every datagram that
/// has arrived before `handle_timeout`: if an answer waits in a socket, the remote is not silent
/// (srd-protocol 8.6).
#[derive(Debug)]
pub struct Machine {
    flows: Flows,
    replies: Replies,
}

impl Machine {
    /// A machine with a fresh random incarnation, which also seeds the order of paths. Setup.
    ///
    /// # Errors
    /// When a setting cannot be. An incarnation of 0 is taken as 1.
    pub fn new(config: Config, incarnation: u64) -> Result<Self, BadConfig> {
        config.check()?;
        Ok(Self {
            flows: Flows::new(config, incarnation),
            replies: Replies::default(),
        })
    }

    /// A look at how things stand.
    #[inline]
    pub fn inspect(&self) -> Inspection<'_> {
        Inspection { flows: &self.flows }
    }

    /// Where to say what is known of a remote.
    #[inline]
    pub fn at(&mut self, remote: Remote) -> RemoteControl<'_> {
        RemoteControl {
            flows: &mut self.flows,
            remote,
        }
    }

    /// The number of the remote at this address, which is its first port; `None` when the table is
    /// full. Slow path.
    pub fn remote(&mut self, address: SocketAddr) -> Option<Remote> {
        let Flows {
            remotes, shared, ..
        } = &mut self.flows;
        remotes.add(address, &shared.config).map(Remote)
    }

    /// Starts a send. Fast path.
    ///
    /// # Errors
    /// [`PostError::Busy`] is flow control; [`PostError::Unknown`] is the caller's mistake;
    /// [`PostError::Ended`] is final until the remote comes back as another incarnation.
    pub fn post_send(&mut self, now_ns: Instant, send: &Send) -> Result<(), PostError> {
        let index = send.remote.0;
        let slot = self.flows.remotes.get(index).ok_or(PostError::Unknown)?;
        if let Some(why) = slot.ended {
            return Err(PostError::Ended(why));
        }
        let (flow, shared) = self.flows.flow(index, now_ns);
        if !flow.post(send, &shared.config, now_ns) {
            return Err(PostError::Busy);
        }
        self.flows.settle(index, now_ns, true);
        Ok(())
    }

    /// Accepts an offered message: at most `length_bytes` of its data will arrive for `landing`.
    /// With zero bytes the message is discarded, and its sender sees it as delivered. `Landed` or
    /// `LandingFailed` follows, exactly once.
    ///
    /// # Errors
    /// [`PostError::Busy`] when 64 landings of this remote are open: try again after progress.
    pub fn accept(
        &mut self,
        now_ns: Instant,
        offer: Offer,
        landing: u64,
        length_bytes: u64,
    ) -> Result<(), PostError> {
        let index = offer.remote.0;
        let (flow, shared) = self.flows.known_flow(index)?;
        let answer = flow.receiver.accept(shared, offer, landing, length_bytes)?;
        flow.idleness.touch(now_ns);
        flow.queue.answer(answer);
        self.flows.want_grant(index);
        self.flows.grant(now_ns);
        self.flows.settle(index, now_ns, true);
        Ok(())
    }

    /// Declines an offered message for good; its sender's send fails.
    ///
    /// # Errors
    /// [`PostError::Unknown`] when no offer of this remote is open.
    pub fn refuse(
        &mut self,
        now_ns: Instant,
        offer: Offer,
        reason: Reason,
    ) -> Result<(), PostError> {
        let (flow, _) = self.flows.known_flow(offer.remote.0)?;
        flow.receiver.offers.decide(offer)?;
        flow.idleness.touch(now_ns);
        flow.queue.answer(Piece::Refusal {
            message_id: offer.message_id,
            reason,
        });
        self.flows.settle(offer.remote.0, now_ns, true);
        Ok(())
    }

    /// Sends the receipt for a message that wants one: the message is in the buffer of its receive.
    /// `of` names the message, whether it was offered or came whole.
    ///
    /// # Errors
    /// [`PostError::Unknown`] when nothing is under way with this remote, or the process that sent
    /// the message is gone: another one at its address numbers its messages from 0 too
    /// (srd-protocol 12.6). [`PostError::Busy`] when more receipts wait than there can be messages.
    pub fn receipt(&mut self, now_ns: Instant, of: Offer) -> Result<(), PostError> {
        let slot = self.flows.remotes.get(of.remote.0);
        if !slot.is_some_and(|slot| slot.ended.is_none() && slot.identity().life == of.life) {
            return Err(PostError::Unknown);
        }
        let (flow, _) = self.flows.flow(of.remote.0, now_ns);
        flow.idleness.touch(now_ns);
        let message_id = of.message_id;
        if !flow.queue.answer(Piece::Receipt { message_id }) {
            return Err(PostError::Busy);
        }
        self.flows.settle(of.remote.0, now_ns, true);
        Ok(())
    }

    /// Sets how far this receiver is behind. 0: not at all; 64: senders halve their rate; 127: they
    /// nearly stop (srd-protocol 10.6).
    pub fn set_penalty(&mut self, penalty: u8) {
        self.flows.shared.penalty = penalty.min(127);
    }

    /// Takes a datagram; `origin` is the address it came from, if it has just arrived. A driver
    /// that knows how long the datagram has waited in a socket (SO_TIMESTAMPNS) says so, because
    /// this is no delay of the network and must not slow the sender down. Fast path.
    pub fn handle_datagram<'d>(
        &mut self,
        now_ns: Instant,
        origin: impl Into<Origin>,
        datagram: &'d [u8],
    ) -> Arrival<'d> {
        let origin = origin.into();
        let statistics = &mut self.flows.shared.statistics;
        statistics.received_count += 1;
        let Ok(packet) = Packet::parse(datagram) else {
            statistics.malformed_count += 1;
            return Arrival::Nothing;
        };
        let mut contact = Contact {
            flows: &mut self.flows,
            replies: &mut self.replies,
            packet: &packet,
            came: Came {
                from: origin.from,
                now_ns,
                bytes: datagram.len(),
            },
        };
        let Some(index) = contact.locate() else {
            self.flows.shared.statistics.unknown_flow_count += 1;
            return Arrival::Nothing;
        };
        let (flow, shared) = self.flows.flow(index, now_ns);
        let moment = Moment {
            now_ns,
            waited_ns: origin.waited_ns,
            datagram_bytes: datagram.len(),
            ecn: origin.ecn,
        };
        let arrival = match packet.header.further_count {
            0 => flow.on_packet(shared, &packet, moment),
            _ => on_long_packet(flow, shared, &packet, moment),
        };
        self.flows.grant(now_ns);
        self.flows.settle(index, now_ns, true);
        arrival
    }

    /// The next datagram to send, if any can leave now.
    pub fn poll_transmit(&mut self, now_ns: Instant) -> Option<Transmit> {
        let mut place = Transmit::blank();
        self.poll_transmit_to(now_ns, &mut place).then_some(place)
    }

    /// The same, but written to memory of the caller, which can be reused, since datagrams are
    /// large. Returns whether there is a datagram. Fast path.
    pub fn poll_transmit_to(&mut self, now_ns: Instant, place: &mut Transmit) -> bool {
        if !self.replies.is_empty()
            && let Some(reply) = self.replies.pop()
        {
            *place = reply;
            return true;
        }
        self.flows.poll_transmit(now_ns, place)
    }

    /// Everything that `poll_transmit` gave out at `sent_ns` has left by `left_ns`. A driver that
    /// knows this says so: the time in which a host copies and hands on datagrams is no queue, and
    /// must not slow the sender down. Fast path.
    #[inline]
    pub fn handle_sent(&mut self, sent_ns: Instant, left_ns: Instant) {
        self.flows.shared.send_delays.add(sent_ns, left_ns);
    }

    /// Whether `poll_transmit` would surely find nothing. A driver that has just sent a datagram,
    /// or has handed one in, may use this instead of `poll_transmit`, which costs more. If several
    /// remotes may have something to send, it always returns false. Fast path.
    #[inline]
    pub fn is_at_rest(&self, now_ns: Instant) -> bool {
        self.replies.is_empty() && self.flows.is_at_rest(now_ns)
    }

    /// What has happened, oldest first.
    #[inline]
    pub fn poll_event(&mut self) -> Option<Event> {
        self.flows.shared.events.pop()
    }

    /// A remote with several pairs of addresses, and where its ports are. The driver must then say
    /// with [`RemoteControl::set_routes`] which paths this host's routes allow. Until then the
    /// paths between the first addresses are used (srd-protocol 17.3).
    #[inline]
    pub fn next_unrouted(&mut self) -> Option<(Remote, [SocketAddr; PORT_COUNT])> {
        let index = self.flows.shared.unrouted.pop()?;
        let identity = self.flows.remotes.get(index)?.identity();
        let port = |index| identity.target(Path::from_ports(0, index as u8));
        Some((Remote(index), core::array::from_fn(port)))
    }

    /// Does what is due by now.
    pub fn handle_timeout(&mut self, now_ns: Instant) {
        self.flows.handle_timeout(now_ns);
    }

    /// Does what is due now, up to the first deadline at which silence, loss or death is judged.
    /// Returns whether there is such a deadline; before it is handled, everything that has arrived
    /// must be handed in (srd-protocol 8.6). This call does not need that, because most deadlines
    /// have moved, or only mean that something can be sent. Fast path.
    pub fn handle_moved_timeouts(&mut self, now_ns: Instant) -> bool {
        self.flows.handle_moved_timeouts(now_ns)
    }

    /// When to call `handle_timeout`; `None` if nothing is under way. May name a time at which
    /// nothing is due any more.
    pub fn poll_timeout(&self) -> Option<Instant> {
        self.flows.deadline_ns()
    }

    /// Says farewell to every remote that may still expect something from us, with the next
    /// `poll_transmit` (srd-protocol 13.4). Everything under way fails. For an endpoint that
    /// closes; slow path.
    pub fn farewell(&mut self, now_ns: Instant) {
        say_farewell(&mut self.flows, &mut self.replies, now_ns);
    }
}
