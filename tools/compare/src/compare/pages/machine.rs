// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The machine on the page: what it is, whether it kept its speed, and how to measure again.
//!
//! Called by pages.

use crate::compare::analysis::Analysis;
use crate::compare::environment::{Environment, libfabric_beside};
use weft_chart::axis::Scale;
use weft_chart::figure::{Axis, Figure, Point, Role, Series};
use weft_chart::page::{Block, Section};
use weft_ranks::calendar::Moment;
use weft_statistics::speed::{Speed, TOLERANCE};

/// A sentence below the title.
pub fn lead(analysis: &Analysis<'_>) -> String {
    let here = &analysis.record.environment;
    let rounds = analysis
        .record
        .turns
        .iter()
        .map(|turn| turn.round + 1)
        .max()
        .unwrap_or(0);
    format!(
        "{} on {} ({}, Linux {}), {rounds} rounds, {} runs.",
        date(here.unix_seconds),
        here.host,
        kind(here),
        here.machine.kernel,
        analysis.record.turns.len()
    )
}

fn kind(here: &Environment) -> String {
    let cores = format!(
        "{}, {} cores",
        here.machine.processor, here.machine.core_count
    );
    if here.machine.hypervisor.is_empty() {
        cores
    } else {
        format!("{cores}, {}", here.machine.hypervisor)
    }
}

/// Seconds since 1970 as a date and a time, UTC.
fn date(seconds: u64) -> String {
    let Moment {
        year,
        month,
        day,
        hour,
        minute,
        ..
    } = Moment::of(seconds);
    format!("{year}-{month:02}-{day:02} {hour:02}:{minute:02} UTC")
}

/// What it is, and whether it kept its speed.
pub fn section(analysis: &Analysis<'_>) -> Section {
    let here = &analysis.record.environment;
    let mut facts = hardware(here);
    facts.extend(cores(analysis));
    facts.extend(software(analysis));
    facts.retain(|(_, value)| !value.is_empty());
    let handover = KnownTask {
        id: "speed-handover",
        title: "Hand-over of a cache line beside each run",
        unit: "ns",
        time: |speed| speed.handover_ns,
    };
    let copy = KnownTask {
        id: "speed-copy",
        title: "Copy of 4 MiB beside each run",
        unit: "us",
        time: |speed| Some(speed.copy_ns / 1e3),
    };
    let figures = [handover, copy].map(|task| task.figure(analysis));
    Section {
        id: "machine".into(),
        title: "The machine".into(),
        blocks: vec![
            Block::Facts(facts),
            Block::Figures(figures.into_iter().flatten().collect()),
        ],
    }
}

type Fact = (String, String);

fn fact(name: &str, value: String) -> Fact {
    (name.to_owned(), value)
}

fn hardware(here: &Environment) -> Vec<Fact> {
    let memory = here.machine.memory_bytes as f64 / (1_u64 << 30) as f64;
    let governor = match here.machine.governor.as_str() {
        "" => "not controlled by this kernel",
        governor => governor,
    };
    vec![
        fact("Processor", kind(here)),
        fact("Memory", format!("{memory:.1} GiB")),
        fact("Kernel", here.machine.kernel.clone()),
        fact("Frequency governor", governor.to_owned()),
        fact("Cores to be used", here.limits.usable_cores.to_string()),
        fact("Control group", group(here)),
        fact("/dev/shm", format!("{} MiB", here.limits.shm_bytes >> 20)),
        fact("Load before", format!("{:.2}", here.machine.load)),
    ]
}

fn cores(analysis: &Analysis<'_>) -> Vec<Fact> {
    let cores = &analysis.record.environment.cores;
    let numbers: Vec<String> = cores.numbers.iter().map(ToString::to_string).collect();
    let bound = format!(
        "{} (ranks are bound while each has a core)",
        numbers.join(" and ")
    );
    let node = match cores.same_node {
        Some(true) => "yes",
        Some(false) => "no",
        None => "",
    };
    let mut facts = vec![
        fact("Cores of two ranks", bound),
        fact("On one NUMA node", node.to_owned()),
        fact("Caches that both use", none_if_empty(&cores.shared_caches)),
        fact("Caches of their own", none_if_empty(&cores.own_caches)),
    ];
    let Some(usual) = analysis.selection.usual else {
        return facts;
    };
    if let Some(time) = usual.handover_ns {
        let text = format!(
            "{:.0} ns, {:.0} to {:.0} over the runs (P10 to P90)",
            time.median, time.p10, time.p90
        );
        facts.push(fact("Hand-over of a cache line", text));
    }
    let copy = usual.copy_ns;
    let text = format!(
        "{:.0} us, {:.0} to {:.0}",
        copy.median / 1e3,
        copy.p10 / 1e3,
        copy.p90 / 1e3
    );
    facts.push(fact("Copy of 4 MiB", text));
    facts
}

fn software(analysis: &Analysis<'_>) -> Vec<Fact> {
    let here = &analysis.record.environment;
    let commit = match here.commit.as_str() {
        "" => String::new(),
        commit => format!(" ({commit})"),
    };
    let mut facts = vec![fact("Weft", format!("{}{commit}", here.weft))];
    for mpi in analysis.record.mpis() {
        if let Some((version, library)) = analysis.record.version(mpi) {
            let fabric = match libfabric_beside(library).as_str() {
                "" => String::new(),
                version => format!("; libfabric {version} beside it"),
            };
            facts.push(fact(mpi, format!("{version}, {library}{fabric}")));
        }
    }
    facts
}

fn none_if_empty(list: &[String]) -> String {
    if list.is_empty() {
        "none that the kernel tells of".to_owned()
    } else {
        list.join(", ")
    }
}

fn group(here: &Environment) -> String {
    let cpu = if here.limits.cgroup_cpu.is_empty() {
        "no processor quota"
    } else {
        &here.limits.cgroup_cpu
    };
    let memory = match here.limits.cgroup_memory.parse::<u64>() {
        Ok(bytes) => format!("{} MiB of memory", bytes >> 20),
        Err(_) => "no memory limit".to_owned(),
    };
    format!("{cpu}, {memory}")
}

/// A task that is timed beside every run to see the machine's speed.
struct KnownTask {
    id: &'static str,
    title: &'static str,
    unit: &'static str,
    /// Its time in that unit.
    time: fn(Speed) -> Option<f64>,
}

impl KnownTask {
    /// How its time went, run by run, with the limits beyond which a run is excluded.
    fn figure(&self, analysis: &Analysis<'_>) -> Option<Figure> {
        let turns = &analysis.record.turns;
        let points: Vec<Point> = turns
            .iter()
            .enumerate()
            .filter_map(|(place, turn)| {
                Some(Point::plain(place as f64, (self.time)(turn.speed())?))
            })
            .collect();
        let values: Vec<f64> = points.iter().map(|point| point.y).collect();
        let usual = weft_statistics::Summary::of(&values)?.median;
        let last = points.last()?.x;
        let limit = |factor: f64, name: &str| Series {
            name: name.to_owned(),
            role: Role::Limit,
            points: vec![
                Point::plain(0.0, usual * factor),
                Point::plain(last.max(1.0), usual * factor),
            ],
        };
        Some(Figure {
            id: self.id.to_owned(),
            title: self.title.to_owned(),
            note: format!(
                "A known task, timed before and after every run. Beyond the dotted lines ({:.0} % \
             slower or as much faster than the median) a run is excluded.",
                (TOLERANCE - 1.0) * 100.0
            ),
            x: Axis::new("run", "", Scale::Linear),
            y: Axis::new("time", self.unit, Scale::Logarithmic),
            series: vec![
                limit(TOLERANCE, "too slow"),
                limit(1.0 / TOLERANCE, "too fast"),
                Series {
                    name: "measured".into(),
                    role: Role::Peer,
                    points,
                },
            ],
            ..Figure::default()
        })
    }
}

/// The command lines.
pub fn repeat(analysis: &Analysis<'_>) -> Section {
    let record = analysis.record;
    let launches = record
        .matrix
        .entrants
        .iter()
        .map(|entrant| format!("# {}\n{}", entrant.configuration, entrant.launch))
        .collect();
    let commands = record
        .matrix
        .commands
        .iter()
        .map(|command| command.command.clone())
        .collect();
    let mut blocks = vec![
        Block::Paragraph("The whole comparison:".into()),
        Block::Lines(vec![record.environment.command.join(" ")]),
        Block::Folded("The runs of a round".into(), vec![Block::Lines(commands)]),
        Block::Folded(
            "How each MPI was started".into(),
            vec![Block::Lines(launches)],
        ),
    ];
    let excluded: Vec<String> = analysis
        .selection
        .excluded
        .iter()
        .map(|turn| {
            let slowdown = analysis
                .selection
                .usual
                .map_or(1.0, |usual| usual.slowdown(&turn.speed()));
            format!(
                "{}: {}, round {}: {slowdown:.2} times the usual time",
                turn.configuration,
                turn.workload,
                turn.round + 1
            )
        })
        .collect();
    if !excluded.is_empty() {
        blocks.push(Block::Folded(
            format!(
                "Excluded runs ({} of {}): the machine's speed changed during them",
                excluded.len(),
                analysis.selection.run_count
            ),
            vec![Block::Lines(excluded)],
        ));
    }
    Section {
        id: "repeat".into(),
        title: "How to repeat it".into(),
        blocks,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_those_of_the_calendar() {
        // date -u -d @951782399 and so on
        assert_eq!(date(0), "1970-01-01 00:00 UTC");
        assert_eq!(date(951_782_399), "2000-02-28 23:59 UTC");
        assert_eq!(date(951_782_400), "2000-02-29 00:00 UTC");
        assert_eq!(date(1_795_296_215), "2026-11-21 21:23 UTC");
    }
}
