// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The laws of a store, tested with every store: the store in memory, our S3 server over the SDK,
//! and any server that `WEFT_STORE_URL` names, with the bucket `conform` (moto, in
//! tests/bucket-server). `WEFT_STORE_WITHOUT` lists laws that the named server is known not to
//! keep. `WEFT_STORE_LACKS` lists the abilities that the mount's probe must find missing.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use bytes::Bytes;
use weft_bucket_server::{Faults, Options as ServerOptions, Server, Support};
use weft_s3::{Clock, Options, connect};
use weft_store::memory::MemoryStore;
use weft_store::{
    Ability, Careful, Condition, ETag, Failure, ListRequest, Range, Store, StoreError,
};

/// The least part that is not the last.
const PART: usize = 5 << 20;

type Law = for<'a> fn(&'a dyn Store) -> Pin<Box<dyn Future<Output = ()> + 'a>>;

const LAWS: [(&str, Law); 10] = [
    ("objects", |store| Box::pin(objects(store))),
    ("ranges", |store| Box::pin(ranges(store))),
    ("listings", |store| Box::pin(listings(store))),
    ("middles", |store| Box::pin(middles(store))),
    ("puts", |store| Box::pin(puts(store))),
    ("deletes", |store| Box::pin(deletes(store))),
    ("copies", |store| Box::pin(copies(store))),
    ("copy-targets", |store| Box::pin(copy_targets(store))),
    ("uploads", |store| Box::pin(uploads(store))),
    ("completions", |store| Box::pin(completions(store))),
];

async fn keeps_the_laws(store: &dyn Store, without: &str) {
    for (name, law) in LAWS {
        if !without.split(',').any(|one| one == name) {
            println!("{name}");
            law(store).await;
        }
    }
}

fn failure<T: std::fmt::Debug>(answer: Result<T, StoreError>) -> Failure {
    answer.expect_err("it was to be refused").failure
}

async fn put(store: &dyn Store, key: &str, body: &str) -> ETag {
    let body = Bytes::from(body.to_owned());
    store.put(key, body, &Condition::Always).await.unwrap()
}

async fn content(store: &dyn Store, key: &str) -> Bytes {
    let info = store.head(key).await.unwrap();
    let range = Range::new(0, info.size_bytes);
    store.get(key, range, &info.etag).await.unwrap()
}

async fn objects(store: &dyn Store) {
    assert_eq!(failure(store.head("none").await), Failure::Missing);
    for key in [
        "objects/a b",
        "objects/ä+%25",
        "objects/x/",
        "objects/q?a=b#c&d",
    ] {
        let etag = put(store, key, "hello").await;
        let info = store.head(key).await.unwrap();
        assert_eq!((info.size_bytes, &info.etag), (5, &etag), "{key}");
        assert_eq!(content(store, key).await, "hello", "{key}");
    }
    let empty = put(store, "objects/empty", "").await;
    let info = store.head("objects/empty").await.unwrap();
    assert_eq!((info.size_bytes, info.etag), (0, empty));
}

async fn ranges(store: &dyn Store) {
    let old = put(store, "ranges", "0123456789").await;
    let get = |from, to, etag| async move {
        let range = Range::new(from, to);
        store.get("ranges", range, etag).await
    };
    assert_eq!(get(0, 1, &old).await.unwrap(), "0");
    assert_eq!(get(3, 7, &old).await.unwrap(), "3456");
    assert_eq!(get(9, 10, &old).await.unwrap(), "9");
    let new = put(store, "ranges", "abcdefghij").await;
    assert_eq!(failure(get(3, 7, &old).await), Failure::Changed);
    assert_eq!(get(3, 7, &new).await.unwrap(), "defg");
    store.delete("ranges", &Condition::Always).await.unwrap();
    assert_eq!(failure(get(3, 7, &new).await), Failure::Missing);
}

async fn listings(store: &dyn Store) {
    for name in ["a", "b/1", "b/2/x", "b!", "c d", "ü", "z/"] {
        put(store, &format!("listings/{name}"), name).await;
    }
    for limit in [1, 2, 3, 1000] {
        for by_folder in [false, true] {
            let (objects, folders) = whole_list(store, limit, by_folder).await;
            let expected: &[&str] = if by_folder {
                &["a", "b!", "c d", "ü"]
            } else {
                &["a", "b!", "b/1", "b/2/x", "c d", "z/", "ü"]
            };
            assert_eq!(objects, expected, "{limit} {by_folder}");
            let expected: &[&str] = if by_folder { &["b/", "z/"] } else { &[] };
            assert_eq!(folders, expected, "{limit} {by_folder}");
        }
    }
}

/// Pages of the mount begin in the middle of a folder.
async fn middles(store: &dyn Store) {
    for name in ["a", "b/1", "b/2", "c", "d/1", "e"] {
        put(store, &format!("middles/{name}"), name).await;
    }
    let cases: [(&str, &[&str], &[&str]); 5] = [
        ("", &["a", "c", "e"], &["b/", "d/"]),
        ("a", &["c", "e"], &["b/", "d/"]),
        ("a5", &["c", "e"], &["b/", "d/"]),
        ("b0", &["c", "e"], &["d/"]),
        ("e", &[], &[]),
    ];
    for (after, objects, folders) in cases {
        let request = ListRequest {
            prefix: "middles/".to_owned(),
            by_folder: true,
            start_after: Some(format!("middles/{after}")),
            limit: 1000,
            ..ListRequest::default()
        };
        let page = store.list(&request).await.unwrap();
        let short = |key: &String| key["middles/".len()..].to_owned();
        let keys: Vec<String> = page.objects.iter().map(|(key, _)| short(key)).collect();
        assert_eq!(keys, objects, "behind {after}");
        let groups: Vec<String> = page.folders.iter().map(short).collect();
        assert_eq!(groups, folders, "behind {after}");
        assert_eq!(page.next, None);
    }
}

async fn whole_list(store: &dyn Store, limit: u16, by_folder: bool) -> (Vec<String>, Vec<String>) {
    let mut request = ListRequest {
        prefix: "listings/".to_owned(),
        by_folder,
        limit,
        ..ListRequest::default()
    };
    let short = |key: String| key["listings/".len()..].to_owned();
    let (mut objects, mut folders) = (Vec::new(), Vec::new());
    loop {
        let page = store.list(&request).await.unwrap();
        assert!(page.objects.len() + page.folders.len() <= limit.into());
        for (key, info) in page.objects {
            let key = short(key);
            assert_eq!(info.size_bytes, key.len() as u64);
            objects.push(key);
        }
        folders.extend(page.folders.into_iter().map(short));
        request.token = page.next;
        if request.token.is_none() {
            return (objects, folders);
        }
    }
}

async fn puts(store: &dyn Store) {
    let write =
        |body: &'static str, when| async move { store.put("puts", Bytes::from(body), &when).await };
    let first = write("1", Condition::IfAbsent).await.unwrap();
    let again = write("2", Condition::IfAbsent).await;
    assert_eq!(failure(again), Failure::Changed);
    let second = write("2", Condition::IfMatch(first.clone())).await.unwrap();
    assert_ne!(first, second);
    let late = write("3", Condition::IfMatch(first)).await;
    assert_eq!(failure(late), Failure::Changed);
    assert_eq!(content(store, "puts").await, "2");
}

async fn deletes(store: &dyn Store) {
    let never = store.delete("deletes", &Condition::Always).await;
    assert_eq!(never, Ok(()));
    let first = put(store, "deletes", "1").await;
    let second = put(store, "deletes", "2").await;
    let late = store.delete("deletes", &Condition::IfMatch(first)).await;
    assert_eq!(failure(late), Failure::Changed);
    let right = store.delete("deletes", &Condition::IfMatch(second)).await;
    assert_eq!(right, Ok(()));
    assert_eq!(failure(store.head("deletes").await), Failure::Missing);
}

async fn copies(store: &dyn Store) {
    let old = put(store, "copies/ä source", "1").await;
    let new = put(store, "copies/ä source", "22").await;
    let copy = |etag| async move {
        let to = "copies/to";
        store
            .copy("copies/ä source", etag, to, &Condition::Always)
            .await
    };
    assert_eq!(failure(copy(&old).await), Failure::Changed);
    let copied = copy(&new).await.unwrap();
    let info = store.head("copies/to").await.unwrap();
    assert_eq!((info.size_bytes, info.etag), (2, copied));
    assert_eq!(content(store, "copies/to").await, "22");
}

async fn copy_targets(store: &dyn Store) {
    let source = put(store, "targets/source", "1").await;
    let copy = |when| {
        let source = &source;
        async move {
            store
                .copy("targets/source", source, "targets/to", &when)
                .await
        }
    };
    copy(Condition::IfAbsent).await.unwrap();
    let again = copy(Condition::IfAbsent).await;
    assert_eq!(failure(again), Failure::Changed);
    let there = store.head("targets/to").await.unwrap().etag;
    copy(Condition::IfMatch(there)).await.unwrap();
    let new = put(store, "targets/to", "other").await;
    assert_ne!(new, source);
    let late = copy(Condition::IfMatch(source.clone())).await;
    assert_eq!(failure(late), Failure::Changed);
    assert_eq!(content(store, "targets/to").await, "other");
}

async fn uploads(store: &dyn Store) {
    let source = put(store, "uploads/source", "0123456789").await;
    let upload = store.begin("uploads/large").await.unwrap();
    let head = Bytes::from(vec![b'a'; PART]);
    let wrong = store.send(&upload, 1, Bytes::from("replaced")).await;
    wrong.unwrap();
    let first = store.send(&upload, 1, head.clone()).await.unwrap();
    let range = Range::new(2, 6);
    let copied = store
        .copy_part(&upload, 3, ("uploads/source", &source), range)
        .await
        .unwrap();
    assert_eq!(failure(store.head("uploads/large").await), Failure::Missing);
    let parts = [first, copied];
    let etag = store
        .complete(&upload, &parts, &Condition::Always)
        .await
        .unwrap();
    let info = store.head("uploads/large").await.unwrap();
    assert_eq!((info.size_bytes, info.etag), (PART as u64 + 4, etag));
    let whole = content(store, "uploads/large").await;
    assert!(whole[..PART] == head && whole[PART..] == *b"2345");

    let given_up = store.begin("uploads/given up").await.unwrap();
    store.send(&given_up, 1, head.clone()).await.unwrap();
    store.abort(&given_up).await.unwrap();
    store.abort(&given_up).await.unwrap();
    let late = store.send(&given_up, 1, head).await;
    assert_eq!(failure(late), Failure::Missing);
}

async fn completions(store: &dyn Store) {
    let complete = |body: &'static str, when| async move {
        let upload = store.begin("completions").await.unwrap();
        let part = store.send(&upload, 1, Bytes::from(body)).await.unwrap();
        let answer = store.complete(&upload, &[part], &when).await;
        if answer.is_err() {
            store.abort(&upload).await.unwrap();
        }
        answer
    };
    let first = complete("1", Condition::IfAbsent).await.unwrap();
    let again = complete("2", Condition::IfAbsent).await;
    assert_eq!(failure(again), Failure::Changed);
    let second = complete("2", Condition::IfMatch(first.clone()))
        .await
        .unwrap();
    assert_ne!(first, second);
    let late = complete("3", Condition::IfMatch(first)).await;
    assert_eq!(failure(late), Failure::Changed);
    assert_eq!(content(store, "completions").await, "2");
}

fn at(url: String, unsigned: bool) -> Options {
    Options {
        bucket: "conform".to_owned(),
        region: Some("us-east-1".to_owned()),
        endpoint_url: Some(url),
        path_style: true,
        profile: None,
        unsigned,
        upload_checksums: true,
        sign_bodies: false,
        unused_bytes: 0,
        clock: Clock::default(),
    }
}

#[tokio::test]
async fn store_in_memory_keeps_the_laws() {
    keeps_the_laws(&MemoryStore::new(), "").await;
}

async fn server(conditional_copy: Support, conditional_put: Support) -> Server {
    let server = Server::start(ServerOptions {
        buckets: vec!["conform".to_owned()],
        anonymous: true,
        faults: Faults {
            conditional_copy,
            conditional_put,
            ..Faults::default()
        },
        ..ServerOptions::default()
    });
    server.await.unwrap()
}

async fn ours(conditional_copy: Support) {
    let server = server(conditional_copy, Support::Kept).await;
    keeps_the_laws(&connect(&at(server.url(), true)).await, "").await;
}

/// What a store lacks, and the store with what stands in for that, as the mount has it.
async fn careful(store: impl Store) -> (Vec<Ability>, Careful) {
    let store: Arc<dyn Store> = Arc::new(store);
    let mut lacks = Vec::new();
    for ability in Ability::ALL {
        let key = format!("probe-{}", ability.operation());
        if !ability.is_kept(&*store, &key).await.unwrap() {
            lacks.push(ability);
        }
    }
    let request = ListRequest {
        prefix: "probe-".to_owned(),
        limit: 1000,
        ..ListRequest::default()
    };
    let left = store.list(&request).await.unwrap();
    assert_eq!(left.objects, [], "attempts leave nothing");
    assert_eq!(store.list_uploads("probe-").await.unwrap(), []);
    (lacks.clone(), Careful::new(store, lacks))
}

#[tokio::test]
async fn our_server_keeps_the_laws() {
    ours(Support::Kept).await;
}

#[tokio::test]
#[should_panic = "it was to be refused"]
async fn store_that_ignores_conditions_on_copies_is_found() {
    ours(Support::Ignored).await;
}

#[tokio::test]
async fn conditions_that_a_store_ignores_or_refuses_are_found_and_stood_in_for() {
    use Ability::{Completions, Copies, Deletes, Puts};
    use Support::{Ignored, Kept, Refused};
    for (copies, puts, lacking) in [
        (Kept, Kept, vec![]),
        (Ignored, Kept, vec![Copies]),
        (Refused, Kept, vec![Copies]),
        (Kept, Ignored, vec![Puts, Completions, Deletes]),
        (Refused, Refused, vec![Puts, Completions, Copies, Deletes]),
    ] {
        let server = server(copies, puts).await;
        let (lacks, store) = careful(connect(&at(server.url(), true)).await).await;
        assert_eq!(lacks, lacking);
        keeps_the_laws(&store, "").await;
    }
}

/// With the credentials of the environment.
#[tokio::test]
async fn server_of_others_keeps_the_laws() {
    let Ok(url) = std::env::var("WEFT_STORE_URL") else {
        return;
    };
    let without = std::env::var("WEFT_STORE_WITHOUT").unwrap_or_default();
    let store = connect(&at(url, false)).await;
    let Ok(lacking) = std::env::var("WEFT_STORE_LACKS") else {
        return keeps_the_laws(&store, &without).await;
    };
    let (lacks, store) = careful(store).await;
    let lacks: Vec<&str> = lacks.iter().map(|ability| ability.operation()).collect();
    assert_eq!(lacks.join(","), lacking);
    keeps_the_laws(&store, &without).await;
}
