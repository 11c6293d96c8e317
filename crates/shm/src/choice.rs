// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Single copy or pipelined copy: a choice by what this machine did lately, for each size class.
//!
//! On bare metal single copy wins for large messages (Vienne 2014); on virtual machines it can be three times
//! slower, and a virtual processor that moves can change the answer within one run. So both ways are timed as
//! they are used, and the slower one is tried again now and then. Asked by rendezvous for every matched offer.

/// One of the two ways.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Method {
    SingleCopy = 0,
    Pipelined = 1,
}

/// Size classes: one for each power of two. Specified: message lengths have 64 bits.
const CLASSES: usize = 64;

/// Transfers of a class in which each way is tried before the first choice. Chosen: enough to see past one
/// interruption.
const FIRST_TRIALS: u32 = 3;

/// Every so many transfers of a class the other way is tried once more. Chosen: costs at most a few percent
/// even where one way takes three times as long.
const TRIAL_PERIOD: u32 = 64;

/// How fast an old best time is forgotten, as a part of itself for each new sample. Chosen: a fifth in twenty
/// samples, so that one lucky transfer does not decide for long.
const FORGET_DIVISOR: u64 = 100;

#[derive(Clone, Copy, Default, Debug)]
struct Class {
    /// Best time lately in ns for each KiB, times 1024; by method.
    cost: [u64; 2],
    samples: [u32; 2],
    transfers: u32,
}

/// What was learned so far.
#[derive(Debug)]
pub(crate) struct Choice {
    classes: [Class; CLASSES],
}

impl Choice {
    pub(crate) fn new() -> Self {
        Self {
            classes: [Class::default(); CLASSES],
        }
    }

    /// The way for the next transfer of `bytes` where both are permitted.
    pub(crate) fn next(&mut self, bytes: u64) -> Method {
        let class = &mut self.classes[class_of(bytes)];
        class.transfers = class.transfers.wrapping_add(1);
        let [single, pipelined] = class.samples;
        if single < FIRST_TRIALS || pipelined < FIRST_TRIALS {
            return if pipelined <= single {
                Method::Pipelined
            } else {
                Method::SingleCopy
            };
        }
        let best = if class.cost[0] < class.cost[1] {
            Method::SingleCopy
        } else {
            Method::Pipelined
        };
        match (class.transfers % TRIAL_PERIOD, best) {
            (0, Method::SingleCopy) => Method::Pipelined,
            (0, Method::Pipelined) => Method::SingleCopy,
            _ => best,
        }
    }

    /// Learns that a transfer of `bytes` took `elapsed_ns`.
    pub(crate) fn learn(&mut self, method: Method, bytes: u64, elapsed_ns: u64) {
        let class = &mut self.classes[class_of(bytes)];
        let index = method as usize;
        let cost = elapsed_ns.saturating_mul(1024) / (bytes / 1024).max(1);
        let aged = class.cost[index] + class.cost[index] / FORGET_DIVISOR;
        class.cost[index] = if class.samples[index] == 0 {
            cost
        } else {
            aged.min(cost)
        };
        class.samples[index] = class.samples[index].saturating_add(1);
    }
}

fn class_of(bytes: u64) -> usize {
    bytes.max(1).ilog2() as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(choice: &mut Choice, transfers: u32, single_ns: u64, pipelined_ns: u64) -> u32 {
        let mut single = 0;
        for _ in 0..transfers {
            let method = choice.next(1 << 20);
            let elapsed = if method == Method::SingleCopy {
                single_ns
            } else {
                pipelined_ns
            };
            single += u32::from(method == Method::SingleCopy);
            choice.learn(method, 1 << 20, elapsed);
        }
        single
    }

    #[test]
    fn the_faster_way_is_taken_nearly_always() {
        let mut choice = Choice::new();
        let single = run(&mut choice, 1000, 100_000, 40_000);
        assert!(
            single < 30,
            "single copy was taken {single} times of 1000 though it is slower"
        );
    }

    #[test]
    fn a_change_of_the_machine_changes_the_choice() {
        let mut choice = Choice::new();
        run(&mut choice, 500, 100_000, 40_000);
        let single = run(&mut choice, 1000, 50_000, 150_000);
        assert!(
            single > 700,
            "single copy was taken {single} times of 1000 though it is faster now"
        );
    }

    #[test]
    fn size_classes_do_not_disturb_each_other() {
        let mut choice = Choice::new();
        run(&mut choice, 500, 100_000, 40_000);
        for _ in 0..10 {
            choice.learn(Method::SingleCopy, 1 << 26, 1_000_000);
            choice.learn(Method::Pipelined, 1 << 26, 9_000_000);
        }
        assert_eq!(choice.next(1 << 26), Method::SingleCopy);
    }
}
