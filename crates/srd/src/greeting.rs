// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Proof that a stranger lives now, at the address it writes from, before anything of it is taken (srd-protocol 14.6).
//!
//! Called by contact, when packets may be played back: whenever there is a job key. Greetings keep no state; what they
//! ask for, the cookie, can be computed again when it comes back.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::net::SocketAddr;

use weft_wire::{Body, Greeting, Head, Header, Hello, Packet};

use crate::contact::{Came, said_home};
use crate::events::Transmit;
use crate::flow::{Flow, Shared};
use crate::loss;
use crate::machine::Machine;

/// A cookie holds for this long, and for as long again (chosen: longer than a lost greeting and its repetition).
const COOKIE_NS: u64 = 4_000_000_000;
/// Greetings that wait to leave; strangers beyond them ask again (chosen: 24 KiB).
const WAITING_LIMIT: usize = 64;

impl Machine {
    /// Whether there is a packet that is of no flow.
    #[inline]
    pub(crate) fn has_to_say(&self) -> bool {
        self.stale.is_some() || !self.greetings.is_empty() || !self.farewells.is_empty()
    }

    /// The next packet that is of no flow.
    #[cold]
    pub(crate) fn say(&mut self) -> Option<Transmit> {
        let stale = self.stale.take();
        stale
            .or_else(|| self.greetings.pop())
            .or_else(|| self.farewells.pop())
    }

    /// Not a secret: whoever could use one needs the job's key to write the packet around it. Who was known at the address
    /// goes in, so that a cookie dies with the first that uses it.
    fn cookie(&self, stranger: SocketAddr, incarnation: u64, period: u64) -> u64 {
        let mut hasher = DefaultHasher::new();
        (self.shared.incarnation, stranger, incarnation, period).hash(&mut hasher);
        let index = self.by_address.get(&stranger);
        if let Some(slot) = index.and_then(|index| self.slots.get(*index as usize)) {
            let known = slot.identity().incarnation;
            // What a greeting has told us is not yet a contact.
            let known = if known == incarnation { 0 } else { known };
            (slot.former, known).hash(&mut hasher);
        } else {
            ([0u64; 2], 0u64).hash(&mut hasher);
        }
        hasher.finish().max(1)
    }

    /// Whether a stranger has repeated what we asked it to, lately.
    pub(crate) fn is_fresh(&self, stranger: SocketAddr, packet: &Packet<'_>, now_ns: u64) -> bool {
        let Some(hello) = &packet.hello else {
            return false;
        };
        let period = now_ns / COOKIE_NS;
        let source = packet.header.source;
        let now = self.cookie(stranger, source, period);
        let before = self.cookie(stranger, source, period.wrapping_sub(1));
        packet.header.target == self.shared.incarnation
            && (hello.cookie == now || hello.cookie == before)
    }

    /// Answers a stranger, who writes from one address and is known by another port of it: shorter than any packet with a
    /// hello (srd-protocol 14.3).
    pub(crate) fn greet(
        &mut self,
        header: &Header,
        hello: &Hello,
        (from, stranger): (SocketAddr, SocketAddr),
        now_ns: u64,
    ) {
        if self.greetings.len() >= WAITING_LIMIT {
            return;
        }
        let greeting = Greeting {
            echo_sent_ns: header.sent_ns,
            cookie: self.cookie(stranger, header.source, now_ns / COOKIE_NS),
            home: self.shared.config.home(),
        };
        let path = header.path.reverse();
        let packet = Packet {
            header: Header {
                path,
                acknowledge_now: false,
                retransmission: false,
                sealed: false,
                context: hello.context,
                source: self.shared.incarnation,
                target: header.source,
                sent_ns: now_ns,
                sequence: 0,
            },
            hello: None,
            acknowledgement: None,
            body: Body::Greeting(greeting),
            payload: &[],
        };
        let mut head = Head::new();
        packet.write(&mut head);
        self.greetings.push(Transmit {
            to: from,
            path,
            head,
            payload: None,
            padding_bytes: 0,
        });
    }

    /// Heeds a greeting that answers what we have said lately to a remote we do not know yet.
    pub(crate) fn take_greeting(&mut self, header: &Header, greeting: &Greeting, came: Came) {
        let index = header.context.wrapping_sub(1);
        let Some(slot) = self.slots.get_mut(index as usize) else {
            return;
        };
        let lately = came.is_answer_to(greeting.echo_sent_ns);
        let gone = slot.ended.is_some() || slot.former.contains(&header.source);
        let Some(flow) = slot.flow.as_mut().filter(|_| lately && !gone) else {
            return;
        };
        let identity = &flow.identity;
        let unknown = identity.incarnation == 0;
        let again = identity.incarnation == header.source && identity.port_count == 0;
        let wanted = unknown || (again && identity.cookie != greeting.cookie);
        // Of several the newest counts: an older one that is played back does not bring its cookie back.
        if wanted
            && identity.address == said_home(greeting.home, came.from)
            && flow.silence.is_news(header.sent_ns)
        {
            flow.on_greeting(
                &mut self.shared,
                header.source,
                greeting.cookie,
                came.now_ns,
            );
            self.settle(index, came.now_ns, true);
        }
    }
}

impl Flow {
    /// What was sent to a stranger was not taken, and goes again.
    fn on_greeting(&mut self, shared: &mut Shared, incarnation: u64, cookie: u64, now_ns: u64) {
        self.identity.incarnation = incarnation;
        self.identity.cookie = cookie;
        self.identity.awaits_greeting = false;
        self.silence.on_heard(now_ns);
        loss::resend_all(&mut self.sender, now_ns);
        if self.sender.ring.is_empty() {
            // Only a probe was sent: the remote is to learn of us all the same.
            self.silence.asked_ns = 0;
        }
        shared.statistics.greeted_count += 1;
    }
}
