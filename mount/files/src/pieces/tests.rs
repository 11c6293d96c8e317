// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What is fetched once, what stays and what leaves.

use weft_store::memory::{MemoryStore, Operation};
use weft_store::{ETag, Failure, Objects};

use super::*;

/// A cache over a store with one object.
struct Cache {
    runtime: tokio::runtime::Runtime,
    store: Arc<MemoryStore>,
    version: Arc<Version>,
    pieces: Pieces,
}

impl Cache {
    fn new(body: Vec<u8>, limit_bytes: u64) -> Self {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .build()
            .unwrap();
        let store = Arc::new(MemoryStore::new());
        store.plant("k", body);
        let info = runtime.block_on(store.head("k")).unwrap();
        let pieces = Pieces::new(
            Arc::clone(&store) as _,
            runtime.handle().clone(),
            limit_bytes,
        );
        Self {
            runtime,
            store,
            version: Arc::new(Version::new("k".to_owned(), &info)),
            pieces,
        }
    }

    fn read(&self, range: Range) -> Result<(Bytes, bool), StoreError> {
        self.runtime
            .block_on(self.pieces.read(&self.version, range))
    }

    fn fetch_ahead(&self, at: u64) -> bool {
        self.pieces.fetch_ahead(&self.version, block(at))
    }

    fn wait_until_coming(&self, blocks: u64) {
        while self.pieces.inner().coming_bytes != blocks * BLOCK_BYTES {
            std::thread::yield_now();
        }
    }
}

fn block(at: u64) -> Range {
    Range::new(at * BLOCK_BYTES, (at + 1) * BLOCK_BYTES)
}

#[test]
fn cache_stays_within_its_limit_and_what_left_it_is_fetched_again() {
    let body: Vec<u8> = (0..BLOCK_BYTES * 16).map(|at| (at / 1000) as u8).collect();
    let limit = BLOCK_BYTES * 4;
    let cache = Cache::new(body.clone(), limit);
    for round in 0..2 {
        for at in 0..16 {
            let range = block(at);
            let (bytes, had_to_wait) = cache.read(range).unwrap();
            assert_eq!(bytes, body[range.start as usize..range.end as usize]);
            assert!(had_to_wait, "round {round}: block {at} was long gone");
            assert!(cache.pieces.inner().ready_bytes <= limit);
        }
    }
}

#[test]
fn what_was_fetched_ahead_stays_until_it_was_read() {
    let cache = Cache::new(vec![7; BLOCK_BYTES as usize * 64], BLOCK_BYTES * 8);
    for at in 0..64 {
        // Six blocks ahead, as far as an object and the bound go.
        for ahead in at..64.min(at + 6) {
            cache.fetch_ahead(ahead);
        }
        cache.read(block(at)).unwrap();
    }
    let got = cache.store.faults().got_bytes();
    assert_eq!(got, BLOCK_BYTES * 64, "each byte once");
    // Nobody reads these; they do not stay in the way of others for ever.
    for at in 0..6 {
        cache.fetch_ahead(at);
    }
    for at in 20..60 {
        cache.read(block(at)).unwrap();
    }
    assert!(cache.pieces.inner().unread_bytes == 0, "they have left");
}

#[test]
fn what_comes_before_what_was_asked_for_earlier_stays_until_it_was_read() {
    let cache = Cache::new(vec![7; BLOCK_BYTES as usize * 64], BLOCK_BYTES * 32);
    // As far ahead as the bound goes. The first 15 come last: they have all the room but one.
    let (ahead, late) = (24, 15);
    let (open, opened) = watch::channel(false);
    for number in 0..late {
        let mut opened = opened.clone();
        let opens = async move { drop(opened.wait_for(|is_open| *is_open).await) };
        cache.store.faults().before(Operation::Get, number, opens);
    }
    for at in 0..ahead {
        assert!(cache.fetch_ahead(at));
    }
    cache.wait_until_coming(late);
    open.send(true).unwrap();
    for at in 0..64 {
        cache.wait_until_coming(0);
        cache.read(block(at)).unwrap();
        if at + ahead < 64 {
            assert!(cache.fetch_ahead(at + ahead));
        }
    }
    let got = cache.store.faults().got_bytes();
    assert_eq!(got, BLOCK_BYTES * 64, "each byte once");
}

#[test]
fn failed_fetch_is_told_to_who_waits_and_not_kept() {
    let cache = Cache::new(vec![7; 1000], 1 << 20);
    let unreachable = Failure::Unreachable;
    cache.store.faults().fail(Operation::Get, 0, unreachable);
    let whole = Range::new(0, 1000);
    let failed = cache.read(whole).unwrap_err();
    assert_eq!(failed.failure, Failure::Unreachable);
    let (bytes, _) = cache.read(whole).unwrap();
    assert_eq!(bytes, vec![7; 1000]);
    assert_eq!(cache.pieces.inner().coming_bytes, 0);
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
