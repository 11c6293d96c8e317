// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Nodes ask each other over sockets of this host.

#[path = "../../../tests/own_address.rs"]
mod own_address;

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use bytes::Bytes;
use own_address::own_address;
use weft_fabric::{ANSWER_LIMIT_BYTES, Fabric, Settings};
use weft_udp::seal::{JobKey, Trust};

fn nodes(count: usize) -> Vec<SocketAddr> {
    (0..count).map(|_| own_address()).collect()
}

fn settings(nodes: &[SocketAddr], own: usize, key: &str) -> Settings {
    Settings {
        nodes: nodes.to_vec(),
        own,
        trust: Trust {
            job_key: Some(JobKey::parse(key).unwrap()),
            ..Trust::default()
        },
        tell: |line| println!("{line}"),
    }
}

/// A node whose answers are the questions, with as many bytes behind as those say.
fn node(nodes: &[SocketAddr], own: usize, key: &str) -> Fabric {
    let (fabric, mut asked) = Fabric::open(settings(nodes, own, key)).unwrap();
    tokio::spawn(async move {
        while let Some(asked) = asked.recv().await {
            let length = usize::from(asked.question[0]) << 12;
            let question = asked.question.clone();
            asked.answer([question, Bytes::from(vec![7; length])]);
        }
    });
    fabric
}

const KEY: &str = "00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff";

#[tokio::test(flavor = "multi_thread")]
async fn questions_of_all_lengths_are_answered_by_whom_they_were_asked() {
    let nodes = nodes(3);
    let fabrics: Vec<Fabric> = (0..3).map(|own| node(&nodes, own, KEY)).collect();
    for turn in 0..300usize {
        let (from, to) = (turn % 3, (turn + 1 + turn / 100) % 3);
        if from == to {
            continue;
        }
        let question = Bytes::from(vec![(turn % 255) as u8; 1 + turn * 20]);
        let answer = fabrics[from].ask(to, question.clone()).await.unwrap();
        assert_eq!(answer[..question.len()], question);
        assert_eq!(
            answer.len(),
            question.len() + (usize::from(question[0]) << 12)
        );
    }
    let longest = Bytes::from_static(&[255]);
    let answers = (0..64).map(|_| fabrics[0].ask(1, longest.clone()));
    let tasks = answers.collect::<Vec<_>>();
    for task in tasks {
        let answer = task.await.unwrap();
        assert!(answer.len() <= ANSWER_LIMIT_BYTES && answer.len() == 1 + (255 << 12));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn node_that_ended_is_silent_soon_and_answers_when_it_is_back() {
    let nodes = nodes(2);
    let one = node(&nodes, 0, KEY);
    let other = node(&nodes, 1, KEY);
    one.ask(1, Bytes::from_static(&[0])).await.unwrap();
    drop(other);
    let began = Instant::now();
    loop {
        match one.ask(1, Bytes::from_static(&[0])).await {
            Err(_) => break,
            Ok(_) => assert!(began.elapsed() < Duration::from_secs(100)),
        }
    }
    assert!(
        began.elapsed() < Duration::from_secs(100),
        "{:?}",
        began.elapsed()
    );
    let _other = node(&nodes, 1, KEY);
    let began = Instant::now();
    while one.ask(1, Bytes::from_static(&[0])).await.is_err() {
        assert!(began.elapsed() < Duration::from_secs(100), "it is back");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn question_in_the_name_of_another_node_is_dropped_and_told() {
    static TOLD: Mutex<Vec<String>> = Mutex::new(Vec::new());
    let nodes = nodes(3);
    let mut careful = settings(&nodes, 1, KEY);
    careful.tell = |line| TOLD.lock().unwrap().push(line.to_owned());
    let (_asked, mut asked) = Fabric::open(careful).unwrap();
    // It has the key, and takes itself for node 0 at the address of node 2.
    let list = [nodes[2], nodes[1]];
    let stranger = node(&list, 0, KEY);
    let question = Bytes::from_static(&[1]);
    let silent = stranger.ask_soon(1, question.clone(), Duration::from_secs(3));
    assert!(silent.await.is_err(), "nobody answers it");
    assert!(asked.try_recv().is_err(), "and nobody is told the question");
    drop(stranger);
    let said = TOLD.lock().unwrap().join("; ");
    assert!(said.contains("in the name of node 0"), "{said}");
    assert!(said.contains(&nodes[0].to_string()), "{said}");
    let honest = node(&nodes, 0, KEY);
    let answer = tokio::spawn(async move { honest.ask(1, question).await });
    let asked = asked.recv().await.unwrap();
    assert_eq!(asked.node, 0);
    asked.answer([Bytes::from_static(&[2]), Bytes::new()]);
    assert_eq!(answer.await.unwrap().unwrap()[..], [2]);
}

#[tokio::test]
async fn node_at_the_port_after_another_hears_who_may_have_it() {
    let first = own_address();
    let nodes = [first, SocketAddr::new(first.ip(), first.port() + 1)];
    let _first = node(&nodes, 0, KEY);
    let Err(refused) = Fabric::open(settings(&nodes, 1, KEY)) else {
        panic!("the first one answers heartbeats there");
    };
    let said = refused.to_string();
    assert!(said.contains(&nodes[1].to_string()), "{said}");
    assert!(said.contains("leave a port between two mounts"), "{said}");
}

#[tokio::test(flavor = "multi_thread")]
async fn pressing_questions_do_not_wait_behind_others() {
    let nodes = nodes(2);
    let one = Arc::new(node(&nodes, 0, KEY));
    let (_other, mut asked) = Fabric::open(settings(&nodes, 1, KEY)).unwrap();
    for _ in 0..64 {
        let one = Arc::clone(&one);
        tokio::spawn(async move { one.ask(1, Bytes::from_static(&[0])).await });
    }
    // As many as wait for answers at once; the others wait to be asked.
    let mut slow = Vec::new();
    while slow.len() < 32 {
        slow.push(asked.recv().await.unwrap());
    }
    let pressing = {
        let one = Arc::clone(&one);
        let patience = Duration::from_secs(60);
        tokio::spawn(async move { one.ask_soon(1, Bytes::from_static(&[1]), patience).await })
    };
    let next = asked.recv().await.unwrap();
    assert_eq!(next.question[..], [1], "it waited behind the others");
    next.answer([Bytes::from_static(&[2]), Bytes::new()]);
    assert_eq!(pressing.await.unwrap().unwrap()[..], [2]);
    let soon = Duration::from_millis(1);
    let silent = one.ask_soon(1, Bytes::from_static(&[1]), soon).await;
    assert!(silent.is_err());
    drop(slow);
}
