// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Attributes that one node of a job set a moment ago, in a folder that another node renames.

use std::sync::atomic::Ordering;
use std::time::Duration;

use weft_files::shared::{shared_names, shared_times};
use weft_files::{Change, Fault, Given, Making, Name, Reason};
use weft_store::Failure;
use weft_store::memory::Operation;

use crate::anew::{LATER, see_anew, time};
use crate::{Node, ROOT, WRITE, World};

/// Times that programs set are those of one entity tag: copies keep it here, as in S3.
fn world(is_shared: bool) -> World {
    let world = World::with(1000, Duration::from_secs(1), is_shared);
    world.store.faults().copies_keep_tags = true;
    world
}

fn find(node: Node<'_>, parent: u64, name: &str) -> u64 {
    let found = shared_names::lookup(node.shared, parent, name);
    node.runtime.block_on(found).unwrap().attributes.ino
}

fn make_folder(node: Node<'_>, parent: u64, name: &str) -> u64 {
    let new = Name { parent, name };
    let made = node.shared.files.make_folder(new, &Making::FOLDER);
    node.runtime.block_on(made).unwrap().attributes.ino
}

fn make_file(node: Node<'_>, parent: u64, name: &str) -> u64 {
    let new = Name { parent, name };
    let created = node.shared.create(new, WRITE, &Making::FILE);
    let (entry, opened) = node.runtime.block_on(created).unwrap();
    let handle = opened.opened.handle;
    node.write(handle, 0, b"text").unwrap();
    node.close(handle).unwrap();
    entry.attributes.ino
}

/// Sets the time of the content and the mode.
fn set(node: Node<'_>, ino: u64, seconds: u64, mode: u16) {
    let change = Change {
        modified: Some(time(seconds)),
        given: Given {
            mode: Some(mode),
            ..Given::default()
        },
        ..Change::default()
    };
    let changed = shared_times::change(node.shared, ino, &change);
    node.runtime.block_on(changed).unwrap();
}

fn rename(node: Node<'_>, old: &str, new: &str) -> Result<(), Fault> {
    let [old, new] = [old, new].map(|name| Name { parent: ROOT, name });
    let renamed = shared_names::rename(node.shared, old, new, true);
    node.runtime.block_on(renamed)
}

#[test]
fn times_and_modes_go_with_a_folder_that_another_node_renames_at_once() {
    for is_shared in [true, false] {
        let world = world(is_shared);
        for (setter, renamer) in [(0, 1), (1, 2), (2, 0)] {
            let names = [format!("old{setter}"), format!("new{setter}")];
            let [old, new] = [&*names[0], &*names[1]];
            let (here, there) = (world.node(setter), world.node(renamer));
            let folder = make_folder(here, ROOT, old);
            let below = make_folder(here, folder, "sub");
            let files = [make_file(here, folder, "f"), make_file(here, below, "g")];
            // The node that renames has seen all of it, as it was before.
            let seen = find(there, ROOT, old);
            find(there, seen, "f");
            let seen = find(there, seen, "sub");
            find(there, seen, "g");
            for (number, ino) in [folder, below, files[0], files[1]].into_iter().enumerate() {
                set(
                    here,
                    ino,
                    1_000_000_000 + number as u64,
                    0o701 + number as u16,
                );
            }
            rename(there, old, new).unwrap();
            std::thread::sleep(LATER);
            let paths: [&[&str]; 4] = [&[new], &[new, "sub"], &[new, "f"], &[new, "sub", "g"]];
            for (number, path) in paths.into_iter().enumerate() {
                let seen = see_anew(&world, path);
                let set = (
                    time(1_000_000_000 + number as u64),
                    Some(0o701 + number as u16),
                );
                let what = format!("{path:?}, {setter} for {renamer}, shared: {is_shared}");
                assert_eq!((seen.modified, seen.mode), set, "{what}");
            }
        }
    }
}

#[test]
fn folder_is_not_renamed_if_another_node_cannot_write_what_was_set_in_it() {
    let world = world(false);
    let (here, there) = (world.node(0), world.node(1));
    let folder = make_folder(here, ROOT, "d");
    let file = make_file(here, folder, "f");
    find(there, ROOT, "d");
    set(here, file, 1_100_000_000, 0o640);
    let key = "p/d/.weft-attributes";
    world
        .store
        .faults()
        .fail_key(Operation::Put, key, Failure::Denied);
    let refused = rename(there, "d", "e").map_err(|fault| fault.reason);
    assert_eq!(refused, Err(Reason::Denied));
    assert!(world.store.keys().contains(&"p/d/f".to_owned()));
    rename(there, "d", "e").unwrap();
    assert_eq!(see_anew(&world, &["e", "f"]).modified, time(1_100_000_000));
}

#[test]
fn folder_is_renamed_though_another_node_is_dead() {
    let world = world(false);
    let folder = make_folder(world.node(0), ROOT, "d");
    make_file(world.node(0), folder, "f");
    find(world.node(1), ROOT, "d");
    for node in [0, 2] {
        world.hosts.is_dead[node].store(true, Ordering::Relaxed);
    }
    rename(world.node(1), "d", "e").unwrap();
    assert_eq!(see_anew(&world, &["e", "f"]).size_bytes, 4);
}
