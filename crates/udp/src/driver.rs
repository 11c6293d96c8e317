// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Between the owner and the machine: sends go down to the machine; datagrams that arrive go up to
//! the machine, and the messages in them to the owner, at once: from the receive buffer into the
//! user's. Called by transport.

use weft_contract::{
    AckToken, Class, CompletionLevel, Envelope, Landing, MESSAGE_LIMIT_BYTES, OfferId, Owner,
    PostError, Posted, Readiness, RemoteId, SendOp, TransferError,
};
use weft_memory::{BytesView, UserBuffer};
use weft_srd::{Arrival, Event, Failure, Instant, Machine, Message, Remote, Send};

use crate::arrivals::{Arrivals, Filling, Offered};
use crate::holding::{Asked, Holding, UNSTATED_BYTES};
use crate::ports::Incoming;
use crate::remotes::Remotes;
use crate::self_messages::SelfMessages;
use crate::sends::Sends;
use crate::statistics::Statistics;

/// Bytes of one remote's unexpected messages that the owner may keep before the remote is slowed.
/// Chosen: a program may rightly receive in another order than messages come in, so this limit only
/// keeps a runaway sender from using all memory.
const UNREAD_FREE_BYTES: u64 = 64 << 20;

/// Turns the machine's reason for a failure into the owner's.
pub(crate) fn transfer_error(why: Failure) -> TransferError {
    match why {
        Failure::Lost | Failure::Restarted => TransferError::RemoteLost,
        Failure::Refused(weft_srd::Reason::NoMemory) => TransferError::NoMemory,
        Failure::Refused(weft_srd::Reason::Canceled) => TransferError::Canceled,
    }
}

fn envelope(remote: RemoteId, message: &Message) -> Envelope {
    Envelope {
        remote,
        class: match message.tag {
            Some(_) if message.is_service => Class::Service,
            Some(_) => Class::Tagged,
            None => Class::Message,
        },
        tag: message.tag.unwrap_or(0),
        cq_data: message.cq_data,
        length_bytes: message.length_bytes,
    }
}

/// What became of a send that was handed to the machine.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Handed {
    /// The call is over, and this is its result.
    Over(Posted),
    /// The payload, under this token, must still be copied, after its datagrams have left.
    LateCopy(u64),
}

/// Everything but the ports. All that arrives and leaves goes through here.
#[derive(Debug)]
pub(crate) struct Driver {
    pub(crate) machine: Machine,
    pub(crate) sends: Sends,
    pub(crate) arrivals: Arrivals,
    pub(crate) remotes: Remotes,
    /// Lost remotes whose loss must be reported to the owner again.
    pub(crate) lost_again: Vec<(RemoteId, TransferError)>,
    pub(crate) statistics: Statistics,
    pub(crate) own: SelfMessages,
    /// The owner's id of this endpoint itself, if it has one.
    pub(crate) myself: Option<RemoteId>,
}

impl Driver {
    /// Whether the next progress has something to report to the owner.
    #[inline]
    pub(crate) fn has_pending(&self) -> bool {
        !self.own.is_idle()
            || !self.lost_again.is_empty()
            || !self.arrivals.void.is_empty()
            || !self.arrivals.waiting.is_empty()
    }

    /// Whether a send of this length would leave whole with the next flush, so that its sender may
    /// compute afterwards.
    pub(crate) fn readiness(&mut self, remote: RemoteId, length_bytes: usize) -> Readiness {
        if self.myself == Some(remote) {
            return Readiness::Unknown;
        }
        let Some(named) = self.remotes.of_id(remote, &mut self.machine) else {
            return Readiness::Unknown;
        };
        let inspection = self.machine.inspect();
        let is_alone = inspection.carries_alone(named, length_bytes as u64, UNSTATED_BYTES);
        match inspection.is_well(named) {
            true if is_alone => Readiness::Now,
            true => Readiness::Soon,
            false => Readiness::Unknown,
        }
    }

    /// Takes a send; its datagrams leave with the next flush. Fast path; allocates only to grow.
    #[inline]
    pub(crate) fn post(
        &mut self,
        asked: &Asked<'_>,
        payload: &UserBuffer,
        now_ns: Instant,
    ) -> Result<Handed, PostError> {
        let (op, length_bytes) = (asked.op, asked.length_bytes);
        let Some(remote) = self.remotes.of_id(op.remote, &mut self.machine) else {
            return Err(PostError::Failed(TransferError::NoMemory));
        };
        if length_bytes as u64 > MESSAGE_LIMIT_BYTES {
            return Err(PostError::Failed(TransferError::TooLong));
        }
        let holding = asked.holding(remote, &self.machine, &self.sends)?;
        let complete = holding != Holding::Loan && asked.ends_when_copied();
        let owner_token = (!complete).then_some(op.token);
        let token = match holding {
            Holding::Copy => self.sends.copy(owner_token, payload),
            Holding::Loan | Holding::LateCopy => {
                let is_still = op.class != Class::Service;
                self.sends.lend(owner_token, payload, is_still)
            }
        };
        let send = Send {
            remote,
            tag: (op.class != Class::Message).then_some(op.tag),
            cq_data: op.cq_data,
            length_bytes: length_bytes as u64,
            wants_receipt: op.level == CompletionLevel::Delivery,
            is_awaited: !complete,
            is_service: op.class == Class::Service,
            token,
        };
        if let Err(why) = self.machine.post_send(now_ns, &send) {
            self.sends.end(token);
            return Err(refused(why));
        }
        self.statistics.sent_messages += 1;
        self.statistics.sent_bytes += length_bytes as u64;
        self.statistics.copied_messages += u64::from(holding == Holding::Copy);
        Ok(match complete {
            _ if holding == Holding::LateCopy => Handed::LateCopy(token),
            true => Handed::Over(Posted::Complete),
            false => Handed::Over(Posted::Pending),
        })
    }

    /// The owner is to hear of the end of a send after all.
    #[cold]
    pub(crate) fn name(&mut self, op: &SendOp, token: u64) {
        self.sends.name(token, op.token);
        if let Some(remote) = self.remotes.of_id(op.remote, &mut self.machine) {
            self.machine.at(remote).await_end(token);
        }
    }

    /// Whether messages to a remote have bytes that have not left this process.
    pub(crate) fn has_unsent(&mut self, remote: RemoteId) -> bool {
        let remote = self.remotes.of_id(remote, &mut self.machine);
        remote.is_some_and(|remote| self.machine.inspect().has_unsent(remote))
    }

    /// Takes what came in at a port; returns how many events the owner got from it. Fast path.
    #[inline]
    pub(crate) fn take<O: Owner>(
        &mut self,
        now_ns: Instant,
        incoming: Incoming<'_>,
        owner: &mut O,
    ) -> usize {
        let mut events = 0;
        match incoming {
            Incoming::Datagram(origin, datagram) => {
                match self.machine.handle_datagram(now_ns, origin, datagram) {
                    Arrival::Nothing => {}
                    Arrival::Message {
                        remote,
                        life,
                        message,
                        payload,
                    } => {
                        let offered = Offered::new(remote, life, message);
                        self.deliver(now_ns, &offered, payload, owner);
                        events += 1;
                    }
                    Arrival::Begun {
                        remote,
                        life,
                        segment,
                        payload,
                    } => {
                        let message = segment.message;
                        let id = self.remotes.of_machine(remote, &self.machine, owner);
                        let landing = owner.on_begun(&envelope(id, &message)).map(|landing| {
                            let piece = BytesView::from_slice(payload);
                            landing.buffer.fill(segment.offset_bytes as usize, piece);
                            self.arrivals.fillings.insert(Filling {
                                landing: Some(landing),
                                offered: Offered::new(remote, life, message),
                            }) as u64
                        });
                        self.machine
                            .at(remote)
                            .begin(now_ns, &segment, payload, landing);
                        events += 1;
                    }
                    Arrival::Data {
                        landing,
                        offset_bytes,
                        payload,
                        ..
                    } => {
                        let filling = self.arrivals.fillings.get(landing as usize);
                        if let Some(landing) = filling.and_then(|filling| filling.landing.as_ref())
                        {
                            let piece = BytesView::from_slice(payload);
                            landing.buffer.fill(offset_bytes as usize, piece);
                        }
                        events += 1;
                    }
                }
            }
            Incoming::Refused(address) => self.on_refused(now_ns, address),
        }
        events + self.drain(now_ns, owner)
    }

    #[cold]
    fn on_refused(&mut self, now_ns: Instant, address: std::net::SocketAddr) {
        self.statistics.refused += 1;
        if let Some(remote) = self.machine.inspect().remote_with_port(address) {
            self.machine.at(remote).handle_refused(now_ns);
        }
    }

    fn deliver<O: Owner>(
        &mut self,
        now_ns: Instant,
        offered: &Offered,
        payload: &[u8],
        owner: &mut O,
    ) {
        let (remote, message) = (offered.remote, &offered.message);
        let id = self.remotes.of_machine(remote, &self.machine, owner);
        self.statistics.received_messages += 1;
        self.statistics.received_bytes += message.length_bytes;
        let kept = self.arrivals.kept.vacant_key();
        let view = BytesView::from_slice(payload);
        let ack = AckToken(kept as u64);
        if owner.on_message(&envelope(id, message), view, Some(ack)) {
            self.receipt(now_ns, offered);
        } else {
            self.arrivals.kept.insert(*offered);
            let unread_bytes = self.remotes.keep(remote, message.length_bytes, 0);
            self.tell_unread(now_ns, remote, unread_bytes, unread_bytes);
        }
    }

    /// A message is in its receive: sends a receipt if the sender waits for one. The machine has
    /// room for it, since there are never more receipts than messages. If the remote is gone nobody
    /// waits, even if another process has the address now.
    fn receipt(&mut self, now_ns: Instant, offered: &Offered) {
        if offered.message.wants_receipt {
            let _ = self.machine.receipt(now_ns, offered.offer());
        }
    }

    fn tell_unread(
        &mut self,
        now_ns: Instant,
        remote: Remote,
        before_bytes: u64,
        unread_bytes: u64,
    ) {
        if before_bytes.max(unread_bytes) > UNREAD_FREE_BYTES {
            let told_bytes = unread_bytes.saturating_sub(UNREAD_FREE_BYTES);
            self.machine.at(remote).set_unread(now_ns, told_bytes);
        }
    }

    /// The owner has delivered a message that it kept.
    pub(crate) fn delivered(&mut self, now_ns: Instant, ack: AckToken) {
        let Some(kept) = self.arrivals.kept.try_remove(ack.0 as usize) else {
            return;
        };
        let taken_bytes = kept.message.length_bytes;
        let unread_bytes = self.remotes.keep(kept.remote, 0, taken_bytes);
        self.tell_unread(
            now_ns,
            kept.remote,
            unread_bytes + taken_bytes,
            unread_bytes,
        );
        self.receipt(now_ns, &kept);
    }

    /// Reports to the owner all events of the machine; returns how many there were. Fast path.
    #[inline]
    pub(crate) fn drain<O: Owner>(&mut self, now_ns: Instant, owner: &mut O) -> usize {
        let mut events = 0;
        while let Some(event) = self.machine.poll_event() {
            events += 1;
            self.on_event(now_ns, event, owner);
        }
        events
    }

    fn on_event<O: Owner>(&mut self, now_ns: Instant, event: Event, owner: &mut O) {
        match event {
            Event::Sent { token } => {
                if let Some(token) = self.sends.end(token) {
                    owner.on_sent(token, Ok(()));
                }
            }
            Event::SendFailed { token, why } => {
                if let Some(token) = self.sends.end(token) {
                    owner.on_sent(token, Err(transfer_error(why)));
                }
            }
            Event::Message {
                remote,
                life,
                message,
                payload,
            } => {
                let offered = Offered::new(remote, life, message);
                self.deliver(now_ns, &offered, &payload, owner);
                self.machine.at(remote).recycle(payload);
            }
            Event::Offer {
                remote,
                life,
                message,
            } => {
                let offered = Offered::new(remote, life, message);
                self.on_offer(now_ns, offered, owner);
            }
            Event::Landed { landing } => self.on_landed(now_ns, landing, None, owner),
            Event::LandingFailed { landing, why } => {
                self.on_landed(now_ns, landing, Some(why), owner);
            }
            Event::RemoteLost { remote, why } => self.on_lost(remote, why, owner),
        }
    }

    fn on_offer<O: Owner>(&mut self, now_ns: Instant, offered: Offered, owner: &mut O) {
        let id = self
            .remotes
            .of_machine(offered.remote, &self.machine, owner);
        let offer = self.arrivals.offers.insert(offered);
        let announced = envelope(id, &offered.message);
        if let Some(landing) = owner.on_offer(&announced, OfferId(offer as u64)) {
            self.arrivals.offers.remove(offer);
            self.fill(now_ns, offered, Some(landing));
        }
    }

    /// Asks the sender for the payload of an offered message; without a landing, tells it to send
    /// none.
    pub(crate) fn fill(&mut self, now_ns: Instant, offered: Offered, landing: Option<Landing>) {
        let filling = self.arrivals.fillings.insert(Filling { landing, offered });
        self.ask(now_ns, filling);
    }

    /// As [`Self::fill`]; tries again later if the machine has no room for landings.
    fn ask(&mut self, now_ns: Instant, index: usize) {
        let Some(filling) = self.arrivals.fillings.get(index) else {
            return;
        };
        let wanted = filling
            .landing
            .as_ref()
            .map_or(0, |landing| landing.buffer.length_bytes() as u64);
        let offered = filling.offered;
        let length_bytes = wanted.min(offered.message.length_bytes);
        match self
            .machine
            .accept(now_ns, offered.offer(), index as u64, length_bytes)
        {
            Ok(()) => {}
            Err(weft_srd::PostError::Busy) => self.arrivals.waiting.push(index),
            Err(_) => {
                let filling = self.arrivals.fillings.remove(index);
                let tokens = filling.landing.map(|landing| landing.token);
                self.arrivals.void.extend(tokens);
            }
        }
    }

    fn on_landed<O: Owner>(
        &mut self,
        now_ns: Instant,
        landing: u64,
        failure: Option<Failure>,
        owner: &mut O,
    ) {
        let Some(Filling { landing, offered }) =
            self.arrivals.fillings.try_remove(landing as usize)
        else {
            return;
        };
        if failure.is_none() {
            self.receipt(now_ns, &offered);
        }
        let Some(landing) = landing else { return };
        self.statistics.received_messages += 1;
        self.statistics.received_bytes += offered.message.length_bytes;
        let outcome = failure.map_or(Ok(()), |why| Err(transfer_error(why)));
        owner.on_landed(landing.token, outcome);
    }

    #[cold]
    fn on_lost<O: Owner>(&mut self, remote: Remote, why: Failure, owner: &mut O) {
        let id = self.remotes.of_machine(remote, &self.machine, owner);
        self.statistics.lost += 1;
        self.arrivals
            .offers
            .retain(|_, offered| offered.remote != remote);
        let waiting = std::mem::take(&mut self.arrivals.waiting);
        for index in waiting {
            let gone = |filling: &Filling| filling.offered.remote == remote;
            if self.arrivals.fillings.get(index).is_some_and(gone) {
                let filling = self.arrivals.fillings.remove(index);
                let tokens = filling.landing.map(|landing| landing.token);
                self.arrivals.void.extend(tokens);
            } else {
                self.arrivals.waiting.push(index);
            }
        }
        owner.on_remote_lost(id, transfer_error(why));
    }

    /// What could not be done at once and waits for a call of progress.
    #[inline]
    pub(crate) fn catch_up<O: Owner>(&mut self, now_ns: Instant, owner: &mut O) -> usize {
        if self.arrivals.waiting.is_empty()
            && self.arrivals.void.is_empty()
            && self.lost_again.is_empty()
        {
            return 0;
        }
        self.catch_up_now(now_ns, owner)
    }

    #[cold]
    fn catch_up_now<O: Owner>(&mut self, now_ns: Instant, owner: &mut O) -> usize {
        for index in std::mem::take(&mut self.arrivals.waiting) {
            self.ask(now_ns, index);
        }
        let mut events = 0;
        for token in std::mem::take(&mut self.arrivals.void) {
            owner.on_landed(token, Err(weft_contract::TransferError::RemoteLost));
            events += 1;
        }
        for (remote, why) in std::mem::take(&mut self.lost_again) {
            owner.on_remote_lost(remote, why);
            events += 1;
        }
        events
    }
}

#[cold]
fn refused(why: weft_srd::PostError) -> PostError {
    match why {
        weft_srd::PostError::Busy => PostError::Busy,
        weft_srd::PostError::Unknown => PostError::Failed(TransferError::Unreachable),
        weft_srd::PostError::Ended(why) => PostError::Failed(transfer_error(why)),
    }
}
