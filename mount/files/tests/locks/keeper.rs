// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Laws of what a node that keeps locks keeps for each other node: two nodes ask at random, and the
//! tables of a model say how much each of them has.

use std::collections::HashMap;
use std::time::Duration;

use proptest::prelude::*;
use tokio::time::Instant;
use weft_files::locks::keeper::{Keeper, Limits};
use weft_files::locks::messages::{Many, Reply, Request, Session, Wish};
use weft_files::locks::table::{Holder, Lock, Span, Table, Ticket};

const LIMITS: Limits = Limits {
    ranges: 3,
    waiting: 2,
};
/// Keeps the locks, and is not asked by itself.
const OWN: u64 = 9;

fn request() -> impl Strategy<Value = Request> {
    let wishes = prop_oneof![Just(Wish::Take), Just(Wish::Wait), Just(Wish::Release)];
    let span = (0..12u64, 0..12u64).prop_map(|(one, other)| Span {
        first: one.min(other),
        last: one.max(other),
    });
    let whose = (0..2u64, 0..3u64);
    (wishes, span, whose, any::<bool>(), 0..2usize).prop_map(
        |(wish, span, (node, owner), is_exclusive, key)| Request {
            session: Session {
                node,
                number: 1,
                is_new: true,
            },
            wish,
            key: ["a", "b"][key].to_owned(),
            lock: Lock {
                holder: Holder { node, owner },
                span,
                is_exclusive,
                process: 1,
            },
            ticket: 0,
        },
    )
}

/// What the tables of the model have of a node: ranges, and who waits.
fn count(model: &HashMap<String, Table>, node: u64) -> (usize, usize) {
    let counts = model.values().filter_map(|table| {
        let count = table.count();
        count.get(&node).copied()
    });
    counts.fold((0, 0), |(ranges, waiting), count| {
        (ranges + count.ranges, waiting + count.waiting)
    })
}

proptest! {
    #[test]
    fn node_that_has_all_that_is_kept_for_it_gets_no_more_and_others_do(
        requests in prop::collection::vec(request(), 1..60),
    ) {
        let keeper = Keeper::new(OWN, Duration::from_secs(10), LIMITS);
        let now = Instant::now();
        let mut model: HashMap<String, Table> = HashMap::new();
        for (ticket, mut request) in requests.into_iter().enumerate() {
            request.ticket = ticket as u64;
            let (node, lock) = (request.session.node, request.lock);
            let (ranges, waiting) = count(&model, node);
            let table = model.entry(request.key.clone()).or_default();
            let has_all = ranges >= LIMITS.ranges as usize;
            let full = match request.wish {
                Wish::Release if !has_all || !table.is_within(lock.holder, lock.span) => None,
                _ if has_all => Some(Many::Ranges(LIMITS.ranges)),
                Wish::Wait if waiting >= LIMITS.waiting as usize => {
                    Some(Many::Waiting(LIMITS.waiting))
                }
                _ => None,
            };
            let (reply, _) = keeper.serve(&request, now);
            if let Some(full) = full {
                prop_assert_eq!(reply, Reply::Full(full), "{:?}", request);
                continue;
            }
            prop_assert!(!matches!(reply, Reply::Full(_)), "{:?}: {:?}", request, reply);
            let name = Ticket { node, number: request.ticket };
            match request.wish {
                Wish::Take => drop(table.take(lock)),
                Wish::Wait => drop(table.wait(name, lock)),
                _ => drop(table.release(lock.holder, lock.span)),
            }
            // A lock that falls into two, and one between them; and those that waited have theirs.
            let most = LIMITS.ranges + 2 * (1 + LIMITS.waiting);
            prop_assert!(count(&model, node).0 <= most as usize);
        }
    }
}

#[test]
fn node_that_is_dropped_begins_with_nothing() {
    let keeper = Keeper::new(OWN, Duration::from_secs(10), LIMITS);
    let now = Instant::now();
    let take = |session: u64, first: u64| {
        let request = Request {
            session: Session {
                node: 1,
                number: session,
                is_new: true,
            },
            wish: Wish::Take,
            key: format!("key{first}"),
            lock: Lock {
                holder: Holder { node: 1, owner: 1 },
                span: Span { first, last: first },
                is_exclusive: true,
                process: 1,
            },
            ticket: 0,
        };
        keeper.serve(&request, now).0
    };
    for first in 0..3 {
        assert_eq!(take(1, first), Reply::Done);
    }
    assert_eq!(take(1, 3), Reply::Full(Many::Ranges(3)));
    assert_eq!(take(2, 3), Reply::Done, "a new session has nothing");
}
