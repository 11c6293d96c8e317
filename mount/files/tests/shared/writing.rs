// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What all nodes see while several of them write one file, and afterwards.

use weft_files::Place;
use weft_files::shared::shared_copies::copy_range;

use super::*;

#[test]
fn pieces_that_three_nodes_write_at_once_are_read_by_all_before_and_after_it_is_published() {
    let world = World::new();
    for turn in 0..4 {
        let name = format!("shared{turn}");
        let handles: Vec<u64> = (0..NODES)
            .map(|node| world.node(node).create(&name).unwrap())
            .collect();
        std::thread::scope(|scope| {
            for (node, handle) in handles.iter().enumerate() {
                let node_here = world.node(node);
                scope.spawn(move || {
                    for number in (node..60).step_by(NODES) {
                        let data = piece(number);
                        node_here.write(*handle, number * PIECE, &data).unwrap();
                    }
                });
            }
        });
        let expected: Vec<u8> = (0..60).flat_map(piece).collect();
        let key = format!("p/{name}");
        assert!(!world.store.keys().contains(&key), "nobody closed it");
        for node in (0..NODES).map(|node| world.node(node)) {
            assert_eq!(node.size(&name).unwrap(), expected.len() as u64);
            assert!(node.whole(&name) == expected, "before it is published");
        }
        for (node, handle) in handles.iter().enumerate() {
            assert!(!world.store.keys().contains(&key), "somebody writes still");
            world.node(node).close(*handle).unwrap();
        }
        assert!(world.store.keys().contains(&key));
        for node in (0..NODES).map(|node| world.node(node)) {
            assert_eq!(node.size(&name).unwrap(), expected.len() as u64);
            assert!(node.whole(&name) == expected, "after it was published");
        }
    }
}

#[test]
fn appends_of_all_nodes_are_whole_and_none_is_lost() {
    let world = World::new();
    let mode = Mode {
        appends: true,
        ..WRITE
    };
    let handles: Vec<u64> = (0..NODES)
        .map(|node| world.node(node).create_as("log", mode).unwrap())
        .collect();
    std::thread::scope(|scope| {
        for (node, handle) in handles.iter().enumerate() {
            let (at, line) = (world.node(node), [node as u8; 1000]);
            scope.spawn(move || (0..50).for_each(|_| at.write(*handle, 0, &line).unwrap()));
        }
    });
    for (node, handle) in handles.iter().enumerate() {
        world.node(node).close(*handle).unwrap();
    }
    let whole = world.node(0).whole("log");
    let mut counts = [0; NODES];
    for line in whole.chunks(1000) {
        assert!(line.iter().all(|byte| *byte == line[0]), "a mixed line");
        counts[usize::from(line[0])] += 1;
    }
    assert_eq!(counts, [50; NODES]);
}

#[test]
fn file_that_one_node_cuts_is_short_for_all_and_is_published_at_fsync() {
    let world = World::new();
    for owner in 0..NODES {
        let name = world.name_of(owner);
        let (one, other) = (world.node(0), world.node(1));
        let first = one.create(&name).unwrap();
        one.write(first, 0, &piece(1)).unwrap();
        let second = other.open(&name, WRITE).unwrap();
        let ino = other.ino(&name).unwrap();
        let cut = other.shared.resize(ino, Some(second), 100);
        other.runtime.block_on(cut).unwrap();
        assert_eq!(one.size(&name).unwrap(), 100);
        one.sync(first).unwrap();
        assert!(world.store.keys().contains(&format!("p/{name}")));
        other.write(second, 100, b"more").unwrap();
        one.close(first).unwrap();
        other.close(second).unwrap();
        let whole = [&piece(1)[..100], b"more"].concat();
        assert!(world.node(2).whole(&name) == whole);
        // It is written anew over what is there.
        let again = Mode {
            truncates: true,
            ..WRITE
        };
        let third = world.node(2).open(&name, again).unwrap();
        world.node(2).write(third, 0, b"new").unwrap();
        world.node(2).close(third).unwrap();
        assert_eq!(one.whole(&name), b"new");
        one.unlink(&name).unwrap();
        // The other node may not have heard of it; who opens it there is told to look again.
        let refused = other.open(&name, WRITE).unwrap_err().reason;
        assert!([Reason::Stale, Reason::NotFound].contains(&refused));
        assert_eq!(other.ino(&name).unwrap_err().reason, Reason::NotFound);
        let handle = other.create(&name).unwrap();
        other.write(handle, 0, b"newest").unwrap();
        other.close(handle).unwrap();
        assert_eq!(one.whole(&name), b"newest");
    }
}

#[test]
fn one_node_alone_makes_a_file_that_must_be_new() {
    let world = World::new();
    let mode = Mode {
        is_new: true,
        ..WRITE
    };
    let made = (0..NODES).map(|node| world.node(node).create_as("lock", mode));
    let made: Vec<_> = made
        .map(|made| made.map_err(|fault| fault.reason))
        .collect();
    let refused = Err(Reason::Exists);
    assert!(made[0].is_ok() && made[1] == refused && made[2] == refused);
}

/// copy_file_range(2), whichever node has the two files, and whether or not they are published.
#[test]
fn range_is_copied_between_files_of_any_owners_with_what_others_wrote_to_them() {
    let world = World::new();
    let data: Vec<u8> = (0..3_000_000).map(|at| (at % 251) as u8).collect();
    let (here, other) = (world.node(0), world.node(2));
    for (from, to) in [(0, 1), (1, 0), (1, 1), (1, 2), (0, 0)] {
        let names = [world.name_of(from), format!("to-{}", world.name_of(to))];
        let source = here.create(&names[0]).unwrap();
        let theirs = other.open(&names[0], WRITE).unwrap();
        let target = here.create(&names[1]).unwrap();
        let place = |handle, offset| Place { handle, offset };
        let copy = |at: u64, size: u64| {
            let (from, to) = (place(source, at), place(target, 100 + at));
            here.runtime
                .block_on(copy_range(here.shared, from, to, size))
        };
        here.write(source, 0, &data).unwrap();
        assert_eq!(copy(0, 4_000_000), Ok(3_000_000), "{from} to {to}");
        other.write(theirs, 0, b"changed").unwrap();
        assert_eq!(copy(0, 1000), Ok(1000));
        assert_eq!(copy(3_000_000, 1000), Ok(0), "there is no more");
        here.close(target).unwrap();
        here.close(source).unwrap();
        other.close(theirs).unwrap();
        let whole = world.node(1).whole(&names[1]);
        assert_eq!((whole.len(), &whole[..100]), (3_000_100, &[0; 100][..]));
        assert!(whole[100..107] == *b"changed" && whole[107..] == data[7..]);
        for name in &names {
            here.unlink(name).unwrap();
        }
    }
    let handle = here.create("read-only").unwrap();
    here.close(handle).unwrap();
    let reader = here.open("read-only", Mode::default()).unwrap();
    let source = here.create("source").unwrap();
    here.write(source, 0, b"x").unwrap();
    let place = |handle| Place { handle, offset: 0 };
    let copied = copy_range(here.shared, place(source), place(reader), 1);
    let refused = here.runtime.block_on(copied).unwrap_err();
    assert_eq!(refused.reason, Reason::NotOpen);
}
