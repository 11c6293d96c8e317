// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A report as lines of text: a line for each endpoint, one for each of its remotes, notes below.
//! In a narrow window columns are left out, those that say least first; in a low one the remotes.
//!
//! Called by `top.rs`; `terminal.rs` cuts the text to the screen.

use std::collections::HashMap;
use std::fmt::Write;
use std::net::SocketAddr;

use super::collectives;
use super::mount_row::MountRow;
use super::network::{self, Network};
use super::rates::{Choice, EndpointRow, Order, RemoteRow, Report};
use super::traffic::Traffic;

/// A column of the table.
struct Column {
    title: &'static str,
    /// The least; a longer cell makes it wider.
    width: usize,
    is_number: bool,
}

const fn text(title: &'static str, width: usize) -> Column {
    Column {
        title,
        width,
        is_number: false,
    }
}

const fn number(title: &'static str, width: usize) -> Column {
    Column {
        title,
        width,
        is_number: true,
    }
}

const COUNT: usize = 12;
const COLUMNS: [Column; COUNT] = [
    text("JOB", 8),
    number("RANK", 5),
    number("PID", 7),
    text("COMMAND", 7),
    text("ADDRESS", 17),
    text("ROUTE", 5),
    number("OUT/s", 7),
    number("OUT B/s", 7),
    number("IN/s", 7),
    number("IN B/s", 7),
    number("WAITING", 7),
    text("STATE", 7),
];
/// The columns that are left out where there is no room, the first first.
const LEFT_OUT: [usize; 7] = [3, 2, 0, 10, 11, 5, 4];
/// The longest name of a command that is shown.
const COMMAND_LETTERS: usize = 12;

/// One line: cells of the table, or a note below them.
enum Line {
    Endpoint([String; COUNT]),
    Remote([String; COUNT]),
    Note(String),
}

/// The size of what a report is shown on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Room {
    /// Columns.
    pub columns: usize,
    /// Rows.
    pub rows: usize,
}

impl Room {
    /// As much as there is to show.
    pub const ENDLESS: Self = Self {
        columns: usize::MAX,
        rows: usize::MAX,
    };
}

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

    /// The text, as much of it as finds room.
    #[must_use]
    pub fn text(&self, report: &Report, room: Room) -> String {
        let mut text = self.title(report, room);
        if report.endpoints.is_empty() {
            text.push_str("no endpoint of this user: none of your jobs here uses Weft\n");
        }
        let refused: Vec<String> = report
            .refused
            .iter()
            .map(|why| format!("not read: {why}\n"))
            .collect();
        let mounts: Vec<String> = report.mounts.iter().map(mount).collect();
        // The title and the headings.
        let left = room.rows.saturating_sub(2 + refused.len() + mounts.len());
        let groups = groups(report);
        let is_whole = groups.iter().map(Vec::len).sum::<usize>() <= left;
        let lines = if is_whole {
            groups.into_iter().flatten().collect()
        } else {
            // A line is for what is missing.
            chosen(groups, left.saturating_sub(1))
        };
        self.table(&mut text, &lines, room);
        let count = report.endpoints.len();
        let is_endpoint = |line: &&Line| matches!(line, Line::Endpoint(_));
        let shown = lines.iter().filter(is_endpoint).count();
        if shown < count {
            let _ = writeln!(text, "{shown} of {count} shown");
        } else if !is_whole {
            text.push_str("a higher window shows all their remotes\n");
        }
        text.extend(mounts);
        text.extend(refused);
        text
    }

    fn title(&self, report: &Report, room: Room) -> String {
        let count = report.endpoints.len();
        let plural = if count == 1 { "" } else { "s" };
        let state = if self.paused { ", paused" } else { "" };
        let title = format!("weft top: {count} endpoint{plural}");
        let order = format!("by {}{state}", self.order.name());
        let keys = if self.keys {
            "   q quit  s sort  p pause"
        } else {
            ""
        };
        let long = format!("{title}, over {:.1} s, {order}{keys}\n", report.interval_s);
        if long.len() <= room.columns {
            long
        } else {
            format!("{title}, {order}\n")
        }
    }

    fn table(&self, text: &mut String, lines: &[Line], room: Room) {
        let columns = fitting(lines, room.columns);
        if lines.is_empty() {
            return;
        }
        let titles = COLUMNS.map(|column| column.title.to_owned());
        text.push_str(&self.paint("7", &row(&titles, &columns)));
        text.push('\n');
        for line in lines {
            let painted = match line {
                Line::Endpoint(cells) => self.paint("1", &row(cells, &columns)),
                Line::Remote(cells) => row(cells, &columns),
                Line::Note(note) => self.paint("2", &format!("{:>9}{note}", "")),
            };
            text.push_str(&painted);
            text.push('\n');
        }
    }

    fn paint(&self, code: &str, text: &str) -> String {
        if self.colour {
            format!("\x1b[{code}m{text}\x1b[0m")
        } else {
            text.to_owned()
        }
    }
}

/// A bucket in one line.
fn mount(row: &MountRow) -> String {
    let job = row.job.as_deref().unwrap_or("-");
    let mode = if row.read_only { ", read-only" } else { "" };
    let plural = if row.processes == 1 { "" } else { "es" };
    format!(
        "{job:<8} mount {} at {}{mode}, {} process{plural}\n",
        row.source, row.folder, row.processes
    )
}

/// The columns that find room, with their widths.
fn fitting(lines: &[Line], room: usize) -> Vec<(usize, usize)> {
    let mut columns: Vec<(usize, usize)> = COLUMNS
        .iter()
        .map(|column| column.width)
        .enumerate()
        .collect();
    for line in lines {
        if let Line::Endpoint(cells) | Line::Remote(cells) = line {
            for (index, width) in &mut columns {
                *width = (*width).max(cells[*index].chars().count());
            }
        }
    }
    for out in LEFT_OUT {
        let total: usize = columns.iter().map(|(_, width)| width + 1).sum();
        if total.saturating_sub(1) <= room {
            break;
        }
        columns.retain(|(index, _)| *index != out);
    }
    columns
}

fn row(cells: &[String; COUNT], columns: &[(usize, usize)]) -> String {
    let shown = columns.iter().map(|&(index, width)| {
        let cell = &cells[index];
        if COLUMNS[index].is_number {
            format!("{cell:>width$}")
        } else {
            format!("{cell:width$}")
        }
    });
    shown.collect::<Vec<_>>().join(" ").trim_end().to_owned()
}

/// As many lines as there is room for: every endpoint before any remote, then what belongs to the
/// first of them.
fn chosen(groups: Vec<Vec<Line>>, room: usize) -> Vec<Line> {
    let mut left = room.saturating_sub(groups.len());
    let mut lines = Vec::new();
    for mut group in groups.into_iter().take(room) {
        let details = group.len() - 1;
        if details > left {
            group.truncate(1);
            left = 0;
        } else {
            left -= details;
        }
        lines.extend(group);
    }
    lines
}

/// All lines below the headings: each endpoint with what belongs to it.
fn groups(report: &Report) -> Vec<Vec<Line>> {
    let ranks: HashMap<SocketAddr, u32> = report
        .endpoints
        .iter()
        .filter_map(|row| Some((row.address, row.place.rank?)))
        .collect();
    let mut groups = Vec::new();
    for row in &report.endpoints {
        let mut lines = vec![Line::Endpoint(endpoint_cells(row))];
        let rank = |address| ranks.get(address).copied();
        for remote in &row.remotes {
            lines.push(Line::Remote(remote_cells(remote, rank(&remote.address))));
        }
        if let Some(network) = &row.network {
            for flow in &network.flows {
                lines.push(Line::Remote(flow_cells(flow, rank(&flow.address))));
                lines.push(Line::Note(flow_note(flow)));
            }
            lines.push(Line::Note(network_note(network)));
        }
        lines.extend(
            Some(how_note(row))
                .filter(|how| !how.is_empty())
                .map(Line::Note),
        );
        groups.push(lines);
    }
    groups
}

/// Messages and bytes a second; nothing is known of `None`.
fn pair(flow: Option<Traffic>) -> [String; 2] {
    flow.map_or_else(
        || ["-".to_owned(), "-".to_owned()],
        |flow| [short(flow.messages_per_s), short(flow.bytes_per_s)],
    )
}

fn endpoint_cells(row: &EndpointRow) -> [String; COUNT] {
    let state = if row.sleeps {
        "asleep".to_owned()
    } else if row.silent_s > 1.0 {
        format!("no progress for {:.0} s", row.silent_s)
    } else {
        "polling".to_owned()
    };
    let [out_messages, out_bytes] = pair(Some(row.sent_in_all()));
    let [in_messages, in_bytes] = pair(Some(row.received));
    let unknown = || "-".to_owned();
    [
        row.place.job.clone().unwrap_or_else(unknown),
        row.place.rank.map_or_else(unknown, |rank| rank.to_string()),
        row.pid.to_string(),
        row.place.command.chars().take(COMMAND_LETTERS).collect(),
        row.address.to_string(),
        String::new(),
        out_messages,
        out_bytes,
        in_messages,
        in_bytes,
        (row.waiting + row.moving + row.offered).to_string(),
        state,
    ]
}

/// A remote's rank is behind an arrow: it is the other side of what stands above it.
fn other_side(rank: Option<u32>) -> String {
    rank.map_or_else(String::new, |rank| format!("> {rank}"))
}

fn remote_cells(remote: &RemoteRow, rank: Option<u32>) -> [String; COUNT] {
    let [out_messages, out_bytes] = pair(remote.sent);
    let [in_messages, in_bytes] = pair(remote.received);
    let mut cells: [String; COUNT] = Default::default();
    cells[1] = other_side(rank);
    cells[2] = remote.pid.to_string();
    cells[4] = format!("  {}", remote.address);
    remote.route.clone_into(&mut cells[5]);
    [cells[6], cells[7], cells[8], cells[9]] = [out_messages, out_bytes, in_messages, in_bytes];
    cells
}

/// What goes to one remote beyond this host.
fn flow_cells(flow: &network::Flow, rank: Option<u32>) -> [String; COUNT] {
    let mut cells: [String; COUNT] = Default::default();
    cells[1] = other_side(rank);
    cells[4] = format!("  {}", flow.address);
    "srd".clone_into(&mut cells[5]);
    cells[7] = short(flow.sent_bytes_per_s);
    cells
}

/// How things stand with it.
fn flow_note(flow: &network::Flow) -> String {
    format!(
        "srd to {}: rtt {}, cwnd {}, in flight {}, paths {}/{}, datagrams {}, again {}/s",
        flow.address,
        time(flow.srtt_ns),
        binary(flow.cwnd_bytes),
        binary(flow.in_flight_bytes),
        flow.good_paths,
        flow.paths,
        flow.datagram_bytes,
        short(flow.retransmitted_per_s),
    )
}

/// Datagrams of the whole route.
fn network_note(network: &Network) -> String {
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
    parts.join(", ")
}

fn time(ns: u64) -> String {
    match ns {
        0 => "-".to_owned(),
        1..10_000_000 => format!("{} us", ns.div_ceil(1000)),
        _ => format!("{} ms", ns / 1_000_000),
    }
}

/// Protocols in use and choices made.
fn how_note(row: &EndpointRow) -> String {
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
    parts.extend(collectives::words(&row.collectives, short));
    if row.wide_lanes > 0 {
        parts.push(format!("wide lanes {}", row.wide_lanes));
    }
    if row.lost > 0 {
        parts.push(format!("remotes lost {}", row.lost));
    }
    parts.join(", ")
}

/// A choice in words.
pub(crate) fn choice(choice: &Choice) -> String {
    format!(
        "{} to {}{} by {}",
        binary(choice.from_bytes),
        binary(choice.to_bytes.saturating_add(1)),
        if choice.bidirectional {
            " bidirectional"
        } else {
            ""
        },
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
mod tests;
