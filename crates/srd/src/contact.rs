// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Whose packet it is: first contact, restarted remotes, ended flows, farewells (srd-protocol 6,
//! 13, 14.6, 14.9). Called by machine for every packet; begins and ends flows.

use std::net::SocketAddr;
use weft_wire::marks::Ecn;
use weft_wire::time::{Instant, Nanos};

use weft_wire::stale::STALE_BYTES;
use weft_wire::{Alive, Body, Greeting, Header, Hello, Kind, Packet, Stale};

use crate::events::{Failure, Transmit};
use crate::flow::Moment;
use crate::flows::Flows;
use crate::greeting::{cookie, is_fresh};
use crate::remotes::Slot;
use crate::replies::{Replies, stateless};
use crate::transmit::Turn;

/// What answers something older is played back (chosen: more than any network keeps a packet).
const ECHO_LIMIT_NS: Nanos = Nanos(8_000_000_000);
/// Farewell packets to each remote, on paths that have no port in common (chosen: two losses in a
/// row are rare).
const FAREWELLS: u8 = 2;

/// Where a datagram came from, when, and how long it is.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Came {
    pub(crate) from: SocketAddr,
    pub(crate) now_ns: Instant,
    pub(crate) bytes: usize,
}

impl Came {
    /// Whether something that answers what we sent then answers it soon (srd-protocol 14.9).
    fn is_answer_to(&self, sent_ns: Instant) -> bool {
        let age_ns = self.now_ns.checked_since(sent_ns);
        age_ns.is_some_and(|age_ns| age_ns <= ECHO_LIMIT_NS)
    }
}

/// A packet of which it is asked whose it is.
#[derive(Debug)]
pub(crate) struct Contact<'a> {
    pub(crate) flows: &'a mut Flows,
    pub(crate) replies: &'a mut Replies,
    pub(crate) packet: &'a Packet<'a>,
    pub(crate) came: Came,
}

impl Contact<'_> {
    /// Finds or creates the flow of the packet (srd-protocol 6.3 to 6.5).
    pub(crate) fn locate(&mut self) -> Option<u32> {
        let header = &self.packet.header;
        let own = self.flows.shared.incarnation;
        if header.source == own && !self.is_for_ourselves() {
            return None;
        }
        if self.take_word() {
            return None;
        }
        if header.target != 0 && header.target != own {
            self.answer_stale();
            return None;
        }
        let found = self.find()?;
        let known = found.map_or(0, |index| self.flows.remotes[index].incarnation());
        let fresh_contact = self.flows.shared.config.fresh_contact;
        if let Some(slot) = found.map(|index| &self.flows.remotes[index]) {
            if slot.former.contains(&header.source) {
                return None;
            }
            // It knows a flow of ours that has ended: tell it. One that knows nothing of us may
            // begin.
            let knows = header.target != 0 && !fresh_contact;
            if slot.ended.is_some() && (knows || known == header.source) {
                self.answer_stale();
                return None;
            }
        }
        if known == header.source && (header.target != 0 || !fresh_contact) {
            return found;
        }
        self.begin(found, known)
    }

    /// The packet is of a process that we do not know at its address, where we may know another.
    fn begin(&mut self, found: Option<u32>, known: u64) -> Option<u32> {
        let header = &self.packet.header;
        let hello = self.packet.hello.as_ref()?;
        let address = address_of(hello, self.came.from)?;
        if self.flows.shared.config.fresh_contact {
            if !is_fresh(self.flows, address, self.packet, self.came.now_ns) {
                self.greet(hello, address);
                return None;
            }
            // A process may know us under two addresses, and then calls us by two numbers.
            let elsewhere = |slot: &Slot| {
                let identity = slot.identity();
                identity.incarnation == header.source && identity.context == hello.context
            };
            if self.flows.remotes.iter().any(elsewhere) {
                return None;
            }
        }
        let index = match found {
            Some(index) => index,
            None => {
                let Flows {
                    remotes, shared, ..
                } = &mut *self.flows;
                remotes.add(address, &shared.config)?
            }
        };
        self.flows.remotes[index].ended = None;
        if known != 0 {
            self.flows.restart(index, known);
        }
        Some(index)
    }

    /// Takes what is no packet of a flow but speaks of one; whether it was such a word. Nobody else
    /// can be told that this one is gone, and no other answer is for us.
    fn take_word(&mut self) -> bool {
        let for_us = self.packet.header.target == self.flows.shared.incarnation;
        match &self.packet.body {
            Body::Stale(stale) if for_us => self.take_stale(stale),
            Body::Greeting(greeting) if for_us => self.take_greeting(greeting),
            Body::Alive(alive) if for_us => self.take_alive(alive),
            Body::Stale(_) | Body::Greeting(_) | Body::Alive(_) => {}
            _ => return false,
        }
        true
    }

    /// Whether a packet of our own may come back to us: only if we are a remote of ourselves, and
    /// it is for that one. All others are thrown back by somebody (srd-protocol 14.9).
    #[cold]
    fn is_for_ourselves(&self) -> bool {
        let header = &self.packet.header;
        let shared = &self.flows.shared;
        let own = self.flows.remotes.at(shared.config.home());
        let for_own = header.target == 0 || header.target == shared.incarnation;
        for_own && own.is_some_and(|own| header.context == 0 || header.context == own + 1)
    }

    /// The remote that the packet names, by number or by address; `None` for a packet that names
    /// none, `Some(None)` for a stranger.
    fn find(&self) -> Option<Option<u32>> {
        let index = match self.packet.header.context {
            0 => {
                let begins = may_begin(self.packet.body.kind());
                let hello = self.packet.hello.filter(|_| begins)?;
                let address = address_of(&hello, self.came.from)?;
                return Some(self.flows.remotes.at(address));
            }
            context => context - 1,
        };
        self.flows.remotes.get(index).map(|_| Some(index))
    }

    /// The remote that fits, in a scan of all: for answers of a process that does not know what we
    /// call it. Slow path.
    fn named(&self, fits: impl Fn(&Slot) -> bool) -> Option<u32> {
        let place = self.flows.remotes.iter().position(fits)?;
        Some(place as u32)
    }

    /// srd-protocol 6.5.
    fn take_stale(&mut self, stale: &Stale) {
        let incarnation = stale.incarnation;
        let Some(index) = self.named(|slot| slot.incarnation() == incarnation) else {
            return;
        };
        let Flows {
            remotes, shared, ..
        } = &mut *self.flows;
        if self.packet.header.source == incarnation {
            // The same process has ended its flow with us, after it took what it acknowledges
            // (srd-protocol 13.4).
            if let Some(flow) = &mut remotes[index].flow {
                let moment = Moment {
                    now_ns: self.came.now_ns,
                    waited_ns: Nanos::ZERO,
                    datagram_bytes: self.came.bytes,
                    ecn: Ecn::Unknown,
                };
                flow.take_section(shared, self.packet, &moment, false);
            }
            self.flows.end(index, Failure::Lost);
            return;
        }
        // Whoever is given a packet that was for another process answers so: it must be the one
        // that has the same address, by its own word, and it must have come after what it answers
        // had left.
        let home = said_home(stale.home, self.came.from);
        let lately = self.came.is_answer_to(stale.echo_sent_ns);
        if lately && remotes[index].rest.identity.address == home {
            self.flows.restart(index, incarnation);
        }
    }

    /// srd-protocol 6.5, 14.3: never longer than what it answers.
    fn answer_stale(&mut self) {
        if self.came.bytes < STALE_BYTES {
            return;
        }
        let header = &self.packet.header;
        let shared = &self.flows.shared;
        let incarnation = if header.target == 0 {
            shared.incarnation
        } else {
            header.target
        };
        let stale = Stale {
            incarnation,
            echo_sent_ns: header.sent_ns,
            home: shared.config.home(),
        };
        let (to, now_ns) = (self.came.from, self.came.now_ns);
        let answer = Header::unreliable(
            header.path.reverse(),
            shared.incarnation,
            header.source,
            now_ns,
        );
        self.replies
            .push_stale(now_ns, || stateless(to, answer, Body::Stale(stale)));
    }

    /// Answers a stranger, who is known by `address`: shorter than any packet with a hello
    /// (srd-protocol 14.3, 14.6).
    fn greet(&mut self, hello: &Hello, address: SocketAddr) {
        let header = &self.packet.header;
        let now_ns = self.came.now_ns;
        let (flows, to) = (&*self.flows, self.came.from);
        self.replies.push_greeting(|| {
            let greeting = Greeting {
                echo_sent_ns: header.sent_ns,
                cookie: cookie(flows, address, header.source, now_ns),
                home: flows.shared.config.home(),
            };
            let (path, own) = (header.path.reverse(), flows.shared.incarnation);
            let answer = Header {
                context: hello.context,
                ..Header::unreliable(path, own, header.source, now_ns)
            };
            stateless(to, answer, Body::Greeting(greeting))
        });
    }

    /// Heeds a greeting that answers what we have said lately to a remote we do not know yet.
    fn take_greeting(&mut self, greeting: &Greeting) {
        let (header, came) = (&self.packet.header, self.came);
        let index = header.context.wrapping_sub(1);
        let Flows {
            remotes, shared, ..
        } = &mut *self.flows;
        let Some(slot) = remotes.get_mut(index) else {
            return;
        };
        let lately = came.is_answer_to(greeting.echo_sent_ns);
        let gone = slot.ended.is_some() || slot.former.contains(&header.source);
        let Some(flow) = slot.flow.as_mut().filter(|_| lately && !gone) else {
            return;
        };
        let identity = &flow.identity;
        let unknown = identity.incarnation == 0;
        let again = identity.incarnation == header.source && !identity.has_hello();
        let wanted = unknown || (again && identity.cookie != greeting.cookie);
        // Of several the newest counts: an older one that is played back does not bring its cookie
        // back.
        if wanted
            && identity.address == said_home(greeting.home, came.from)
            && flow.silence.is_news(header.sent_ns)
        {
            flow.on_greeting(shared, header.source, greeting.cookie, came.now_ns);
            self.flows.settle(index, came.now_ns, true);
        }
    }

    /// The process at a remote's address says that it lives (srd-protocol 13.6).
    fn take_alive(&mut self, alive: &Alive) {
        let now_ns = self.came.now_ns;
        let home = said_home(alive.home, self.came.from);
        let index = self.named(|slot| {
            let known = slot.incarnation();
            let same = known == alive.incarnation || known == 0;
            same && slot.identity().address == home
        });
        if let Some(index) = index
            && let Some(flow) = &mut self.flows.remotes[index].flow
            && alive.echo_sent_ns <= now_ns
        {
            flow.silence.on_alive(alive.echo_sent_ns);
            self.flows.settle(index, now_ns, false);
        }
    }
}

/// Says farewell to every remote that may count on us, in [`FAREWELLS`] packets each (srd-protocol
/// 13.4). What is under way fails. Slow path.
pub(crate) fn say_farewell(flows: &mut Flows, replies: &mut Replies, now_ns: Instant) {
    for index in 0..flows.remotes.count() as u32 {
        let slot = &flows.remotes[index];
        let identity = *slot.identity();
        if slot.ended.is_some() || identity.incarnation == 0 {
            continue;
        }
        for attempt in 0..FAREWELLS {
            let path = identity.reach.first_path(attempt);
            let own = flows.shared.incarnation;
            let farewell = match &mut flows.remotes[index].flow {
                Some(flow) => {
                    let mut farewell = Transmit::blank();
                    let mut turn = Turn {
                        flow,
                        shared: &mut flows.shared,
                        now_ns,
                        place: &mut farewell,
                    };
                    turn.say_farewell(path);
                    farewell
                }
                None => {
                    let stale = Stale {
                        incarnation: own,
                        echo_sent_ns: Instant::START,
                        home: flows.shared.config.home(),
                    };
                    let header = Header::unreliable(path, own, identity.incarnation, now_ns);
                    stateless(identity.target(path), header, Body::Stale(stale))
                }
            };
            replies.farewells.push(farewell);
        }
        flows.end(index, Failure::Lost);
    }
}

/// Whether packets of this kind may create a flow (srd-protocol 6.3): everything a remote may begin
/// with.
fn may_begin(kind: Kind) -> bool {
    !matches!(kind, Kind::Stale | Kind::Greeting | Kind::Alive)
}

/// Where a stranger says it is; `None` if that is not where it writes from. Who says nothing is
/// where it writes from.
fn address_of(hello: &Hello, from: SocketAddr) -> Option<SocketAddr> {
    let said = said_home(SocketAddr::new(hello.address, hello.ports[0]), from);
    (said.ip() == from.ip()).then_some(said)
}

/// The address that a writer has by its own word. A simulated one may say nothing.
fn said_home(home: SocketAddr, from: SocketAddr) -> SocketAddr {
    if home.ip().is_unspecified() {
        return SocketAddr::new(from.ip(), home.port());
    }
    home
}
