// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Times that programs set while other nodes have the file: tar, rsync and cp -p set them before
//! they close it.

use std::time::SystemTime;

use weft_files::shared::{shared_names, shared_times};
use weft_files::{Attributes, Change, Given};

use super::anew::{LATER, see_anew, time};
use super::*;

fn change(node: Node<'_>, name: &str, change: &Change) {
    let ino = node.ino(name).unwrap();
    let changed = shared_times::change(node.shared, ino, change);
    node.runtime.block_on(changed).unwrap();
}

fn set_time(node: Node<'_>, name: &str, seconds: u64) {
    let times = Change {
        modified: Some(time(seconds)),
        accessed: Some(time(seconds + 1)),
        ..Change::default()
    };
    change(node, name, &times);
}

fn set_mode(node: Node<'_>, name: &str, mode: u16) {
    let given = Given {
        mode: Some(mode),
        ..Given::default()
    };
    let mode = Change {
        given,
        ..Change::default()
    };
    change(node, name, &mode);
}

fn see(node: Node<'_>, name: &str) -> Attributes {
    let ino = node.ino(name).unwrap();
    let seen = node
        .runtime
        .block_on(shared_names::attributes(node.shared, ino));
    seen.unwrap().attributes
}

fn see_by_all(world: &World, name: &str) -> [SystemTime; NODES] {
    std::array::from_fn(|node| see(world.node(node), name).modified)
}

/// As tar does: a file is made anew, written, and gets time and mode before it is closed.
fn unpack(node: Node<'_>, name: &str, seconds: u64) {
    let handle = node.create(name).unwrap();
    node.write(handle, 0, &seconds.to_le_bytes()).unwrap();
    set_time(node, name, seconds);
    set_mode(node, name, 0o640);
    node.close(handle).unwrap();
}

#[test]
fn time_that_is_set_before_close_is_kept_whoever_has_the_file() {
    let world = World::new();
    let names: Vec<String> = (0..NODES).map(|owner| world.name_of(owner)).collect();
    for (round, node) in [(1, 0), (2, 0), (3, 1)] {
        let seconds = 1_000_000_000 * round;
        for name in &names {
            if round > 1 {
                world.node(node).unlink(name).unwrap();
            }
            unpack(world.node(node), name, seconds);
            let seen = see(world.node(node), name).modified;
            assert_eq!(seen, time(seconds), "{name}, right after close, {round}");
        }
        std::thread::sleep(LATER);
        for name in &names {
            assert_eq!(
                see_by_all(&world, name),
                [time(seconds); NODES],
                "{name}, {round}"
            );
            let seen = see_anew(&world, &[name]);
            assert_eq!(
                seen.modified,
                time(seconds),
                "{name}, of the store, {round}"
            );
            assert_eq!(seen.accessed, time(seconds + 1));
            assert_eq!(seen.mode, Some(0o640), "{name}, {round}");
        }
    }
}

#[test]
fn later_write_of_any_node_counts_more_than_a_time_that_was_set() {
    let world = World::new();
    let began = SystemTime::now();
    for owner in 0..NODES {
        let name = world.name_of(owner);
        let handles: Vec<u64> = (0..NODES)
            .map(|node| world.node(node).create(&name).unwrap())
            .collect();
        for writer in 0..NODES {
            let set = 1_500_000_000 + writer as u64;
            world.node(0).write(handles[0], 0, b"first").unwrap();
            set_time(world.node((writer + 1) % NODES), &name, set);
            assert_eq!(
                see_by_all(&world, &name),
                [time(set); NODES],
                "{owner} {writer}"
            );
            let (node, handle) = (world.node(writer), handles[writer]);
            node.write(handle, 5, b"later").unwrap();
            let seen = see_by_all(&world, &name);
            assert!(
                seen.iter().all(|at| *at >= began),
                "{owner} {writer}: {seen:?}"
            );
        }
        // The last one to close is not the one that set the time.
        set_time(world.node(1), &name, 1_600_000_000);
        for (node, handle) in handles.iter().enumerate() {
            world.node(node).close(*handle).unwrap();
        }
        assert_eq!(see(world.node(2), &name).modified, time(1_600_000_000));
        std::thread::sleep(LATER);
        assert_eq!(see_anew(&world, &[&name]).modified, time(1_600_000_000));
        // The same bytes again are the same object, and yet have another time.
        let handle = world.node(1).open(&name, WRITE).unwrap();
        world.node(1).write(handle, 0, b"first").unwrap();
        world.node(1).close(handle).unwrap();
        assert!(see(world.node(1), &name).modified >= began);
        std::thread::sleep(LATER);
        assert_ne!(
            see_anew(&world, &[&name]).modified,
            time(1_600_000_000),
            "of {owner}"
        );
    }
}

/// As rsync does: a file with another name is closed, and renamed at once.
#[test]
fn time_that_was_set_before_close_goes_with_the_file_to_its_new_name() {
    let world = World::new();
    let owners = (0..NODES).flat_map(|from| (0..NODES).map(move |to| (from, to)));
    let mut names = Vec::new();
    for (number, (from, to)) in owners.enumerate() {
        let (old, new) = (
            world.name_of(from),
            format!("to{number}-{}", world.name_of(to)),
        );
        let node = world.node(0);
        for seconds in [1_100_000_000, 1_200_000_000] {
            unpack(node, &old, seconds);
            let [old, new] = [&old, &new].map(|name| Name { parent: ROOT, name });
            let renamed = shared_names::rename(node.shared, old, new, true);
            node.runtime.block_on(renamed).unwrap();
        }
        assert_eq!(
            see(node, &new).modified,
            time(1_200_000_000),
            "{from} to {to}"
        );
        names.push(new);
    }
    std::thread::sleep(LATER);
    for name in names {
        let seen = see_anew(&world, &[&name]);
        assert_eq!(
            (seen.modified, seen.mode),
            (time(1_200_000_000), Some(0o640)),
            "{name}"
        );
    }
}

/// A time that is set by name while another node has the file open for writing.
#[test]
fn time_that_a_third_node_sets_by_name_is_the_drafts() {
    let world = World::new();
    for owner in 0..NODES {
        let name = world.name_of(owner);
        let handle = world.node(0).create(&name).unwrap();
        world.node(0).write(handle, 0, b"text").unwrap();
        set_time(world.node(1), &name, 1_300_000_000);
        assert_eq!(see_by_all(&world, &name), [time(1_300_000_000); NODES]);
        world.node(0).close(handle).unwrap();
        std::thread::sleep(LATER);
        assert_eq!(see_anew(&world, &[&name]).modified, time(1_300_000_000));
        // Nobody writes it any more.
        set_time(world.node(2), &name, 1_400_000_000);
        assert_eq!(see(world.node(2), &name).modified, time(1_400_000_000));
        std::thread::sleep(LATER);
        assert_eq!(see_by_all(&world, &name), [time(1_400_000_000); NODES]);
        assert_eq!(see_anew(&world, &[&name]).modified, time(1_400_000_000));
    }
}

/// As cp -p does again and again: what is written is what was there, and so is the time.
#[test]
fn time_that_is_set_again_for_the_same_bytes_stays() {
    let world = World::new();
    let names: Vec<String> = (0..NODES).map(|owner| world.name_of(owner)).collect();
    for node in [0, 1, 0, 2, 1] {
        for name in &names {
            let node = world.node(node);
            let handle = node.create(name).unwrap();
            node.write(handle, 0, b"same").unwrap();
            set_time(node, name, 1_700_000_000);
            node.close(handle).unwrap();
        }
        std::thread::sleep(LATER / 4);
    }
    std::thread::sleep(LATER);
    for name in &names {
        let all = see_by_all(&world, name);
        assert_eq!(all, [time(1_700_000_000); NODES], "{name}");
        assert_eq!(
            see_anew(&world, &[name]).modified,
            time(1_700_000_000),
            "{name}"
        );
    }
}
