// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Nodes that die or ask for what is not theirs, stores that refuse, and limits.

use std::time::Instant;

use weft_store::Failure;
use weft_store::memory::Operation;

use super::*;

#[test]
fn file_whose_removal_is_refused_is_read_and_written_as_before() {
    let world = World::new();
    let name = world.name_of(1);
    let (one, owner) = (world.node(0), world.node(1));
    let handle = owner.create(&name).unwrap();
    owner.write(handle, 0, b"old").unwrap();
    owner.close(handle).unwrap();
    // Who reads it here would read on after the removal.
    let reader = one.open(&name, Mode::default()).unwrap();
    let (ino, writer) = (one.ino(&name).unwrap(), one.open(&name, WRITE).unwrap());
    let key = format!("p/{name}");
    let mut faults = world.store.faults();
    faults.fail_key(Operation::Delete, &key, Failure::Denied);
    drop(faults);
    assert_eq!(one.unlink(&name).unwrap_err().reason, Reason::Denied);
    assert_eq!(one.read(reader, 0, 9).unwrap(), "old");
    one.write(writer, 0, b"newest").unwrap();
    let seen = shared_names::attributes(one.shared, ino);
    let size_bytes = one.runtime.block_on(seen).unwrap().attributes.size_bytes;
    assert_eq!((size_bytes, one.ino(&name).unwrap()), (6, ino));
    one.close(writer).unwrap();
    one.close(reader).unwrap();
    for node in 0..NODES {
        assert_eq!(world.node(node).size(&name).unwrap(), 6);
        assert_eq!(world.node(node).whole(&name), b"newest");
    }
}

#[test]
fn owner_that_dies_makes_calls_of_writers_fail_and_never_succeed_in_vain() {
    let world = World::new();
    let name = world.name_of(1);
    let handle = world.node(0).create(&name).unwrap();
    world.node(0).write(handle, 0, &piece(1)).unwrap();
    world.hosts.is_dead[1].store(true, Ordering::Relaxed);
    let reason = |ended: Result<(), Fault>| ended.unwrap_err().reason;
    assert_eq!(reason(world.node(0).write(handle, 0, b"x")), Reason::Broken);
    // Also once it seems to be back.
    world.hosts.is_dead[1].store(false, Ordering::Relaxed);
    assert_eq!(reason(world.node(0).flush(handle)), Reason::Broken);
    assert_eq!(reason(world.node(0).sync(handle)), Reason::Broken);
    assert_eq!(reason(world.node(0).close(handle)), Reason::Broken);
}

#[test]
fn node_that_dies_leaves_what_it_wrote_to_the_others_and_they_publish_it() {
    let world = World::new();
    let name = world.name_of(1);
    let handles = [0, 2].map(|node| world.node(node).create(&name).unwrap());
    world.node(0).write(handles[0], 0, &piece(0)).unwrap();
    world.node(2).write(handles[1], PIECE, &piece(1)).unwrap();
    world.hosts.is_dead[2].store(true, Ordering::Relaxed);
    // The owner finds that out by itself.
    let key = format!("p/{name}");
    world.node(0).flush(handles[0]).unwrap();
    while !world.store.keys().contains(&key) {
        std::thread::sleep(Duration::from_millis(50));
        world.node(0).flush(handles[0]).unwrap();
    }
    world.node(0).close(handles[0]).unwrap();
    assert!(world.node(0).whole(&name) == [piece(0), piece(1)].concat());
    // What it says when it is back is refused.
    world.hosts.is_dead[2].store(false, Ordering::Relaxed);
    let late = world.node(2).write(handles[1], 0, b"late");
    assert_eq!(late.unwrap_err().reason, Reason::Stale);
}

#[test]
fn who_closes_last_hears_that_the_store_refused() {
    let world = World::new();
    let name = world.name_of(1);
    let handles = [0, 2].map(|node| world.node(node).create(&name).unwrap());
    world.node(0).write(handles[0], 0, b"one").unwrap();
    world.store.plant(&format!("p/{name}"), "somebody else's");
    world.node(0).close(handles[0]).unwrap();
    let last = world.node(2).flush(handles[1]).unwrap_err();
    assert_eq!(last.reason, Reason::Stale);
    assert!(world.store.faults().count(Operation::Put) > 0);
}

#[test]
fn owner_that_ends_closes_what_others_have_open_after_its_limit_and_publishes_it() {
    let world = World::new();
    let name = world.name_of(1);
    let handle = world.node(0).create(&name).unwrap();
    world.node(0).write(handle, 0, &piece(1)).unwrap();
    let owner = world.node(1);
    let began = Instant::now();
    let limit = Duration::from_millis(200);
    owner.runtime.block_on(answers::settle(owner.shared, limit));
    assert!(began.elapsed() >= limit, "it gives the others their time");
    assert!(world.store.keys().contains(&format!("p/{name}")));
    assert!(world.node(2).whole(&name) == piece(1));
    let late = world.node(0).write(handle, 0, b"late");
    assert_eq!(late.unwrap_err().reason, Reason::Stale);
}

#[test]
fn node_that_asks_in_the_name_of_another_is_refused() {
    let world = World::new();
    let name = world.name_of(1);
    // docs/job-cache.md, 5.1 and 5.4: opens for writing, and makes the file.
    let ask = |node: u64| {
        let key = format!("p/{name}");
        let mut question = vec![7, 6, 0, 1 | 8];
        question.extend(node.to_le_bytes());
        question.extend((key.len() as u32).to_le_bytes());
        question.extend(key.as_bytes());
        let answer = answers::answer(world.node(1).shared, 0, question.into());
        world.runtime.block_on(answer).concat()
    };
    for node in [2, NODES as u64, u64::MAX] {
        assert_eq!(ask(node)[..2], [4, 8], "refused: invalid");
    }
    let opened = ask(0);
    assert_eq!(opened[0], 0, "the result follows");
    // What node 0 opened, node 2 cannot write, even if it knows its numbers.
    let write = |node: usize| {
        let question = [&[7, 7], &opened[1..17], &[0; 16], b"data"].concat();
        let answer = answers::answer(world.node(1).shared, node, question.into());
        world.runtime.block_on(answer).concat()
    };
    assert_eq!(write(2)[..2], [4, 11], "refused: stale");
    assert_eq!(write(0), [0]);
}

#[test]
fn node_has_no_more_files_open_at_an_owner_than_the_limit_and_others_have_as_many() {
    let world = World::with_limit(3);
    let names: Vec<String> = (0..)
        .map(|number| format!("many{number}"))
        .filter(|name| world.owner_of(name) == 1)
        .take(4)
        .collect();
    let (one, other) = (world.node(0), world.node(2));
    let open = |node: Node<'_>| {
        let opened = names.iter().map(|name| node.create(name));
        opened.collect::<Vec<_>>()
    };
    let mut first = open(one);
    let refused = first.pop().unwrap().unwrap_err();
    assert_eq!(refused.reason, Reason::TooManyOpen);
    let said = refused.to_string();
    assert!(
        said.contains("node 0 has 3 files") && said.contains("close some"),
        "{said}"
    );
    let second = open(other);
    assert_eq!(second.iter().filter(|opened| opened.is_ok()).count(), 3);
    one.close(first[0].clone().unwrap()).unwrap();
    let again = one.create(&names[3]).unwrap();
    one.write(again, 0, b"x").unwrap();
    // The node that has the files may open as many as it likes.
    assert!(open(world.node(1)).iter().all(Result::is_ok));
}

/// A name of another node that no store would take is not kept.
#[test]
fn key_that_is_longer_than_a_store_takes_is_refused() {
    let world = World::new();
    let ask = |what: u8, length: usize| {
        let part = "x".repeat(200);
        let path = vec![&*part; length.div_ceil(201)].join("/");
        let key = format!("p/{path}")[..length].to_owned();
        let mut question = vec![7, 6, what, 0];
        question.extend(0_u64.to_le_bytes());
        question.extend((key.len() as u32).to_le_bytes());
        question.extend(key.as_bytes());
        let answered = answers::answer(world.node(1).shared, 0, question.into());
        world.runtime.block_on(answered).concat()
    };
    for what in [0, 1, 2, 3, 4, 6] {
        let answer = ask(what, 1025);
        let text = String::from_utf8_lossy(&answer);
        assert_eq!(answer[..2], [4, 9], "{what}: {text}");
        assert!(text.contains("1025") && text.contains("1024"), "{text}");
    }
    assert_eq!(ask(4, 1024), [0]);
}
