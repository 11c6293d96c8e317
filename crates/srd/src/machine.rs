// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The machine of one endpoint: finds the flow of a packet, the packet to send, the flow whose time has come.
//!
//! Called by whoever has sockets and a clock, or simulates them. Calls flow for everything within one flow; what is
//! here is between flows: first contact and incarnations (srd-protocol 6), turns, grants (11.1), deadlines.

use std::collections::{HashMap, VecDeque};
use std::net::SocketAddr;

use weft_wire::Packet;
use weft_wire::refusal::Reason;

use crate::config::{BATCH_BYTES, BadConfig, Config};
use crate::contact::Came;
use crate::credit::Pool;
use crate::departures::Departures;
use crate::events::{
    Arrival, Event, Failure, Offer, Origin, PostError, Remote, Send, Statistics, Transmit,
};
use crate::flow::{Flow, Rest, Shared};
use crate::random::Random;
use crate::receive::Moment;
use crate::sent::Piece;
use crate::timers::{Deadlines, Jitter, NEVER};

/// Below this much unused credit a grant is told at once (chosen: four batches are more than an acknowledgement's way).
const GRANT_SOON_BYTES: u64 = 4 * BATCH_BYTES as u64;

/// One remote, whether anything is under way or not.
#[derive(Debug)]
pub(crate) struct Slot {
    pub(crate) rest: Rest,
    pub(crate) flow: Option<Box<Flow>>,
    /// Incarnations that are gone; their packets are dropped (srd-protocol 6.4).
    pub(crate) former: [u64; 2],
    /// Set once the flow has ended for good: a new incarnation alone can begin again.
    pub(crate) ended: Option<Failure>,
    /// The entry in the deadlines that holds.
    pub(crate) armed_ns: u64,
    pub(crate) in_turn: bool,
}

/// The machine. All calls come from one thread at a time; time never goes backwards.
///
/// Calls are of four kinds: `post_send`, `accept`, `refuse`, `receipt` start something; `handle_*` take what the world
/// did; `poll_*` give what is to be done; the rest ask. After every call, ask `poll_event` until it is empty (at the
/// latest before the next `handle_datagram`), then `poll_transmit` until it is empty, then sleep until `poll_timeout`.
/// Hand in every datagram that has arrived before `handle_timeout`: an answer that waits in a socket is no silence
/// (srd-protocol 8.6).
#[derive(Debug)]
pub struct Machine {
    pub(crate) shared: Shared,
    pub(crate) slots: Vec<Slot>,
    pub(crate) by_address: HashMap<SocketAddr, u32>,
    /// Remotes that may have something to send, in turn.
    pub(crate) turns: VecDeque<u32>,
    /// Remotes that wait for grants, in turn.
    grants: VecDeque<u32>,
    pub(crate) deadlines: Deadlines,
    /// An answer to a packet for another incarnation of ours.
    pub(crate) stale: Option<Transmit>,
    pub(crate) stale_ns: u64,
    /// Answers to strangers (srd-protocol 14.6).
    pub(crate) greetings: Vec<Transmit>,
    /// What is said to remotes when the endpoint closes (srd-protocol 13.4).
    pub(crate) farewells: Vec<Transmit>,
}

impl Machine {
    /// A machine with a fresh random incarnation, which also seeds the order of paths. Setup.
    ///
    /// # Errors
    /// When a setting cannot be. An incarnation of 0 is taken as 1.
    pub fn new(config: Config, incarnation: u64) -> Result<Self, BadConfig> {
        config.check()?;
        Ok(Self {
            shared: Shared {
                incarnation: incarnation.max(1),
                statistics: Statistics::default(),
                events: VecDeque::new(),
                ordered_event_count: 0,
                pool: Pool::new(config.pace.credit_pool_bytes),
                random: Random::new(incarnation),
                jitter: Jitter::default(),
                penalty: 0,
                departures: Departures::default(),
                held_bytes: 0,
                unrouted: Vec::new(),
                config,
            },
            slots: Vec::new(),
            by_address: HashMap::new(),
            turns: VecDeque::new(),
            grants: VecDeque::new(),
            deadlines: Deadlines::default(),
            stale: None,
            stale_ns: 0,
            greetings: Vec::new(),
            farewells: Vec::new(),
        })
    }

    /// The number of the remote at this address, which is its first port; `None` when the table is full. Slow path.
    pub fn remote(&mut self, address: SocketAddr) -> Option<Remote> {
        if let Some(index) = self.by_address.get(&address) {
            return Some(Remote(*index));
        }
        if self.slots.len() >= self.shared.config.memory.remote_limit as usize {
            return None;
        }
        let index = self.slots.len() as u32;
        self.slots.push(Slot {
            rest: Rest::new(
                address,
                self.shared.config.datagram_bytes,
                &self.shared.config,
            ),
            flow: None,
            former: [0; 2],
            ended: None,
            armed_ns: NEVER,
            in_turn: false,
        });
        self.by_address.insert(address, index);
        Some(Remote(index))
    }

    /// How many remotes there are; they are numbered from 0.
    pub fn remote_count(&self) -> usize {
        self.slots.len()
    }

    /// The address of a remote; `None` if this machine has no such remote.
    pub fn address(&self, remote: Remote) -> Option<SocketAddr> {
        Some(self.slots.get(remote.0 as usize)?.rest.identity.address)
    }

    /// Starts a send. Fast path.
    ///
    /// # Errors
    /// [`PostError::Busy`] is flow control; [`PostError::Unknown`] is the caller's mistake; [`PostError::Ended`] is final
    /// until the remote comes back as another incarnation.
    pub fn post_send(&mut self, now_ns: u64, send: &Send) -> Result<(), PostError> {
        let index = send.remote.0;
        let slot = self.slots.get(index as usize).ok_or(PostError::Unknown)?;
        if let Some(why) = slot.ended {
            return Err(PostError::Ended(why));
        }
        let (flow, shared) = self.flow(index, now_ns);
        if !flow.outgoing.has_room(flow.next_message_id) {
            return Err(PostError::Busy);
        }
        flow.touch(now_ns);
        flow.post(send, &shared.config);
        self.settle(index, now_ns, true);
        Ok(())
    }

    /// Names where an offered message goes: data of at most `length_bytes` will arrive for `landing`. Zero bytes discards
    /// the message, and its sender sees it as delivered. `Landed` or `LandingFailed` follows, exactly once.
    ///
    /// # Errors
    /// [`PostError::Busy`] when 64 landings of this remote are open: try again after progress.
    pub fn accept(
        &mut self,
        now_ns: u64,
        offer: Offer,
        landing: u64,
        length_bytes: u64,
    ) -> Result<(), PostError> {
        let index = offer.remote.0;
        let (flow, shared) = self.known_flow(index)?;
        if flow.open_offer_count == 0 || flow.identity.life != offer.life {
            return Err(PostError::Unknown);
        }
        let mut name = 0;
        if length_bytes > 0 {
            name = flow
                .landings
                .insert(landing, offer.message_id, length_bytes)
                .ok_or(PostError::Busy)?;
            flow.account.want(length_bytes);
        } else {
            shared.events.push_back(Event::Landed { landing });
        }
        flow.open_offer_count -= 1;
        flow.touch(now_ns);
        flow.control(Piece::Accept {
            message_id: offer.message_id,
            landing: name,
        });
        if flow.account.wants() && !flow.awaits_grant {
            flow.awaits_grant = true;
            self.grants.push_back(index);
        }
        self.grant(now_ns);
        self.settle(index, now_ns, true);
        Ok(())
    }

    /// Declines an offered message for good; its sender's send fails.
    ///
    /// # Errors
    /// [`PostError::Unknown`] when no offer of this remote is open.
    pub fn refuse(&mut self, now_ns: u64, offer: Offer, reason: Reason) -> Result<(), PostError> {
        let (flow, _) = self.known_flow(offer.remote.0)?;
        if flow.open_offer_count == 0 || flow.identity.life != offer.life {
            return Err(PostError::Unknown);
        }
        flow.open_offer_count -= 1;
        flow.touch(now_ns);
        flow.control(Piece::Refusal {
            message_id: offer.message_id,
            reason,
        });
        self.settle(offer.remote.0, now_ns, true);
        Ok(())
    }

    /// Tells the sender of a message that wanted a receipt that it is in the buffer of the receive it matched. `of` names
    /// the message, whether it was offered or came whole.
    ///
    /// # Errors
    /// [`PostError::Unknown`] when nothing is under way with this remote, or the process that sent the message is gone:
    /// another one at its address numbers its messages from 0 too (srd-protocol 12.6). [`PostError::Busy`] when more
    /// receipts wait than there can be messages.
    pub fn receipt(&mut self, now_ns: u64, of: Offer) -> Result<(), PostError> {
        let lives = |slot: &Slot| slot.ended.is_none() && slot.identity().life == of.life;
        if !self.slots.get(of.remote.0 as usize).is_some_and(lives) {
            return Err(PostError::Unknown);
        }
        let (flow, _) = self.flow(of.remote.0, now_ns);
        flow.touch(now_ns);
        let message_id = of.message_id;
        if !flow.control(Piece::Receipt { message_id }) {
            return Err(PostError::Busy);
        }
        self.settle(of.remote.0, now_ns, true);
        Ok(())
    }

    /// Tells how many bytes of this remote's messages the owner keeps unread: that much less may come (srd-protocol 11.3).
    pub fn set_unread(&mut self, now_ns: u64, remote: Remote, bytes: u64) {
        let Ok((flow, shared)) = self.known_flow(remote.0) else {
            return;
        };
        let window = shared.config.memory.receive_window_bytes;
        if flow.inbox.set_unread(bytes, window) {
            flow.received.want_now();
            self.settle(remote.0, now_ns, true);
        }
    }

    /// How far this receiver is behind: 0 not at all, 64 halve, 127 nearly stop (srd-protocol 10.6).
    pub fn set_penalty(&mut self, penalty: u8) {
        self.shared.penalty = penalty.min(127);
    }

    /// Takes a datagram that has just arrived; `from` is the address it came from. Fast path.
    pub fn handle_datagram<'d>(
        &mut self,
        now_ns: u64,
        from: SocketAddr,
        datagram: &'d [u8],
    ) -> Arrival<'d> {
        self.handle_waiting_datagram(now_ns, Origin { from, waited_ns: 0 }, datagram)
    }

    /// Takes a datagram that has waited in a socket. A driver that knows for how long (SO_TIMESTAMPNS) says so here: it
    /// is no delay of the network, and must not slow the sender down. Fast path.
    pub fn handle_waiting_datagram<'d>(
        &mut self,
        now_ns: u64,
        origin: Origin,
        datagram: &'d [u8],
    ) -> Arrival<'d> {
        self.shared.statistics.received_count += 1;
        let Ok(packet) = Packet::parse(datagram) else {
            self.shared.statistics.malformed_count += 1;
            return Arrival::Nothing;
        };
        let came = Came {
            from: origin.from,
            now_ns,
            bytes: datagram.len(),
        };
        let Some(index) = self.locate(&packet, came) else {
            self.shared.statistics.foreign_count += 1;
            return Arrival::Nothing;
        };
        let (flow, shared) = self.flow(index, now_ns);
        let moment = Moment {
            now_ns,
            waited_ns: origin.waited_ns,
            datagram_bytes: datagram.len(),
            is_news: false,
        };
        let arrival = flow.on_packet(shared, &packet, moment);
        self.grant(now_ns);
        self.settle(index, now_ns, true);
        arrival
    }

    /// The next datagram to send, if any can leave now.
    pub fn poll_transmit(&mut self, now_ns: u64) -> Option<Transmit> {
        let mut place = Transmit::blank();
        self.poll_transmit_to(now_ns, &mut place).then_some(place)
    }

    /// The same, written to a place of the caller's, which is used again and again: datagrams are large. Answers whether there is
    /// one. Fast path.
    pub fn poll_transmit_to(&mut self, now_ns: u64, place: &mut Transmit) -> bool {
        if self.has_to_say()
            && let Some(said) = self.say()
        {
            *place = said;
            return true;
        }
        while let Some(index) = self.turns.front().copied() {
            let slot = &mut self.slots[index as usize];
            if let Some(flow) = &mut slot.flow
                && flow.poll(&mut self.shared, now_ns, place)
            {
                // Remotes take turns by batch: whoever has begun one ends it.
                if self.turns.len() > 1 && !flow.sender.batch_is_open() {
                    self.turns.rotate_left(1);
                }
                self.settle(index, now_ns, false);
                return true;
            }
            slot.in_turn = false;
            self.turns.pop_front();
            self.settle(index, now_ns, false);
        }
        false
    }

    /// What has happened, oldest first.
    #[inline]
    pub fn poll_event(&mut self) -> Option<Event> {
        if self.shared.events.is_empty() {
            return None;
        }
        let event = self.shared.events.pop_front();
        if matches!(event, Some(Event::Message { .. } | Event::Offer { .. })) {
            self.shared.ordered_event_count -= 1;
        }
        event
    }

    /// Counts since the machine began.
    pub fn statistics(&self) -> Statistics {
        self.shared.statistics
    }

    /// Our incarnation.
    pub fn incarnation(&self) -> u64 {
        self.shared.incarnation
    }

    /// Payload bytes of messages that wait for their turn or for their other segments.
    pub fn held_bytes(&self) -> u64 {
        self.shared.held_bytes
    }

    /// Whether anything is under way with anybody.
    pub fn is_busy(&self) -> bool {
        self.slots
            .iter()
            .any(|slot| slot.flow.as_ref().is_some_and(|flow| flow.is_busy()))
    }

    /// Gives credit to accepted messages in turn (srd-protocol 11.1).
    #[inline]
    pub(crate) fn grant(&mut self, now_ns: u64) {
        if !self.grants.is_empty() {
            self.grant_in_turn(now_ns);
        }
    }

    fn grant_in_turn(&mut self, now_ns: u64) {
        while self.shared.pool.has_room() {
            let Some(index) = self.grants.pop_front() else {
                return;
            };
            let Some(flow) = self.slots[index as usize].flow.as_mut() else {
                continue;
            };
            if !flow.account.wants() {
                flow.awaits_grant = false;
                continue;
            }
            // A sender with much unused credit hears of more with its next acknowledgement.
            if flow.account.outstanding_bytes() < GRANT_SOON_BYTES {
                flow.received.want_now();
            }
            flow.account.grant(&mut self.shared.pool, now_ns);
            self.grants.push_back(index);
            self.settle(index, now_ns, true);
        }
    }

    /// The flow of a remote, unfolded if need be.
    pub(crate) fn flow(&mut self, index: u32, now_ns: u64) -> (&mut Flow, &mut Shared) {
        let Slot { flow, rest, .. } = &mut self.slots[index as usize];
        let shared = &mut self.shared;
        let flow = flow.get_or_insert_with(|| Box::new(Flow::new(index, rest, shared, now_ns)));
        (flow, shared)
    }

    pub(crate) fn known_flow(&mut self, index: u32) -> Result<(&mut Flow, &mut Shared), PostError> {
        let slot = self
            .slots
            .get_mut(index as usize)
            .ok_or(PostError::Unknown)?;
        let flow = slot.flow.as_deref_mut().ok_or(PostError::Unknown)?;
        Ok((flow, &mut self.shared))
    }
}
