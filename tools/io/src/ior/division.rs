// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Which task moves which bytes of which file, and in which order.
//!
//! Called by phase. Pure. Segment s of task r begins at `s * block * tasks + r * block` in a shared
//! file, and at `s * block` in a file of its own.

use fastrand::Rng;

use crate::ior::figures::Access;
use crate::ior::test::{Order, Test};

/// Where a job's tasks are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// How many take part.
    pub tasks: usize,
    /// On how many nodes.
    pub nodes: usize,
    /// On the first node.
    pub tasks_per_node: usize,
    /// Neighbours in rank are on one node.
    pub by_block: bool,
}

/// The task whose blocks `task` accesses.
pub fn stands_for(task: usize, access: Access, order: &Order, place: &Place) -> usize {
    if access == Access::Write {
        return task;
    }
    let checks_write = usize::from(access == Access::WriteCheck);
    if order.random_task {
        let mut others: Vec<usize> = (0..place.tasks).collect();
        Rng::with_seed(order.random_seed).shuffle(&mut others);
        return others[(task + checks_write) % place.tasks];
    }
    if !order.next_node {
        return task;
    }
    let steps = if order.task_offset > 0 {
        order.task_offset as usize
    } else {
        1
    };
    // Where neighbours share a node, the next node is a node's worth of tasks away; -Q alone counts
    // single tasks.
    let stride = if place.by_block && order.task_offset == 0 {
        place.tasks_per_node
    } else {
        1
    };
    (task + (steps + checks_write) * stride) % place.tasks
}

/// The places of the transfers of one task, in bytes from the file's beginning, in order.
pub fn offsets(test: &Test, task: usize, tasks: usize) -> Vec<u64> {
    let sizes = &test.sizes;
    let per_block = sizes.block_bytes / sizes.transfer_bytes;
    let shared = if test.files.per_process {
        1
    } else {
        tasks as u64
    };
    let own = if test.files.per_process {
        0
    } else {
        task as u64
    };
    let place = |segment: u64, transfer: u64| {
        (segment * shared + own) * sizes.block_bytes + transfer * sizes.transfer_bytes
    };
    if !test.order.random_offset {
        let blocks = (0..sizes.segments)
            .flat_map(|segment| (0..per_block).map(move |transfer| (segment, transfer)));
        return blocks
            .map(|(segment, transfer)| place(segment, transfer))
            .collect();
    }
    // The same on every rank.
    let mut random = Rng::with_seed(test.order.offset_seed);
    let per_task = per_block * sizes.segments;
    if test.files.per_process {
        let mut all: Vec<u64> = (0..per_task)
            .map(|index| index * sizes.transfer_bytes)
            .collect();
        random.shuffle(&mut all);
        return all;
    }
    // All transfers of the file are dealt out, the same way on every rank.
    let mut all: Vec<u64> = (0..per_task * tasks as u64).collect();
    random.shuffle(&mut all);
    let first = task * per_task as usize;
    all[first..first + per_task as usize]
        .iter()
        .map(|index| index * sizes.transfer_bytes)
        .collect()
}

/// The path of the file that `task` stands for; `folder` says whether it lies in a folder of its
/// own.
pub fn path(test: &Test, task: usize, repetition: u32) -> String {
    let names = &test.files.names;
    let mut name = names[task % names.len()].clone();
    if test.files.own_folder && test.files.per_process {
        let (folder, file) = name
            .rsplit_once('/')
            .map_or((".", name.as_str()), |parts| parts);
        name = format!("{folder}/{task}/{file}");
    }
    if test.files.per_process {
        name += &format!(".{task:08}");
    }
    if test.files.per_repetition {
        name += &format!(".{repetition}");
    }
    name
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ior::test::Sizes;

    const PLACE: Place = Place {
        tasks: 8,
        nodes: 2,
        tasks_per_node: 4,
        by_block: true,
    };

    fn test(per_process: bool, random_offset: bool) -> Test {
        let sizes = Sizes {
            block_bytes: 4096,
            transfer_bytes: 1024,
            segments: 3,
        };
        let mut test = Test {
            sizes,
            ..Test::default()
        };
        test.files.per_process = per_process;
        test.order.random_offset = random_offset;
        test
    }

    #[test]
    fn all_tasks_together_cover_a_shared_file_once_in_order_and_at_random() {
        for random_offset in [false, true] {
            let test = test(false, random_offset);
            let mut all: Vec<u64> = (0..5).flat_map(|task| offsets(&test, task, 5)).collect();
            all.sort_unstable();
            let expected: Vec<u64> = (0..60).map(|index| index * 1024).collect();
            assert_eq!(all, expected);
        }
        assert_eq!(
            offsets(&test(false, false), 1, 5)[3..6],
            [7168, 24_576, 25_600]
        );
    }

    #[test]
    fn each_task_covers_its_own_file_once() {
        for random_offset in [false, true] {
            let mut own = offsets(&test(true, random_offset), 3, 5);
            assert_eq!(own.is_sorted(), !random_offset);
            own.sort_unstable();
            assert_eq!(own, (0..12).map(|index| index * 1024).collect::<Vec<u64>>());
        }
    }

    #[test]
    fn readers_of_the_next_node_are_a_node_further_and_checkers_two() {
        let order = Order {
            next_node: true,
            ..Order::default()
        };
        assert_eq!(stands_for(1, Access::Write, &order, &PLACE), 1);
        assert_eq!(stands_for(1, Access::Read, &order, &PLACE), 5);
        assert_eq!(stands_for(5, Access::Read, &order, &PLACE), 1);
        let by_one = Order {
            task_offset: 1,
            ..order
        };
        assert_eq!(stands_for(7, Access::Read, &by_one, &PLACE), 0);
        assert_eq!(stands_for(7, Access::WriteCheck, &by_one, &PLACE), 1);
    }

    #[test]
    fn random_readers_each_take_another_tasks_blocks_the_same_for_one_seed() {
        let order = Order {
            random_task: true,
            random_seed: 9,
            ..Order::default()
        };
        let mut taken: Vec<usize> = (0..8)
            .map(|task| stands_for(task, Access::Read, &order, &PLACE))
            .collect();
        let again: Vec<usize> = (0..8)
            .map(|task| stands_for(task, Access::Read, &order, &PLACE))
            .collect();
        assert_eq!(taken, again);
        taken.sort_unstable();
        assert_eq!(taken, (0..8).collect::<Vec<_>>());
    }

    #[test]
    fn names_are_dealt_out_by_rank_and_numbered() {
        let mut test = test(true, false);
        test.files.names = vec!["a/S".to_owned(), "T".to_owned()];
        assert_eq!(path(&test, 2, 0), "a/S.00000002");
        test.files.per_repetition = true;
        assert_eq!(path(&test, 3, 1), "T.00000003.1");
        test.files.own_folder = true;
        assert_eq!(path(&test, 2, 1), "a/2/S.00000002.1");
    }
}
