// SPDX-License-Identifier: Apache-2.0 OR MIT
//! One test of `weft bench ior`: everything that options set, with IOR's defaults.
//!
//! Made by options and script; read by all others.

use crate::ior::content::Kind;

/// What is done, in this order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Does {
    /// -w
    pub write: bool,
    /// -W
    pub check_write: bool,
    /// -r
    pub read: bool,
    /// -R
    pub check_read: bool,
    /// One of them was given; else both write and read are done.
    pub given: bool,
}

/// How much is moved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sizes {
    /// -b, in bytes: what one task moves at a stretch of one segment.
    pub block_bytes: u64,
    /// -t, in bytes: what one call moves.
    pub transfer_bytes: u64,
    /// -s
    pub segments: u64,
}

/// In which order, and by whom.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Order {
    /// -C: read what the next node wrote.
    pub next_node: bool,
    /// -Q: how many tasks further; 0: as many as a node has.
    pub task_offset: u64,
    /// -Z: read what a random task wrote.
    pub random_task: bool,
    /// -X
    pub random_seed: u64,
    /// -z: transfers in random order.
    pub random_offset: bool,
    /// --random-offset-seed
    pub offset_seed: u64,
}

/// Names and what becomes of the files.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Files {
    /// -o, split at @.
    pub names: Vec<String>,
    /// -o as it was given.
    pub given: String,
    /// -F
    pub per_process: bool,
    /// -m
    pub per_repetition: bool,
    /// -u
    pub own_folder: bool,
    /// -k
    pub keep: bool,
    /// -K
    pub keep_if_wrong: bool,
    /// -E
    pub existing: bool,
}

impl Files {
    /// IOR's words for who writes which file.
    pub fn access(&self) -> &'static str {
        if self.per_process {
            "file-per-process"
        } else {
            "single-shared-file"
        }
    }
}

/// How files are accessed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Through {
    /// --posix.odirect
    pub direct: bool,
    /// -e
    pub sync_at_end: bool,
    /// -Y
    pub sync_each: bool,
    /// -c, which the POSIX interface has no use for.
    pub collective: bool,
}

/// Repetitions and times.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Run {
    /// -i
    pub repetitions: u32,
    /// -d, in seconds.
    pub delay_s: u64,
    /// -D, in seconds; 0: none.
    pub deadline_s: u64,
    /// -O stoneWallingWearOut=1: who is slower catches up with the fastest after the deadline.
    pub wear_out: bool,
    /// -T, in minutes; 0: none.
    pub limit_minutes: f64,
    /// -g
    pub barriers: bool,
    /// -j, in seconds; 0: none.
    pub outlier_s: u64,
}

/// Where the summary goes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Form {
    /// IOR's text.
    #[default]
    Text,
    /// One JSON object.
    Json,
    /// One line for each row.
    Csv,
}

/// What is told, and where.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Output {
    /// -v, as often as it is given.
    pub verbose: u32,
    /// -O summaryFormat
    pub form: Form,
    /// -O summaryFile
    pub summary_file: Option<String>,
    /// -A
    pub reference: i64,
    /// --dryRun
    pub dry_run: bool,
}

/// One test: everything about it.
#[derive(Clone, Debug, PartialEq)]
pub struct Test {
    /// See [`Does`].
    pub does: Does,
    /// See [`Sizes`].
    pub sizes: Sizes,
    /// See [`Order`].
    pub order: Order,
    /// See [`Files`].
    pub files: Files,
    /// See [`Through`].
    pub through: Through,
    /// See [`Run`].
    pub run: Run,
    /// -l
    pub content: Kind,
    /// -G: what the content depends on besides its place.
    pub signature: u32,
    /// -N; 0: all ranks.
    pub tasks: usize,
    /// See [`Output`].
    pub output: Output,
}

impl Default for Test {
    fn default() -> Self {
        Self {
            does: Does::default(),
            sizes: Sizes {
                block_bytes: 1 << 20,
                transfer_bytes: 256 << 10,
                segments: 1,
            },
            order: Order::default(),
            files: Files {
                names: vec!["testFile".to_owned()],
                given: "testFile".to_owned(),
                ..Files::default()
            },
            through: Through::default(),
            run: Run {
                repetitions: 1,
                delay_s: 0,
                deadline_s: 0,
                wear_out: false,
                limit_minutes: 0.0,
                barriers: false,
                outlier_s: 0,
            },
            content: Kind::Offset,
            signature: 0,
            tasks: 0,
            output: Output::default(),
        }
    }
}
