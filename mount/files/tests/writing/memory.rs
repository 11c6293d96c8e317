// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Laws of the memory that writers take, by what was given and not by time.

use std::future::poll_fn;
use std::task::Poll;

use tokio::runtime::Runtime;
use tokio::sync::oneshot;
use tokio::task::unconstrained;
use weft_files::{Publish, Writes};
use weft_store::memory::Operation;

use crate::order::pause;
use crate::{MIB, Mount};

const WRITERS: usize = 200;

/// All writers publish at once, and the store answers none of them before all have begun: how many
/// requests came then.
fn puts_at_once(sending_bytes: u64, file_bytes: usize) -> u64 {
    let writes = Writes {
        sending_bytes,
        ..Writes::temporary(Publish::Close).unwrap()
    };
    let mount = Mount::with(Runtime::new().unwrap(), writes);
    let mut ends = Vec::new();
    let mut handles = Vec::new();
    for index in 0..WRITERS {
        let handle = mount.create(&index.to_string());
        mount.write(handle, 0, &vec![7; file_bytes]).unwrap();
        handles.push(handle);
        let (end, ended) = oneshot::channel();
        ends.push(end);
        let mut faults = mount.store.faults();
        faults.before(Operation::Put, index as u64, pause(ended));
    }
    let files = &mount.files.open_files;
    let publish = |handle: &u64| Box::pin(files.publish(*handle));
    let mut published: Vec<_> = handles.iter().map(publish).collect();
    // Each begins when it is asked to, however many there are.
    let at_once = mount.runtime.block_on(unconstrained(async {
        for one in &mut published {
            let begin = poll_fn(|context| Poll::Ready(one.as_mut().poll(context).is_pending()));
            assert!(begin.await);
        }
        let at_once = mount.store.faults().count(Operation::Put);
        drop(ends);
        for one in published {
            one.await.unwrap();
        }
        at_once
    }));
    assert_eq!(mount.store.keys().len(), WRITERS);
    at_once
}

#[test]
fn files_that_are_published_at_once_take_no_more_memory_than_there_is_for_parts() {
    // A quarter of what is given is for parts that are being filled.
    assert_eq!(puts_at_once(32 << 20, MIB), 24);
    assert_eq!(puts_at_once(128 << 20, MIB), 96);
    assert_eq!(
        puts_at_once(128 << 20, 4096),
        200,
        "small ones wait for nothing"
    );
}

#[test]
fn files_whose_answers_were_lost_keep_no_memory_while_the_store_is_asked_about_them() {
    let writes = Writes {
        // Room for two of the files.
        sending_bytes: 16 << 20,
        ..Writes::temporary(Publish::Close).unwrap()
    };
    let mount = Mount::with(Runtime::new().unwrap(), writes);
    let mut ends = Vec::new();
    let handles = ["0", "1", "2"].map(|name| {
        let handle = mount.create(name);
        mount.write(handle, 0, &vec![7; 8 * MIB]).unwrap();
        handle
    });
    for name in ["0", "1"] {
        let (end, ended) = oneshot::channel();
        ends.push(end);
        let mut faults = mount.store.faults();
        faults.lose_answer_key(Operation::Put, name);
        faults.before_key(Operation::Head, name, pause(ended));
    }
    let files = &mount.files.open_files;
    let mut published = handles.map(|handle| Box::pin(files.publish(handle)));
    mount.runtime.block_on(unconstrained(async {
        let mut first = Vec::new();
        for one in &mut published {
            let begin = poll_fn(|context| Poll::Ready(one.as_mut().poll(context)));
            first.push(begin.await);
        }
        assert!(first[0].is_pending() && first[1].is_pending());
        assert_eq!(mount.store.faults().count(Operation::Put), 3);
        drop(ends);
        for (one, first) in published.into_iter().zip(first) {
            match first {
                Poll::Ready(done) => done.unwrap(),
                Poll::Pending => one.await.unwrap(),
            }
        }
    }));
    assert_eq!(mount.store.keys(), ["0", "1", "2"]);
}
