// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The list of mdtest's options: which are offered, and why others are not.
//!
//! Used by options, for the command line and the help.

use crate::command_line::{Entry, Takes};

/// All of mdtest's options.
pub const TABLE: &[Entry] = &[
    ("a", Takes::Value, "interface to files: POSIX"),
    ("b", Takes::Value, "subfolders of a folder of the tree"),
    ("B", Takes::Flag, "no barriers between phases"),
    ("c", Takes::Flag, "task 0 makes and removes all items"),
    ("C", Takes::Flag, "create only"),
    (
        "d",
        Takes::Value,
        "folder to work in, or several separated by @ of which task r takes number r",
    ),
    ("D", Takes::Flag, "directories only"),
    ("e", Takes::Value, "bytes read from each file"),
    ("E", Takes::Flag, "read only"),
    (
        "f",
        Takes::Value,
        "first number of tasks that a run is made with",
    ),
    ("F", Takes::Flag, "files only"),
    (
        "g",
        Takes::Refused("striping belongs to Lustre, and POSIX alone is offered"),
        "",
    ),
    ("G", Takes::Value, "seed of the content"),
    ("h", Takes::Flag, "this text"),
    ("i", Takes::Value, "iterations"),
    ("I", Takes::Value, "items of a task in each folder"),
    ("k", Takes::Flag, "make files by mknod"),
    (
        "l",
        Takes::Value,
        "last number of tasks that a run is made with",
    ),
    ("L", Takes::Flag, "items in the deepest folders alone"),
    ("n", Takes::Value, "items of a task in all"),
    (
        "N",
        Takes::Value,
        "tasks further: whose items one stats; reads twice, removes three times as far",
    ),
    ("p", Takes::Value, "seconds before each iteration"),
    ("P", Takes::Flag, "print rates and times"),
    ("r", Takes::Flag, "remove only"),
    (
        "R",
        Takes::Joined,
        "stat in random order; -R7 sets the seed",
    ),
    ("s", Takes::Value, "step between numbers of tasks"),
    ("S", Takes::Flag, "all tasks use the same files"),
    ("t", Takes::Flag, "count the trees of -u as work on items"),
    ("T", Takes::Flag, "stat only"),
    ("u", Takes::Flag, "a tree for each task"),
    ("U", Takes::Flag, "rename directories only"),
    ("v", Takes::Flag, "tell more; may be repeated"),
    ("V", Takes::Value, "how much to tell"),
    ("w", Takes::Value, "bytes written to each file"),
    (
        "W",
        Takes::Value,
        "seconds after which creation stops, all tasks having made as much as the fastest",
    ),
    (
        "x",
        Takes::Value,
        "file that keeps how many items -W allowed",
    ),
    ("X", Takes::Flag, "verify what is read"),
    ("y", Takes::Flag, "fsync each file"),
    (
        "Y",
        Takes::Flag,
        "sync(2) at the end of each phase, in its time",
    ),
    (
        "z",
        Takes::Value,
        "levels of the tree below its first folder",
    ),
    ("Z", Takes::Flag, "print times instead of rates"),
    ("json", Takes::Flag, "one JSON object instead of text"),
    ("random-seed", Takes::Value, "as -R with a seed"),
    ("verify-read", Takes::Flag, "as -X"),
    (
        "verify-write",
        Takes::Flag,
        "read back and verify after writing a file",
    ),
    ("posix.odirect", Takes::Flag, "past the page cache"),
    ("help", Takes::Flag, ""),
    // An error always ends the run here.
    ("warningAsErrors", Takes::Flag, ""),
];
