// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Laws of files that are written in order: what waits for what, and where the bytes come from.

use std::future::poll_fn;
use std::pin::pin;
use std::sync::{Arc, mpsc};
use std::task::Poll;
use std::time::{Duration, Instant};

use tokio::runtime::Builder;
use tokio::sync::oneshot;
use weft_files::staging::stage::Stage;
use weft_files::{Publish, Writes, Written, write_now};
use weft_store::Failure;
use weft_store::memory::Operation;

use crate::{MIB, Mount};

/// Only a test that fails takes so long.
pub(crate) const LIMIT: Duration = Duration::from_secs(100);

pub(crate) fn body(mib: usize) -> Vec<u8> {
    (0..mib * MIB).map(|at| (at / 7) as u8).collect()
}

pub(crate) fn write_all(mount: &Mount, handle: u64, body: &[u8]) {
    for (index, piece) in body.chunks(MIB).enumerate() {
        mount.write(handle, (index * MIB) as u64, piece).unwrap();
    }
}

/// So that no part is sent before it is closed.
fn write_here_and_there(mount: &Mount, handle: u64, mib: u64) {
    for index in (0..mib).rev() {
        let data = vec![index as u8; MIB];
        mount.write(handle, index << 20, &data).unwrap();
    }
}

pub(crate) fn await_that(what: &str, is_so: impl Fn() -> bool) {
    let began = Instant::now();
    while !is_so() {
        assert!(began.elapsed() < LIMIT, "{what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// A pause until the test ends it, or until the test has failed.
pub(crate) async fn pause(end: oneshot::Receiver<()>) {
    let _ = tokio::time::timeout(LIMIT, end).await;
}

/// The store answers the first request that begins an upload when the test says so.
fn pause_begin(mount: &Mount) -> oneshot::Sender<()> {
    let (end, ended) = oneshot::channel();
    let mut faults = mount.store.faults();
    faults.before(Operation::Begin, 0, pause(ended));
    end
}

#[test]
fn program_writes_on_while_the_store_is_asked_to_begin_an_upload() {
    let mount = Mount::new();
    let end = pause_begin(&mount);
    let body = body(30);
    let handle = mount.create("f");
    write_all(&mount, handle, &body);
    assert!(end.send(()).is_ok(), "the program waited for the answer");
    mount.close(handle).unwrap();
    assert!(mount.content("f").unwrap() == body);
    assert_eq!(mount.store.faults().count(Operation::Begin), 1);
    assert_eq!(mount.store.open_upload_count(), 0);
}

#[test]
fn parts_leave_when_the_upload_has_begun_though_nothing_more_is_written() {
    let mount = Mount::new();
    let end = pause_begin(&mount);
    let (sent, is_sent) = oneshot::channel();
    mount.store.faults().before(Operation::Send, 1, async move {
        let _ = sent.send(());
    });
    let body = body(17);
    let handle = mount.create("f");
    write_all(&mount, handle, &body);
    end.send(()).unwrap();
    let second_part = async { tokio::time::timeout(LIMIT, is_sent).await };
    mount.runtime.block_on(second_part).unwrap().unwrap();
    mount.close(handle).unwrap();
    assert!(mount.content("f").unwrap() == body);
}

#[test]
fn upload_that_begins_too_late_is_given_up() {
    let mount = Mount::new();
    let end = pause_begin(&mount);
    let handle = mount.create("f");
    write_all(&mount, handle, &body(9));
    mount.resize("f", 5);
    assert_eq!(mount.content("f").unwrap(), [0; 5], "by one request");
    end.send(()).unwrap();
    mount.close(handle).unwrap();
    await_that("it is given up", || {
        mount.store.faults().count(Operation::Abort) == 1
    });
    mount.await_no_upload();
}

#[test]
fn file_that_is_cut_while_its_upload_begins_is_published() {
    let mount = Mount::new();
    let end = pause_begin(&mount);
    let handle = mount.create("f");
    write_all(&mount, handle, &body(9));
    mount.cut(handle);
    end.send(()).unwrap();
    // Only then the file has no part in an upload that has begun.
    await_that("the upload is given up or noted", || {
        mount.store.faults().count(Operation::Abort) == 1 || mount.has_noted_upload()
    });
    mount.close(handle).unwrap();
    assert_eq!(mount.content("f").unwrap(), [0; 0]);
    mount.await_no_upload();
}

#[test]
fn file_that_is_written_anew_and_stays_small_is_one_request() {
    let mount = Mount::new();
    let handle = mount.create("f");
    let body = body(1);
    for _ in 0..12 {
        mount.cut(handle);
        mount.write(handle, 0, &body).unwrap();
    }
    mount.close(handle).unwrap();
    assert!(mount.content("f").unwrap() == body);
    assert_eq!(mount.store.faults().count(Operation::Begin), 0);
    assert_eq!(mount.store.faults().count(Operation::Put), 1);
}

#[test]
fn close_asks_again_where_the_store_refused_while_the_program_wrote() {
    let mount = Mount::new();
    let end = pause_begin(&mount);
    mount
        .store
        .faults()
        .fail(Operation::Begin, 0, Failure::Busy);
    let body = body(9);
    let handle = mount.create("f");
    write_all(&mount, handle, &body);
    let published = mount.files.open_files.publish(handle);
    let mut published = pin!(published);
    let asked = poll_fn(|context| Poll::Ready(published.as_mut().poll(context).is_pending()));
    assert!(mount.runtime.block_on(asked), "it waits for the answer");
    end.send(()).unwrap();
    mount.runtime.block_on(published).unwrap();
    mount.close(handle).unwrap();
    assert!(mount.content("f").unwrap() == body);
}

#[test]
fn log_of_a_file_that_is_written_again_and_again_is_written_anew_by_who_may_wait() {
    let mount = Mount::new();
    let handle = mount.create("f");
    let open_files = &mount.files.open_files;
    let mut refusals = 0;
    for turn in 0..200_u8 {
        let data = vec![turn; MIB];
        match write_now(open_files, handle, 0, &data) {
            Some(written) => assert_eq!(written.unwrap(), Written::Done),
            None => {
                refusals += 1;
                assert!(mount.stage.used_bytes() > 64 << 20);
                mount.write(handle, 0, &data).unwrap();
                assert!(mount.stage.used_bytes() < 4 << 20);
            }
        }
    }
    assert!((2..4).contains(&refusals), "{refusals}");
    assert!(mount.read(handle, 0, MIB as u64) == [199; MIB]);
}

#[test]
fn end_of_a_file_leaves_beside_the_parts_before_it() {
    let mount = Mount::new();
    let (end, ended) = oneshot::channel();
    let (first_waits, is_beside) = mpsc::channel();
    let (sent, is_sent) = oneshot::channel();
    mount
        .store
        .faults()
        .before(Operation::Send, 0, pause(ended));
    mount.store.faults().before(Operation::Send, 1, async move {
        let _ = sent.send(());
    });
    // The third part is what close finds.
    mount.store.faults().before(Operation::Send, 2, async move {
        let _ = first_waits.send(end.send(()).is_ok());
    });
    let body = body(18);
    let handle = mount.create("f");
    write_all(&mount, handle, &body);
    let second_part = async { tokio::time::timeout(LIMIT, is_sent).await };
    mount.runtime.block_on(second_part).unwrap().unwrap();
    mount.close(handle).unwrap();
    assert!(mount.content("f").unwrap() == body);
    assert_eq!(mount.store.faults().count(Operation::Send), 3);
    assert_eq!(is_beside.try_recv(), Ok(true));
}

#[test]
fn published_file_takes_no_room_when_close_returns_and_its_data_go() {
    // One thread for what blocks, which has to do until the test says so.
    let runtime = Builder::new_multi_thread()
        .enable_all()
        .max_blocking_threads(1)
        .build();
    let writes = Writes {
        stage: Arc::new(Stage::temporary(140 << 20).unwrap()),
        ..Writes::temporary(Publish::Close).unwrap()
    };
    let mount = Mount::with(runtime.unwrap(), writes);
    let (end, ended) = mpsc::channel();
    let (begun, has_begun) = mpsc::channel();
    mount.runtime.spawn_blocking(move || {
        begun.send(()).unwrap();
        ended.recv_timeout(LIMIT)
    });
    has_begun.recv().unwrap();
    let handle = mount.create("f");
    write_here_and_there(&mount, handle, 66);
    assert!(mount.stage.used_bytes() > 66 << 20);
    mount.close(handle).unwrap();
    assert_eq!(mount.stage.used_bytes(), 0);
    assert_eq!((mount.staged("log"), mount.staged("data")), (0, 1));
    // They fill the disk till then.
    let handle = mount.create("g");
    write_here_and_there(&mount, handle, 73);
    let data = vec![1; MIB];
    assert!(write_now(&mount.files.open_files, handle, 80 << 20, &data).is_none());
    end.send(()).unwrap();
    mount.write(handle, 80 << 20, &data).unwrap();
    assert_eq!(mount.staged("data"), 1, "those of the second file");
    mount.close(handle).unwrap();
}

#[test]
fn file_in_order_is_not_read_of_the_disk_again() {
    for mib in [3, 8, 9, 16, 21] {
        let mount = Mount::new();
        let body = body(mib);
        let handle = mount.create("f");
        write_all(&mount, handle, &body);
        // What lies in the stage is of no use any more, but nobody needs it.
        for entry in std::fs::read_dir(mount.stage.folder()).unwrap() {
            let path = entry.unwrap().path();
            if path.extension().is_some_and(|ending| ending == "data") {
                let file = std::fs::OpenOptions::new().write(true).open(path);
                file.unwrap().set_len(0).unwrap();
            }
        }
        mount.close(handle).unwrap();
        assert!(mount.content("f").unwrap() == body, "{mib} MiB");
    }
}
