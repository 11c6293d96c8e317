// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What a signature covers, tested on the wire: a server notes the headers of one request.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;
use std::process::Command;
use std::thread;

use bytes::Bytes;
use weft_s3::{Options, connect};
use weft_store::{Condition, Objects, Upload, Uploads};

/// Says that this process has credentials in its environment.
const CHILD: &str = "WEFT_TEST_HAS_CREDENTIALS";

/// Runs one test of this file again, in a process with credentials; whether this is that process.
fn has_credentials(test: &str) -> bool {
    if std::env::var_os(CHILD).is_some() {
        return true;
    }
    let status = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", test, "--nocapture"])
        .env(CHILD, "1")
        .env("AWS_ACCESS_KEY_ID", "k")
        .env("AWS_SECRET_ACCESS_KEY", "s")
        .status();
    assert!(status.unwrap().success());
    false
}

/// Answers one request with success; the lines of its head, in small letters.
fn server() -> (String, thread::JoinHandle<Vec<String>>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let head = thread::spawn(move || {
        let (stream, _) = listener.accept().unwrap();
        let mut reader = BufReader::new(&stream);
        let mut head = Vec::new();
        loop {
            let mut line = String::new();
            reader.read_line(&mut line).unwrap();
            if line.trim().is_empty() {
                break;
            }
            head.push(line.trim().to_lowercase());
        }
        let length = value(&head, "content-length").parse().unwrap();
        reader.take(length).read_to_end(&mut Vec::new()).unwrap();
        let answer = "HTTP/1.1 200 OK\r\netag: \"1\"\r\ncontent-length: 0\r\n\r\n";
        (&stream).write_all(answer.as_bytes()).unwrap();
        head
    });
    (url, head)
}

fn value<'a>(head: &'a [String], name: &str) -> &'a str {
    let found = head
        .iter()
        .find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
    found.unwrap_or_default().trim()
}

fn options(url: String) -> Options {
    Options {
        bucket: "b".to_owned(),
        region: Some("us-east-1".to_owned()),
        endpoint_url: Some(url),
        path_style: true,
        upload_checksums: true,
        ..Options::default()
    }
}

/// The head of a write of one object, and that of one part.
async fn heads(change: fn(&mut Options)) -> [Vec<String>; 2] {
    let body = Bytes::from_static(b"content");
    let (url, put) = server();
    let mut asked = options(url);
    change(&mut asked);
    let bucket = connect(&asked).await;
    let written = bucket.put("a", body.clone(), &Condition::Always).await;
    written.unwrap();
    let (url, part) = server();
    asked.endpoint_url = Some(url);
    let bucket = connect(&asked).await;
    let upload = Upload {
        key: "a".to_owned(),
        id: "1".to_owned(),
    };
    bucket.send(&upload, 1, body).await.unwrap();
    [put.join().unwrap(), part.join().unwrap()]
}

#[tokio::test]
async fn signature_covers_the_checksum_in_place_of_the_bytes_on_this_host() {
    if !has_credentials("signature_covers_the_checksum_in_place_of_the_bytes_on_this_host") {
        return;
    }
    for head in heads(|_| {}).await {
        assert_eq!(value(&head, "x-amz-content-sha256"), "unsigned-payload");
        assert_ne!(value(&head, "x-amz-checksum-crc64nvme"), "");
        let signed = value(&head, "authorization");
        assert!(signed.contains("x-amz-checksum-crc64nvme"), "{signed}");
    }
}

#[tokio::test]
async fn bytes_are_signed_where_that_is_asked_for_or_no_checksum_is_sent() {
    if !has_credentials("bytes_are_signed_where_that_is_asked_for_or_no_checksum_is_sent") {
        return;
    }
    let asked: [fn(&mut Options); 2] = [
        |options| options.sign_bodies = true,
        |options| options.upload_checksums = false,
    ];
    for change in asked {
        for head in heads(change).await {
            let digest = value(&head, "x-amz-content-sha256");
            let is_digest = digest.len() == 64 && digest.bytes().all(|one| one.is_ascii_hexdigit());
            assert!(is_digest, "{digest}");
        }
    }
}
