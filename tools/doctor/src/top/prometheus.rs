// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A report in Prometheus's text format, for its node exporter's textfile collector or any other
//! reader. Counters and gauges; rates are Prometheus's to make.
//!
//! Called by `top.rs`. Source: prometheus.io, "Exposition formats", version 0.0.4.

use std::fmt::Write;

use super::rates::{EndpointRow, Report};

/// A metric: its name, type, what it tells, and what one endpoint has of it, each with one more
/// label.
struct Metric {
    name: &'static str,
    kind: &'static str,
    help: &'static str,
    values: fn(&EndpointRow) -> Vec<(&'static str, u64)>,
}

/// The label that tells values of one endpoint apart.
const PROTOCOL: &str = "protocol";

const METRICS: [Metric; 8] = [
    Metric {
        name: "weft_sent_messages_total",
        kind: "counter",
        help: "Messages sent, by protocol.",
        values: |row| sent(row, |traffic| traffic.messages),
    },
    Metric {
        name: "weft_sent_bytes_total",
        kind: "counter",
        help: "Bytes sent, by protocol.",
        values: |row| sent(row, |traffic| traffic.bytes),
    },
    Metric {
        name: "weft_received_messages_total",
        kind: "counter",
        help: "Messages received.",
        values: |row| vec![("", row.received.messages)],
    },
    Metric {
        name: "weft_received_bytes_total",
        kind: "counter",
        help: "Bytes received.",
        values: |row| vec![("", row.received.bytes)],
    },
    Metric {
        name: "weft_waiting",
        kind: "gauge",
        help: "Sends and answers that wait for room.",
        values: |row| vec![("", row.waiting)],
    },
    Metric {
        name: "weft_moving",
        kind: "gauge",
        help: "Long messages on their way.",
        values: |row| vec![("", row.moving)],
    },
    Metric {
        name: "weft_offered",
        kind: "gauge",
        help: "Messages announced and not matched.",
        values: |row| vec![("", row.offered)],
    },
    Metric {
        name: "weft_lost_remotes_total",
        kind: "counter",
        help: "Remotes given up.",
        values: |row| vec![("", row.lost)],
    },
];

fn sent(row: &EndpointRow, value: fn(&super::traffic::Traffic) -> u64) -> Vec<(&'static str, u64)> {
    let flows = row.sent.iter();
    flows
        .map(|(&name, traffic)| (name, value(traffic)))
        .collect()
}

/// The text.
#[must_use]
pub fn text(report: &Report) -> String {
    let mut text = String::new();
    for metric in &METRICS {
        head(&mut text, metric.name, metric.kind, metric.help);
        for row in &report.endpoints {
            let labels = labels(row);
            for (protocol, value) in (metric.values)(row) {
                let more = if protocol.is_empty() {
                    String::new()
                } else {
                    format!(",{PROTOCOL}=\"{protocol}\"")
                };
                let _ = writeln!(text, "{}{{{labels}{more}}} {value}", metric.name);
            }
        }
    }
    let name = "weft_mount_processes";
    head(
        &mut text,
        name,
        "gauge",
        "Processes of a job that see a bucket.",
    );
    for row in &report.mounts {
        let (job, read_only) = (row.job.as_deref().unwrap_or_default(), row.read_only);
        let (source, folder) = (quoted(&row.source), quoted(&row.folder));
        let _ = writeln!(
            text,
            "{name}{{job=\"{}\",source=\"{source}\",folder=\"{folder}\",\
             read_only=\"{read_only}\"}} {}",
            quoted(job),
            row.processes
        );
    }
    text
}

fn head(text: &mut String, name: &str, kind: &str, help: &str) {
    let _ = writeln!(text, "# HELP {name} {help}\n# TYPE {name} {kind}");
}

fn labels(row: &EndpointRow) -> String {
    let rank = row.place.rank.map(|rank| rank.to_string());
    format!(
        "job=\"{}\",rank=\"{}\",pid=\"{}\",command=\"{}\",address=\"{}\"",
        quoted(row.place.job.as_deref().unwrap_or_default()),
        rank.unwrap_or_default(),
        row.pid,
        quoted(&row.place.command),
        row.address
    )
}

/// As a label's value is written.
fn quoted(value: &str) -> String {
    value
        .replace('\\', "\\\\")
        .replace('"', "\\\"")
        .replace('\n', "\\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::top::mount_row::MountRow;

    #[test]
    fn each_metric_has_its_head_and_labels_are_quoted() {
        let mount = MountRow {
            job: Some("77".to_owned()),
            source: "s3://data/".to_owned(),
            folder: "/a \"b\"\\".to_owned(),
            read_only: true,
            processes: 2,
        };
        let report = Report {
            mounts: vec![mount],
            ..Report::default()
        };
        let text = text(&report);
        assert_eq!(text.matches("# TYPE ").count(), METRICS.len() + 1);
        let line = "weft_mount_processes{job=\"77\",source=\"s3://data/\",folder=\"/a \\\"b\\\"\\\\\
                    \",read_only=\"true\"} 2\n";
        assert!(text.ends_with(line), "{text}");
    }
}
