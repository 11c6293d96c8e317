// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Credentials that end while a mount goes on. The SDK reads where the environment says; so each
//! test runs its story in a process of its own.

use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use weft_bucket_server::{Options as ServerOptions, Server};
use weft_s3::{Bucket, Clock, Options, connect};
use weft_store::{Condition, Failure, Objects, Uploads};

const STORY: &str = "WEFT_TEST_CREDENTIALS";

/// Runs this test of this file again, with a file of credentials of its own.
fn run_alone(test: &str) {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("credentials");
    let mut again = Command::new(std::env::current_exe().unwrap());
    again.args(["--exact", test, "--nocapture"]);
    for name in [
        "AWS_ACCESS_KEY_ID",
        "AWS_SECRET_ACCESS_KEY",
        "AWS_SESSION_TOKEN",
        "AWS_PROFILE",
    ] {
        again.env_remove(name);
    }
    again.env("AWS_SHARED_CREDENTIALS_FILE", &file);
    again.env("AWS_CONFIG_FILE", folder.path().join("config"));
    again.env("AWS_EC2_METADATA_DISABLED", "true");
    assert!(again.env(STORY, &file).status().unwrap().success());
}

fn write(file: &Path, token: &str) {
    let keys = ServerOptions::default().keys;
    let (key, secret) = (keys.access_key, keys.secret_key);
    let text = format!(
        "[default]\naws_access_key_id = {key}\naws_secret_access_key = {secret}\n\
         aws_session_token = {token}\n"
    );
    std::fs::write(file, text).unwrap();
}

async fn start(profile: Option<&str>) -> (Server, Bucket) {
    start_at(profile, Clock::default()).await
}

async fn start_at(profile: Option<&str>, clock: Clock) -> (Server, Bucket) {
    let server = Server::start(ServerOptions {
        buckets: vec!["b".to_owned()],
        ..ServerOptions::default()
    });
    let server = server.await.unwrap();
    let options = Options {
        bucket: "b".to_owned(),
        region: Some("us-east-1".to_owned()),
        endpoint_url: Some(server.url()),
        path_style: true,
        profile: profile.map(str::to_owned),
        upload_checksums: true,
        clock,
        ..Options::default()
    };
    (server, connect(&options).await)
}

fn expire(server: &Server, token: &str) {
    let changes = [("expired_token", token)];
    let changes = changes.into_iter().collect();
    server.state().faults.change(&changes).unwrap();
}

async fn upload_goes_on(file: &Path, profile: Option<&str>) {
    write(file, "first");
    let (server, bucket) = start(profile).await;
    let upload = bucket.begin("f").await.unwrap();
    let body = Bytes::from(vec![7; 5 << 20]);
    let mut parts = Vec::new();
    for number in 1..=6 {
        if number == 4 {
            expire(&server, "first");
            write(file, "second");
        }
        parts.push(bucket.send(&upload, number, body.clone()).await.unwrap());
    }
    let always = Condition::Always;
    bucket.complete(&upload, &parts, &always).await.unwrap();
    assert_eq!(bucket.head("f").await.unwrap().size_bytes, 30 << 20);
}

/// The answer to a HEAD has no body that says why.
async fn head_goes_on(file: &Path) {
    write(file, "first");
    let (server, bucket) = start(None).await;
    let body = Bytes::from_static(b"content");
    bucket.put("f", body, &Condition::Always).await.unwrap();
    expire(&server, "first");
    write(file, "second");
    bucket.head("f").await.unwrap();
}

#[tokio::test]
async fn upload_goes_on_with_the_credentials_that_came_after_those_that_ended() {
    let Ok(file) = std::env::var(STORY) else {
        let test = "upload_goes_on_with_the_credentials_that_came_after_those_that_ended";
        return run_alone(test);
    };
    for profile in [None, Some("default")] {
        upload_goes_on(Path::new(&file), profile).await;
    }
    head_goes_on(Path::new(&file)).await;
}

#[tokio::test]
async fn all_requests_that_are_refused_at_once_are_repeated() {
    let Ok(file) = std::env::var(STORY) else {
        return run_alone("all_requests_that_are_refused_at_once_are_repeated");
    };
    let file = Path::new(&file);
    write(file, "first");
    let (server, bucket) = start(None).await;
    let bucket = Arc::new(bucket);
    bucket.head("f").await.unwrap_err();
    expire(&server, "first");
    write(file, "second");
    let mut puts = tokio::task::JoinSet::new();
    for number in 0..200 {
        let bucket = Arc::clone(&bucket);
        let body = Bytes::from_static(b"content");
        puts.spawn(async move {
            let key = format!("f{number}");
            bucket.put(&key, body, &Condition::Always).await
        });
    }
    while let Some(put) = puts.join_next().await {
        put.unwrap().unwrap();
    }
}

#[tokio::test]
async fn credentials_that_end_just_after_they_came_are_replaced_at_once() {
    let Ok(file) = std::env::var(STORY) else {
        return run_alone("credentials_that_end_just_after_they_came_are_replaced_at_once");
    };
    let file = Path::new(&file);
    write(file, "0");
    let (server, bucket) = start(None).await;
    let body = Bytes::from_static(b"content");
    for number in 1..=4 {
        let put = bucket.put("f", body.clone(), &Condition::Always).await;
        put.unwrap();
        expire(&server, &(number - 1).to_string());
        write(file, &number.to_string());
        bucket.head("f").await.unwrap();
    }
    // Each time the answer to the HEAD says nothing, and that to one more request says why.
    let counts = server.state().counters.counts(0);
    assert_eq!(counts.refusals["ExpiredToken"], 2 * 4);
}

/// As S3 does where an object has a key of the user's own.
#[tokio::test]
async fn heads_that_are_refused_for_another_reason_leave_the_credentials() {
    let Ok(file) = std::env::var(STORY) else {
        return run_alone("heads_that_are_refused_for_another_reason_leave_the_credentials");
    };
    let file = Path::new(&file);
    write(file, "first");
    let (server, bucket) = start(None).await;
    let body = Bytes::from_static(b"content");
    let put = || bucket.put("f", body.clone(), &Condition::Always);
    put().await.unwrap();
    let refuse = |share: f64, operations: &[&str]| {
        let changes = [
            ("bad_request", serde_json::json!(share)),
            ("operations", serde_json::json!(operations)),
        ];
        let changes = changes.into_iter().collect();
        server.state().faults.change(&changes).unwrap();
    };
    refuse(1.0, &["HeadObject"]);
    // Who looked for credentials now would find some that are refused.
    write(file, "second");
    expire(&server, "second");
    for _ in 0..3 {
        bucket.head("f").await.unwrap_err();
        put().await.unwrap();
    }
    let refusals = server.state().counters.counts(0).refusals;
    assert!(!refusals.contains_key("ExpiredToken"), "{refusals:?}");
    // What keeps from listing says nothing of the object.
    refuse(1.0, &["HeadObject", "ListObjectsV2"]);
    let refused = bucket.head("f").await.unwrap_err();
    assert_eq!(refused.operation, "HeadObject");
    // When they end in truth, they are looked for.
    expire(&server, "first");
    put().await.unwrap();
    refuse(0.0, &[]);
    bucket.head("f").await.unwrap();
}

#[tokio::test]
async fn request_without_new_credentials_fails_soon_and_says_why() {
    let Ok(file) = std::env::var(STORY) else {
        return run_alone("request_without_new_credentials_fails_soon_and_says_why");
    };
    let file = Path::new(&file);
    write(file, "only");
    let clock = Clock::stopped();
    let (server, bucket) = start_at(None, clock.clone()).await;
    expire(&server, "only");
    let body = Bytes::from_static(b"content");
    let refusals = || server.state().counters.counts(0).refusals["ExpiredToken"];
    let refused = async || {
        let put = bucket.put("f", body.clone(), &Condition::Always).await;
        let error = put.unwrap_err();
        assert_eq!(error.failure, Failure::Denied);
        assert!(error.message.contains("ExpiredToken"), "{error}");
        assert!(error.message.contains("renew the credentials"), "{error}");
    };
    // Sent again, to see whether there are new ones.
    refused().await;
    assert_eq!(refusals(), 2);
    refused().await;
    assert_eq!(refusals(), 3);
    write(file, "new");
    // Nobody looks for them before the second has passed.
    clock.advance(Duration::from_millis(999));
    refused().await;
    assert_eq!(refusals(), 4);
    clock.advance(Duration::from_millis(1));
    let put = bucket.put("f", body.clone(), &Condition::Always).await;
    put.unwrap();
    assert_eq!(refusals(), 5);
}

#[tokio::test]
async fn program_that_never_says_its_credentials_is_not_waited_for() {
    let Ok(file) = std::env::var(STORY) else {
        return run_alone("program_that_never_says_its_credentials_is_not_waited_for");
    };
    let config = Path::new(&file).with_file_name("config");
    std::fs::write(config, "[default]\ncredential_process = sleep 60\n").unwrap();
    let (_server, bucket) = start(None).await;
    let bucket = Arc::new(bucket);
    let mut heads = tokio::task::JoinSet::new();
    for _ in 0..20 {
        let bucket = Arc::clone(&bucket);
        heads.spawn(async move { bucket.head("f").await });
    }
    while let Some(head) = heads.join_next().await {
        head.unwrap().unwrap_err();
    }
}
