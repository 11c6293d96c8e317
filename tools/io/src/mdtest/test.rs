// SPDX-License-Identifier: Apache-2.0 OR MIT
//! One test of `weft bench mdtest`: everything that options set, with mdtest's defaults.
//!
//! Made by options; read by all others.

/// Which phases are done; without any given, all.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Does {
    /// -C
    pub create: bool,
    /// -T
    pub stat: bool,
    /// -E
    pub read: bool,
    /// -U
    pub rename: bool,
    /// -r
    pub remove: bool,
}

impl Does {
    /// All phases.
    pub const ALL: Self = Self {
        create: true,
        stat: true,
        read: true,
        rename: true,
        remove: true,
    };
}

/// How many items there are, and where.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    /// -b: subfolders of a folder.
    pub branching: u64,
    /// -z: levels below the first folder.
    pub depth: u32,
    /// -n: items of one task in all; 0: not given.
    pub items: u64,
    /// -I: items of one task in each folder; 0: not given.
    pub per_folder: u64,
    /// -L: items in the deepest folders alone.
    pub leaves_only: bool,
    /// Not -F.
    pub folders: bool,
    /// Not -D.
    pub files: bool,
}

/// What is written and read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Moves {
    /// -w, in bytes.
    pub write_bytes: usize,
    /// -e, in bytes.
    pub read_bytes: usize,
    /// -G: what the content depends on besides task and item.
    pub signature: u64,
    /// -X
    pub verify_read: bool,
    /// --verify-write
    pub verify_write: bool,
    /// -y
    pub sync_file: bool,
    /// -k: files are made by mknod.
    pub by_mknod: bool,
    /// --posix.odirect
    pub direct: bool,
}

/// Who works on what.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sharing {
    /// -u: a tree for each task.
    pub own_tree: bool,
    /// -t: making and removing the trees of -u counts as work on items.
    pub tree_in_time: bool,
    /// -S: all tasks use the same files.
    pub same_files: bool,
    /// -c: task 0 makes and removes everything.
    pub by_first_task: bool,
    /// -N: tasks between one's own items and those that one stats.
    pub stride: usize,
    /// -R: items are looked at in random order, by this seed.
    pub random_seed: Option<u64>,
}

/// Repetitions, tasks and times.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Run {
    /// -i
    pub iterations: u32,
    /// -p, in seconds.
    pub delay_s: u64,
    /// -f, -l and -s; a last of 0: all ranks in one run.
    pub tasks: (usize, usize, usize),
    /// Not -B.
    pub barriers: bool,
    /// -Y: sync(2) ends each phase.
    pub sync_phases: bool,
    /// -W, in seconds; 0: none.
    pub deadline_s: u64,
    /// -x: holds how many items the deadline allowed.
    pub deadline_file: Option<String>,
}

/// What is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Output {
    /// -v and -V
    pub verbose: u32,
    /// Not -Z.
    pub rates: bool,
    /// -P or -Z
    pub times: bool,
    /// --json
    pub json: bool,
}

/// A test: everything about it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Test {
    /// -d, split at @; task r works in number r.
    pub roots: Vec<String>,
    /// See [`Does`].
    pub does: Does,
    /// See [`Shape`].
    pub shape: Shape,
    /// See [`Moves`].
    pub moves: Moves,
    /// See [`Sharing`].
    pub sharing: Sharing,
    /// See [`Run`].
    pub run: Run,
    /// See [`Output`].
    pub output: Output,
}

impl Default for Test {
    fn default() -> Self {
        Self {
            roots: vec!["./out".to_owned()],
            does: Does::default(),
            shape: Shape {
                branching: 1,
                depth: 0,
                items: 0,
                per_folder: 0,
                leaves_only: false,
                folders: true,
                files: true,
            },
            moves: Moves::default(),
            sharing: Sharing::default(),
            run: Run {
                iterations: 1,
                delay_s: 0,
                tasks: (1, 0, 1),
                barriers: true,
                sync_phases: false,
                deadline_s: 0,
                deadline_file: None,
            },
            output: Output {
                verbose: 0,
                rates: true,
                times: false,
                json: false,
            },
        }
    }
}
