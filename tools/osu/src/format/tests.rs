// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Tests of the output, space by space: other people's parsers read it.

use super::*;
use crate::catalogue::find;
use crate::options;

fn header_of(name: &str, line: &str) -> String {
    let description = find(name).expect("listed");
    let settings = settings_of(description, line);
    let job = Job {
        ranks: 4,
        pairs: 2,
        mpi: "MPICH 5".into(),
        library: "/lib/libmpi.so.12".into(),
        node: "here".into(),
    };
    title(description, &settings, &job) + &columns(description, &settings, &job)
}

fn settings_of(description: &Description, line: &str) -> Settings {
    options::parse(
        description,
        line.split_whitespace().map(Into::into).collect(),
    )
    .expect("good usage")
}

fn row_of(name: &str, line: &str, content: Row) -> String {
    let description = find(name).expect("listed");
    row(description, &settings_of(description, line).shown, &content)
}

fn content() -> Row {
    Row {
        size_bytes: 4096,
        value: 12.345,
        median: 12.25,
        rate: Some(2_356_892.444),
        extremes: Some((1.5, 20.25)),
        iterations: 1000,
        passed: None,
        cpu_us: Some(1.75),
        tails: vec![],
        overlap: None,
    }
}

#[test]
fn latency_looks_as_in_osu_7() {
    assert_eq!(
        header_of("latency", ""),
        "\n# OSU MPI Latency Test v7.5\n# Datatype: MPI_CHAR.\n# Size       Avg Latency(us)\n"
    );
    assert_eq!(
        row_of(
            "latency",
            "",
            Row {
                rate: None,
                ..content()
            }
        ),
        "4096                   12.35\n"
    );
}

#[test]
fn latency_looks_as_in_osu_5_when_asked() {
    assert_eq!(
        header_of("latency", "--osu-format 5"),
        "# OSU MPI Latency Test v5.6.2\n# Size          Latency (us)\n"
    );
    assert_eq!(
        header_of("bcast", "--osu-format 5"),
        "\n# OSU MPI Broadcast Latency Test v5.6.2\n# Size       Avg Latency(us)\n"
    );
}

#[test]
fn bandwidth_has_its_own_column() {
    assert_eq!(
        header_of("bw", "-c"),
        "\n# OSU MPI Bandwidth Test v7.5\n# Datatype: MPI_CHAR.\n\
         # Size      Bandwidth (MB/s)        Validation\n"
    );
    let row = row_of(
        "bw",
        "-c",
        Row {
            passed: Some(true),
            rate: None,
            ..content()
        },
    );
    assert_eq!(row, "4096                   12.35              Pass\n");
    let row = row_of(
        "bw",
        "-c",
        Row {
            passed: Some(false),
            rate: None,
            ..content()
        },
    );
    assert_eq!(row, "4096                   12.35              Fail\n");
}

#[test]
fn message_rate_names_pairs_and_window() {
    assert_eq!(
        header_of("mbw_mr", "-W 32"),
        "\n# OSU MPI Multiple Bandwidth / Message Rate Test v7.5\n\
         # [ pairs: 2 ] [ window size: 32 ]\n\
         # Datatype: MPI_CHAR.\n# Size                  MB/s        Messages/s\n"
    );
    assert_eq!(
        row_of("mbw_mr", "", content()),
        "4096                   12.35        2356892.44\n"
    );
    assert_eq!(
        row_of("mbw_mr", "-R 0", content()),
        "4096                   12.35\n"
    );
}

#[test]
fn full_collective_has_extremes_and_iterations() {
    assert_eq!(
        header_of("allreduce", "-f"),
        "\n# OSU MPI Allreduce Latency Test v7.5\n# Datatype: MPI_INT.\n\
         # Size       Avg Latency(us)   Min Latency(us)   Max Latency(us)  Iterations\n"
    );
    let row = row_of(
        "allreduce",
        "-f",
        Row {
            rate: None,
            ..content()
        },
    );
    assert_eq!(
        row,
        "4096                   12.35              1.50             20.25        1000\n"
    );
}

#[test]
fn barrier_has_neither_size_nor_type() {
    assert_eq!(
        header_of("barrier", ""),
        "\n# OSU MPI Barrier Latency Test v7.5\n# Avg Latency(us)\n"
    );
    assert_eq!(
        row_of(
            "barrier",
            "",
            Row {
                rate: None,
                ..content()
            }
        ),
        "            12.35\n"
    );
}

#[test]
fn tails_follow_in_columns_of_the_same_width() {
    assert_eq!(
        header_of("latency", "-z"),
        "\n# OSU MPI Latency Test v7.5\n# Datatype: MPI_CHAR.\n\
         # Size       Avg Latency(us)  P50 Tail Lat(us)  P90 Tail Lat(us)  P99 Tail Lat(us)\n"
    );
    assert!(header_of("bw", "-z99").ends_with("Bandwidth (MB/s) P99 Tail BW(MB/s)\n"));
    assert!(header_of("latency", "-z99.9").ends_with("P99.9 Tail Lat(us)\n"));
    let row = row_of(
        "latency",
        "-z50,90",
        Row {
            rate: None,
            tails: vec![1.0, 2.0],
            ..content()
        },
    );
    assert_eq!(
        row,
        "4096                   12.35              1.00              2.00\n"
    );
}

#[test]
fn json_lines_hold_all_that_was_measured() {
    let line = row_of(
        "latency",
        "--json -z50 -f -c",
        Row {
            passed: Some(true),
            tails: vec![1.0],
            ..content()
        },
    );
    let row: Value = serde_json::from_str(&line).expect("JSON");
    assert_eq!(row["type"], "row");
    assert_eq!(
        (&row["median"], &row["cpu_us"]),
        (&json!(12.25), &json!(1.75))
    );
    assert_eq!(
        (&row["size_bytes"], &row["value"], &row["unit"]),
        (&json!(4096), &json!(12.345), &json!("us"))
    );
    assert_eq!(
        (&row["p50"], &row["min"], &row["validation"]),
        (&json!(1.0), &json!(1.5), &json!("Pass"))
    );
    let header: Value = serde_json::from_str(&header_of("latency", "--json")).expect("JSON");
    assert_eq!(
        (&header["type"], &header["ranks"], &header["mpi"]),
        (&json!("header"), &json!(4), &json!("MPICH 5"))
    );
}

/// The expressions that Ramble's application definition uses for these lines.
#[test]
fn header_lines_are_what_parsers_anchor_on() {
    let text = header_of("latency", "");
    let lines: Vec<&str> = text.lines().collect();
    assert!(lines[1].starts_with("# OSU MPI Latency Test v"));
    assert_eq!(lines[2], "# Datatype: MPI_CHAR.");
    assert_eq!(
        lines[3].split_whitespace().collect::<Vec<_>>(),
        ["#", "Size", "Avg", "Latency(us)"]
    );
}

fn overlapped() -> Row {
    Row {
        size_bytes: 4096,
        value: 30.5,
        overlap: Some(Overlap {
            compute: 20.25,
            start: 1.0,
            test: 2.0,
            wait: 3.0,
            communication: 20.0,
            least_communication: 19.0,
            greatest_communication: 21.0,
            percent: 48.75,
        }),
        ..Row::default()
    }
}

#[test]
fn non_blocking_collective_shows_what_was_hidden() {
    assert_eq!(
        header_of("iallgather", ""),
        "\n# OSU MPI Non-blocking Allgather Latency Test v7.5\n\
         # Overall = Coll. Init + Compute + MPI_Test + MPI_Wait\n\n\
         # Datatype: MPI_CHAR.\n\
         # Size           Overall(us)       Compute(us)    Pure Comm.(us)        Overlap(%)\n"
    );
    assert_eq!(
        row_of("iallgather", "", overlapped()),
        "4096                   30.50             20.25             20.00             48.75\n"
    );
}

#[test]
fn full_non_blocking_collective_shows_its_parts() {
    let header = header_of("iallgather", "-f -c");
    let names = header.lines().last().expect("lines");
    let words: Vec<_> = names.split_whitespace().collect();
    assert_eq!(
        words.join(" "),
        "# Size Overall(us) Compute(us) Coll. Init(us) MPI_Test(us) MPI_Wait(us) Pure Comm.(us) \
         Min Comm.(us) Max Comm.(us) Overlap(%) Validation"
    );
    let row = row_of("iallgather", "-f", overlapped());
    let figures: Vec<_> = row.split_whitespace().collect();
    assert_eq!(
        figures,
        [
            "4096", "30.50", "20.25", "1.00", "2.00", "3.00", "20.00", "19.00", "21.00", "48.75"
        ]
    );
}

#[test]
fn non_blocking_barrier_has_no_size() {
    assert!(
        header_of("ibarrier", "")
            .ends_with("\n\n# Overall(us)       Compute(us)    Pure Comm.(us)        Overlap(%)\n")
    );
    let row = row_of("ibarrier", "", overlapped());
    assert!(row.starts_with("        30.50             20.25"), "{row}");
}

#[test]
fn one_sided_header_names_window_and_synchronisation() {
    assert_eq!(
        header_of("put_latency", "-w dynamic -s lock"),
        "# OSU MPI_Put Latency Test v7.5\n# Window creation: MPI_Win_create_dynamic\n\
         # Synchronization: MPI_Win_lock/unlock\n# Datatype: MPI_CHAR.\n\
         # Size          Latency (us)\n"
    );
    assert!(
        header_of("put_bibw", "").contains("# Synchronization: MPI_Win_post/start/complete/wait\n")
    );
    assert!(header_of("get_bw", "").ends_with("# Size      Bandwidth (MB/s)\n"));
}

#[test]
fn threads_are_told_before_the_title() {
    assert_eq!(
        header_of("latency_mt", "-t 2:3"),
        "# Number of Sender threads: 2 \n# Number of Receiver threads: 3\n\n\
         # OSU MPI Multi-threaded Latency Test v7.5\n\
         # Datatype: MPI_CHAR.\n# Size       Avg Latency(us)\n"
    );
}

#[test]
fn json_holds_all_parts_of_an_overlap() {
    let line = row_of("ibcast", "--json", overlapped());
    let row: Value = serde_json::from_str(&line).expect("JSON");
    assert_eq!(
        (&row["overlap_percent"], &row["test"]),
        (&json!(48.75), &json!(2.0))
    );
    assert_eq!(row["communication_max"], 21.0);
}
