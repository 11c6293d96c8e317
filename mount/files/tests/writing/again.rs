// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Laws of files that were not published at the first attempt, and are written on before the next
//! one. The store may have done what it did not answer.

use std::sync::Arc;

use weft_files::staging::stage::Stage;
use weft_files::{Mode, Publish, Reason, Writes};
use weft_store::Failure;
use weft_store::memory::Operation;

use crate::order::{await_that, body, write_all};
use crate::{MIB, Mount, READ, ROOT, WRITE, at, reason};

fn sync(mount: &Mount, handle: u64) -> Result<(), Reason> {
    let published = mount.files.open_files.publish(handle);
    mount.runtime.block_on(published).map_err(reason)
}

/// A mount on whose disk little has room.
fn narrow() -> Mount {
    let writes = Writes {
        stage: Arc::new(Stage::temporary(32 << 20).unwrap()),
        ..Writes::temporary(Publish::Close).unwrap()
    };
    Mount::with(tokio::runtime::Runtime::new().unwrap(), writes)
}

/// Writes `body` in order, and has all whole parts sent before the end is.
fn write_in_parts(mount: &Mount, handle: u64, body: &[u8]) {
    write_all(mount, handle, body);
    let parts = body.len() as u64 / (8 << 20);
    await_that("whole parts are sent", || {
        mount.store.faults().count(Operation::Send) >= parts
    });
}

/// How an attempt to publish fails.
#[derive(Debug, Clone, Copy)]
enum Fails {
    /// Nothing is done.
    Refused(Failure),
    /// It is done, and neither the answer nor what the object says of itself comes.
    Unheard,
}

fn plan(mount: &Mount, operation: Operation, fails: Fails) {
    let mut faults = mount.store.faults();
    match fails {
        Fails::Refused(failure) => faults.fail(operation, 0, failure),
        Fails::Unheard => {
            faults.lose_answer(operation, 0);
            faults.fail(Operation::Head, 0, Failure::Unreachable);
        }
    }
}

const ALL: [Fails; 4] = [
    Fails::Refused(Failure::Busy),
    Fails::Refused(Failure::Denied),
    Fails::Refused(Failure::Refused),
    Fails::Unheard,
];

#[test]
fn file_in_order_that_was_not_published_is_written_on_and_published() {
    let makes: [fn() -> Mount; 2] = [Mount::new, narrow];
    for make in makes {
        for fails in ALL {
            let mount = make();
            // The last part is too short to stand before others.
            let all = body(53);
            let handle = mount.create("f");
            write_in_parts(&mount, handle, &all[..41 * MIB]);
            plan(&mount, Operation::Complete, fails);
            assert!(sync(&mount, handle).is_err(), "{fails:?}");
            for index in 41..53 {
                let piece = &all[index * MIB..][..MIB];
                mount.write(handle, (index * MIB) as u64, piece).unwrap();
            }
            assert_eq!(sync(&mount, handle), Ok(()), "{fails:?}");
            assert!(mount.content("f").unwrap() == all, "{fails:?}");
            mount.write(handle, 53 << 20, b"end").unwrap();
            assert_eq!(mount.close(handle), Ok(()), "{fails:?}");
            let whole = mount.content("f").unwrap();
            assert!(
                whole.starts_with(&all) && whole.ends_with(b"end"),
                "{fails:?}"
            );
            mount.await_no_upload();
        }
    }
}

#[test]
fn what_is_written_after_an_attempt_that_nobody_heard_of_is_not_lost() {
    for old in [None, Some("old"), Some("a longer old one")] {
        for fails in ALL {
            for change in ["append", "again", "cut"] {
                let mount = Mount::new();
                let handle = match old {
                    None => mount.create("f"),
                    Some(old) => {
                        mount.store.plant("f", old);
                        mount.open("f", WRITE)
                    }
                };
                mount.write(handle, 0, b"content").unwrap();
                plan(&mount, Operation::Put, fails);
                assert!(sync(&mount, handle).is_err());
                let mut wanted = b"content".to_vec();
                wanted.extend(old.unwrap_or_default().bytes().skip(7));
                match change {
                    "append" => {
                        let end = wanted.len() as u64;
                        mount.write(handle, end, b" and more").unwrap();
                        wanted.extend(b" and more");
                    }
                    "again" => {
                        mount.write(handle, 0, b"CONTENT").unwrap();
                        wanted[..7].copy_from_slice(b"CONTENT");
                    }
                    _ => {
                        mount.cut(handle);
                        wanted.clear();
                    }
                }
                assert_eq!(mount.close(handle), Ok(()), "{old:?}, {fails:?}, {change}");
                let found = mount.content("f").unwrap();
                assert_eq!(found, wanted, "{old:?}, {fails:?}, {change}");
            }
        }
    }
}

#[test]
fn object_of_somebody_else_is_not_taken_for_an_attempt_that_nobody_heard_of() {
    let mount = Mount::new();
    let handle = mount.create("f");
    mount.write(handle, 0, b"mine").unwrap();
    plan(&mount, Operation::Put, Fails::Unheard);
    assert!(sync(&mount, handle).is_err());
    mount.store.plant("f", "theirs");
    mount.write(handle, 0, b"MINE").unwrap();
    assert_eq!(mount.close(handle), Err(Reason::Stale));
    assert_eq!(mount.content("f").unwrap(), b"theirs");
}

#[test]
fn file_that_may_be_in_the_store_has_one_name_after_it_is_renamed_or_none_when_unlinked() {
    for is_renamed in [true, false] {
        let mount = Mount::new();
        let handle = mount.create("f");
        mount.write(handle, 0, b"content").unwrap();
        plan(&mount, Operation::Put, Fails::Unheard);
        assert!(sync(&mount, handle).is_err());
        if is_renamed {
            let renamed = mount.files.rename(at("f"), at("g"), true);
            mount.runtime.block_on(renamed).unwrap();
        } else {
            mount.runtime.block_on(mount.files.unlink(at("f"))).unwrap();
        }
        mount.write(handle, 7, b" and more").unwrap();
        assert_eq!(mount.close(handle), Ok(()));
        let wanted: &[&str] = if is_renamed { &["g"] } else { &[] };
        assert_eq!(mount.store.keys(), wanted);
        if is_renamed {
            let reader = mount.open("g", READ);
            assert_eq!(mount.read(reader, 0, 100), b"content and more");
        }
    }
}

#[test]
fn write_that_the_stage_has_no_room_for_leaves_the_rest_to_be_published() {
    let mount = narrow();
    let all = body(60);
    let handle = mount.create("f");
    write_all(&mount, handle, &all);
    // It begins in a part that is still here.
    let (at, data) = (15 << 20, vec![1; 10 * MIB]);
    assert_eq!(mount.write(handle, at, &data), Err(Reason::NoSpace));
    assert_eq!(mount.close(handle), Ok(()));
    assert!(mount.content("f").unwrap() == all);
}

#[test]
fn attempt_that_the_store_ends_after_it_was_asked_is_replaced() {
    let mount = Mount::new();
    let handle = mount.create("f");
    mount.write(handle, 0, b"content").unwrap();
    // The answer is lost, and the object shows only after the next question.
    plan(&mount, Operation::Put, Fails::Unheard);
    assert!(sync(&mount, handle).is_err());
    mount.write(handle, 7, b" and more").unwrap();
    mount
        .store
        .faults()
        .fail(Operation::Head, 0, Failure::Missing);
    assert_eq!(mount.close(handle), Ok(()));
    assert_eq!(mount.content("f").unwrap(), b"content and more");
}

/// Opens a file and writes it, while somebody else replaces it: what was written is lost.
fn lose(mount: &Mount) -> u64 {
    mount.store.plant("f", "old");
    let handle = mount.open("f", WRITE);
    mount.write(handle, 0, b"mine").unwrap();
    mount.store.plant("f", "theirs");
    assert_eq!(sync(mount, handle), Err(Reason::Stale));
    handle
}

#[test]
fn file_that_cannot_be_cut_when_it_is_opened_is_as_if_it_was_not_opened() {
    let mount = Mount::new();
    let handle = lose(&mount);
    let found = mount.runtime.block_on(mount.files.lookup(ROOT, "f"));
    let mode = Mode {
        truncates: true,
        ..WRITE
    };
    let opened = mount
        .files
        .open_files
        .open(found.unwrap().attributes.ino, mode);
    let refused = mount.runtime.block_on(opened).map_err(reason);
    assert_eq!(refused, Err(Reason::Stale));
    assert_eq!(mount.close(handle), Err(Reason::Stale));
    // Nobody has it open any more, so what is there now is written.
    let handle = mount.open("f", WRITE);
    mount.write(handle, 0, b"newer").unwrap();
    mount.close(handle).unwrap();
    assert_eq!(mount.content("f").unwrap(), b"newers");
}

#[test]
fn file_that_was_lost_takes_nothing_from_a_new_file_of_its_name() {
    let mount = Mount::new();
    let lost = lose(&mount);
    mount.runtime.block_on(mount.files.unlink(at("f"))).unwrap();
    let handle = mount.create("f");
    mount.write(handle, 0, b"new").unwrap();
    assert_eq!(mount.close(lost), Err(Reason::Stale));
    let found = mount.runtime.block_on(mount.files.lookup(ROOT, "f"));
    assert_eq!(found.map(|found| found.attributes.size_bytes), Ok(3));
    mount.close(handle).unwrap();
    assert_eq!(mount.content("f").unwrap(), b"new");
}
