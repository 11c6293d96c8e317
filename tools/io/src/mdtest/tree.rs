// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The tree of folders, the items in it, and which task works on which.
//!
//! Called by options (to check whether the tree is possible), phase and report. Pure. Folders are
//! numbered level by level from 0; the children of folder f are f*b+1 to f*b+b, as in a heap with b
//! children.

use crate::mdtest::test::{Shape, Sharing, Test};
use fastrand::Rng;

/// Most items of one task, and of folders of a tree. Chosen: far above what a file system takes
/// in a day, and sums stay in 64 bits.
pub const MOST_ITEMS: u64 = 1 << 40;

/// Why there can be no such tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadShape {
    /// The tree is too large.
    #[error("-b {branching} and -z {depth} make more than {MOST_ITEMS} folders; make one smaller")]
    Folders {
        /// Folders in a folder.
        branching: u64,
        /// Levels below the first.
        depth: u32,
    },
    /// Not every folder would have an item.
    #[error(
        "-n is {items}, but the tree has {holding} folders to hold items; make -n at least as many"
    )]
    FewItems {
        /// Items of a task.
        items: u64,
        /// Folders that hold items.
        holding: u64,
    },
    /// The tree would hold too much.
    #[error(
        "-I {per_folder} in each of {holding} folders is more than {MOST_ITEMS} items; make it \
         smaller"
    )]
    ManyItems {
        /// Items of a task in a folder.
        per_folder: u64,
        /// Folders that hold items.
        holding: u64,
    },
}

/// A kind of item.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Empty directories.
    Folder,
    /// Files.
    File,
}

/// What is done with items of a tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// Made.
    Create,
    /// Looked at by stat(2).
    Stat,
    /// Opened, read and closed.
    Read,
    /// Given the name of the item before.
    Rename,
    /// Removed.
    Remove,
}

/// How a task's items lie in a tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Layout {
    /// Folders of the tree, with the first.
    pub folders: u64,
    /// Number of the first folder that holds items.
    pub first: u64,
    /// Items of one task in each folder that holds any.
    pub per_folder: u64,
    /// Items of one task in all.
    pub items: u64,
    branching: u64,
}

impl Layout {
    /// Of a shape.
    ///
    /// # Errors
    /// Fewer items than folders, or too much of either.
    pub fn of(shape: &Shape) -> Result<Self, BadShape> {
        let (mut folders, mut level) = (1_u64, 1_u64);
        for _ in 0..shape.depth {
            level = level.saturating_mul(shape.branching);
            folders = folders.saturating_add(level);
            if folders > MOST_ITEMS {
                return Err(BadShape::Folders {
                    branching: shape.branching,
                    depth: shape.depth,
                });
            }
        }
        let holding = if shape.leaves_only { level } else { folders };
        let per_folder = if shape.per_folder > 0 {
            shape.per_folder
        } else {
            shape.items / holding
        };
        if per_folder == 0 {
            return Err(BadShape::FewItems {
                items: shape.items,
                holding,
            });
        }
        let items = per_folder.saturating_mul(holding);
        if items > MOST_ITEMS {
            return Err(BadShape::ManyItems {
                per_folder,
                holding,
            });
        }
        Ok(Self {
            folders,
            first: folders - holding,
            per_folder,
            items,
            branching: shape.branching,
        })
    }

    /// The folder that holds an item.
    pub fn folder_of(&self, item: u64) -> u64 {
        self.first + item / self.per_folder
    }

    /// The path of a folder inside the test's folder; `tree` is `mdtest_tree` or, with -u,
    /// `mdtest_tree.TASK`.
    pub fn folder_path(&self, folder: u64, tree: &str) -> String {
        let mut chain = vec![folder];
        let mut at = folder;
        while at > 0 {
            at = (at - 1) / self.branching;
            chain.push(at);
        }
        let names = chain.iter().rev().map(|number| format!("{tree}.{number}"));
        names.collect::<Vec<_>>().join("/")
    }
}

/// The order in which a task visits its items.
#[derive(Clone, Debug)]
pub enum Order {
    /// As they are numbered.
    InTurn,
    /// At random.
    Random(Vec<u64>),
}

impl Order {
    /// Of so many items; without a seed in turn.
    pub fn of(items: u64, task: usize, seed: Option<u64>) -> Self {
        let Some(seed) = seed else {
            return Self::InTurn;
        };
        let mut order: Vec<u64> = (0..items).collect();
        Rng::with_seed(seed.wrapping_add(task as u64)).shuffle(&mut order);
        Self::Random(order)
    }

    /// The item that comes after `before` others.
    pub fn item(&self, before: u64) -> u64 {
        match self {
            Self::InTurn => before,
            Self::Random(order) => order[before as usize],
        }
    }
}

/// The task whose items `task` works on in a step, so that no step finds what the one before has
/// left in this task's own cache.
pub fn stands_for(task: usize, step: Step, stride: usize, tasks: usize) -> usize {
    let times = match step {
        Step::Create | Step::Rename => 0,
        Step::Stat => 1,
        Step::Read => 2,
        Step::Remove => 3,
    };
    (task + times * stride) % tasks
}

/// The folder in which a task's trees of an iteration lie.
pub fn test_folder(test: &Test, task: usize, iteration: u32) -> String {
    let root = &test.roots[task % test.roots.len()];
    format!("{}/test-dir.{iteration}-0", root.trim_end_matches('/'))
}

/// The beginning of the names of a task's tree.
pub fn tree_name(sharing: &Sharing, task: usize) -> String {
    if sharing.own_tree {
        format!("mdtest_tree.{task}")
    } else {
        "mdtest_tree".to_owned()
    }
}

/// The name of an item in its folder.
pub fn item_name(kind: Kind, task: usize, item: u64) -> String {
    match kind {
        Kind::Folder => format!("dir.mdtest.{task}.{item}"),
        Kind::File => format!("file.mdtest.{task}.{item}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shape(branching: u64, depth: u32, items: u64, per_folder: u64, leaves_only: bool) -> Shape {
        Shape {
            branching,
            depth,
            items,
            per_folder,
            leaves_only,
            ..Test::default().shape
        }
    }

    #[test]
    fn published_runs_have_their_published_numbers_of_items() {
        // A run of one task with -b 6 -I 8 -z 2, and one of 32 tasks with -I 12500 -z 2 -b 64 -L.
        assert_eq!(Layout::of(&shape(6, 2, 0, 8, false)).unwrap().items, 344);
        let leaves = Layout::of(&shape(64, 2, 0, 12_500, true)).unwrap();
        assert_eq!(leaves.items * 32, 1_638_400_000);
        // mdtest's manual: 2 tasks with -b 2 -z 3 -I 10.
        assert_eq!(
            Layout::of(&shape(2, 3, 0, 10, false)).unwrap().items * 2,
            300
        );
    }

    #[test]
    fn items_of_n_are_dealt_out_evenly_and_the_rest_falls_away() {
        let layout = Layout::of(&shape(1, 2, 10, 0, false)).unwrap();
        assert_eq!((layout.folders, layout.per_folder, layout.items), (3, 3, 9));
        assert_eq!(layout.folder_of(5), 1);
        assert_eq!(
            layout.folder_path(2, "mdtest_tree"),
            "mdtest_tree.0/mdtest_tree.1/mdtest_tree.2"
        );
    }

    #[test]
    fn leaves_alone_hold_items_and_each_folder_hangs_below_its_parent() {
        let layout = Layout::of(&shape(3, 2, 0, 2, true)).unwrap();
        assert_eq!((layout.folders, layout.first, layout.items), (13, 4, 18));
        assert_eq!((layout.folder_of(0), layout.folder_of(17)), (4, 12));
        assert_eq!(layout.folder_path(12, "t.5"), "t.5.0/t.5.3/t.5.12");
        assert_eq!(layout.folder_path(4, "t"), "t.0/t.1/t.4");
    }

    #[test]
    fn neighbours_stat_one_stride_read_two_and_remove_three_strides_further() {
        let of = |step| stands_for(1, step, 1, 4);
        assert_eq!(
            [
                of(Step::Create),
                of(Step::Stat),
                of(Step::Read),
                of(Step::Remove)
            ],
            [1, 2, 3, 0]
        );
    }

    #[test]
    fn random_order_visits_each_item_once_and_is_the_same_for_one_seed() {
        let visit = |seed| {
            let order = Order::of(50, 2, seed);
            (0..50)
                .map(|before| order.item(before))
                .collect::<Vec<u64>>()
        };
        let mut order = visit(Some(9));
        assert_eq!(order, visit(Some(9)));
        assert!(!order.is_sorted());
        order.sort_unstable();
        assert_eq!(order, visit(None));
    }
}
