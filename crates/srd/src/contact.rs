// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Whose packet it is: first contact, restarted remotes, ended flows (srd-protocol 6, 13). The other half of machine.

use std::net::SocketAddr;

use weft_wire::hello::DATAGRAM_BYTES_LEAST;
use weft_wire::stale::STALE_BYTES;
use weft_wire::{Body, Head, Header, Hello, Packet, Path, Stale};

use crate::events::{Failure, Remote, Transmit};
use crate::flow::{Identity, Rest};
use crate::machine::{Machine, Slot};
use crate::receive::may_begin;

/// At most one stale answer in this time (srd-protocol 6.5).
const STALE_EVERY_NS: u64 = 10_000_000;
/// What answers something older is played back (chosen: more than any network keeps a packet).
pub(crate) const ECHO_LIMIT_NS: u64 = 8_000_000_000;
/// Farewell packets to each remote, on paths that have no port in common (chosen: two losses in a row are rare).
const FAREWELLS: u8 = 2;

/// Where a datagram came from, when, and how long it is.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Came {
    pub(crate) from: SocketAddr,
    pub(crate) now_ns: u64,
    pub(crate) bytes: usize,
}

impl Slot {
    pub(crate) fn identity(&self) -> &Identity {
        let flow = self.flow.as_ref().map(|flow| &flow.identity);
        flow.unwrap_or(&self.rest.identity)
    }

    /// Of the remote; 0 if not known.
    pub(crate) fn incarnation(&self) -> u64 {
        self.identity().incarnation
    }
}

impl Machine {
    /// Says that this host carries datagrams of up to so many bytes to a remote, where that differs from
    /// [`Config::datagram_bytes`](crate::Config::datagram_bytes); at least 1200 are taken. `is_proven` if that holds as far
    /// as the remote; else those above an Ethernet frame's wait until one has arrived (srd-protocol 16.1).
    pub fn set_datagram_bytes(&mut self, now_ns: u64, remote: Remote, bytes: u16, is_proven: bool) {
        let Some(slot) = self.slots.get_mut(remote.0 as usize) else {
            return;
        };
        slot.rest.identity.own_datagram_bytes = bytes.max(DATAGRAM_BYTES_LEAST);
        slot.rest.identity.is_proven = is_proven;
        if let Some(flow) = &mut slot.flow {
            flow.identity.own_datagram_bytes = bytes.max(DATAGRAM_BYTES_LEAST);
            flow.identity.is_proven = is_proven;
            flow.size_datagrams(now_ns);
        }
    }

    /// Finds or creates the flow of a packet (srd-protocol 6.3 to 6.5).
    pub(crate) fn locate(&mut self, packet: &Packet<'_>, came: Came) -> Option<u32> {
        let header = &packet.header;
        let own = self.shared.incarnation;
        if header.source == own && !self.is_for_ourselves(header) {
            return None;
        }
        if self.take_word(packet, came) {
            return None;
        }
        if header.target != 0 && header.target != own {
            self.answer_stale(header, came);
            return None;
        }
        let found = self.find(packet, came.from)?;
        let known = found.map_or(0, |index| self.slots[index as usize].incarnation());
        if let Some(slot) = found.map(|index| &self.slots[index as usize]) {
            if slot.former.contains(&header.source) {
                return None;
            }
            // It knows a flow of ours that has ended: tell it. One that knows nothing of us may begin.
            let knows = header.target != 0 && !self.shared.config.fresh_contact;
            if slot.ended.is_some() && (knows || known == header.source) {
                self.answer_stale(header, came);
                return None;
            }
        }
        let fresh_contact = self.shared.config.fresh_contact;
        if known == header.source && (header.target != 0 || !fresh_contact) {
            return found;
        }
        let hello = packet.hello.as_ref()?;
        let address = address_of(hello, came.from)?;
        if fresh_contact {
            if !self.is_fresh(address, packet, came.now_ns) {
                self.greet(header, hello, (came.from, address), came.now_ns);
                return None;
            }
            // A process may know us under two addresses, and then calls us by two numbers.
            let elsewhere = |slot: &Slot| {
                let identity = slot.identity();
                identity.incarnation == header.source && identity.context == hello.context
            };
            if self.slots.iter().any(elsewhere) {
                return None;
            }
        }
        let index = match found {
            Some(index) => index,
            None => self.remote(address)?.0,
        };
        self.slots[index as usize].ended = None;
        if known != 0 {
            self.restart(index, known);
        }
        Some(index)
    }

    /// Takes what is no packet of a flow but speaks of one; whether it was such a word. Nobody else can be told that this one
    /// is gone, and no other answer is for us.
    fn take_word(&mut self, packet: &Packet<'_>, came: Came) -> bool {
        let for_us = packet.header.target == self.shared.incarnation;
        match &packet.body {
            Body::Stale(stale) if for_us => self.take_stale(stale, packet, came),
            Body::Greeting(greeting) if for_us => {
                self.take_greeting(&packet.header, greeting, came);
            }
            Body::Alive(alive) if for_us => self.take_alive(alive, came),
            Body::Stale(_) | Body::Greeting(_) | Body::Alive(_) => {}
            _ => return false,
        }
        true
    }

    /// Whether a packet of our own may come back to us: only if we are a remote of ourselves, and it is for that one. All
    /// others are thrown back by somebody (srd-protocol 14.9).
    #[cold]
    fn is_for_ourselves(&self, header: &Header) -> bool {
        let own = self.by_address.get(&self.shared.config.home());
        let for_own = header.target == 0 || header.target == self.shared.incarnation;
        for_own && own.is_some_and(|own| header.context == 0 || header.context == own + 1)
    }

    /// The slot that a packet names, by number or by address; `None` for a packet that names none, `Some(None)` for a
    /// stranger.
    fn find(&self, packet: &Packet<'_>, from: SocketAddr) -> Option<Option<u32>> {
        let index = match packet.header.context {
            0 => {
                let hello = packet.hello.filter(|_| may_begin(packet.body.kind()))?;
                let address = address_of(&hello, from)?;
                return Some(self.by_address.get(&address).copied());
            }
            context => context - 1,
        };
        ((index as usize) < self.slots.len()).then_some(Some(index))
    }

    /// The remote is another process now (srd-protocol 6.4).
    fn restart(&mut self, index: u32, gone: u64) {
        let slot = &mut self.slots[index as usize];
        slot.former = [gone, slot.former[0]];
        let identity = slot.rest.identity;
        slot.rest = Rest::anew(&identity, &self.shared.config);
        if let Some(mut flow) = slot.flow.take() {
            flow.fail(&mut self.shared, Failure::Restarted);
        }
    }

    /// srd-protocol 6.5. Slow path; a scan, since the answer comes from a process that does not know our context.
    fn take_stale(&mut self, stale: &Stale, packet: &Packet<'_>, came: Came) {
        let incarnation = stale.incarnation;
        let named = |slot: &Slot| slot.incarnation() == incarnation;
        let Some(index) = self.slots.iter().position(named) else {
            return;
        };
        if packet.header.source == incarnation {
            // The same process has ended its flow with us, after it took what it acknowledges.
            if let Some(flow) = &mut self.slots[index].flow {
                flow.on_farewell(&mut self.shared, packet, came.now_ns);
            }
            self.end(index as u32, Failure::Lost);
            return;
        }
        // Whoever is given a packet that was for another process answers so: it must be the one that has the same address,
        // by its own word, and it must have come after what it answers had left.
        let home = said_home(stale.home, came.from);
        let lately = came.is_answer_to(stale.echo_sent_ns);
        if lately && self.slots[index].rest.identity.address == home {
            self.restart(index as u32, incarnation);
        }
    }

    /// srd-protocol 6.5, 14.3: never longer than what it answers.
    fn answer_stale(&mut self, header: &Header, came: Came) {
        let now_ns = came.now_ns;
        let soon = self.stale_ns != 0 && now_ns < self.stale_ns + STALE_EVERY_NS;
        if soon || came.bytes < STALE_BYTES {
            return;
        }
        self.stale_ns = now_ns;
        let incarnation = if header.target == 0 {
            self.shared.incarnation
        } else {
            header.target
        };
        let path = header.path.reverse();
        let stale = Stale {
            incarnation,
            echo_sent_ns: header.sent_ns,
            home: self.shared.config.home(),
        };
        self.stale = Some(self.write_stale(stale, header.source, (came.from, path), now_ns));
    }

    fn write_stale(
        &self,
        stale: Stale,
        target: u64,
        (to, path): (SocketAddr, Path),
        now_ns: u64,
    ) -> Transmit {
        let packet = Packet {
            header: Header {
                path,
                acknowledge_now: false,
                retransmission: false,
                sealed: false,
                context: 0,
                source: self.shared.incarnation,
                target,
                sent_ns: now_ns,
                sequence: 0,
            },
            hello: None,
            acknowledgement: None,
            body: Body::Stale(stale),
            payload: &[],
        };
        let mut head = Head::new();
        packet.write(&mut head);
        Transmit {
            to,
            path,
            head,
            payload: None,
            padding_bytes: 0,
        }
    }

    /// Says farewell to every remote that may count on us, in [`FAREWELLS`] packets each, with the next
    /// `poll_transmit` (srd-protocol 13.4). What is under way fails. For an endpoint that closes; slow path.
    pub fn farewell(&mut self, now_ns: u64) {
        for index in 0..self.slots.len() {
            let slot = &self.slots[index];
            let identity = match &slot.flow {
                Some(flow) => flow.identity,
                None => slot.rest.identity,
            };
            if slot.ended.is_some() || identity.incarnation == 0 {
                continue;
            }
            let (own, target) = (self.shared.incarnation, identity.incarnation);
            for attempt in 0..FAREWELLS {
                let path = identity.reach.first_path(attempt);
                let farewell = match &mut self.slots[index].flow {
                    Some(flow) => flow.write_farewell(&mut self.shared, path, now_ns),
                    None => {
                        let to = self.slots[index].rest.identity.target(path);
                        let stale = Stale {
                            incarnation: own,
                            echo_sent_ns: 0,
                            home: self.shared.config.home(),
                        };
                        self.write_stale(stale, target, (to, path), now_ns)
                    }
                };
                self.farewells.push(farewell);
            }
            self.end(index as u32, Failure::Lost);
        }
    }

    /// Whether remotes still lack messages or answers of ours that they need not ask for. Slow path.
    pub fn owes(&self) -> bool {
        let flows = self.slots.iter().filter_map(|slot| slot.flow.as_ref());
        flows.into_iter().any(|flow| flow.owes())
    }

    /// Asks that the end of a remote be noticed even if nothing is under way with it, or no longer (srd-protocol 13.2).
    /// Watching costs a probe for each fifth of `dead_after` in which nothing was heard.
    pub fn watch(&mut self, now_ns: u64, remote: Remote, on: bool) {
        let Some(slot) = self.slots.get(remote.0 as usize) else {
            return;
        };
        if slot.ended.is_some() || (slot.flow.is_none() && !on) {
            return;
        }
        let (flow, _) = self.flow(remote.0, now_ns);
        flow.silence.watched = on;
        self.settle(remote.0, now_ns, true);
    }

    /// There is reason to try again with a remote that has ended: another process may have its address now. The one that
    /// was there is not heard any more (srd-protocol 6.4). Nothing happens to one that has not ended. Slow path.
    pub fn begin_again(&mut self, remote: Remote) {
        let Some(slot) = self.slots.get_mut(remote.0 as usize) else {
            return;
        };
        let known = slot.incarnation();
        if slot.ended.take().is_some() && known != 0 {
            self.restart(remote.0, known);
        }
    }

    /// Why a remote has ended, if it has and has not come back as another incarnation.
    pub fn ended(&self, remote: Remote) -> Option<Failure> {
        self.slots.get(remote.0 as usize)?.ended
    }

    /// The system said that a host refuses our datagrams (srd-protocol 13.3).
    pub fn handle_refused(&mut self, now_ns: u64, remote: Remote) {
        let Ok((flow, shared)) = self.known_flow(remote.0) else {
            return;
        };
        let dead_after_ns = shared.config.timing.dead_after_ns;
        flow.silence.on_refused(now_ns, dead_after_ns);
        self.settle(remote.0, now_ns, true);
    }

    /// The remote that has told us of this port, or is known by it. Slow path: a scan of all remotes.
    pub fn remote_with_port(&self, at: SocketAddr) -> Option<Remote> {
        let has = |slot: &Slot| slot.identity().answers_at(at);
        let index = self.slots.iter().position(has)?;
        Some(Remote(index as u32))
    }

    /// Remotes of which nothing was heard for half of `dead_after` although something is expected, and where they are: a
    /// driver that can asks their hosts (srd-protocol 13.5). Slow path.
    pub fn silent(&self, now_ns: u64) -> Vec<(Remote, SocketAddr)> {
        let patience_ns = self.shared.config.timing.dead_after_ns / 2;
        let silent = |slot: &Slot| {
            let flow = slot.flow.as_ref()?;
            let waits = flow.silence.unanswered_ns.saturating_add(patience_ns) <= now_ns;
            waits.then(|| flow.identity.target(flow.received.lone_path()))
        };
        let slots = self.slots.iter().enumerate();
        slots
            .filter_map(|(index, slot)| Some((Remote(index as u32), silent(slot)?)))
            .collect()
    }

    /// The host of a silent remote has answered: the process may compute, or be stopped; else its host would refuse our
    /// datagrams. Its silence counts from now on, for a while (srd-protocol 13.5).
    pub fn handle_host_alive(&mut self, now_ns: u64, remote: Remote) {
        let Ok((flow, shared)) = self.known_flow(remote.0) else {
            return;
        };
        let dead_after_ns = shared.config.timing.dead_after_ns;
        flow.silence.on_host_alive(now_ns, dead_after_ns);
        self.settle(remote.0, now_ns, false);
    }

    /// Ends a flow for good (srd-protocol 13.1).
    pub(crate) fn end(&mut self, index: u32, why: Failure) {
        let slot = &mut self.slots[index as usize];
        slot.ended = Some(why);
        if let Some(mut flow) = slot.flow.take() {
            let identity = flow.identity;
            flow.fail(&mut self.shared, why);
            slot.rest = Rest::anew(&identity, &self.shared.config);
            slot.rest.identity.incarnation = identity.incarnation;
        }
    }
}

impl Came {
    /// Whether something that answers what we sent then answers it soon (srd-protocol 14.9).
    pub(crate) fn is_answer_to(&self, sent_ns: u64) -> bool {
        let age_ns = self.now_ns.checked_sub(sent_ns);
        age_ns.is_some_and(|age_ns| age_ns <= ECHO_LIMIT_NS)
    }
}

/// Where a stranger says it is; `None` if that is not where it writes from. Who says nothing is where it writes from.
fn address_of(hello: &Hello, from: SocketAddr) -> Option<SocketAddr> {
    let said = said_home(SocketAddr::new(hello.address, hello.ports[0]), from);
    (said.ip() == from.ip()).then_some(said)
}

/// The address that a writer has by its own word. A simulated one may say nothing.
pub(crate) fn said_home(home: SocketAddr, from: SocketAddr) -> SocketAddr {
    if home.ip().is_unspecified() {
        return SocketAddr::new(from.ip(), home.port());
    }
    home
}
