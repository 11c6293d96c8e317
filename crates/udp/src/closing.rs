// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What arrives while an endpoint closes: it is taken, so that its sender is not kept, and dropped.
//! Called by transport.

use weft_srd::{Arrival, Instant, Machine, Remote};

use crate::ports::Incoming;

/// The endpoint closes soon: asks remotes for the acknowledgements that they hold back.
pub(crate) fn hurry(machine: &mut Machine, now_ns: Instant) {
    for index in 0..machine.inspect().remote_count() {
        machine.at(Remote(index as u32)).close(now_ns);
    }
}

/// One look into the ports.
pub(crate) struct Closing<'m> {
    machine: &'m mut Machine,
    /// As of when everything was read.
    as_of_ns: Instant,
    /// Whether a remote was heard. What a host says of a process is no word of that process.
    pub(crate) hears: bool,
}

impl<'m> Closing<'m> {
    /// Before the look, at this time.
    pub(crate) fn begin(machine: &'m mut Machine, now_ns: Instant) -> Self {
        Self {
            machine,
            as_of_ns: now_ns,
            hears: false,
        }
    }

    /// Takes what was found, and drops it.
    pub(crate) fn take(&mut self, now_ns: Instant, incoming: Incoming<'_>) {
        self.as_of_ns = now_ns;
        let Incoming::Datagram(origin, datagram) = incoming else {
            return;
        };
        self.hears = true;
        if let Arrival::Begun {
            remote,
            segment,
            payload,
            ..
        } = self.machine.handle_datagram(now_ns, origin, datagram)
        {
            let mut control = self.machine.at(remote);
            control.begin(now_ns, &segment, payload, None);
        }
        self.drop_events();
    }

    /// Judges timers, after everything was read (srd-protocol 8.6).
    pub(crate) fn judge(&mut self) {
        self.machine.handle_timeout(self.as_of_ns);
        self.drop_events();
    }

    fn drop_events(&mut self) {
        while self.machine.poll_event().is_some() {}
    }
}
