// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A made-up record for the tests of compare, and the laws of [`Record`].

use super::*;
use std::time::Duration;

pub const SPEED: Speed = Speed {
    copy_ns: 130_000.0,
    handover_ns: Some(80.0),
};

pub fn configuration(mpi: &str, transport: &str) -> Configuration {
    Configuration::new(mpi, transport)
}

pub fn workload(benchmark: &str) -> Workload {
    Workload {
        benchmark: benchmark.into(),
        ranks: 2,
        place: Place::default(),
    }
}

pub fn run(mpi: &str, transport: &str, benchmark: &str) -> Run {
    Run {
        configuration: configuration(mpi, transport),
        workload: workload(benchmark),
        command: Vec::new(),
        limit: Duration::ZERO,
    }
}

pub fn turn(run: &Run, round: usize, rows: &[(usize, f64)]) -> Turn {
    Turn {
        configuration: run.configuration.clone(),
        workload: run.workload.clone(),
        round,
        attempt: 0,
        unix_seconds: 1_700_000_000,
        wall_seconds: 1.0,
        before: SPEED,
        after: SPEED,
        mpi_version: format!("{} 1.0", run.configuration.mpi),
        library: "/lib/libmpi.so".into(),
        rows: rows
            .iter()
            .map(|(size_bytes, value)| Row {
                size_bytes: *size_bytes,
                value: *value,
                median: *value,
                cpu_us: Some(*value * 2.0),
                ..Row::default()
            })
            .collect(),
        failure: None,
    }
}

/// Weft under MPICH takes half of MPICH's own time; Open MPI's own transport is the best peer.
pub fn filled() -> Record {
    let mut record = Record::default();
    record.matrix.rounds = 7;
    record.matrix.workloads = vec![workload("latency"), workload("bw")];
    for (mpi, transport, factor) in [
        ("mpich", "weft", 1.0),
        ("mpich", "native", 2.0),
        ("openmpi", "native", 1.5),
    ] {
        record.matrix.entrants.push(Entrant {
            configuration: configuration(mpi, transport),
            place: Place::default(),
            launch: "env A=1 mpiexec".into(),
        });
        for (round, noise) in [0.2, 0.4, 0.3, 0.25, 0.35, 0.3, 0.3]
            .into_iter()
            .enumerate()
        {
            let figure = noise * factor;
            let rows = [(8, figure), (4096, figure * 4.0)];
            record
                .turns
                .push(turn(&run(mpi, transport, "latency"), round, &rows));
            let rows = [(8, 10.0 / figure), (4096, 1000.0 / figure)];
            record
                .turns
                .push(turn(&run(mpi, transport, "bw"), round, &rows));
        }
    }
    record
}

#[test]
fn run_is_given_up_after_its_second_failure() {
    let (mut record, run) = (Record::default(), run("mpich", "weft", "bw"));
    let failed = |round| Turn {
        failure: Some("died".into()),
        rows: Vec::new(),
        ..turn(&run, round, &[])
    };
    record.turns.push(failed(0));
    assert!(!record.gave_up_on(&run) && record.has(&run, 0) && !record.has(&run, 1));
    record.turns.push(failed(1));
    assert!(record.gave_up_on(&run));
    assert_eq!(
        record.failures(),
        ["mpich over weft: bw, 2 ranks, round 1 and 2: died"]
    );
}

#[test]
fn what_takes_many_times_as_long_as_the_others_takes_part_in_two_rounds() {
    let mut record = filled();
    let turns = |seconds: f64, count: usize| {
        let run = run("debian-mpich", "native", "latency");
        (0..count).map(move |round| Turn {
            wall_seconds: seconds,
            ..turn(&run, round, &[(8, 1.0)])
        })
    };
    let enough = |record: &Record| {
        record.has_enough_of(
            &configuration("debian-mpich", "native"),
            &workload("latency"),
        )
    };
    record.turns.extend(turns(20.0, 1));
    assert!(!enough(&record), "one round is too few");
    record.turns.extend(turns(20.0, 2).skip(1));
    assert!(enough(&record));
    assert_eq!(
        record.slow_series(),
        ["debian-mpich over native: latency, 2 ranks"]
    );
    let (mut quick, mut alike) = (filled(), filled());
    quick.turns.extend(turns(4.5, 2));
    assert!(!enough(&quick), "what takes seconds may take part in all");
    for turn in &mut alike.turns {
        turn.wall_seconds = 8.0;
    }
    alike.turns.extend(turns(20.0, 2));
    assert!(!enough(&alike), "where all are long, all take part");
}

#[test]
fn run_survives_its_json() {
    let turn = turn(&run("mpich", "weft", "bw"), 3, &[(8, 0.5)]);
    let text = serde_json::to_string(&turn).expect("JSON");
    assert!(
        text.contains("\"benchmark\":\"bw\"") && !text.contains("failure"),
        "{text}"
    );
    assert_eq!(serde_json::from_str::<Turn>(&text).expect("JSON"), turn);
}

#[test]
fn version_is_shown_without_dates_and_packages() {
    let mut record = filled();
    for (whole, short) in [
        ("Open MPI v5.0.11, package: Open MPI x", "Open MPI v5.0.11"),
        (
            "MPICH Version: 5.0.2 MPICH Release date: x",
            "MPICH Version: 5.0.2",
        ),
        (
            "Intel(R) MPI Library 2021.18",
            "Intel(R) MPI Library 2021.18",
        ),
    ] {
        for turn in &mut record.turns {
            turn.mpi_version = whole.into();
        }
        assert_eq!(record.short_version("mpich"), Some(short));
    }
    assert_eq!(record.short_version("nobody"), None);
}
