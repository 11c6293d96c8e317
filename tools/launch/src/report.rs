// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What went through Weft: each rank's provider says when an endpoint opens, and what it has
//! carried when it closes. Here the reports are collected and summed.
//!
//! Called by `lib.rs` around the job. The socket is an abstract unix one with a random name, which
//! goes to the ranks in FI_WEFT_REPORT; each report is one JSON object on a connection of its own,
//! which waits in the kernel's queue (4,096 by net.core.somaxconn) until it is taken. What arrives
//! is a claim by another process: it is parsed strictly, and it decides nothing but the text of a
//! summary.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener, UnixStream};
use std::thread::JoinHandle;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::collective_calls::{self, Collective};
use crate::endpoints::Endpoints;
use crate::number_text::{grouped, in_parentheses, size};

/// The variable that tells the provider where to report to: the name of the socket without the
/// leading NUL.
pub const VARIABLE: &str = weft_facts::parameter::REPORT.variable;
/// Longest report that is read. Chosen: a report is a few hundred bytes.
const LONGEST_BYTES: u64 = 64 * 1024;
/// How long who has connected may take to send. Chosen: it sends at once, unless it was stopped or
/// killed in between.
const PATIENCE: Duration = Duration::from_secs(5);

/// A number of messages and of their bytes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Traffic {
    /// Messages.
    #[serde(default)]
    pub messages: u64,
    /// Bytes of payload.
    #[serde(default)]
    pub bytes: u64,
}

impl Traffic {
    fn add(&mut self, other: Self) {
        self.messages = self.messages.saturating_add(other.messages);
        self.bytes = self.bytes.saturating_add(other.bytes);
    }
}

/// One endpoint's report, or one process's of its collectives.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Report {
    /// The provider's version.
    pub weft: String,
    /// The reporting process.
    pub pid: u32,
    /// The host it ran on, filled in by `weft run`; empty for its own.
    #[serde(default)]
    pub host: String,
    /// Whether it only says that the endpoint is open; what was carried comes with the report of
    /// its end.
    #[serde(default)]
    pub opened: bool,
    /// Messages sent, by protocol.
    #[serde(default)]
    pub sent: BTreeMap<String, Traffic>,
    /// Messages received.
    #[serde(default)]
    pub received: Traffic,
    /// Messages that came before they were asked for.
    #[serde(default)]
    pub unexpected: u64,
    /// Processes that were talked to.
    #[serde(default)]
    pub remotes: u64,
    /// Operations that ended in an error.
    #[serde(default)]
    pub errors: u64,
    /// Calls of collectives by name; such a report says nothing of an endpoint.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub collectives: Option<BTreeMap<String, Collective>>,
    /// The file of a tool before the MPI's functions, where no collective reached Weft.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool: Option<String>,
}

/// The sum over all reports of a job.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Summary {
    /// Processes that opened an endpoint of Weft.
    pub opened: u32,
    /// Those that closed it and said what it had carried.
    pub processes: u32,
    /// Messages sent, by protocol.
    pub sent: BTreeMap<String, Traffic>,
    /// Messages received.
    pub received: Traffic,
    /// Messages that came before they were asked for.
    pub unexpected: u64,
    /// Operations that ended in an error.
    pub errors: u64,
    /// Calls of collectives, all ranks' together, by name.
    pub collectives: BTreeMap<String, Collective>,
    /// The file of a tool before the MPI's functions, where no collective reached Weft.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool: Option<String>,
    /// Connections that brought no report.
    pub unreadable: u32,
}

impl Summary {
    /// Adds reports up.
    #[must_use]
    pub fn of(reports: &[Report], unreadable: u32) -> Self {
        let mut summary = Self {
            unreadable,
            ..Self::default()
        };
        let (mut opened, mut closed) = (BTreeSet::new(), BTreeSet::new());
        for report in reports {
            if let Some(collectives) = &report.collectives {
                collective_calls::add(&mut summary.collectives, collectives);
                summary.tool = summary.tool.or_else(|| report.tool.clone());
                continue;
            }
            opened.insert((report.host.as_str(), report.pid));
            if !report.opened {
                closed.insert((report.host.as_str(), report.pid));
            }
            for (protocol, traffic) in &report.sent {
                summary
                    .sent
                    .entry(protocol.clone())
                    .or_default()
                    .add(*traffic);
            }
            summary.received.add(report.received);
            summary.unexpected = summary.unexpected.saturating_add(report.unexpected);
            summary.errors = summary.errors.saturating_add(report.errors);
        }
        let count = |set: BTreeSet<_>| u32::try_from(set.len()).unwrap_or(u32::MAX);
        (summary.opened, summary.processes) = (count(opened), count(closed));
        summary
    }

    /// All that was sent.
    #[must_use]
    pub fn total(&self) -> Traffic {
        let mut total = Traffic::default();
        self.sent.values().for_each(|traffic| total.add(*traffic));
        total
    }

    /// Who carried collectives out, in one line.
    #[must_use]
    pub fn collectives_line(&self) -> Option<String> {
        let tool = self.tool.as_deref();
        collective_calls::line(&self.collectives).or_else(|| tool.map(collective_calls::taken_by))
    }

    /// The summary in one line, for a job of `ranks`.
    #[must_use]
    pub fn line(&self, ranks: u32) -> String {
        let total = self.total();
        let sent = self.sent.iter();
        let parts = in_parentheses(sent.map(|(name, traffic)| (name, traffic.messages)));
        let errors = match self.errors {
            0 => String::new(),
            1 => ", 1 error".to_owned(),
            many => format!(", {} errors", grouped(many)),
        };
        let ranks_word = if ranks == 1 { "rank" } else { "ranks" };
        let counted = if self.processes < ranks {
            format!(" by the {} that said so at their end", self.processes)
        } else {
            String::new()
        };
        format!(
            "{ranks} {ranks_word}, {} messages through Weft{counted}{parts}, {}{errors}",
            grouped(total.messages),
            size(total.bytes)
        )
    }
}

/// A thread that receives reports until it is told to stop.
#[derive(Debug)]
pub struct Collector {
    name: String,
    end: Vec<u8>,
    endpoints: Endpoints,
    thread: JoinHandle<(Vec<Report>, u32)>,
}

impl Collector {
    /// Opens the socket and starts to receive.
    ///
    /// # Errors
    /// When the system gives no random bytes, no socket or no thread.
    pub fn start() -> io::Result<Self> {
        Self::open(&random_name()?)
    }

    /// As `start`, under a name that was chosen elsewhere; the node agents of a job all use that of
    /// `weft run`.
    ///
    /// # Errors
    /// As `start`, and when the name is taken on this machine.
    pub fn open(name: &str) -> io::Result<Self> {
        let name = name.to_owned();
        let end = random_hex()?.into_bytes();
        let listener = UnixListener::bind_addr(&SocketAddr::from_abstract_name(&name)?)?;
        let last = end.clone();
        let endpoints = Endpoints::default();
        let heard = endpoints.clone();
        let thread = std::thread::Builder::new()
            .name("reports".into())
            .spawn(move || receive(&listener, &last, &heard))?;
        Ok(Self {
            name,
            end,
            endpoints,
            thread,
        })
    }

    /// Who has opened an endpoint so far.
    #[must_use]
    pub fn endpoints(&self) -> Endpoints {
        self.endpoints.clone()
    }

    /// The value for FI_WEFT_REPORT.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Takes what has arrived. A report sent before this call is included, because connections are
    /// accepted in their order.
    ///
    /// # Errors
    /// When the receiving thread cannot be reached.
    pub fn finish(self) -> io::Result<(Vec<Report>, u32)> {
        let address = SocketAddr::from_abstract_name(&self.name)?;
        UnixStream::connect_addr(&address)?.write_all(&self.end)?;
        self.thread
            .join()
            .map_err(|_| io::Error::other("the thread that receives reports panicked"))
    }
}

fn receive(listener: &UnixListener, end: &[u8], endpoints: &Endpoints) -> (Vec<Report>, u32) {
    let mut reports: Vec<Report> = Vec::new();
    let mut unreadable = 0_u32;
    loop {
        let stream = match listener.accept() {
            Ok((stream, _)) => stream,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(_) => return (reports, unreadable),
        };
        match text_of(stream) {
            Ok(text) if text == end => return (reports, unreadable),
            Ok(text) => match serde_json::from_slice::<Report>(&text) {
                Ok(report) => {
                    if report.collectives.is_none() {
                        endpoints.hear(report.pid, report.opened);
                    }
                    reports.push(report);
                }
                Err(_) => unreadable = unreadable.saturating_add(1),
            },
            Err(_) => unreadable = unreadable.saturating_add(1),
        }
    }
}

/// All that one connection brings.
fn text_of(stream: UnixStream) -> io::Result<Vec<u8>> {
    stream.set_read_timeout(Some(PATIENCE))?;
    let mut text = Vec::new();
    stream.take(LONGEST_BYTES).read_to_end(&mut text)?;
    Ok(text)
}

/// A name for a socket that nobody can guess.
///
/// # Errors
/// When the system gives no random bytes.
pub fn random_name() -> io::Result<String> {
    Ok(format!("weft-report-{}", random_hex()?))
}

/// 96 random bits, as 24 letters.
///
/// # Errors
/// When the system gives no random bytes.
pub fn random_hex() -> io::Result<String> {
    let mut bytes = [0_u8; 12];
    File::open("/dev/urandom")?.read_exact(&mut bytes)?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn send(name: &str, text: &str) {
        let address = SocketAddr::from_abstract_name(name).unwrap();
        UnixStream::connect_addr(&address)
            .unwrap()
            .write_all(text.as_bytes())
            .unwrap();
    }

    #[test]
    fn reports_of_all_endpoints_are_summed_and_processes_counted_once() {
        let collector = Collector::start().unwrap();
        let one = r#"{"weft":"0.1.0","pid":7,
            "sent":{"inline":{"messages":10000,"bytes":100},
                "single_copy":{"messages":345,"bytes":1288490188}},
            "received":{"messages":3,"bytes":4},"unexpected":2,"remotes":1,"errors":0}"#;
        let two = r#"{"weft":"0.1.0","pid":7,
            "sent":{"inline":{"messages":1,"bytes":1},"later_protocol":{"messages":2}},
            "new_field":1}"#;
        let open = r#"{"weft":"0.1.0","pid":7,"opened":true}"#;
        for text in [
            open,
            one,
            two,
            r#"{"weft":"0.1.0","pid":8}"#,
            r#"{"weft":"0.1.0","pid":77,"collectives":{"scan":{"weft":2}}}"#,
            r#"{"weft":"0.1.0","pid":78,"collectives":{},"tool":"/t/libtool.so"}"#,
            "nonsense",
            r#"{"pid":9}"#,
        ] {
            send(collector.name(), text);
        }
        let (reports, unreadable) = collector.finish().unwrap();
        let summary = Summary::of(&reports, unreadable);
        assert_eq!(
            (reports.len(), summary.processes, summary.unreadable),
            (6, 2, 2)
        );
        assert_eq!(
            summary.sent["inline"],
            Traffic {
                messages: 10_001,
                bytes: 101
            }
        );
        assert_eq!(summary.total().messages, 10_348);
        assert_eq!(summary.tool.as_deref(), Some("/t/libtool.so"));
        let line = summary.collectives_line().unwrap();
        assert!(line.starts_with("2 calls"), "{line}");
        let none = Summary::of(&reports[5..], 0).collectives_line().unwrap();
        assert!(none.contains("; /t/libtool.so stands"), "{none}");
        assert_eq!(
            summary.line(2),
            "2 ranks, 10,348 messages through Weft (inline 10,001, single copy 345, later protocol \
             2), 1.2 GiB"
        );
    }

    #[test]
    fn who_opened_an_endpoint_and_did_not_close_it_is_told_apart() {
        let report = |pid, opened| Report {
            pid,
            opened,
            ..Report::default()
        };
        let all = [report(1, true), report(2, true), report(1, false)];
        let summary = Summary::of(&all, 0);
        assert_eq!((summary.opened, summary.processes), (2, 1));
        assert_eq!(
            summary.line(2),
            "2 ranks, 0 messages through Weft by the 1 that said so at their end, 0 B"
        );
    }

    #[test]
    fn more_reports_than_the_queue_of_a_socket_holds_all_arrive() {
        let collector = Collector::start().unwrap();
        for pid in 0..500 {
            send(
                collector.name(),
                &format!(r#"{{"weft":"0.1.0","pid":{pid}}}"#),
            );
        }
        assert_eq!(
            Summary::of(&collector.finish().unwrap().0, 0).processes,
            500
        );
    }

    #[test]
    fn sums_do_not_overflow() {
        let huge = Report {
            weft: "x".into(),
            pid: 1,
            sent: [(
                "inline".to_owned(),
                Traffic {
                    messages: u64::MAX,
                    bytes: u64::MAX,
                },
            )]
            .into(),
            unexpected: u64::MAX,
            errors: 1,
            ..Report::default()
        };
        let summary = Summary::of(&[huge.clone(), huge], 0);
        assert_eq!(summary.total().messages, u64::MAX);
        assert!(
            summary.line(1).ends_with("16.0 EiB, 2 errors"),
            "{}",
            summary.line(1)
        );
    }

    #[test]
    fn numbers_are_grouped_and_sizes_scaled() {
        for (number, text) in [
            (0, "0"),
            (999, "999"),
            (1000, "1,000"),
            (12_345, "12,345"),
            (1_234_567, "1,234,567"),
        ] {
            assert_eq!(grouped(number), text);
        }
        for (bytes, text) in [
            (0, "0 B"),
            (1023, "1023 B"),
            (1024, "1.0 KiB"),
            (1536, "1.5 KiB"),
            (1 << 30, "1.0 GiB"),
        ] {
            assert_eq!(size(bytes), text);
        }
    }
}
