// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Figures from two hosts of a testbed, joined by four equal-cost paths; the kernel picks the path.
//! They show how losses and a path that fails change Weft and TCP.
//!
//! Called by figures. Each configuration has a run per round, in turn.

use super::definition::{Definition, Fault};
use super::measured::order;
use super::settings::Settings;
use crate::error::Error;
use crate::testbed::Testbed;
use crate::testbed::network::Network;
use serde_json::Value;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use weft_chart::axis::Scale;
use weft_chart::figure::{Axis, Figure, Point, Role, Series, Shape};
use weft_statistics::Summary;

/// Who takes part: name, transport. Hosts of one machine's own: nobody is on the network to keep
/// out.
const CONFIGURATIONS: [(&str, &str); 2] = [("Weft (SRD)", "weft"), ("TCP", "tcp")];
/// Losses in percent (chosen: none, one of a thousand, and one of a hundred packets).
const LOSSES: [f64; 3] = [0.0, 0.1, 1.0];
/// Rounds, and for a quick look (chosen).
const ROUNDS: usize = 5;
const QUICK_ROUNDS: usize = 1;
/// Time limit of one run (chosen: TCP needs seconds under loss).
const LIMIT_SECONDS: &str = "30";
/// Packets of a path by which a stream is known to flow (chosen: more than starting a job takes).
const FLOWING: u64 = 3000;
/// How long to wait for that, and how long a path stays broken (chosen).
const PATIENCE: Duration = Duration::from_secs(15);
const BROKEN: Duration = Duration::from_secs(1);
/// A stream of messages for the bandwidth, and exchanges that last longer than the path is broken.
const STREAM: &str = "bw -m 1048576:1048576 -i 4 -x 1 -W 16 --json";
const EXCHANGES: &str = "latency -m 8:8 -i 30000 -x 100 -z50,100 --json";

/// Measures and fills it.
///
/// # Errors
/// Why no run of a configuration ended well.
pub fn figure(
    settings: &Settings,
    definition: &Definition,
    fault: Fault,
    weft: &Path,
) -> Result<Figure, Error> {
    let bed = Testbed::up(&Network::default()).map_err(|error| error.about("the testbed"))?;
    let rounds = if settings.quick { QUICK_ROUNDS } else { ROUNDS };
    let places: &[f64] = match fault {
        Fault::Loss => &LOSSES,
        Fault::Hole => &[0.0],
    };
    let mut found = vec![vec![Vec::new(); places.len()]; CONFIGURATIONS.len()];
    let mut lost = Vec::new();
    for round in 0..rounds {
        for (at, place) in places.iter().enumerate() {
            bed.tell(&["loss", "all", &place.to_string()])?;
            for who in order(CONFIGURATIONS.len(), round) {
                let one = match fault {
                    Fault::Loss => stream(settings, &bed, weft, who),
                    Fault::Hole => pause(settings, &bed, weft, who),
                };
                match one {
                    Ok(value) => found[who][at].push(value),
                    Err(error) => lost.push((who, error)),
                }
            }
        }
    }
    for (who, runs) in found.iter().enumerate() {
        if runs.iter().all(Vec::is_empty) {
            let own = lost.iter().position(|(lost, _)| *lost == who);
            let error = own.map(|at| lost.swap_remove(at).1);
            let error = error.unwrap_or_else(|| Error::result("it was never run"));
            return Err(error.about(CONFIGURATIONS[who].0));
        }
    }
    Ok(filled(definition, fault, &found, rounds, lost.len()))
}

/// Bandwidth in MB/s.
fn stream(settings: &Settings, bed: &Testbed, weft: &Path, who: usize) -> Result<f64, Error> {
    let output = job(bed, settings, weft, who, STREAM)
        .output()
        .map_err(Error::start("weft run"))?;
    if !output.status.success() {
        return Err(Error::failed(output.status, &output.stderr));
    }
    figure_of(&output.stdout, "value")
}

/// The longest exchange in milliseconds, while the path that carries most drops everything for a
/// second.
fn pause(settings: &Settings, bed: &Testbed, weft: &Path, who: usize) -> Result<f64, Error> {
    let before = counts(bed)?;
    let mut job = job(bed, settings, weft, who, EXCHANGES)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(Error::start("weft run"))?;
    let broken = busiest(bed, &before, &mut job);
    if let Some(path) = &broken {
        bed.tell(&["blackhole", path])?;
        std::thread::sleep(BROKEN);
        bed.tell(&["loss", path, "0"])?;
    }
    let output = job.wait_with_output().map_err(Error::Wait)?;
    if !output.status.success() {
        return Err(Error::failed(output.status, &output.stderr));
    }
    if broken.is_none() {
        return Err(Error::result(
            "the exchanges ended before a path could be broken",
        ));
    }
    // The benchmark reports half of an exchange, in microseconds.
    figure_of(&output.stdout, "p100").map(|half_us| half_us * 2.0 / 1000.0)
}

fn figure_of(stdout: &[u8], key: &str) -> Result<f64, Error> {
    let text = String::from_utf8_lossy(stdout);
    let rows = text
        .lines()
        .filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let last = rows.into_iter().rfind(|row| row["type"] == "row");
    last.and_then(|row| row[key].as_f64())
        .ok_or_else(|| Error::result("it printed no row"))
}

/// `weft run` on the first host, for both.
fn job(bed: &Testbed, settings: &Settings, weft: &Path, who: usize, program: &str) -> Command {
    let words = bed.enter();
    let mut command = Command::new(&words[0]);
    command.args(&words[1..]).arg(weft).stdin(Stdio::null());
    // The hosts keep their ranks to their own processors; an MPI that bound them would count those
    // of the whole machine.
    let options = format!(
        "run --hosts a0,b1 -n 2 --mpi {} --transport {} --quiet --bind none \
         --timeout {LIMIT_SECONDS} --launcher {} --",
        settings.mpi,
        CONFIGURATIONS[who].1,
        bed.agent().display()
    );
    command
        .args(options.split(' '))
        .arg(weft)
        .arg("bench")
        .args(program.split(' '));
    command
}

/// Packets that left on each path, in both directions together.
fn counts(bed: &Testbed) -> Result<Vec<(String, u64)>, Error> {
    let text = bed.tell(&["counts"])?;
    let path = |line: &str| {
        let mut words = line.split(' ');
        let name = words.next()?.to_owned();
        let packets = words.filter_map(|word| word.parse::<u64>().ok()).sum();
        Some((name, packets))
    };
    Ok(text.lines().filter_map(path).collect())
}

/// The path that carries most once the job's messages flow; `None` when it ends before.
fn busiest(bed: &Testbed, before: &[(String, u64)], job: &mut Child) -> Option<String> {
    let start = Instant::now();
    while start.elapsed() < PATIENCE && matches!(job.try_wait(), Ok(None)) {
        let now = counts(bed).ok()?;
        let grown = now
            .iter()
            .zip(before)
            .map(|((name, now), (_, then))| (now - then, name));
        if let Some((_, name)) = grown.max().filter(|(packets, _)| *packets > FLOWING) {
            return Some(name.clone());
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    None
}

fn filled(
    definition: &Definition,
    fault: Fault,
    found: &[Vec<Vec<f64>>],
    rounds: usize,
    lost: usize,
) -> Figure {
    let roles = [Role::Ours, Role::Peer];
    let series = found
        .iter()
        .zip(CONFIGURATIONS)
        .zip(roles)
        .map(|((runs, (name, _)), role)| {
            let point = |(values, place): (&Vec<f64>, &f64)| {
                let summary = Summary::of(values)?;
                Some(Point {
                    x: *place,
                    y: summary.median,
                    low: summary.p10,
                    high: summary.p90,
                })
            };
            let points = runs.iter().zip(&LOSSES).filter_map(point).collect();
            Series {
                name: name.to_owned(),
                role,
                points,
            }
        });
    let failed = match lost {
        0 => String::new(),
        _ => format!(" {lost} runs did not end well within {LIMIT_SECONDS} s and are left out."),
    };
    let note = format!(
        "Two hosts in network namespaces, four paths of 500 Mb/s; {rounds} rounds in turn.{failed}"
    );
    let (shape, x, y) = match fault {
        Fault::Loss => (
            Shape::Curves,
            Axis::new("packets lost", "%", Scale::Linear),
            Axis::new("bandwidth", "MB/s", Scale::Linear),
        ),
        Fault::Hole => (
            Shape::Bars,
            Axis::new("longest pause", "ms", Scale::Linear),
            Axis::default(),
        ),
    };
    Figure {
        id: definition.id.into(),
        title: definition.title.into(),
        note,
        shape,
        x,
        y,
        series: series.collect(),
        source: definition.source.into(),
        commands: vec![format!(
            "tests/testbed/testbed.sh up; weft run --hosts a0,b1 ... -- weft bench {}",
            if fault == Fault::Loss {
                STREAM
            } else {
                EXCHANGES
            }
        )],
        ..Figure::default()
    }
}

#[cfg(test)]
mod tests {
    use super::super::list::DEFINITIONS;
    use super::*;

    #[test]
    fn run_that_failed_is_told_and_left_out() {
        let found = [
            vec![vec![100.0], vec![90.0, 80.0, 85.0], vec![70.0]],
            vec![vec![60.0], vec![], vec![5.0]],
        ];
        let figure = filled(&DEFINITIONS[6], Fault::Loss, &found, 3, 2);
        assert_eq!(figure.series[0].points[1].y, 85.0);
        assert_eq!(figure.series[1].points.len(), 2);
        assert!(
            figure.note.contains("2 runs did not end well"),
            "{}",
            figure.note
        );
    }

    #[test]
    fn last_row_is_read_among_other_lines() {
        let text = "hello\n{\"type\":\"header\"}\n{\"type\":\"row\",\"p100\":4.0}\n";
        assert_eq!(figure_of(text.as_bytes(), "p100").expect("there"), 4.0);
        assert!(figure_of(text.as_bytes(), "value").is_err());
    }
}
