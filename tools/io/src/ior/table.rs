// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The list of IOR's short options: which are offered, and why others are not.
//!
//! Used by options, for the command line and the help, and by script.

use crate::command_line::{Entry, Takes};

/// One option: its letter, its name in scripts, what it takes, what it does.
pub type Setting = (&'static str, &'static str, Takes, &'static str);

/// All of IOR's short options.
pub const TABLE: &[Setting] = &[
    ("a", "api", Takes::Value, "interface to files: POSIX"),
    ("A", "refNum", Takes::Value, "number shown in the summary"),
    (
        "b",
        "blockSize",
        Takes::Value,
        "contiguous bytes of one task in a segment (8, 4k, 2m, 1g)",
    ),
    (
        "c",
        "collective",
        Takes::Flag,
        "collective calls (POSIX has none: a warning)",
    ),
    (
        "C",
        "reorderTasks",
        Takes::Flag,
        "read what a task of the next node wrote",
    ),
    (
        "d",
        "interTestDelay",
        Takes::Value,
        "seconds between repetitions",
    ),
    (
        "D",
        "deadlineForStonewalling",
        Takes::Value,
        "seconds after which a write or read stops",
    ),
    (
        "e",
        "fsync",
        Takes::Flag,
        "fsync after the last write, in the time",
    ),
    (
        "E",
        "useExistingTestFile",
        Takes::Flag,
        "do not remove the file before writing",
    ),
    ("f", "", Takes::Value, "script of tests"),
    ("F", "filePerProc", Takes::Flag, "a file for each task"),
    (
        "g",
        "intraTestBarriers",
        Takes::Flag,
        "barriers between open, write or read, and close",
    ),
    (
        "G",
        "setTimeStampSignature",
        Takes::Value,
        "seed of the content",
    ),
    ("h", "", Takes::Flag, "this text"),
    (
        "H",
        "",
        Takes::Refused("hints belong to MPI-IO, and POSIX alone is offered"),
        "",
    ),
    (
        "i",
        "repetitions",
        Takes::Value,
        "how often the test is repeated",
    ),
    (
        "I",
        "",
        Takes::Refused("individual data sets belong to HDF5, and POSIX alone is offered"),
        "",
    ),
    (
        "j",
        "outlierThreshold",
        Takes::Value,
        "warn of tasks that differ from the mean by more seconds",
    ),
    (
        "J",
        "",
        Takes::Refused("alignment belongs to HDF5, and POSIX alone is offered"),
        "",
    ),
    ("k", "keepFile", Takes::Flag, "keep the files"),
    (
        "K",
        "keepFileWithError",
        Takes::Flag,
        "keep files whose content was wrong",
    ),
    (
        "l",
        "dataPacketType",
        Takes::Value,
        "content: offset, incompressible, timestamp, random",
    ),
    ("m", "multiFile", Takes::Flag, "a file for each repetition"),
    (
        "M",
        "memoryPerNode",
        Takes::Refused(
            "it would fill the node's memory to spoil its cache; read by -C what another node \
             wrote, or use --posix.odirect",
        ),
        "",
    ),
    (
        "n",
        "",
        Takes::Refused("there is no fill; unwritten places read as zeros"),
        "",
    ),
    ("N", "numTasks", Takes::Value, "tasks that take part"),
    (
        "o",
        "testFile",
        Takes::Value,
        "file, or several separated by @ of which task r takes number r",
    ),
    (
        "O",
        "",
        Takes::Value,
        "summaryFile=F, summaryFormat=default|JSON|CSV, stoneWallingWearOut=1",
    ),
    (
        "p",
        "",
        Takes::Refused("space is not allocated before it is written"),
        "",
    ),
    (
        "q",
        "",
        Takes::Flag,
        "(accepted: an error always ends the run)",
    ),
    (
        "Q",
        "taskPerNodeOffset",
        Takes::Value,
        "with -C: this many tasks further instead of a node's worth",
    ),
    ("r", "readFile", Takes::Flag, "read"),
    (
        "R",
        "checkRead",
        Takes::Flag,
        "verify the content while reading",
    ),
    ("s", "segmentCount", Takes::Value, "segments"),
    (
        "S",
        "",
        Takes::Refused("strided views belong to MPI-IO, and POSIX alone is offered"),
        "",
    ),
    ("t", "transferSize", Takes::Value, "bytes of one call"),
    (
        "T",
        "maxTimeDuration",
        Takes::Value,
        "minutes after which no further repetition begins",
    ),
    (
        "u",
        "uniqueDir",
        Takes::Flag,
        "a folder for each task's file",
    ),
    (
        "U",
        "",
        Takes::Refused("hints belong to MPI-IO, and POSIX alone is offered"),
        "",
    ),
    ("v", "verbose", Takes::Flag, "tell more; may be repeated"),
    (
        "V",
        "",
        Takes::Refused("file views belong to MPI-IO, and POSIX alone is offered"),
        "",
    ),
    ("w", "writeFile", Takes::Flag, "write"),
    (
        "W",
        "checkWrite",
        Takes::Flag,
        "read back and verify after writing",
    ),
    (
        "x",
        "singleXferAttempt",
        Takes::Flag,
        "(accepted: a short transfer is always continued)",
    ),
    ("X", "reorderTasksRandomSeed", Takes::Value, "seed of -Z"),
    (
        "y",
        "dualMount",
        Takes::Refused("one mount point holds the files; name several with @"),
        "",
    ),
    ("Y", "fsyncPerWrite", Takes::Flag, "fsync after each write"),
    (
        "z",
        "randomOffset",
        Takes::Flag,
        "transfers in random order",
    ),
    (
        "Z",
        "reorderTasksRandom",
        Takes::Flag,
        "read what a random task wrote",
    ),
];

/// The long options.
pub const LONG: &[Entry] = &[
    ("posix.odirect", Takes::Flag, "past the page cache"),
    ("random-offset-seed", Takes::Value, "seed of -z"),
    ("dryRun", Takes::Flag, "show what would be done"),
    ("help", Takes::Flag, ""),
    // An error always ends the run here.
    ("warningAsErrors", Takes::Flag, ""),
    ("posix.rangelocks", Takes::Refused("no locks are taken"), ""),
    (
        "randomPrefill",
        Takes::Refused("write the file first, and use -E -z"),
        "",
    ),
];
