// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Measures what a match costs by how many receives or messages wait, and prints a table.
//!
//! Run by a person: `cargo run --release -p weft-matching --example cost`. A cell is the median
//! over interleaved rounds of the time of one match in nanoseconds, with the number waiting held
//! constant: a match and the entry that takes its place. The ratios are to the cost with one and
//! with ten waiting; one or few take a shorter path. Reads the clock once per some thousand
//! matches.

use std::hint::black_box;
use std::time::Instant;

use weft_contract::RemoteId;
use weft_matching::{Matcher, Want};

/// About what an endpoint keeps with a receive and with a message.
type Receive = [u64; 6];
type Message = [u64; 4];

const COUNTS: [usize; 5] = [1, 10, 100, 1000, 10_000];
const ROUNDS: usize = 41;
const MATCHES_PER_ROUND: usize = 20_000;

/// What MPICH ignores in each tag: its protocol bits.
const PROTOCOL_BITS: u64 = 0x3 << 60;

/// How the waiting entries differ from each other.
#[derive(Clone, Copy)]
enum Pattern {
    Tags,
    ShuffledTags,
    HighTags,
    Sources,
    Same,
}

impl Pattern {
    const ALL: [(Pattern, &'static str); 5] = [
        (Pattern::Tags, "distinct tags, in order"),
        (Pattern::ShuffledTags, "distinct tags, shuffled"),
        (Pattern::HighTags, "distinct tags, high bits"),
        (Pattern::Sources, "one tag, distinct sources"),
        (Pattern::Same, "all the same"),
    ];

    /// The keys in the order in which they are matched and entered again; a shuffled order stays
    /// the order of all rounds.
    fn keys(self, count: usize) -> Vec<(RemoteId, u64)> {
        let mut order: Vec<u64> = (0..count as u64).collect();
        if let Pattern::ShuffledTags = self {
            fastrand::Rng::with_seed(1).shuffle(&mut order);
        }
        let key = |n: u64| match self {
            Pattern::Tags | Pattern::ShuffledTags => (RemoteId(1), n),
            Pattern::HighTags => (RemoteId(1), n << 32),
            Pattern::Sources => (RemoteId(n as u32), 7),
            Pattern::Same => (RemoteId(1), 7),
        };
        order.into_iter().map(key).collect()
    }
}

/// One side with a constant number waiting.
struct Case {
    matcher: Matcher<Receive, Message>,
    keys: Vec<(RemoteId, u64)>,
    next: usize,
    ns: Vec<f64>,
}

fn want((source, tag): (RemoteId, u64)) -> Want {
    Want {
        source: Some(source),
        tag,
        ignore: PROTOCOL_BITS,
    }
}

impl Case {
    fn new(pattern: Pattern, count: usize, posted: bool) -> Self {
        let keys = pattern.keys(count);
        let mut matcher = Matcher::new();
        // Entered in order of number, matched in the order of the keys: a shuffled order then jumps
        // about in memory.
        let mut entered = keys.clone();
        entered.sort_unstable();
        for &(source, tag) in &entered {
            if posted {
                matcher.post(want((source, tag)), [tag; 6]);
            } else {
                matcher.push_unexpected(source, tag, [tag; 4]);
            }
        }
        Case {
            matcher,
            keys,
            next: 0,
            ns: Vec::new(),
        }
    }

    fn next_key(&mut self) -> (RemoteId, u64) {
        let key = self.keys[self.next];
        self.next += 1;
        if self.next == self.keys.len() {
            self.next = 0;
        }
        key
    }

    fn match_posted(&mut self) {
        let key = black_box(self.next_key());
        let taken = self
            .matcher
            .find_posted(key.0, key.1 | 1 << 60)
            .expect("a receive is posted for each key")
            .take();
        self.matcher.post(want(key), black_box(taken));
    }

    fn match_unexpected(&mut self) {
        let key = black_box(self.next_key());
        let id = self
            .matcher
            .find_unexpected(want(key))
            .expect("a message waits for each key");
        let message = self.matcher.remove_unexpected(id).expect("the id is fresh");
        self.matcher
            .push_unexpected(key.0, key.1, black_box(message));
    }

    fn round(&mut self, step: fn(&mut Self)) {
        let start = Instant::now();
        for _ in 0..MATCHES_PER_ROUND {
            step(self);
        }
        self.ns
            .push(start.elapsed().as_nanos() as f64 / MATCHES_PER_ROUND as f64);
    }

    fn median_ns(&mut self) -> f64 {
        self.ns.sort_unstable_by(f64::total_cmp);
        self.ns[self.ns.len() / 2]
    }
}

fn table(title: &str, posted: bool) {
    let step = if posted {
        Case::match_posted
    } else {
        Case::match_unexpected
    };
    println!("{title}, ns per match (ratio to one waiting, ratio to ten)");
    print!("{:28}", "");
    COUNTS.iter().for_each(|count| print!("{count:>20}"));
    println!();
    for (pattern, name) in Pattern::ALL {
        let mut cases: Vec<Case> = COUNTS
            .iter()
            .map(|&count| Case::new(pattern, count, posted))
            .collect();
        for _ in 0..ROUNDS {
            cases.iter_mut().for_each(|case| case.round(step));
        }
        let medians: Vec<f64> = cases.iter_mut().map(Case::median_ns).collect();
        print!("{name:28}");
        for ns in &medians {
            let cell = format!("{ns:.1} ({:.2}, {:.2})", ns / medians[0], ns / medians[1]);
            print!("{cell:>20}");
        }
        println!();
    }
}

fn main() {
    table("Posted receives", true);
    println!();
    table("Unexpected messages", false);
}
