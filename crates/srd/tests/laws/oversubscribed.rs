// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Processes that share processors: of those of one processor one runs at a time, and the others
//! take nothing and answer nothing until it is their turn.

use weft_srd::{Ecn, Statistics};

use crate::pair::{MS, US, World, config, seeds};
use crate::recovery::acquainted;

/// Between two calls of progress of the process that runs.
const STEP_NS: u64 = 5 * US;

/// Processes in all-to-alls without end.
struct Ranks {
    world: World,
    /// Turns take from one step to so long.
    turn_most_ns: u64,
    /// Of each message.
    bytes: usize,
    /// Of each processor: its process that runs, and until when.
    turns: Vec<(usize, u64)>,
    /// All-to-alls that each process has begun.
    begun: Vec<usize>,
}

impl Ranks {
    fn new(seed: u64, processors: usize, count: usize, turn_most_ns: u64) -> Self {
        let mut world = World::new(count, seed);
        world.wait_known = true;
        Self {
            turns: (0..processors).map(|first| (first, world.now)).collect(),
            begun: vec![0; count],
            world,
            turn_most_ns,
            bytes: 500,
        }
    }

    /// A process whose all-to-all is over begins the next one.
    fn act(&mut self, rank: usize) {
        let others = self.begun.len() - 1;
        if self.world.hosts[rank].got.len() < self.begun[rank] * others {
            return;
        }
        let token = self.begun[rank] as u64;
        self.begun[rank] += 1;
        for ahead in 1..=others {
            let to = (rank + ahead) % (others + 1);
            self.world.post(rank, to, token, self.bytes);
        }
    }

    /// Until every process has begun so many all-to-alls.
    fn run(&mut self, rounds: usize) {
        while self.begun.iter().any(|begun| *begun < rounds) {
            let now = self.world.now;
            for processor in 0..self.turns.len() {
                let (rank, ends_ns) = self.turns[processor];
                if now >= ends_ns {
                    self.world.hosts[rank].away_until = u64::MAX;
                    let next = (rank + self.turns.len()) % self.begun.len();
                    let turn_ns = self.world.random.below(self.turn_most_ns).max(STEP_NS);
                    self.turns[processor] = (next, now + turn_ns);
                }
            }
            for rank in 0..self.begun.len() {
                let runs = self.turns.iter().any(|turn| turn.0 == rank);
                self.world.hosts[rank].away_until = if runs { 0 } else { u64::MAX };
            }
            for processor in 0..self.turns.len() {
                self.act(self.turns[processor].0);
            }
            self.world.run_for(STEP_NS);
        }
    }

    /// Sums of all processes.
    fn counts(&self) -> Counts {
        let mut counts = Counts::default();
        for host in &self.world.hosts {
            let Statistics {
                sent_count,
                retransmitted_count,
                tail_probe_count,
                rto_count,
                ..
            } = host.machine.inspect().statistics();
            counts.messages += host.got.len() as u64;
            counts.sent += sent_count;
            counts.again += retransmitted_count;
            counts.probes += tail_probe_count;
            counts.time_outs += rto_count;
        }
        counts
    }
}

/// For people to look at, too.
#[derive(Clone, Copy, Default, Debug)]
struct Counts {
    messages: u64,
    sent: u64,
    again: u64,
    probes: u64,
    time_outs: u64,
}

/// On average turns take from a poll to half of a turn of Linux's scheduler.
#[test]
fn processes_that_wait_for_their_turn_are_hardly_asked_again() {
    for turn_most_ns in [100 * US, 500 * US, 3_000 * US] {
        for seed in seeds(0..2) {
            let mut ranks = Ranks::new(seed, 2, 8, turn_most_ns);
            ranks.run(10);
            let before = ranks.counts();
            ranks.run(30);
            let after = ranks.counts();
            let messages = after.messages - before.messages;
            let again = after.again - before.again;
            println!("turns of up to {turn_most_ns} ns, {messages} messages: {before:?} {after:?}");
            assert!(10 * again <= messages, "{again} of {messages} again");
            assert!(2 * (after.sent - before.sent) <= 3 * messages, "{after:?}");
        }
    }
}

/// Of 16 processes each sends to a remote again some turns later: that message carries the
/// acknowledgement of what the remote has sent.
#[test]
fn in_all_to_alls_hardly_an_acknowledgement_leaves_alone() {
    let short = [100 * US, 500 * US].map(|turn_ns| (500, turn_ns, 120));
    let long = [100 * US, 500 * US].map(|turn_ns| (8 << 10, turn_ns, 130));
    for (bytes, turn_most_ns, most_percent) in short.into_iter().chain(long) {
        for seed in seeds(0..2) {
            let mut ranks = Ranks::new(seed, 2, 16, turn_most_ns);
            ranks.bytes = bytes;
            ranks.run(40);
            let before = ranks.counts();
            ranks.run(80);
            let after = ranks.counts();
            let messages = after.messages - before.messages;
            let sent = after.sent - before.sent;
            println!("turns of up to {turn_most_ns} ns, {messages} messages: {before:?} {after:?}");
            let percent = 100 * sent / messages;
            assert!(
                percent <= most_percent,
                "{percent} % of messages of {bytes} bytes"
            );
        }
    }
}

/// Two hosts whose messages follow each other after 2 ms, and which hold back acknowledgements so
/// long.
fn holding_back() -> World {
    let mut world = acquainted(1);
    world.wait_known = true;
    hold_back(&mut world);
    world
}

/// Makes two hosts such.
pub fn hold_back(world: &mut World) {
    for token in 0..200 {
        world.post(0, 1, token, 500);
        world.run_for(2 * MS);
        world.post(1, 0, token, 500);
        world.run_for(MS);
    }
}

/// A long message leaves sooner where nothing is in flight.
#[test]
fn a_sender_of_long_messages_soon_hears_of_its_short_ones() {
    for (length, is_held) in [
        (4 << 10, true),
        (8 << 10, true),
        (16 << 10, false),
        (64 << 10, false),
    ] {
        let mut world = holding_back();
        world.post(0, 1, 200, length);
        world.run_until_quiet(20 * MS);
        world.post(0, 1, 201, 500);
        let took_ns = world.run_until_quiet(20 * MS);
        assert_eq!(took_ns > MS, is_held, "{took_ns} ns behind {length} bytes");
    }
}

/// Whoever has learned to wait for its own message is asked by who cannot wait.
#[test]
fn who_waits_for_a_short_message_hears_soon_though_acknowledgements_are_held_back() {
    let mut world = holding_back();
    let mut heard_after_ns = |token, is_awaited| {
        world.post(0, 1, token, 500);
        if is_awaited {
            let remote = world.remote(0, 1);
            world.hosts[0].machine.at(remote).await_end(token);
        }
        world.run_until_quiet(20 * MS)
    };
    let held_ns = heard_after_ns(200, false);
    assert!(held_ns > MS, "{held_ns} ns");
    let soon_ns = heard_after_ns(201, true);
    assert!(soon_ns < 200 * US, "{soon_ns} ns after {held_ns} ns");
}

/// What a remote that holds back acknowledgements says at once leaves the others as late as before.
#[test]
fn who_waits_for_each_message_hears_soon_of_nearly_all_and_sends_hardly_one_again() {
    let mut world = holding_back();
    let before = world.hosts[0].machine.inspect().statistics();
    let remote = world.remote(0, 1);
    let (count, mut late) = (400, 0);
    for token in 1000..1000 + count {
        world.post(0, 1, token, 500);
        world.hosts[0].machine.at(remote).await_end(token);
        world.run_for(200 * US);
        late += u64::from(world.hosts[0].sent.last() != Some(&token));
        world.run_for(2 * MS);
        world.post(1, 0, token, 500);
        world.run_for(MS);
    }
    let after = world.hosts[0].machine.inspect().statistics();
    let again = after.retransmitted_count - before.retransmitted_count;
    assert!(50 * again <= count, "{again} of {count} again");
    assert!(50 * late <= count, "{late} of {count} late");
}

/// The receiver does not know that the window is full.
#[test]
fn a_small_window_does_not_wait_for_acknowledgements_that_are_held_back() {
    let mut config = config();
    config.pace.initial_cwnd_bytes = 3_000;
    config.pace.cwnd_limit_bytes = 3_000;
    let mut world = World::with(2, 1, config);
    world.wait_known = true;
    hold_back(&mut world);
    for token in 1000..1040 {
        world.post(0, 1, token, 1_100);
    }
    let took_ns = world.run_until_quiet(200 * MS);
    assert!(took_ns < 5 * MS, "{took_ns} ns");
}

/// The sender must hear that something arrived before it can know that something did not.
#[test]
fn what_is_lost_is_soon_found_though_acknowledgements_are_held_back() {
    for length in [500, 8 << 10] {
        let mut world = holding_back();
        let mut is_first = true;
        world.swallow = Box::new(move |from, _, _, _| from == 0 && std::mem::take(&mut is_first));
        let count = world.hosts[1].got.len() + 2;
        world.post(0, 1, 1000, length);
        world.run_for(5 * US);
        world.post(0, 1, 1001, length);
        world.run_for(400 * US);
        assert_eq!(world.hosts[1].got.len(), count, "both have come");
    }
}

/// A queue is long now.
#[test]
fn marks_are_heard_of_soon_though_acknowledgements_are_held_back() {
    for (length, ecn) in [
        (500, Ecn::Ect0),
        (500, Ecn::Ce),
        (4_000, Ecn::Ect0),
        (4_000, Ecn::Ce),
    ] {
        let mut world = holding_back();
        world.remark = Box::new(move |from, _, sent| if from == 0 { ecn } else { sent });
        let sent = world.hosts[0].sent.len() + 1;
        world.post(0, 1, 1000, length);
        world.run_for(200 * US);
        let is_heard = world.hosts[0].sent.len() == sent;
        assert_eq!(is_heard, ecn == Ecn::Ce, "{ecn:?}");
    }
}

/// What was learned from a remote that shares its processor is forgotten once it has one to itself.
#[test]
fn a_remote_that_answers_at_once_again_is_soon_asked_soon_again() {
    let mut world = acquainted(1);
    world.wait_known = true;
    for token in 0..20 {
        world.hosts[1].away_until = world.now + 3 * MS;
        world.post(0, 1, token, 500);
        world.run_until_quiet(20 * MS);
    }
    let lost_after_ns = |world: &mut World, token| {
        let mut first = true;
        world.swallow = Box::new(move |from, _, _, _| from == 0 && std::mem::take(&mut first));
        world.post(0, 1, token, 500);
        world.run_until_quiet(20 * MS)
    };
    let slow_ns = lost_after_ns(&mut world, 20);
    assert!(slow_ns < 10 * MS, "{slow_ns} ns");
    for token in 21..61 {
        world.post(0, 1, token, 500);
        world.run_until_quiet(MS);
    }
    let quick_ns = lost_after_ns(&mut world, 61);
    assert!(quick_ns < 200 * US, "{quick_ns} ns after {slow_ns} ns");
}

/// An absence of a second says that packets behind it may take a second. But what is lost is found
/// by what leaves after it: the tail probe at the latest.
#[test]
fn what_is_lost_in_a_long_absence_is_found_soon_after_it() {
    for lost in 0..10 {
        let mut world = acquainted(lost);
        world.wait_known = true;
        for token in 0..20 {
            world.hosts[1].away_until = world.now + 3 * MS;
            world.post(0, 1, token, 500);
            world.run_until_quiet(20 * MS);
        }
        let mut left = 0;
        world.swallow = Box::new(move |from, _, _, _| {
            left += u64::from(from == 0);
            from == 0 && left == lost + 1
        });
        world.hosts[1].away_until = world.now + 1_000 * MS;
        for token in 20..30 {
            world.post(0, 1, token, 500);
            world.run_for(20 * US);
        }
        world.run_until(world.hosts[1].away_until);
        let took = world.run_until_quiet(100 * MS);
        assert!(
            took < MS,
            "packet {lost}: {} us after the return",
            took / US
        );
        let statistics = world.hosts[0].machine.inspect().statistics();
        assert!(statistics.lost_count > 0 || lost == 0 || lost == 9);
    }
}
