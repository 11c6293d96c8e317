// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What is said of a request that the SDK sent twice, since the answer to the first was lost.

use bytes::Bytes;
use weft_bucket_server::{Faults, Operation, Options as ServerOptions, Server};
use weft_s3::{Options, connect};
use weft_store::{Condition, Failure, Objects, Uploads};

/// Of a share of one half its first draw is a hit, and its second is none.
const LOST_THEN_HEARD: u64 = 4;

/// Loses the answer to the first request of this kind.
async fn server_that_loses(operation: Operation) -> Server {
    server(Faults {
        unheard: 0.5,
        operations: vec![operation],
        seed: LOST_THEN_HEARD,
        ..Faults::default()
    })
    .await
}

async fn server(faults: Faults) -> Server {
    let server = Server::start(ServerOptions {
        buckets: vec!["conform".to_owned()],
        anonymous: true,
        faults,
        ..ServerOptions::default()
    });
    server.await.unwrap()
}

fn at(server: &Server) -> Options {
    Options {
        bucket: "conform".to_owned(),
        region: Some("us-east-1".to_owned()),
        endpoint_url: Some(server.url()),
        path_style: true,
        unsigned: true,
        upload_checksums: true,
        ..Options::default()
    }
}

#[tokio::test]
async fn refusal_of_a_copy_that_was_made_before_says_that_it_was_sent_twice() {
    let losing = server_that_loses(Operation::CopyObject).await;
    let store = connect(&at(&losing)).await;
    let body = Bytes::from_static(b"content");
    let etag = store.put("a", body, &Condition::Always).await.unwrap();
    let copied = store.copy("a", &etag, "b", &Condition::IfAbsent).await;
    let error = copied.unwrap_err();
    assert_eq!((error.failure, error.is_repeated), (Failure::Changed, true));
    assert_eq!(store.head("b").await.unwrap().size_bytes, 7);
    // This one loses nothing.
    let hearing = server(Faults::default()).await;
    let store = connect(&at(&hearing)).await;
    let body = Bytes::from_static(b"content");
    let etag = store.put("a", body, &Condition::Always).await.unwrap();
    let copy = || store.copy("a", &etag, "b", &Condition::IfAbsent);
    copy().await.unwrap();
    let error = copy().await.unwrap_err();
    assert_eq!(
        (error.failure, error.is_repeated),
        (Failure::Changed, false)
    );
}

#[tokio::test]
async fn refusal_of_a_completion_that_was_done_before_says_that_it_was_sent_twice() {
    let losing = server_that_loses(Operation::CompleteMultipartUpload).await;
    let store = connect(&at(&losing)).await;
    let upload = store.begin("a").await.unwrap();
    let part = store.send(&upload, 1, Bytes::from_static(b"part")).await;
    let parts = [part.unwrap()];
    let done = store.complete(&upload, &parts, &Condition::IfAbsent).await;
    assert!(done.unwrap_err().is_repeated);
    assert_eq!(store.head("a").await.unwrap().size_bytes, 4);
}
