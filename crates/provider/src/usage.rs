// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What an endpoint has carried, told to whoever started the job: one datagram of JSON when it closes.
//!
//! Called by endpoint. `weft run` names its socket in FI_WEFT_REPORT and adds the reports up. The text is put together by
//! hand: numbers and fixed names need no library.

use std::fmt::Write;

use weft_endpoint::shm;
use weft_os::local_socket::Ringer;

use crate::parameters;
use crate::routes::Statistics;

/// Sends the report, if one is asked for. Never waits, and never fails the caller: a job must not end differently because
/// nobody listens.
pub fn send(statistics: &Statistics) {
    let Some(socket) = parameters::settings().and_then(|settings| settings.report.as_deref())
    else {
        return;
    };
    if let Ok(ringer) = Ringer::new() {
        let _ = ringer.send(
            socket,
            describe(statistics, weft_os::process::own_pid()).as_bytes(),
        );
    }
}

fn describe(statistics: &Statistics, pid: u32) -> String {
    let counts = &statistics.counts;
    let carried = statistics.local.as_ref();
    let local = carried.map_or(shm::Statistics::default(), |carried| carried.local);
    let network = carried
        .and_then(|carried| carried.network)
        .unwrap_or_default();
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
        r#"{{"weft":"{}","pid":{pid},"sent":{{{sent}}},"received":{{"messages":{},"bytes":{}}},"unexpected":{},"remotes":{},"errors":{}}}"#,
        env!("CARGO_PKG_VERSION"),
        counts.received_count,
        counts.received_bytes,
        counts.unexpected_count,
        local.remotes + network.remotes,
        counts.error_count,
    )
}

#[cfg(test)]
mod tests {
    use super::*;

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
        carried.local.remotes = 2;
        carried.network.insert(Default::default()).remotes = 3;
        let text = describe(&statistics, 7);
        assert!(text.contains(r#""remotes":5,"#), "{text}");
    }
}
