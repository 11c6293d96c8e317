// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A report as lines of text: a line for each endpoint, one for each of its remotes, one for what it chooses.
//!
//! Called by `top.rs`; `terminal.rs` cuts the text to the screen.

use std::fmt::Write;

use super::network::{self, Network};
use super::rates::{Choice, EndpointRow, Flow, Order, RemoteRow, Report};

/// How a report is shown.
#[derive(Debug, Clone, Copy)]
pub struct View {
    /// What it is sorted by.
    pub order: Order,
    /// Whether it stands still.
    pub paused: bool,
    colour: bool,
    keys: bool,
}

impl View {
    /// On a terminal, with the keys named.
    #[must_use]
    pub fn new(order: Order, colour: bool) -> Self {
        Self {
            order,
            paused: false,
            colour,
            keys: true,
        }
    }

    /// For a file.
    #[must_use]
    pub fn plain(order: Order) -> Self {
        Self {
            keys: false,
            ..Self::new(order, false)
        }
    }

    /// The text.
    #[must_use]
    pub fn text(&self, report: &Report) -> String {
        let mut text = String::new();
        let count = report.endpoints.len();
        let plural = if count == 1 { "" } else { "s" };
        let state = if self.paused { ", paused" } else { "" };
        let keys = if self.keys {
            "   q quit  s sort  p pause"
        } else {
            ""
        };
        let _ = writeln!(
            text,
            "weft top: {count} endpoint{plural}, over {:.1} s, by {}{state}{keys}",
            report.interval_s,
            self.order.name()
        );
        if count == 0 {
            text.push_str("no endpoint of this user lives on this machine\n");
        } else {
            text.push_str(&self.paint("7", &heading()));
            text.push('\n');
        }
        for row in &report.endpoints {
            text.push_str(&self.paint("1", &endpoint_line(row)));
            text.push('\n');
            for remote in &row.remotes {
                let _ = writeln!(text, "{}", remote_line(remote));
            }
            if let Some(network) = &row.network {
                for flow in &network.flows {
                    let _ = writeln!(text, "{}", flow_line(flow));
                }
                let _ = writeln!(text, "{}", self.paint("2", &network_line(network)));
            }
            let how = how_line(row);
            if !how.is_empty() {
                let _ = writeln!(text, "{}", self.paint("2", &how));
            }
        }
        for why in &report.refused {
            let _ = writeln!(text, "not read: {why}");
        }
        text
    }

    fn paint(&self, code: &str, text: &str) -> String {
        if self.colour {
            format!("\x1b[{code}m{text}\x1b[0m")
        } else {
            text.to_owned()
        }
    }
}

fn heading() -> String {
    format!(
        "{:<8} {:>5} {:>8} {:<12} {:<23} {:<5} {:>7} {:>7} {:>7} {:>7} {:>7} {}",
        "JOB",
        "RANK",
        "PID",
        "COMMAND",
        "ADDRESS",
        "ROUTE",
        "OUT/s",
        "OUT B/s",
        "IN/s",
        "IN B/s",
        "WAITING",
        "STATE"
    )
}

fn line(first: [&str; 6], out: Option<Flow>, into: Option<Flow>, last: [&str; 2]) -> String {
    let pair = |flow: Option<Flow>| {
        flow.map_or_else(
            || ["-".to_owned(), "-".to_owned()],
            |flow| [short(flow.messages_per_s), short(flow.bytes_per_s)],
        )
    };
    let ([out_messages, out_bytes], [in_messages, in_bytes]) = (pair(out), pair(into));
    let [job, rank, pid, command, address, route] = first;
    let [waiting, state] = last;
    let text = format!(
        "{job:<8} {rank:>5} {pid:>8} {command:<12.12} {address:<23} {route:<5} {out_messages:>7} \
         {out_bytes:>7} {in_messages:>7} {in_bytes:>7} {waiting:>7} {state}"
    );
    text.trim_end().to_owned()
}

fn endpoint_line(row: &EndpointRow) -> String {
    let state = if row.sleeps {
        "asleep".to_owned()
    } else if row.silent_s > 1.0 {
        format!("no progress for {:.0} s", row.silent_s)
    } else {
        "polling".to_owned()
    };
    let waiting = (row.waiting + row.moving + row.offered).to_string();
    line(
        [
            row.place.job.as_deref().unwrap_or("-"),
            &row.place
                .rank
                .map_or_else(|| "-".to_owned(), |rank| rank.to_string()),
            &row.pid.to_string(),
            &row.place.command,
            &row.address.to_string(),
            "",
        ],
        Some(row.sent_in_all()),
        Some(row.received),
        [&waiting, &state],
    )
}

fn remote_line(remote: &RemoteRow) -> String {
    let address = format!("  {}", remote.address);
    let pid = remote.pid.to_string();
    let first = ["", "", pid.as_str(), "", address.as_str(), remote.route];
    line(first, remote.sent, remote.received, ["", ""])
}

/// How things stand with one remote beyond this host.
fn flow_line(flow: &network::Flow) -> String {
    let address = format!("  {}", flow.address);
    let text = format!(
        "{:<8} {:>5} {:>8} {:<12} {address:<23} {:<5} {:>7} {:>7} rtt {}, window {}, in flight {}, paths {}/{}, datagrams {}, again {}/s",
        "",
        "",
        "",
        "",
        "srd",
        "",
        short(flow.sent_bytes_per_s),
        time(flow.srtt_ns),
        binary(flow.window_bytes),
        binary(flow.in_flight_bytes),
        flow.good_paths,
        flow.paths,
        flow.datagram_bytes,
        short(flow.retransmitted_per_s),
    );
    text
}

/// Datagrams of the whole route.
fn network_line(network: &Network) -> String {
    let per_s = |name: &str| short(network.per_s.get(name).copied().unwrap_or(0.0));
    let mut parts = vec![
        format!("srd datagrams {}/s out", per_s("sent")),
        format!("{}/s in", per_s("received")),
        format!("again {}/s", per_s("retransmitted")),
        format!("time-outs {}/s", per_s("timeouts")),
    ];
    for (name, words) in [
        ("suspects", "paths were suspect"),
        ("turned_away", "turned away"),
        ("remotes_lost", "remotes lost"),
    ] {
        let count = network.count(name);
        if count > 0 {
            parts.push(format!("{words} {count}"));
        }
    }
    format!("{:>8} {}", "", parts.join(", "))
}

fn time(ns: u64) -> String {
    match ns {
        0 => "-".to_owned(),
        1..10_000_000 => format!("{} us", ns.div_ceil(1000)),
        _ => format!("{} ms", ns / 1_000_000),
    }
}

/// Protocols in use and choices made.
fn how_line(row: &EndpointRow) -> String {
    let used = row
        .sent
        .iter()
        .filter(|(_, flow)| flow.messages_per_s > 0.0);
    let mut parts: Vec<String> = used
        .map(|(name, flow)| {
            format!(
                "{} {}/s",
                name.replace('_', " "),
                short(flow.messages_per_s)
            )
        })
        .collect();
    parts.extend(row.choices.iter().map(choice));
    if row.wide_lanes > 0 {
        parts.push(format!("wide lanes {}", row.wide_lanes));
    }
    if row.lost > 0 {
        parts.push(format!("remotes lost {}", row.lost));
    }
    if parts.is_empty() {
        return String::new();
    }
    format!("{:>8} {}", "", parts.join(", "))
}

/// A choice in words.
pub(crate) fn choice(choice: &Choice) -> String {
    format!(
        "{} to {}{} by {}",
        binary(choice.from_bytes),
        binary(choice.to_bytes.saturating_add(1)),
        if choice.both_ways { " both ways" } else { "" },
        choice.method
    )
}

fn binary(bytes: u64) -> String {
    let power = (0..6).rev().find(|power| bytes >= 1 << (10 * power));
    let power = power.unwrap_or(0);
    format!(
        "{}{}",
        bytes >> (10 * power),
        ["", "K", "M", "G", "T", "P"][power]
    )
}

/// Four digits at most: 12, 3.4k, 56M.
fn short(number: f64) -> String {
    let units = ["", "k", "M", "G", "T"];
    let (mut number, mut unit) = (number, 0);
    while number >= 999.5 && unit + 1 < units.len() {
        number /= 1000.0;
        unit += 1;
    }
    let digits = usize::from(unit > 0 && number < 99.95);
    format!("{number:.digits$}{}", units[unit])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_short() {
        let all = [0.0, 7.0, 999.0, 1000.0, 12_345.0, 999_999.0, 3.2e9].map(short);
        assert_eq!(all, ["0", "7", "999", "1.0k", "12.3k", "1.0M", "3.2G"]);
        assert_eq!(
            [1, 65_536, 1 << 20, 1 << 34].map(binary),
            ["1", "64K", "1M", "16G"]
        );
    }

    #[test]
    fn a_remote_beyond_this_host_is_shown_with_its_round_trip_window_and_paths() {
        let flow = network::Flow {
            address: "10.0.0.2:7".parse().unwrap(),
            srtt_ns: 85_200,
            window_bytes: 524_288,
            in_flight_bytes: 65_536,
            good_paths: 30,
            paths: 32,
            datagram_bytes: 8972,
            sent_bytes: 0,
            retransmitted: 0,
            heard_ns: 0,
            sent_bytes_per_s: 1.2e8,
            retransmitted_per_s: 3.0,
        };
        let line = flow_line(&flow);
        let words: Vec<&str> = line.split_whitespace().collect();
        let told = "10.0.0.2:7 srd 120M rtt 86 us, window 512K, in flight 64K, paths 30/32, datagrams 8972, again 3/s";
        assert_eq!(words.join(" "), told);
        assert_eq!([0, 1, 12_000_000].map(time), ["-", "1 us", "12 ms"]);
    }

    #[test]
    fn an_empty_machine_says_so() {
        let text = View::plain(Order::Messages).text(&Report::default());
        assert!(
            text.contains("0 endpoints") && text.contains("no endpoint of this user"),
            "{text}"
        );
    }
}
