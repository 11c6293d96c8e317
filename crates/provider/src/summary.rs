// SPDX-License-Identifier: Apache-2.0 OR MIT
//! FI_WEFT_REPORT=1: when rank 0 ends, it says in one line on stderr what Weft carried for it,
//! under any launcher. What other ranks carried it does not know; `weft run` adds that up.
//!
//! Called by prov_ini at the library's begin and end, and by usage when an endpoint closes. A
//! process that dies says nothing.

use std::fmt;
use std::sync::{Mutex, OnceLock, PoisonError};

use weft_facts::parameter::REPORT;
use weft_facts::rank;
use weft_shm as shm;

use crate::report;
use crate::routes::{self, Statistics};

/// The value of FI_WEFT_REPORT that asks for the line.
pub const ASKED: &str = "1";

/// What all endpoints of this process carried.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Carried {
    /// Messages and one-sided operations sent to processes of this host, and their bytes.
    shm: (u64, u64),
    /// The same, to other hosts.
    srd: (u64, u64),
    /// Received from all.
    received: (u64, u64),
    /// Processes that were talked to, counted for each endpoint.
    remotes: u64,
    /// Operations that ended in an error.
    errors: u64,
}

static CARRIED: Mutex<Option<Carried>> = Mutex::new(None);

/// The process that loaded this library, if that process prints the line.
static SPEAKER: OnceLock<Option<u32>> = OnceLock::new();

/// Notes whether this process prints the line at its end. Its children, which also end, must not.
/// Setup.
pub fn begin() {
    SPEAKER.get_or_init(|| {
        let asked = std::env::var_os(REPORT.variable).is_some_and(|value| value == ASKED);
        let speaks = asked && rank().is_none_or(|rank| rank == "0");
        speaks.then(weft_os::process::own_pid)
    });
}

/// The rank of this process, if a launcher says it.
fn rank() -> Option<String> {
    let mut names = rank::VARIABLES.iter();
    names.find_map(|name| std::env::var(name).ok())
}

fn is_speaker() -> bool {
    matches!(SPEAKER.get(), Some(Some(pid)) if *pid == weft_os::process::own_pid())
}

/// Adds what an endpoint has carried. Setup.
pub fn add(statistics: &Statistics) {
    if is_speaker() {
        let mut carried = CARRIED.lock().unwrap_or_else(PoisonError::into_inner);
        carried.get_or_insert_default().add(statistics);
    }
}

/// Prints the line. Called at the process's end, when no other thread uses this library.
pub fn end() {
    if !is_speaker() {
        return;
    }
    let carried = CARRIED.lock().unwrap_or_else(PoisonError::into_inner);
    let who = if rank().is_some() {
        "rank 0"
    } else {
        "this process"
    };
    match *carried {
        Some(carried) => report::line(&format!("{who}, {carried}")),
        None => report::line(&format!(
            "{who}: no message went through Weft: it opened no endpoint, or did not close it"
        )),
    }
}

impl Carried {
    fn add(&mut self, statistics: &Statistics) {
        let sum = |to: &mut (u64, u64), messages: u64, bytes: u64| {
            *to = (to.0.saturating_add(messages), to.1.saturating_add(bytes));
        };
        let counts = &statistics.counts;
        let (received, bytes) = (counts.received_count, counts.received_bytes);
        sum(&mut self.received, received, bytes);
        self.errors = self.errors.saturating_add(counts.error_count);
        let (local, network) = routes::by_route(statistics);
        for protocol in shm::Protocol::ALL {
            let sent = local.sent(protocol);
            sum(&mut self.shm, sent.messages, sent.bytes);
        }
        for direct in [local.mapped, local.copied] {
            sum(&mut self.shm, direct.messages, direct.bytes);
        }
        sum(&mut self.srd, network.sent_messages, network.sent_bytes);
        self.remotes += local.remotes + network.remotes;
    }
}

impl fmt::Display for Carried {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let heap = if weft_os::heap::is_preloaded() {
            "on"
        } else {
            "off"
        };
        write!(
            f,
            "Weft {}: sent {} messages ({} bytes) by shm and {} ({} bytes) by srd, received {} \
             ({} bytes), remotes {}, errors {}; heap {heap}",
            env!("CARGO_PKG_VERSION"),
            self.shm.0,
            self.shm.1,
            self.srd.0,
            self.srd.1,
            self.received.0,
            self.received.1,
            self.remotes,
            self.errors
        )
    }
}

#[cfg(test)]
mod tests {
    use weft_udp as srd;

    use super::*;

    #[test]
    fn what_all_endpoints_carried_by_each_route_is_added_up() {
        let mut statistics = Statistics::default();
        statistics.counts.received_count = 5;
        statistics.counts.received_bytes = 50;
        let carried = statistics.local.insert(Default::default());
        carried.first.remotes = 2;
        carried.first.mapped.messages = 3;
        carried.first.mapped.bytes = 30;
        carried.others.push(srd::Statistics {
            sent_messages: 4,
            sent_bytes: 40,
            remotes: 1,
            ..Default::default()
        });
        let mut all = Carried::default();
        all.add(&statistics);
        all.add(&statistics);
        all.add(&Statistics::default());
        let text = all.to_string();
        for part in [
            concat!("Weft ", env!("CARGO_PKG_VERSION")),
            "sent 6 messages (60 bytes) by shm and 8 (80 bytes) by srd",
            "received 10 (100 bytes), remotes 6, errors 0; heap off",
        ] {
            assert!(text.contains(part), "{text} lacks {part}");
        }
    }

    #[test]
    fn a_process_that_was_not_asked_says_nothing() {
        begin();
        assert!(!is_speaker());
        add(&Statistics::default());
        assert_eq!(*CARRIED.lock().unwrap(), None);
    }
}
