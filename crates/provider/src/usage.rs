// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What becomes of an endpoint, told to whoever started the job: a line of JSON when it is enabled,
//! and one with what it has carried when it closes, each over a connection of its own.
//!
//! Called by endpoint. `weft run` names its socket in FI_WEFT_REPORT and adds the reports up; with
//! FI_WEFT_REPORT=1 the counts go to [`crate::summary`] instead. A
//! connection and its bytes wait in the listener's queue until they are taken, so that hundreds of
//! ranks that close at once lose none; a datagram socket holds 10 (net.unix.max_dgram_qlen). The
//! text is put together by hand: numbers and fixed names need no library.

use std::fmt::Write;
use std::io::ErrorKind;
use std::thread::sleep;
use std::time::Duration;

use weft_os::local_socket::Connection;
use weft_shm as shm;

use crate::routes::{self, Statistics};
use crate::{parameters, summary};

/// How often a full queue is tried again, and after how long. Chosen: a listener that takes nothing
/// for half a second is stopped, and thousands of ranks wait in its queue already.
const TRIES: u32 = 50;
const PAUSE: Duration = Duration::from_millis(10);

/// Says that an endpoint was enabled. Setup.
pub fn opened() {
    tell(|pid| format!(r#"{{"weft":"{VERSION}","pid":{pid},"opened":true}}"#));
}

/// Says what an endpoint has carried.
pub fn closed(statistics: &Statistics) {
    summary::add(statistics);
    tell(|pid| describe(statistics, pid));
}

/// Sends a report, if one is asked for. Waits only for a full queue, half a second at most, and
/// never fails the caller: a job must not end differently because nobody listens.
fn tell(text: impl FnOnce(u32) -> String) {
    let report = parameters::settings().and_then(|settings| settings.report.as_deref());
    let Some(socket) = report.filter(|&name| name != summary::ASKED) else {
        return;
    };
    let text = text(weft_os::process::own_pid());
    for _ in 0..TRIES {
        match Connection::open(socket) {
            Ok(connection) => {
                let _ = connection.send_bytes(text.as_bytes());
                return;
            }
            Err(error) if error.kind() == ErrorKind::WouldBlock => sleep(PAUSE),
            Err(_) => return,
        }
    }
}

const VERSION: &str = env!("CARGO_PKG_VERSION");

fn describe(statistics: &Statistics, pid: u32) -> String {
    let counts = &statistics.counts;
    let (local, network) = routes::by_route(statistics);
    let mut sent = String::new();
    for protocol in shm::Protocol::ALL {
        let count = local.sent(protocol);
        let comma = if sent.is_empty() { "" } else { "," };
        let (name, messages, bytes) = (protocol.name(), count.messages, count.bytes);
        // Writing to a String cannot fail.
        let _ = write!(
            sent,
            r#"{comma}"{name}":{{"messages":{messages},"bytes":{bytes}}}"#
        );
    }
    for (name, count) in [
        ("direct_access", local.mapped),
        ("direct_copy", local.copied),
    ] {
        let (messages, bytes) = (count.messages, count.bytes);
        let _ = write!(
            sent,
            r#","{name}":{{"messages":{messages},"bytes":{bytes}}}"#
        );
    }
    let _ = write!(
        sent,
        r#","srd":{{"messages":{},"bytes":{}}}"#,
        network.sent_messages, network.sent_bytes
    );
    format!(
        "{{\"weft\":\"{}\",\"pid\":{pid},\"sent\":{{{sent}}},\
         \"received\":{{\"messages\":{},\"bytes\":{}}},\
         \"unexpected\":{},\"remotes\":{},\"errors\":{}}}",
        VERSION,
        counts.received_count,
        counts.received_bytes,
        counts.unexpected_count,
        local.remotes + network.remotes,
        counts.error_count,
    )
}

#[cfg(test)]
mod tests {
    use weft_udp as srd;

    use super::*;

    #[test]
    fn the_protocols_of_reports_are_those_that_users_are_told() {
        let sent = shm::Protocol::ALL.map(shm::Protocol::name);
        assert_eq!(sent, weft_facts::protocol::ALL.map(|one| one.key));
    }

    #[test]
    fn a_report_names_every_protocol_and_balances_its_braces() {
        let text = describe(&Statistics::default(), 7);
        for part in [
            r#""pid":7"#,
            r#""inline":{"messages":0,"bytes":0}"#,
            r#""pipelined":"#,
            r#""srd":{"messages":0,"bytes":0}"#,
            r#""received":{"messages":0"#,
        ] {
            assert!(text.contains(part), "{text} lacks {part}");
        }
        assert_eq!(text.matches('{').count(), text.matches('}').count());
    }

    #[test]
    fn remotes_of_both_routes_are_counted() {
        let mut statistics = Statistics::default();
        let carried = statistics.local.insert(Default::default());
        carried.first.remotes = 2;
        carried.others.push(srd::Statistics {
            remotes: 3,
            ..Default::default()
        });
        let text = describe(&statistics, 7);
        assert!(text.contains(r#""remotes":5,"#), "{text}");
    }
}
