// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What is fetched once, what stays and what leaves.

use weft_store::memory::{MemoryStore, Operation};
use weft_store::{ETag, Failure, Objects};

use super::*;

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .build()
        .unwrap()
}

fn version(store: &MemoryStore, runtime: &tokio::runtime::Runtime) -> Arc<Version> {
    let info = runtime.block_on(store.head("k")).unwrap();
    Arc::new(Version::new("k".to_owned(), &info))
}

#[test]
fn cache_stays_within_its_limit_and_what_left_it_is_fetched_again() {
    let (runtime, store) = (runtime(), Arc::new(MemoryStore::new()));
    let body: Vec<u8> = (0..BLOCK_BYTES * 16).map(|at| (at / 1000) as u8).collect();
    store.plant("k", body.clone());
    let version = version(&store, &runtime);
    let limit = BLOCK_BYTES * 4;
    let pieces = Pieces::new(Arc::clone(&store) as _, runtime.handle().clone(), limit);
    for round in 0..2 {
        for block in 0..16 {
            let range = Range::new(block * BLOCK_BYTES, (block + 1) * BLOCK_BYTES);
            let (bytes, had_to_wait) = runtime.block_on(pieces.read(&version, range)).unwrap();
            assert_eq!(bytes, body[range.start as usize..range.end as usize]);
            assert!(had_to_wait, "round {round}: block {block} was long gone");
            assert!(pieces.inner().ready_bytes <= limit);
        }
    }
}

#[test]
fn what_was_fetched_ahead_stays_until_it_was_read() {
    let (runtime, store) = (runtime(), Arc::new(MemoryStore::new()));
    store.plant("k", vec![7; BLOCK_BYTES as usize * 64]);
    let version = version(&store, &runtime);
    let limit = BLOCK_BYTES * 8;
    let pieces = Pieces::new(Arc::clone(&store) as _, runtime.handle().clone(), limit);
    let block = |at: u64| Range::new(at * BLOCK_BYTES, (at + 1) * BLOCK_BYTES);
    for at in 0..64 {
        // Six blocks ahead, as far as an object and the bound go.
        for ahead in at..64.min(at + 6) {
            pieces.fetch_ahead(&version, block(ahead));
        }
        runtime.block_on(pieces.read(&version, block(at))).unwrap();
    }
    let got = store.faults().got_bytes();
    assert_eq!(got, BLOCK_BYTES * 64, "each byte once");
    // Nobody reads these; they do not stay in the way of others for ever.
    for at in 0..6 {
        pieces.fetch_ahead(&version, block(at));
    }
    for at in 20..60 {
        runtime.block_on(pieces.read(&version, block(at))).unwrap();
    }
    assert!(pieces.inner().unread_bytes == 0, "they have left");
}

#[test]
fn what_comes_before_what_was_asked_for_earlier_stays_until_it_was_read() {
    let (runtime, store) = (runtime(), Arc::new(MemoryStore::new()));
    store.plant("k", vec![7; BLOCK_BYTES as usize * 64]);
    let version = version(&store, &runtime);
    let limit = BLOCK_BYTES * 32;
    let pieces = Pieces::new(Arc::clone(&store) as _, runtime.handle().clone(), limit);
    let block = |at: u64| Range::new(at * BLOCK_BYTES, (at + 1) * BLOCK_BYTES);
    let wait_until_coming = |blocks: u64| {
        while pieces.inner().coming_bytes != blocks * BLOCK_BYTES {
            std::thread::yield_now();
        }
    };
    // As far ahead as the bound goes. The first 15 come last: they have all the room but one.
    let (ahead, late) = (24, 15);
    let (open, opened) = watch::channel(false);
    for number in 0..late {
        let mut opened = opened.clone();
        let opens = async move { drop(opened.wait_for(|is_open| *is_open).await) };
        store.faults().before(Operation::Get, number, opens);
    }
    for at in 0..ahead {
        assert!(pieces.fetch_ahead(&version, block(at)));
    }
    wait_until_coming(late);
    open.send(true).unwrap();
    for at in 0..64 {
        wait_until_coming(0);
        runtime.block_on(pieces.read(&version, block(at))).unwrap();
        if at + ahead < 64 {
            assert!(pieces.fetch_ahead(&version, block(at + ahead)));
        }
    }
    let got = store.faults().got_bytes();
    assert_eq!(got, BLOCK_BYTES * 64, "each byte once");
}

#[test]
fn failed_fetch_is_told_to_who_waits_and_not_kept() {
    let (runtime, store) = (runtime(), Arc::new(MemoryStore::new()));
    store.plant("k", vec![7; 1000]);
    let version = version(&store, &runtime);
    let pieces = Pieces::new(Arc::clone(&store) as _, runtime.handle().clone(), 1 << 20);
    let fault = Operation::Get;
    store.faults().fail(fault, 0, Failure::Unreachable);
    let whole = Range::new(0, 1000);
    let failed = runtime.block_on(pieces.read(&version, whole)).unwrap_err();
    assert_eq!(failed.failure, Failure::Unreachable);
    let (bytes, _) = runtime.block_on(pieces.read(&version, whole)).unwrap();
    assert_eq!(bytes, vec![7; 1000]);
    assert_eq!(pieces.inner().coming_bytes, 0);
}

#[test]
fn two_contents_of_one_key_are_never_mixed() {
    let info = |etag: &str| weft_store::ObjectInfo {
        size_bytes: 10,
        etag: ETag::new(etag),
        modified: std::time::UNIX_EPOCH,
        is_archived: false,
    };
    let of = |key: &str, etag| Version::new(key.to_owned(), &info(etag)).id;
    assert_eq!(of("k", "1"), of("k", "1"));
    assert_ne!(of("k", "1"), of("k", "2"));
    assert_ne!(of("ka", "1"), of("k", "a1"));
}
