// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What a driver tells a machine of one remote: what its host, its routes and its owner know.

use crate::events::{Event, Failure, Remote};
use crate::flows::Flows;
use crate::outgoing::await_end;
use weft_wire::Segment;
use weft_wire::time::Instant;

/// Tells the machine what is known of one remote; see [`Machine::at`](crate::Machine::at). If the
/// machine has no such remote, nothing happens.
#[derive(Debug)]
pub struct RemoteControl<'a> {
    pub(crate) flows: &'a mut Flows,
    pub(crate) remote: Remote,
}

impl RemoteControl<'_> {
    /// The owner keeps this many bytes of the remote's messages unread. The remote may send that
    /// many bytes less (srd-protocol 11.3).
    pub fn set_unread(&mut self, now_ns: Instant, bytes: u64) {
        let Ok((flow, shared)) = self.flows.known_flow(self.remote.0) else {
            return;
        };
        if flow.receiver.set_unread(bytes, &shared.config) {
            self.flows.settle(self.remote.0, now_ns, true);
        }
    }

    /// Answers [`Arrival::Begun`](crate::Arrival::Begun) of this remote: the message goes to the
    /// caller's `landing`, or comes whole as an event. `Landed` or `LandingFailed` follows for a
    /// landing, exactly once. Fast path.
    pub fn begin(
        &mut self,
        now_ns: Instant,
        segment: &Segment,
        payload: &[u8],
        landing: Option<u64>,
    ) {
        let Ok((flow, shared)) = self.flows.known_flow(self.remote.0) else {
            if let Some(landing) = landing {
                let why = Failure::Lost;
                let events = &mut self.flows.shared.events;
                events.push(Event::LandingFailed { landing, why });
            }
            return;
        };
        flow.receiver.begin(shared, segment, payload, landing);
        self.flows.settle(self.remote.0, now_ns, true);
    }

    /// Somebody waits for the end of the message that was posted under this token. If its last
    /// packet has not been sent yet, it will ask for an answer.
    pub fn await_end(&mut self, token: u64) {
        if let Ok((flow, _)) = self.flows.known_flow(self.remote.0) {
            await_end(&mut flow.queue.messages, token);
        }
    }

    /// The endpoint closes soon: from now on the machine asks for the acknowledgement of what has
    /// left and did not ask, once nothing is left to send. The remote may hold it back
    /// (srd-protocol 7.5). To be said of each remote, as often as the caller likes; slow path.
    pub fn close(&mut self, now_ns: Instant) {
        self.flows.shared.is_closing = true;
        if self.flows.known_flow(self.remote.0).is_ok() {
            self.flows.settle(self.remote.0, now_ns, true);
        }
    }

    /// Takes back the payload of an [`Event::Message`] after use. The next message is put together
    /// in its memory. Fast path.
    pub fn recycle(&mut self, payload: Vec<u8>) {
        self.flows.shared.spares.keep(payload);
    }

    /// This host carries datagrams of up to this many bytes to the remote, if that differs from
    /// [`Config::datagram_bytes`](crate::Config::datagram_bytes); values below 1200 count as 1200.
    /// `is_proven`: the size holds all the way to the remote. Otherwise datagrams that are longer
    /// than an Ethernet frame's are used only after one has arrived (srd-protocol 16.1).
    pub fn set_datagram_bytes(&mut self, now_ns: Instant, bytes: u16, is_proven: bool) {
        let Some(slot) = self.flows.remotes.get_mut(self.remote.0) else {
            return;
        };
        slot.rest.identity.size.set_own(bytes, is_proven);
        if let Some(flow) = &mut slot.flow {
            flow.identity.size.set_own(bytes, is_proven);
            flow.size_datagrams(now_ns);
        }
    }

    /// This host's routes allow this set of paths to the remote, and datagrams of up to this many
    /// bytes on all of them (srd-protocol 17.3, 17.6). Slow path.
    pub fn set_routes(&mut self, now_ns: Instant, paths: u64, datagram_bytes: u16) {
        let Flows {
            remotes, shared, ..
        } = &mut *self.flows;
        let Some(slot) = remotes.get_mut(self.remote.0) else {
            return;
        };
        match &mut slot.flow {
            Some(flow) => {
                flow.identity.reach.routed = paths;
                flow.open_paths(shared);
            }
            None => slot.rest.identity.reach.routed = paths,
        }
        let size = slot.identity().size;
        if datagram_bytes < size.own_bytes() {
            self.set_datagram_bytes(now_ns, datagram_bytes, size.is_proven());
        }
    }

    /// Sets whether the end of the remote is noticed even if nothing is under way with it
    /// (srd-protocol 13.2). Watching costs a probe for each fifth of `dead_after` in which nothing
    /// was heard.
    pub fn watch(&mut self, now_ns: Instant, on: bool) {
        let Some(slot) = self.flows.remotes.get(self.remote.0) else {
            return;
        };
        if slot.ended.is_some() || (slot.flow.is_none() && !on) {
            return;
        }
        let (flow, _) = self.flows.flow(self.remote.0, now_ns);
        flow.silence.watched = on;
        self.flows.settle(self.remote.0, now_ns, true);
    }

    /// Tries again with a remote that has ended, because another process may have its address now.
    /// The process that was there is no longer heard (srd-protocol 6.4). If the remote has not
    /// ended, nothing happens. Slow path.
    pub fn begin_again(&mut self) {
        let Some(slot) = self.flows.remotes.get_mut(self.remote.0) else {
            return;
        };
        let known = slot.incarnation();
        if slot.ended.take().is_some() && known != 0 {
            self.flows.restart(self.remote.0, known);
        }
    }

    /// The system said that the remote's host refuses our datagrams (srd-protocol 13.3).
    pub fn handle_refused(&mut self, now_ns: Instant) {
        let Ok((flow, shared)) = self.flows.known_flow(self.remote.0) else {
            return;
        };
        let dead_after_ns = shared.config.timing.dead_after_ns;
        flow.silence.on_refused(now_ns, dead_after_ns);
        self.flows.settle(self.remote.0, now_ns, true);
    }

    /// The host of a silent remote has answered. So the process computes or is stopped; if it had
    /// ended, its host would refuse our datagrams. For a while its silence counts from now on
    /// (srd-protocol 13.5).
    pub fn handle_host_alive(&mut self, now_ns: Instant) {
        let Ok((flow, shared)) = self.flows.known_flow(self.remote.0) else {
            return;
        };
        let dead_after_ns = shared.config.timing.dead_after_ns;
        flow.silence.on_host_alive(now_ns, dead_after_ns);
        self.flows.settle(self.remote.0, now_ns, false);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Config;
    use std::net::SocketAddr;

    #[test]
    fn the_least_datagram_of_all_interfaces_is_kept_while_nothing_is_under_way() {
        let config = Config {
            datagram_bytes: 9000,
            ..Config::default()
        };
        let mut flows = Flows::new(config, 7);
        let address = SocketAddr::from(([192, 0, 2, 1], 4000));
        let remote = Remote(flows.remotes.add(address, &config).expect("room"));
        for (said, kept) in [(u16::MAX, 9000), (1472, 1472), (8972, 1472)] {
            let mut control = RemoteControl {
                flows: &mut flows,
                remote,
            };
            control.set_routes(Instant(1), 3, said);
            let identity = flows.remotes[remote.0].identity();
            assert_eq!(identity.size.own_bytes(), kept);
            assert_eq!(identity.reach.routed, 3);
        }
    }
}
