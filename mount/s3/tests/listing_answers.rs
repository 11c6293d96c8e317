// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What becomes of a listing when the store answers anything else than a page: a server sends
//! answers that are written down here, one on each connection.

use std::io::{BufRead, BufReader, Write};
use std::net::TcpListener;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use weft_s3::{Bucket, Options, connect};
use weft_store::{Failure, ListRequest, Objects, Page, StoreError};

const PAGE: &str = "<ListBucketResult><Contents><Key>a</Key><Size>1</Size></Contents>\
                    </ListBucketResult>";
const SLOW_DOWN: &str = "<Error><Code>SlowDown</Code><Message>a & b</Message></Error>";

/// Sends these answers, each a status and a body, and counts them.
fn server(answers: Vec<(&'static str, String)>) -> (String, Arc<AtomicUsize>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let count = Arc::new(AtomicUsize::new(0));
    let sent = count.clone();
    thread::spawn(move || {
        for (status, body) in answers {
            let (stream, _) = listener.accept().unwrap();
            count.fetch_add(1, Ordering::Relaxed);
            let mut lines = BufReader::new(&stream).lines();
            while !lines.next().unwrap().unwrap().is_empty() {}
            // Of this version the end of the connection is the end of the body.
            let answer = format!("HTTP/1.0 {status}\r\n\r\n{body}");
            (&stream).write_all(answer.as_bytes()).unwrap();
        }
    });
    (url, sent)
}

async fn bucket(url: String) -> Bucket {
    connect(&Options {
        bucket: "b".to_owned(),
        region: Some("us-east-1".to_owned()),
        endpoint_url: Some(url),
        path_style: true,
        unsigned: true,
        ..Options::default()
    })
    .await
}

/// Lists once, for which the store must be asked as often as there are answers.
async fn list(answers: Vec<(&'static str, String)>) -> Result<Page, StoreError> {
    let count = answers.len();
    let (url, sent) = server(answers);
    let request = ListRequest {
        limit: 1000,
        ..ListRequest::default()
    };
    let listed = bucket(url).await.list(&request).await;
    assert_eq!(sent.load(Ordering::Relaxed), count, "{listed:?}");
    listed
}

fn is_the_page(page: &Page) -> bool {
    page.objects.len() == 1 && page.objects[0].0 == "a"
}

#[tokio::test]
async fn listing_is_asked_for_again_where_the_store_is_busy() {
    for (status, body) in [
        ("503 Slow Down", SLOW_DOWN),
        ("503 Slow Down", ""),
        ("200 OK", SLOW_DOWN),
    ] {
        let answers = vec![(status, body.to_owned()), ("200 OK", PAGE.to_owned())];
        assert!(is_the_page(&list(answers).await.unwrap()), "{status}");
    }
}

#[tokio::test]
async fn listing_that_breaks_off_is_asked_for_again() {
    for length in [0, 30, PAGE.len() - 1] {
        let cut = PAGE[..length].to_owned();
        let answers = vec![("200 OK", cut), ("200 OK", PAGE.to_owned())];
        assert!(is_the_page(&list(answers).await.unwrap()), "{length}");
    }
}

#[tokio::test]
async fn listing_that_always_breaks_off_is_an_error_that_may_pass() {
    // As often as the client asks.
    let cut = ("200 OK", PAGE[..30].to_owned());
    let error = list(vec![cut; 5]).await.unwrap_err();
    assert_eq!(error.failure, Failure::Unreachable);
    assert!(error.message.contains("breaks off"), "{}", error.message);
}

#[tokio::test]
async fn listing_in_no_xml_is_refused_at_once() {
    let answers = vec![("200 OK", "gateway".to_owned())];
    let error = list(answers).await.unwrap_err();
    assert_eq!(error.failure, Failure::Refused);
    assert!(
        error.message.contains("no page of a listing"),
        "{}",
        error.message
    );
}
