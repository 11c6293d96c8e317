// SPDX-License-Identifier: Apache-2.0 OR MIT
//! IOR's text output, line by line.
//!
//! Called by report. Pure. The layouts are those that IOR prints, so that its parsers can read
//! them.

use std::fmt::Write;

use crate::ior::division::Place;
use crate::ior::figures::{Access, Row};
use crate::ior::finished::{Finished, MIB};
use crate::ior::size;
use crate::ior::test::Test;

/// Head of the table of rows.
pub const TABLE_HEAD: &str = "access    bw(MiB/s)  IOPS       Latency(s)  block(KiB) xfer(KiB)  \
     open(s)    wr/rd(s)   close(s)   total(s)   iter\n\
     ------    ---------  ----       ----------  ---------- ---------  \
     --------   --------   --------   --------   ----\n";

/// Head of the summary.
const SUMMARY_HEAD: &str = "Operation   Max(MiB)   Min(MiB)  Mean(MiB)     StdDev   \
     Max(OPs)   Min(OPs)  Mean(OPs)     StdDev    Mean(s) Stonewall(s) Stonewall(MiB) \
     Test# #Tasks tPN reps fPP reord reordoff reordrand seed segcnt   blksiz    xsize \
     aggs(MiB)   API RefNum\n";

/// `key                 : value`
pub fn entry(key: &str, value: &str) -> String {
    format!("{key:<20}: {value}\n")
}

/// A number as a column of rows shows it: ten wide, six digits below 1, two below 3600, none above.
fn number(value: f64) -> String {
    let digits = match value {
        value if value < 1.0 => 6,
        value if value < 3600.0 => 2,
        _ => 0,
    };
    format!("{value:<10.digits$}")
}

/// The block of options of a test.
pub fn options(test: &Test, place: Place) -> String {
    let order = &test.order;
    let by_task = match (order.next_node, order.random_task) {
        (_, true) => "random task offsets".to_owned(),
        (true, false) => "constant task offset".to_owned(),
        (false, false) => "no tasks offsets".to_owned(),
    };
    let aggregate_bytes = test.sizes.block_bytes * test.sizes.segments * place.tasks as u64;
    let mut lines = vec![
        ("api", "POSIX".to_owned()),
        ("apiVersion", String::new()),
        ("test filename", test.files.given.clone()),
        ("access", test.files.access().to_owned()),
        ("type", "independent".to_owned()),
        ("segments", test.sizes.segments.to_string()),
        (
            "ordering in a file",
            if order.random_offset {
                "random"
            } else {
                "sequential"
            }
            .to_owned(),
        ),
        ("ordering inter file", by_task),
    ];
    if order.next_node {
        lines.push(("task offset", order.task_offset.max(1).to_string()));
    }
    if order.random_task {
        lines.push(("reorder random seed", order.random_seed.to_string()));
    }
    lines.extend([
        ("nodes", place.nodes.to_string()),
        ("tasks", place.tasks.to_string()),
        ("clients per node", place.tasks_per_node.to_string()),
        ("memoryBuffer", "CPU".to_owned()),
        ("dataAccess", "CPU".to_owned()),
        ("GPUDirect", "0".to_owned()),
        ("repetitions", test.run.repetitions.to_string()),
        ("xfersize", size::describe(test.sizes.transfer_bytes)),
        ("blocksize", size::describe(test.sizes.block_bytes)),
        ("aggregate filesize", size::describe(aggregate_bytes)),
    ]);
    if test.output.verbose > 0 {
        lines.push(("verbose", test.output.verbose.to_string()));
    }
    if test.run.deadline_s > 0 {
        lines.push(("stonewallingTime", test.run.deadline_s.to_string()));
        lines.push((
            "stoneWallingWearOut",
            u8::from(test.run.wear_out).to_string(),
        ));
    }
    let body: String = lines.iter().map(|(key, value)| entry(key, value)).collect();
    format!("Options: \n{body}\nResults: \n\n")
}

/// One row of the table.
pub fn row(test: &Test, access: Access, row: &Row, repetition: u32) -> String {
    let kib = |bytes: u64| number(bytes as f64 / 1024.0);
    format!(
        "{:<10}{} {} {}  {} {} {} {} {} {} {repetition:<4}\n",
        access.name(),
        number(row.bytes_per_s / MIB),
        number(row.transfers_per_s),
        number(row.latency_s),
        kib(test.sizes.block_bytes),
        kib(test.sizes.transfer_bytes),
        number(row.open_s),
        number(row.move_s),
        number(row.close_s),
        number(row.total_s),
    )
}

/// The row of a removal.
pub fn removed(removal_s: f64, repetition: u32) -> String {
    let none = format!("{:<10}", "-");
    let nones = [none.as_str(); 5].join(" ");
    format!(
        "{:<10}{none} {none} {none}  {nones} {} {repetition:<4}\n",
        "remove",
        number(removal_s)
    )
}

/// `Max Write: ...` and `Max Read:  ...`
pub fn maxima(finished: &Finished) -> String {
    let mut text = String::new();
    for (access, label) in [
        (Access::Write, "Max Write: "),
        (Access::Read, "Max Read:  "),
    ] {
        if let Some(summary) = finished.summary(access) {
            let best = summary.bandwidth.max;
            // Writing to a String cannot fail.
            let _ = writeln!(
                text,
                "{label}{:.2} MiB/sec ({:.2} MB/sec)",
                best / MIB,
                best / 1e6
            );
        }
    }
    text + "\n"
}

/// The summary of all tests.
pub fn summary(finished: &[Finished]) -> String {
    let mut text = format!("Summary of all tests:\n{SUMMARY_HEAD}");
    for (number, test) in finished.iter().enumerate() {
        for access in test.accesses() {
            text += &summary_row(test, access, number);
        }
    }
    text
}

fn summary_row(finished: &Finished, access: Access, number: usize) -> String {
    let Some(summary) = finished.summary(access) else {
        return String::new();
    };
    let (test, place) = (&finished.test, finished.place);
    let (bandwidth, rate) = (summary.bandwidth, summary.transfers);
    let mut text = format!("{:<9}", access.name());
    for value in [
        bandwidth.max,
        bandwidth.min,
        bandwidth.mean,
        bandwidth.deviation,
    ] {
        let _ = write!(text, " {:10.2}", value / MIB);
    }
    for value in [rate.max, rate.min, rate.mean, rate.deviation] {
        let _ = write!(text, " {value:10.2}");
    }
    let _ = write!(text, " {:10.5}", summary.mean_s);
    if test.run.deadline_s > 0 {
        let _ = write!(
            text,
            " {:10} {:13.2}",
            test.run.deadline_s,
            summary.moved_bytes / MIB
        );
    } else {
        let _ = write!(text, " {:>10} {:>13}", "NA", "NA");
    }
    let flag = u8::from;
    let order = &test.order;
    let aggregate_mib =
        test.sizes.block_bytes as f64 * test.sizes.segments as f64 * place.tasks as f64 / MIB;
    let _ = writeln!(
        text,
        " {number:5} {:6} {:3} {:4} {:3} {:5} {:8} {:9} {:4} {:6} {:8} {:8} {aggregate_mib:9.1} \
         POSIX {:6}",
        place.tasks,
        place.tasks_per_node,
        test.run.repetitions,
        flag(test.files.per_process),
        flag(order.next_node),
        order.task_offset.max(1),
        flag(order.random_task),
        order.random_seed,
        test.sizes.segments,
        test.sizes.block_bytes,
        test.sizes.transfer_bytes,
        test.output.reference,
    );
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ior::options;

    /// The run of the post on Mountpoint for S3 that this layout is compared with.
    fn mountpoint() -> Finished {
        let words = "-r -w -v -F -o=S@S@S -b=2000m -i=1 -t=50m -a=POSIX --posix.odirect";
        let words: Vec<String> = words.split(' ').map(str::to_owned).collect();
        let test = options::parse(&words).unwrap().remove(0);
        let row = Row {
            bytes_per_s: 4037.71 * MIB,
            transfers_per_s: 83.06,
            latency_s: 0.0399,
            open_s: 28.34,
            move_s: 30.82,
            close_s: 30.06,
            total_s: 31.70114,
            moved_bytes: 128_000.0 * MIB,
            wrong_words: 0,
        };
        Finished {
            test,
            place: Place {
                tasks: 64,
                nodes: 1,
                tasks_per_node: 64,
                by_block: true,
            },
            started: String::new(),
            path: "S.00000000".to_owned(),
            rows: vec![(Access::Write, row, 0)],
        }
    }

    #[test]
    fn rows_and_summary_have_the_columns_of_the_published_run() {
        let finished = mountpoint();
        let line = row(&finished.test, Access::Write, &finished.rows[0].1, 0);
        assert_eq!(
            line.trim_end(),
            "write     4038       83.06      0.039900    2048000    51200      28.34      \
             30.82      30.06      31.70      0"
        );
        assert_eq!(
            removed(7.57, 0).trim_end(),
            "remove    -          -          -           -          -          -          \
             -          -          7.57       0"
        );
        let line = summary_row(&finished, Access::Write, 0);
        assert_eq!(
            line.trim_end(),
            "write        4037.71    4037.71    4037.71       0.00      80.75      80.75      \
             80.75       0.00   31.70114         NA            NA     0     64  64    1   1     \
             0        1         0    0      1 2097152000 52428800  128000.0 POSIX      0"
        );
        assert_eq!(
            maxima(&finished).trim_end(),
            "Max Write: 4037.71 MiB/sec (4233.85 MB/sec)"
        );
    }

    #[test]
    fn the_options_are_those_of_the_published_run() {
        let finished = mountpoint();
        let text = options(&finished.test, finished.place);
        for line in [
            "test filename       : S@S@S\n",
            "access              : file-per-process\n",
            "ordering inter file : no tasks offsets\n",
            "xfersize            : 50 MiB\n",
            "blocksize           : 1.95 GiB\n",
            "aggregate filesize  : 125 GiB\n",
            "verbose             : 1\n",
        ] {
            assert!(text.contains(line), "{text}\nlacks {line}");
        }
    }
}
