// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The transport as a whole: how it is opened, driven and closed, and the calls of its trait
//! `Peer`.

use std::net::SocketAddr;
use std::os::fd::RawFd;

use weft_contract::{
    AckToken, Landing, MESSAGE_LIMIT_BYTES, OfferId, Owner, Peer, PostError, Posted, Readiness,
    RemoteId, SendOp, Sleep, TransferError,
};
use weft_memory::UserBuffer;
use weft_os::{process, sleep};
use weft_srd::{Instant, Machine, Nanos, PORT_COUNT};

use crate::arrivals::Arrivals;
use crate::closing::{Closing, hurry};
use crate::driver::{Driver, Handed, transfer_error};
use crate::holding::Asked;
use crate::host_probe::HostProbes;
use crate::outbox::Outbox;
use crate::ports::{Incoming, Ports};
use crate::published::Published;
use crate::remotes::Remotes;
use crate::self_messages::{SelfMessages, is_own};
use crate::sends::Sends;
use crate::settings::{OpenError, Settings};
use crate::sockets::SocketPorts;
use crate::statistics::Statistics;

#[cfg(test)]
#[path = "transport_tests.rs"]
mod tests;

/// How long a closing endpoint waits for an answer from remotes that have not acknowledged all.
/// Chosen: a remote that computes for longer has our datagrams in its sockets anyway.
const LINGER_SILENT_NS: Nanos = Nanos(200_000_000);
/// How long a closing endpoint tries in all.
const LINGER_NS: Nanos = Nanos(2_000_000_000);

/// The srd route of one endpoint.
#[derive(Debug)]
pub struct Transport<P: Ports = SocketPorts> {
    ports: P,
    driver: Driver,
    outbox: Outbox,
    host_probes: Option<HostProbes>,
    address: SocketAddr,
    /// The counters that `weft top` reads; `None` if no other process can read them.
    published: Option<Published>,
    /// Of how many of the machine's remotes the size of datagrams is known.
    sized_count: usize,
    /// The process that opened it.
    opened_by: u32,
    /// Until when a thread was told that it may sleep; [`Instant::NEVER`] without a deadline,
    /// `None` while nobody sleeps.
    sleeps_until_ns: Option<Instant>,
}

impl<P: Ports> Transport<P> {
    /// Opens the route: takes its ports. Setup; no threads, no signal handlers.
    ///
    /// # Errors
    /// [`OpenError`], each variant as its name says.
    pub fn open(settings: &Settings) -> Result<Self, OpenError> {
        let ports = P::open(settings)?;
        let list = ports.list();
        let config = list.config(settings);
        let dead_after_ns = config.timing.dead_after_ns;
        let machine = Machine::new(config, list.incarnation)
            .map_err(|bad| OpenError::Setting(format!("for the srd route, {bad}")))?;
        Ok(Self {
            ports,
            driver: Driver {
                machine,
                sends: Sends::default(),
                arrivals: Arrivals::default(),
                remotes: Remotes::default(),
                lost_again: Vec::new(),
                statistics: Statistics::default(),
                own: SelfMessages::default(),
                myself: None,
            },
            outbox: Outbox::default(),
            host_probes: list.asks_hosts.then(|| HostProbes::new(dead_after_ns)),
            address: list.address,
            published: list.asks_hosts.then(Published::default),
            sized_count: 0,
            opened_by: process::own_pid(),
            sleeps_until_ns: None,
        })
    }

    /// The address by which remotes reach us.
    pub fn local_address(&self) -> SocketAddr {
        self.address
    }

    /// Tells the address of `remote`. Ids come in order, each before it is used.
    pub fn add_remote(&mut self, remote: RemoteId, address: SocketAddr) {
        debug_assert_eq!(remote.index(), self.driver.remotes.count(), "ids are dense");
        self.driver.remotes.add(address);
        if address == self.address {
            self.driver.myself = Some(remote);
        }
    }

    /// Sets whether the owner wants to know when `remote` dies even while nothing is under way. If
    /// the remote has ended already, the next progress reports that again.
    pub fn watch(&mut self, remote: RemoteId, on: bool) {
        if self.driver.myself == Some(remote) {
            return;
        }
        let now_ns = self.ports.now_ns();
        let driver = &mut self.driver;
        let Some(named) = driver.remotes.of_id(remote, &mut driver.machine) else {
            return;
        };
        match driver.machine.inspect().ended(named) {
            Some(why) if on => driver.lost_again.push((remote, transfer_error(why))),
            _ => driver.machine.at(named).watch(now_ns, on),
        }
        self.shorten_sleep();
    }

    /// The user has inserted the address of `remote` again. If that remote was lost, another
    /// process may have the address now. Slow path.
    pub fn name_again(&mut self, remote: RemoteId) {
        let driver = &mut self.driver;
        if let Some(named) = driver.remotes.of_id(remote, &mut driver.machine) {
            driver.machine.at(named).begin_again();
        }
    }

    /// Call this when a remote is known with which messages will be exchanged. From then on a
    /// thread answers heartbeats while the program computes (srd-protocol 13.6). Setup; a second
    /// call does nothing.
    pub fn expect_remotes(&mut self) {
        self.ports.answer_heartbeats();
    }

    /// What was counted so far.
    pub fn statistics(&self) -> Statistics {
        let counts = self.ports.counts();
        Statistics {
            send_calls: counts.send_calls,
            receive_calls: counts.receive_calls,
            turned_away: counts.turned_away,
            blocked: self.outbox.blocked_count,
            remotes: self.driver.remotes.met_count(),
            machine: self.driver.machine.inspect().statistics(),
            ..self.driver.statistics
        }
    }

    /// The condition of the flow with a remote; `None` when nothing was under way with it lately.
    /// Slow path.
    pub fn condition(&mut self, remote: RemoteId) -> Option<weft_srd::Condition> {
        let driver = &mut self.driver;
        let named = driver.remotes.of_id(remote, &mut driver.machine)?;
        driver.machine.inspect().condition(named)
    }

    #[inline]
    fn flush(&mut self, now_ns: Instant) -> usize {
        if self.driver.machine.inspect().remote_count() > self.sized_count {
            self.size_new_remotes();
        }
        while let Some((remote, targets)) = self.driver.machine.next_unrouted() {
            self.route_to(remote, &targets);
        }
        let driver = &mut self.driver;
        let count = self
            .outbox
            .flush(&mut self.ports, &mut driver.machine, &driver.sends, now_ns);
        self.shorten_sleep();
        count
    }

    /// Ends the call of a send that was to be copied only after it had left. The program may
    /// compute from now on, so the datagrams that the last flush did not send leave first. If some
    /// cannot leave yet, the payload stays in the user's buffer and the user hears of the send's
    /// end later; but the payload of an inject must be copied.
    fn end_late_copy(&mut self, asked: &Asked<'_>, token: u64) -> Posted {
        if self.outbox.has_more {
            let now_ns = self.ports.now_ns();
            self.flush(now_ns);
        }
        let is_in_hand = self.outbox.is_held_up();
        let driver = &mut self.driver;
        let is_copied = asked.op.inject || !is_in_hand && !driver.has_unsent(asked.op.remote);
        if is_copied {
            driver.sends.keep(token);
            driver.statistics.copied_messages += 1;
        }
        match asked.ends_when_copied() {
            true if is_copied => return Posted::Complete,
            true => driver.name(asked.op, token),
            // The owner waits for a later completion level, which was noted when it posted.
            false => {}
        }
        Posted::Pending
    }

    /// Whether progress has something to do that no descriptor shows.
    fn has_pending(&self) -> bool {
        self.driver.has_pending() || self.outbox.has_more || self.ports.has_queued_errors()
    }

    /// Call this after something was begun that may have a deadline: if another thread has
    /// announced a longer sleep, that thread is woken in time. Fast path while no thread sleeps.
    #[inline(always)]
    fn shorten_sleep(&mut self) {
        if let Some(until_ns) = self.sleeps_until_ns {
            self.sleep_until_due(until_ns);
        }
    }

    #[cold]
    fn sleep_until_due(&mut self, until_ns: Instant) {
        let due_ns = match self.has_pending() {
            true => self.ports.now_ns(),
            false => self.driver.machine.poll_timeout().unwrap_or(Instant::NEVER),
        };
        let blocked = self.outbox.is_blocked();
        if due_ns < until_ns || blocked {
            let until_ns = due_ns.min(until_ns);
            self.sleeps_until_ns = Some(until_ns);
            let until_ns = (until_ns != Instant::NEVER).then_some(until_ns);
            self.ports.before_sleep(until_ns, blocked);
        }
    }

    /// Tells the machine how large datagrams to new remotes may be. Datagrams to a remote on this
    /// host do not pass through a network interface, and may be larger.
    #[cold]
    fn size_new_remotes(&mut self) {
        let now_ns = self.ports.now_ns();
        let machine = &mut self.driver.machine;
        while self.sized_count < machine.inspect().remote_count() {
            let remote = weft_srd::Remote(self.sized_count as u32);
            self.sized_count += 1;
            if let Some(address) = machine.inspect().address(remote) {
                let (bytes, is_proven) = self.ports.datagram_bytes_to(address);
                machine
                    .at(remote)
                    .set_datagram_bytes(now_ns, bytes, is_proven);
            }
        }
    }

    /// A remote has told its ports: tells the machine over which pairs of addresses the remote is
    /// reached.
    #[cold]
    fn route_to(&mut self, remote: weft_srd::Remote, targets: &[SocketAddr; PORT_COUNT]) {
        let now_ns = self.ports.now_ns();
        let (paths, bytes) = self.ports.routes_to(targets);
        let mut control = self.driver.machine.at(remote);
        control.set_routes(now_ns, paths, bytes);
    }

    #[cold]
    fn publish(&mut self, now_ns: Instant) {
        let statistics = self.statistics();
        if let Some(published) = &mut self.published {
            published.write(now_ns, self.address, &statistics, &self.driver.machine);
        }
    }

    /// The addresses of remotes that have not acknowledged all. The endpoint closes soon.
    pub(crate) fn owed(&mut self) -> Vec<SocketAddr> {
        let now_ns = self.ports.now_ns();
        hurry(&mut self.driver.machine, now_ns);
        self.driver.machine.inspect().owed().collect()
    }

    /// Tries for a short while to send all that is left, and says farewell. Messages that arrive
    /// meanwhile are acknowledged and dropped, so that their senders need not wait.
    fn close(&mut self) {
        let start_ns = self.ports.now_ns();
        let mut heard_ns = start_ns;
        hurry(&mut self.driver.machine, start_ns);
        loop {
            let now_ns = self.ports.now_ns();
            let waited = now_ns > heard_ns + LINGER_SILENT_NS || now_ns > start_ns + LINGER_NS;
            self.flush(now_ns);
            if waited || !(self.driver.machine.inspect().owes() || self.outbox.is_blocked()) {
                break;
            }
            let mut closing = Closing::begin(&mut self.driver.machine, now_ns);
            let mut take = |at_ns: Instant, incoming: Incoming<'_>| closing.take(at_ns, incoming);
            self.ports.receive(&mut take);
            if self.ports.receive_rest(&mut take) {
                closing.judge();
            }
            if closing.hears {
                heard_ns = now_ns;
            } else if let Some(descriptor) = self.ports.wait_fd().filter(|_| !self.outbox.has_more)
            {
                self.ports.before_sleep(None, false);
                sleep::wait_readable(descriptor, 1);
            }
        }
        let now_ns = self.ports.now_ns();
        self.driver.machine.farewell(now_ns);
        self.flush(now_ns);
        while self.outbox.has_more {
            self.flush(now_ns);
        }
    }
}

impl<P: Ports> Peer for Transport<P> {
    #[inline]
    fn post_send(&mut self, op: &SendOp, payload: &UserBuffer) -> Result<Posted, PostError> {
        let length_bytes = payload.length_bytes();
        if self.driver.myself == Some(op.remote) {
            if length_bytes as u64 > MESSAGE_LIMIT_BYTES {
                return Err(PostError::Failed(TransferError::TooLong));
            }
            let posted = self.driver.own.post(op, payload);
            self.shorten_sleep();
            return posted;
        }
        if !self.ports.are_ours() {
            return Err(PostError::Failed(TransferError::Unreachable));
        }
        let asked = Asked { op, length_bytes };
        let now_ns = self.ports.now_ns();
        let handed = self.driver.post(&asked, payload, now_ns)?;
        self.flush(now_ns);
        Ok(match handed {
            Handed::Over(posted) => posted,
            Handed::LateCopy(token) => self.end_late_copy(&asked, token),
        })
    }

    fn readiness(&mut self, remote: RemoteId, length_bytes: usize) -> Readiness {
        match self.driver.readiness(remote, length_bytes) {
            Readiness::Now if self.outbox.is_held_up() => Readiness::Soon,
            readiness => readiness,
        }
    }

    fn accept(&mut self, offer: OfferId, landing: Landing) {
        if is_own(offer.0) {
            self.driver.own.accept(offer, landing);
            return self.shorten_sleep();
        }
        let Some(offered) = self.driver.arrivals.offers.try_remove(offer.0 as usize) else {
            // The offer is void, since its sender was lost.
            self.driver.arrivals.void.push(landing.token);
            return self.shorten_sleep();
        };
        let now_ns = self.ports.now_ns();
        self.driver.fill(now_ns, offered, Some(landing));
        self.flush(now_ns);
    }

    fn discard(&mut self, offer: OfferId) {
        if is_own(offer.0) {
            self.driver.own.discard(offer);
            return self.shorten_sleep();
        }
        let Some(offered) = self.driver.arrivals.offers.try_remove(offer.0 as usize) else {
            return;
        };
        let now_ns = self.ports.now_ns();
        self.driver.fill(now_ns, offered, None);
        self.flush(now_ns);
    }

    fn acknowledge(&mut self, ack: AckToken) {
        if is_own(ack.0) {
            self.driver.own.acknowledge(ack);
            return self.shorten_sleep();
        }
        let now_ns = self.ports.now_ns();
        self.driver.delivered(now_ns, ack);
        self.flush(now_ns);
    }

    #[inline]
    fn set_undisturbed(&mut self, undisturbed: bool) {
        self.ports.set_undisturbed(undisturbed);
    }

    #[inline]
    fn progress<O: Owner>(&mut self, owner: &mut O) -> usize {
        if !self.ports.are_ours() {
            return 0;
        }
        let driver = &mut self.driver;
        let (mut events, mut heard_ns) = (0, Instant::START);
        let count = self.ports.receive(&mut |now_ns, incoming| {
            events += driver.take(now_ns, incoming, owner);
            heard_ns = now_ns;
        });
        // After a single datagram its time is still right: to read the clock again takes longer
        // than the datagram took. A piece of a long packet that was only kept gave no time.
        let mut now_ns = match count {
            1 if heard_ns > Instant::START => heard_ns,
            _ => self.ports.now_ns(),
        };
        let due_ns = driver.machine.poll_timeout();
        let is_due = due_ns.is_some_and(|due_ns| due_ns <= now_ns);
        let may_judge = is_due && driver.machine.handle_moved_timeouts(now_ns);
        // Timers are judged only as of a time by which every socket was read (srd-protocol 8.6).
        let judges = may_judge
            && self.ports.receive_rest(&mut |heard_ns, incoming| {
                events += driver.take(heard_ns, incoming, owner);
                now_ns = heard_ns;
            });
        events += driver.catch_up(now_ns, owner);
        if !driver.own.is_idle() {
            events += driver.own.deliver(owner);
        }
        if let Some(host_probes) = &mut self.host_probes {
            host_probes.turn(now_ns, &mut driver.machine);
        }
        if judges {
            driver.machine.handle_timeout(now_ns);
            now_ns = self.ports.now_ns();
        }
        events += driver.drain(now_ns, owner);
        self.flush(now_ns);
        let published = self.published.as_ref();
        if published.is_some_and(|published| published.is_due(now_ns)) {
            self.publish(now_ns);
        }
        events
    }
}

impl<P: Ports> Sleep for Transport<P> {
    /// A descriptor that is readable while there may be something to do, provided `before_sleep`
    /// said true.
    fn wait_fd(&self) -> Option<RawFd> {
        self.ports.wait_fd()
    }

    /// Announces a sleep. Returns false if there is something to do first. After true, every
    /// datagram and every deadline makes `wait_fd` readable, also deadlines of operations that
    /// other threads begin meanwhile.
    fn before_sleep(&mut self) -> bool {
        // In a child nothing is ever done.
        if !self.ports.are_ours() {
            return true;
        }
        let now_ns = self.ports.now_ns();
        self.flush(now_ns);
        if self.has_pending() {
            return false;
        }
        let until_ns = self.driver.machine.poll_timeout();
        if until_ns.is_some_and(|until_ns| until_ns <= now_ns) {
            return false;
        }
        let blocked = self.outbox.is_blocked();
        self.ports.before_sleep(until_ns, blocked);
        self.sleeps_until_ns = Some(until_ns.unwrap_or(Instant::NEVER));
        true
    }

    /// Ends the announcement of a sleep.
    fn after_sleep(&mut self) {
        self.sleeps_until_ns = None;
        self.ports.after_sleep();
    }

    /// Room comes with datagrams, or when one is taken for lost.
    fn wakes_for_room(&self, _: RemoteId) -> bool {
        true
    }
}

impl<P: Ports> Drop for Transport<P> {
    fn drop(&mut self) {
        // A child process has nothing to say in its parent's name.
        if self.opened_by == process::own_pid() {
            self.close();
        }
    }
}
