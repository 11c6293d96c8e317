// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The figures of a program as text for people or JSON lines for scripts.
//!
//! Called by app.

use super::program::Measured;
use super::rounds::Record;
use serde_json::json;
use std::fmt::Write;
use weft_chart::axis::figure as digits;
use weft_statistics::Summary;
use weft_statistics::interval::{self, Better, Interval, percent};

/// How much better than the base, above 1 when better, whichever way the figure counts; paired by
/// round.
pub fn speed_up(record: &Record, transport: &str, figure: &Measured) -> Option<Interval> {
    let ours = record.column(transport, figure.name);
    let base = record.column(record.base()?, figure.name);
    match figure.better {
        Better::More => interval::of_ratio(&ours, &base),
        Better::Less => interval::of_ratio(&base, &ours),
    }
}

/// Median and spread of a figure.
pub fn summary(record: &Record, transport: &str, figure: &Measured) -> Option<Summary> {
    let values: Vec<f64> = record
        .column(transport, figure.name)
        .into_iter()
        .flatten()
        .collect();
    Summary::of(&values)
}

/// For people.
pub fn text(record: &Record) -> String {
    let mut text = format!(
        "# {}\n# {} ranks{}, {}, {} rounds; median, tenth and ninetieth percentile",
        record.title, record.ranks, record.place, record.mpi, record.rounds
    );
    if let Some(base) = record.base() {
        let _ = write!(
            text,
            "; speed-up over {base}, round by round, with its interval and how sure that is"
        );
    }
    text.push('\n');
    let agreement = match record.agreed_lines {
        Some(lines) => format!(
            "the {} ({lines} lines) are the same in all {} runs",
            record.result_name,
            record.runs.len()
        ),
        None => format!("the {} do not agree", record.result_name),
    };
    let _ = writeln!(text, "# {agreement}");
    for left_out in &record.left_out {
        let _ = writeln!(text, "# left out: {left_out}");
    }
    let _ = writeln!(
        text,
        "{:<32} {:<10} {:>10} {:>10} {:>10} {:>5}  speed-up",
        "# figure", "transport", "median", "p10", "p90", "runs"
    );
    for figure in record.figures() {
        for transport in &record.transports {
            let Some(summary) = summary(record, transport, figure) else {
                continue;
            };
            let ratio = speed_up(record, transport, figure)
                .filter(|_| record.base() != Some(transport))
                .map_or("-".to_owned(), |ratio| {
                    let sure = percent(ratio.confidence);
                    format!(
                        "{:.2} ({:.2} to {:.2}, {sure})",
                        ratio.value, ratio.low, ratio.high
                    )
                });
            let _ = writeln!(
                text,
                "{:<32} {transport:<10} {:>10} {:>10} {:>10} {:>5}  {ratio}",
                format!("{} ({})", figure.name, figure.unit),
                digits(summary.median),
                digits(summary.p10),
                digits(summary.p90),
                summary.count
            );
        }
    }
    text
}

/// For scripts: a header, then a line for each figure over each transport.
pub fn json(record: &Record) -> String {
    let header = json!({
        "type": "header",
        "title": record.title,
        "ranks": record.ranks,
        "place": record.place.trim_start_matches(" on "),
        "mpi": record.mpi,
        "rounds": record.rounds,
        "transports": record.transports,
        "left_out": record.left_out,
        "agree": record.agreed_lines.is_some(),
        "result_lines": record.agreed_lines,
        "commands": record.commands,
        "troubles": record.troubles,
    });
    let mut text = format!("{header}\n");
    for figure in record.figures() {
        for transport in &record.transports {
            let line = json!({
                "type": "figure",
                "name": figure.name,
                "unit": figure.unit,
                "more_is_better": figure.better == Better::More,
                "transport": transport,
                "summary": summary(record, transport, figure),
                "speed_up": speed_up(record, transport, figure),
                "values": record.column(transport, figure.name),
            });
            let _ = writeln!(text, "{line}");
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::super::rounds::Run;
    use super::*;

    fn record() -> Record {
        let run = |transport: &str, round, rate, delay| Run {
            transport: transport.into(),
            round,
            figures: vec![
                Measured {
                    name: "rate",
                    unit: "1/s",
                    better: Better::More,
                    value: rate,
                },
                Measured {
                    name: "delay",
                    unit: "us",
                    better: Better::Less,
                    value: delay,
                },
            ],
        };
        Record {
            title: "Program, input".into(),
            transports: vec!["weft".into(), "native".into()],
            rounds: 2,
            runs: vec![
                run("weft", 0, 20.0, 1.0),
                run("native", 0, 10.0, 2.0),
                run("native", 1, 10.0, 4.0),
                run("weft", 1, 20.0, 2.0),
            ],
            agreed_lines: Some(3),
            ..Record::default()
        }
    }

    #[test]
    fn speed_up_is_above_one_when_better_whichever_way_the_figure_counts() {
        let record = record();
        for figure in record.figures() {
            let ratio = speed_up(&record, "weft", figure).expect("both ran");
            assert_eq!(
                (ratio.low, ratio.value, ratio.high),
                (2.0, 2.0, 2.0),
                "{}",
                figure.name
            );
        }
    }

    #[test]
    fn table_and_json_hold_every_figure_over_every_transport() {
        let record = record();
        let text = text(&record);
        assert_eq!(
            text.lines().filter(|line| !line.starts_with('#')).count(),
            4,
            "{text}"
        );
        assert!(
            text.contains("2.00 (2.00 to 2.00, 50.0 %)") && text.contains("are the same"),
            "{text}"
        );
        let lines: Vec<serde_json::Value> = json(&record)
            .lines()
            .map(|line| serde_json::from_str(line).expect("JSON"))
            .collect();
        assert_eq!((lines.len(), &lines[0]["agree"]), (5, &json!(true)));
        assert_eq!(lines[1]["summary"]["median"], json!(20.0));
    }
}
