// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Laws of the locks of a job: nodes ask each other without a network, on a clock that the test
//! moves.

use std::future::pending;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use tokio::runtime::Handle;
use weft_files::locks::messages::{About, Notice};
use weft_files::locks::seat::Asked;
use weft_files::locks::table::{Lock, Span};
use weft_files::locks::{LEASE, Locks, WHOLE, messages, waiting};
use weft_files::{Neighbours, Reason, Unreached};

const NODES: usize = 3;
const INO: u64 = 5;

/// All nodes, and between which nobody hears the other.
#[derive(Default)]
struct Net {
    nodes: Mutex<Vec<Arc<Locks>>>,
    is_cut: [AtomicBool; NODES],
    /// Messages are under way for some time, and overtake each other.
    is_slow: AtomicBool,
    /// Notices that a keeper has begun are heard after this many seconds, and never answered.
    notices_take: AtomicU64,
    asked: AtomicU64,
}

struct Seen {
    own: usize,
    net: Arc<Net>,
}

#[async_trait]
impl Neighbours for Seen {
    fn own(&self) -> usize {
        self.own
    }

    fn node_count(&self) -> usize {
        NODES
    }

    async fn ask(&self, node: usize, question: Bytes) -> Result<Bytes, Unreached> {
        let is_cut = |node: usize| self.net.is_cut[node].load(Ordering::Relaxed);
        if is_cut(self.own) || is_cut(node) {
            tokio::time::sleep(Duration::from_secs(3)).await;
            return Err("cut off".into());
        }
        let about = messages::read(question).ok_or("not understood")?;
        let locks = {
            let nodes = self.net.nodes.lock().unwrap();
            nodes.get(node).cloned().ok_or("not there yet")?
        };
        let late = self.net.notices_take.load(Ordering::Relaxed);
        if late > 0 && matches!(about, About::Notice(Notice::Begun { .. })) {
            // What was sent arrives, whether somebody waits for the answer or not.
            let own = self.own;
            tokio::spawn(async move {
                tokio::time::sleep(Duration::from_secs(late)).await;
                locks.answer(own, about).await;
            });
            return pending().await;
        }
        self.net.pass().await;
        let answer = locks.answer(self.own, about).await.concat().into();
        self.net.pass().await;
        Ok(answer)
    }
}

fn net() -> Arc<Net> {
    let net = Arc::new(Net::default());
    for own in 0..NODES {
        let locks = begin(&net, own);
        net.nodes.lock().unwrap().push(locks);
    }
    net
}

fn begin(net: &Arc<Net>, own: usize) -> Arc<Locks> {
    let seen = Seen {
        own,
        net: Arc::clone(net),
    };
    Locks::new(Arc::new(seen), Handle::current(), LEASE)
}

impl Net {
    async fn pass(&self) {
        if self.is_slow.load(Ordering::Relaxed) {
            let number = self.asked.fetch_add(1, Ordering::Relaxed);
            tokio::time::sleep(Duration::from_millis(number * 7 % 11)).await;
        }
    }

    fn node(&self, node: usize) -> Arc<Locks> {
        Arc::clone(&self.nodes.lock().unwrap()[node])
    }

    /// A key that node 0 keeps, so that 1 and 2 ask it.
    async fn key(&self) -> String {
        for number in 0.. {
            let key = format!("key{number}");
            self.is_cut[0].store(true, Ordering::Relaxed);
            let asked = asked(&self.node(1), 1, WHOLE, false);
            let found = self.node(1).test(key.clone(), &asked).await;
            self.is_cut[0].store(false, Ordering::Relaxed);
            if found.is_err() {
                return key;
            }
        }
        unreachable!()
    }
}

fn asked(locks: &Locks, owner: u64, span: Span, is_exclusive: bool) -> Asked {
    Asked {
        ino: INO,
        handle: owner,
        lock: Lock {
            holder: locks.holder(owner),
            span,
            is_exclusive,
            process: 1,
        },
    }
}

/// By an open file.
fn by(handle: u64, asked: Asked) -> Asked {
    Asked { handle, ..asked }
}

async fn take(locks: &Arc<Locks>, key: &str, owner: u64, is_exclusive: bool) -> Option<Reason> {
    let asked = asked(locks, owner, WHOLE, is_exclusive);
    let taken = locks.take(key.to_owned(), &asked).await;
    taken.err().map(|fault| fault.reason)
}

async fn release(locks: &Arc<Locks>, owner: u64) {
    let _ = locks.release(INO, locks.holder(owner), WHOLE).await;
}

#[tokio::test(start_paused = true)]
async fn nodes_exclude_each_other_and_share() {
    let net = net();
    let (one, other) = (net.node(1), net.node(2));
    for number in 0..20 {
        let key = format!("k{number}");
        assert_eq!(take(&one, &key, 1, true).await, None);
        assert_eq!(take(&other, &key, 1, true).await, Some(Reason::Taken));
        assert_eq!(take(&other, &key, 1, false).await, Some(Reason::Taken));
        release(&one, 1).await;
        assert_eq!(take(&other, &key, 1, false).await, None);
        assert_eq!(take(&one, &key, 1, false).await, None);
        assert_eq!(take(&one, &key, 1, true).await, Some(Reason::Taken));
        release(&one, 1).await;
        release(&other, 1).await;
    }
}

#[tokio::test(start_paused = true)]
async fn who_waits_has_the_lock_when_it_is_free_and_may_be_interrupted() {
    let net = net();
    let (one, other) = (net.node(1), net.node(2));
    assert_eq!(take(&one, "k", 1, true).await, None);
    let wanted = asked(&other, 1, WHOLE, true);
    let soon = tokio::time::sleep(Duration::from_secs(1));
    let waited = waiting::wait(&other, "k".to_owned(), &wanted, soon).await;
    assert_eq!(waited.unwrap_err().reason, Reason::Interrupted);
    let waits = {
        let other = Arc::clone(&other);
        tokio::spawn(async move { waiting::wait(&other, "k".to_owned(), &wanted, pending()).await })
    };
    // Far longer than a session lasts that is not renewed.
    tokio::time::sleep(LEASE * 5).await;
    assert!(!waits.is_finished());
    release(&one, 1).await;
    waits.await.unwrap().unwrap();
    assert_eq!(take(&one, "k", 1, true).await, Some(Reason::Taken));
}

/// Node 1 holds a lock and is cut off; node 2 wants it.
#[tokio::test(start_paused = true)]
async fn node_that_is_silent_learns_that_its_locks_are_lost_before_another_has_them() {
    let net = net();
    let key = net.key().await;
    let (one, other) = (net.node(1), net.node(2));
    assert_eq!(take(&one, &key, 1, true).await, None);
    net.is_cut[1].store(true, Ordering::Relaxed);
    let wanted = asked(&other, 1, WHOLE, true);
    waiting::wait(&other, key.clone(), &wanted, pending())
        .await
        .unwrap();
    assert_eq!(one.check(1).unwrap_err().reason, Reason::Broken);
    net.is_cut[1].store(false, Ordering::Relaxed);
    assert_eq!(one.check(1).unwrap_err().reason, Reason::Broken);
    assert_eq!(take(&one, &key, 2, true).await, Some(Reason::Taken));
    release(&other, 1).await;
    assert_eq!(take(&one, &key, 2, true).await, None);
    assert_eq!(one.check(2), Ok(()));
}

#[tokio::test(start_paused = true)]
async fn locks_of_a_silent_keeper_are_refused_and_those_that_were_held_are_lost() {
    let net = net();
    let key = net.key().await;
    let (one, other) = (net.node(1), net.node(2));
    assert_eq!(take(&one, &key, 1, true).await, None);
    tokio::time::sleep(LEASE).await;
    assert_eq!(one.check(1), Ok(()), "it was renewed");
    net.is_cut[0].store(true, Ordering::Relaxed);
    assert_eq!(take(&other, &key, 1, true).await, Some(Reason::NoLocks));
    tokio::time::sleep(LEASE).await;
    assert_eq!(one.check(1).unwrap_err().reason, Reason::Broken);
}

#[tokio::test(start_paused = true)]
async fn keeper_that_begins_anew_ends_what_was_held() {
    let net = net();
    let key = net.key().await;
    let (one, other) = (net.node(1), net.node(2));
    assert_eq!(take(&one, &key, 1, true).await, None);
    let new = begin(&net, 0);
    net.nodes.lock().unwrap()[0] = new;
    assert_eq!(take(&other, &key, 1, true).await, None);
    assert_eq!(one.check(1).unwrap_err().reason, Reason::Broken);
}

/// It comes when the keeper has given locks already: since it waited in vain for the answer, or
/// since it began so long ago that it need not wait.
#[tokio::test(start_paused = true)]
async fn late_notice_that_a_keeper_has_begun_ends_no_lock_that_it_gave_itself() {
    let key = net().key().await;
    for (since, late) in [(0, 1), (0, 15), (2, 1)] {
        let net = net();
        let one = net.node(1);
        tokio::time::sleep(since * LEASE).await;
        net.notices_take.store(late, Ordering::Relaxed);
        assert_eq!(take(&one, &key, 1, true).await, None);
        tokio::time::sleep(2 * LEASE).await;
        assert_eq!(
            one.check(1),
            Ok(()),
            "after {since} leases, late by {late} s"
        );
        assert_eq!(take(&net.node(2), &key, 1, true).await, Some(Reason::Taken));
    }
}

#[tokio::test(start_paused = true)]
async fn holder_that_begins_anew_has_nothing_of_before() {
    let net = net();
    let key = net.key().await;
    assert_eq!(take(&net.node(1), &key, 1, true).await, None);
    let new = begin(&net, 1);
    net.nodes.lock().unwrap()[1] = Arc::clone(&new);
    assert_eq!(take(&net.node(2), &key, 1, true).await, Some(Reason::Taken));
    assert_eq!(take(&new, &key, 2, true).await, None);
}

/// Opens the file, takes the lock, and closes the file, as often as said. The kernel tells of the
/// open file's end later than of all else, and waits for no answer.
async fn open_and_close(locks: Arc<Locks>, program: u64, inside: Arc<AtomicU64>, is_flock: bool) {
    let mut ends = Vec::new();
    for round in 0..50 {
        let handle = program * 1000 + round;
        let asked = by(handle, asked(&locks, program, WHOLE, true));
        waiting::wait(&locks, "k".to_owned(), &asked, pending())
            .await
            .unwrap();
        assert_eq!(inside.fetch_add(1, Ordering::Relaxed), 0, "two are inside");
        tokio::time::sleep(Duration::from_millis(round % 3)).await;
        assert_eq!(locks.check(handle), Ok(()));
        assert_eq!(inside.fetch_sub(1, Ordering::Relaxed), 1);
        if !is_flock {
            release(&locks, program).await;
        }
        let closed = Arc::clone(&locks);
        let delay = Duration::from_millis(round * 5 % 13);
        ends.push(tokio::spawn(async move {
            tokio::time::sleep(delay).await;
            closed.closed(INO, handle).await;
        }));
    }
    for end in ends {
        end.await.unwrap();
    }
}

/// Two programs on each of two nodes; with flock(2) the kernel gives a new open file the number
/// that one had which it just closed.
#[tokio::test(start_paused = true)]
async fn end_of_an_open_file_gives_up_no_lock_that_was_taken_by_a_later_one() {
    for is_flock in [false, true] {
        let net = net();
        net.is_slow.store(true, Ordering::Relaxed);
        let inside = Arc::new(AtomicU64::new(0));
        let mut programs = Vec::new();
        for (node, program) in [(1, 1), (1, 2), (2, 1), (2, 2)] {
            let inside = Arc::clone(&inside);
            let run = open_and_close(net.node(node), program, inside, is_flock);
            programs.push(tokio::spawn(run));
        }
        for program in programs {
            program.await.unwrap();
        }
        assert_eq!(take(&net.node(0), "k", 9, true).await, None);
    }
}

/// A child has the first open file still when its parent has closed it, and ends.
#[tokio::test(start_paused = true)]
async fn child_that_ends_gives_up_nothing_of_its_parent() {
    let net = net();
    let (one, other) = (net.node(1), net.node(2));
    let wanted = asked(&one, 1, WHOLE, true);
    one.take("k".to_owned(), &by(10, wanted)).await.unwrap();
    release(&one, 1).await;
    one.take("k".to_owned(), &by(11, wanted)).await.unwrap();
    one.closed(INO, 10).await;
    assert_eq!(take(&other, "k", 1, true).await, Some(Reason::Taken));
    one.closed(INO, 11).await;
    assert_eq!(take(&other, "k", 1, true).await, None);
}

/// One thread gives up what another thread of its process waits for: whatever comes first, this
/// node and the keeper know the same in the end.
#[tokio::test(start_paused = true)]
async fn node_and_keeper_agree_on_who_has_a_lock_when_giving_up_meets_taking() {
    let net = net();
    net.is_slow.store(true, Ordering::Relaxed);
    let (one, other) = (net.node(1), net.node(2));
    let half = |first| Span {
        first,
        last: first + 4,
    };
    for delay in 0..40 {
        assert_eq!(take(&other, "k", 1, true).await, None);
        let first = asked(&one, 1, half(100), true);
        let _ = other.release(INO, other.holder(1), half(100)).await;
        one.take("k".to_owned(), &first).await.unwrap();
        let waits = {
            let one = Arc::clone(&one);
            let wanted = asked(&one, 1, half(0), true);
            tokio::spawn(
                async move { waiting::wait(&one, "k".to_owned(), &wanted, pending()).await },
            )
        };
        tokio::time::sleep(Duration::from_millis(30)).await;
        let frees = {
            let other = Arc::clone(&other);
            tokio::spawn(async move { release(&other, 1).await })
        };
        tokio::time::sleep(Duration::from_millis(delay)).await;
        release(&one, 1).await;
        frees.await.unwrap();
        waits.await.unwrap().unwrap();
        let has = one.has(INO, 1, half(0));
        let is_taken = take(&other, "k", 1, true).await == Some(Reason::Taken);
        assert_eq!(has, is_taken, "after {delay} ms");
        release(&one, 1).await;
        release(&other, 1).await;
    }
}

/// Node 1 holds a lock and waits for another; it is cut off when that is free.
#[tokio::test(start_paused = true)]
async fn node_that_cannot_be_told_of_a_lock_keeps_the_others_until_it_knows_that_they_are_lost() {
    let net = net();
    let key = net.key().await;
    let (one, other) = (net.node(1), net.node(2));
    let half = |first| Span {
        first,
        last: first + 4,
    };
    let mine = by(10, asked(&one, 1, half(0), true));
    one.take(key.clone(), &mine).await.unwrap();
    let theirs = asked(&other, 1, half(100), true);
    other.take(key.clone(), &theirs).await.unwrap();
    let waits = {
        let (one, key) = (Arc::clone(&one), key.clone());
        let wanted = by(10, asked(&one, 1, half(100), true));
        tokio::spawn(async move { waiting::wait(&one, key, &wanted, pending()).await })
    };
    tokio::time::sleep(Duration::from_secs(1)).await;
    net.is_cut[1].store(true, Ordering::Relaxed);
    release(&other, 1).await;
    let wanted = asked(&other, 2, half(0), true);
    waiting::wait(&other, key.clone(), &wanted, pending())
        .await
        .unwrap();
    assert_eq!(one.check(10).unwrap_err().reason, Reason::Broken);
    assert_eq!(waits.await.unwrap().unwrap_err().reason, Reason::NoLocks);
}

/// A keeper that begins waits for node 2, for longer than a session lasts.
#[tokio::test(start_paused = true)]
async fn node_that_begins_late_keeps_nobody_from_locks() {
    let key = net().key().await;
    let net = Arc::new(Net::default());
    for own in 0..2 {
        let locks = begin(&net, own);
        net.nodes.lock().unwrap().push(locks);
    }
    assert_eq!(take(&net.node(1), &key, 1, true).await, None);
    assert_eq!(take(&net.node(0), &key, 1, true).await, Some(Reason::Taken));
}
