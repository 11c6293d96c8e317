// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Laws of names that one node of a job makes, and that others know as missing. Names stay valid
//! for longer than these tests take.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use weft_files::shared::shared_names;
use weft_files::{Fault, Kind, Making, Name, Reason};
use weft_store::memory::Operation;

use crate::{NODES, Node, ROOT, WRITE, World};

const LONG: Duration = Duration::from_secs(3600);

fn find(node: Node<'_>, parent: u64, name: &str) -> Result<(u64, Kind, u64), Reason> {
    let found = shared_names::lookup(node.shared, parent, name);
    let found = node.runtime.block_on(found).map_err(reason)?;
    let seen = found.attributes;
    Ok((seen.ino, seen.kind, seen.size_bytes))
}

fn reason(fault: Fault) -> Reason {
    fault.reason
}

fn make_folder(node: Node<'_>, parent: u64, name: &str) -> u64 {
    let new = Name { parent, name };
    let made = node.shared.files.make_folder(new, &Making::FOLDER);
    node.runtime.block_on(made).unwrap().attributes.ino
}

fn make_file(node: Node<'_>, parent: u64, name: &str) {
    let new = Name { parent, name };
    let created = node.shared.create(new, WRITE, &Making::FILE);
    let handle = node.runtime.block_on(created).unwrap().1.opened.handle;
    node.write(handle, 0, b"text").unwrap();
    node.close(handle).unwrap();
}

/// Every node but one looks for a name.
fn by_others(world: &World, maker: usize, look: impl Fn(Node<'_>, usize)) {
    let others = (0..NODES).filter(|node| *node != maker);
    others.for_each(|node| look(world.node(node), node));
}

#[test]
fn name_that_one_node_makes_is_found_by_all_others_at_once() {
    for is_shared in [true, false] {
        let world = World::with(1000, LONG, is_shared);
        for maker in 0..NODES {
            let names = |what: &str| format!("{what}{maker}");
            let (folder, moved, file) = (names("folder"), names("moved"), names("file"));
            by_others(&world, maker, |node, _| {
                for name in [&folder, &moved, &file] {
                    assert_eq!(find(node, ROOT, name), Err(Reason::NotFound));
                }
            });
            let node = world.node(maker);
            let parent = make_folder(node, ROOT, &folder);
            by_others(&world, maker, |node, at| {
                let (there, kind, _) = find(node, ROOT, &folder).expect("it is there");
                assert_eq!(kind, Kind::Folder, "shared: {is_shared}, {maker} for {at}");
                assert_eq!(find(node, there, "f"), Err(Reason::NotFound));
            });
            make_file(node, parent, "f");
            make_file(node, ROOT, &file);
            by_others(&world, maker, |node, _| {
                let (there, ..) = find(node, ROOT, &folder).unwrap();
                assert_eq!(find(node, there, "f").map(|found| found.2), Ok(4));
                assert_eq!(find(node, ROOT, &file).map(|found| found.2), Ok(4));
            });
            let [old, new] = [&folder, &moved].map(|name| Name { parent: ROOT, name });
            let renamed = shared_names::rename(node.shared, old, new, true);
            node.runtime.block_on(renamed).unwrap();
            by_others(&world, maker, |node, _| {
                let (there, ..) = find(node, ROOT, &moved).expect("it has the new name");
                assert_eq!(find(node, there, "f").map(|found| found.2), Ok(4));
            });
        }
    }
}

#[test]
fn folder_that_other_nodes_emptied_is_removed_at_once() {
    let world = World::with(1000, LONG, false);
    let (here, there) = (world.node(0), world.node(1));
    let parent = make_folder(here, ROOT, "d");
    let (folder, ..) = find(there, ROOT, "d").unwrap();
    make_file(there, folder, "f");
    let old = Name {
        parent: ROOT,
        name: "d",
    };
    let remove = |node: Node<'_>| {
        let removed = shared_names::remove_folder(node.shared, old);
        node.runtime.block_on(removed).map_err(reason)
    };
    assert_eq!(find(here, parent, "f").map(|found| found.2), Ok(4));
    assert_eq!(remove(here), Err(Reason::NotEmpty));
    let file = Name {
        parent: folder,
        name: "f",
    };
    there
        .runtime
        .block_on(shared_names::unlink(there.shared, file))
        .unwrap();
    assert_eq!(remove(here), Ok(()));
}

#[test]
fn name_that_nobody_made_costs_no_request_to_the_store() {
    for is_shared in [true, false] {
        let world = World::with(1000, LONG, is_shared);
        let parent = make_folder(world.node(0), ROOT, "d");
        let (folder, ..) = find(world.node(1), ROOT, "d").unwrap();
        let requests = || {
            let faults = world.store.faults();
            [Operation::List, Operation::Head, Operation::Get].map(|one| faults.count(one))
        };
        let mut before = None;
        for number in 0..200 {
            let name = format!("missing{number}");
            for (node, parent) in [(0, parent), (1, folder)] {
                assert_eq!(find(world.node(node), parent, &name), Err(Reason::NotFound));
            }
            // Each owner may have begun later than the folder was listed.
            if number >= 40 {
                let now = requests();
                assert_eq!(
                    *before.get_or_insert(now),
                    now,
                    "shared: {is_shared}, {name}"
                );
            }
        }
    }
}

/// As under a kernel, which tells of the last close(2) when the program goes on already.
#[test]
fn name_that_is_removed_while_its_file_is_closed_is_gone_and_can_be_made_again() {
    for owner in 0..NODES {
        // Nothing is believed for any time, so that the owner asks the store before it unlinks.
        let world = World::with(1000, Duration::ZERO, true);
        let name = world.name_of(owner);
        let node = world.node(0);
        let handle = node.create(&name).unwrap();
        node.write(handle, 0, b"x").unwrap();
        node.flush(handle).unwrap();
        let is_closed = Arc::new(AtomicBool::new(false));
        let (shared, closed) = (Arc::clone(node.shared), Arc::clone(&is_closed));
        world.store.faults().before(Operation::Head, 0, async move {
            shared.close(handle).await.unwrap();
            closed.store(true, Ordering::Relaxed);
        });
        node.unlink(&name).unwrap();
        assert!(is_closed.load(Ordering::Relaxed), "the store was asked");
        for node in 0..NODES {
            let found = world.node(node).ino(&name).map_err(reason);
            assert_eq!(found, Err(Reason::NotFound), "of {owner}, on {node}");
        }
        node.create(&name).expect("nothing has the name");
    }
}

#[test]
fn name_whose_owner_died_is_found_by_the_others_at_once() {
    for is_shared in [true, false] {
        let world = World::with(1000, LONG, is_shared);
        let names: Vec<String> = (0..30).map(|number| format!("d{number}")).collect();
        for node in 0..NODES {
            for name in &names {
                assert_eq!(find(world.node(node), ROOT, name), Err(Reason::NotFound));
            }
        }
        let (before, after) = names.split_at(15);
        before.iter().for_each(|name| {
            make_folder(world.node(0), ROOT, name);
        });
        world.hosts.is_dead[2].store(true, Ordering::Relaxed);
        after.iter().for_each(|name| {
            make_folder(world.node(0), ROOT, name);
        });
        for name in &names {
            let found = find(world.node(1), ROOT, name).map(|found| found.1);
            assert_eq!(found, Ok(Kind::Folder), "shared: {is_shared}, {name}");
        }
    }
}

/// The node that renames the folder owns some of the files, and has published them.
#[test]
fn file_whose_folder_is_renamed_while_it_is_open_has_no_old_name_when_it_is_closed() {
    let world = World::with(1000, LONG, true);
    let [here, owner, third] = [0, 1, 2].map(|node| world.node(node));
    let parent = make_folder(here, ROOT, "d");
    let names: Vec<String> = (0..12).map(|number| format!("f{number}")).collect();
    let create = |name: &String| {
        let new = Name { parent, name };
        let created = here.shared.create(new, WRITE, &Making::FILE);
        let handle = here.runtime.block_on(created).unwrap().1.opened.handle;
        here.write(handle, 0, b"text").unwrap();
        handle
    };
    let handles: Vec<u64> = names.iter().map(create).collect();
    find(owner, ROOT, "d").unwrap();
    let [old, new] = ["d", "e"].map(|name| Name { parent: ROOT, name });
    let renamed = shared_names::rename(owner.shared, old, new, true);
    owner.runtime.block_on(renamed).unwrap();
    // The others are new files in the old folder, as if they were written after the rename.
    let keys = world.store.keys();
    let is_moved = |name: &&String| keys.contains(&format!("p/e/{name}"));
    let moved: Vec<&String> = names.iter().filter(is_moved).collect();
    assert!(!moved.is_empty(), "the node that renames owns none");
    for handle in handles {
        let _ = here.close(handle);
    }
    make_folder(owner, ROOT, "d");
    let (parent, ..) = find(third, ROOT, "d").unwrap();
    for name in moved {
        assert_eq!(find(third, parent, name), Err(Reason::NotFound), "{name}");
    }
}
