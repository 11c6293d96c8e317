// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Carries out the schedule of a round: weather, signals, orders, and the ends of what lasts.
//!
//! Called by the job while traffic runs.

use std::collections::HashMap;
use std::io;
use std::time::Duration;

use nix::sys::signal::Signal;

use super::crew::Crew;
use crate::control::Order;
use crate::network::{Relay, Weather};
use crate::schedule::{Event, What};

/// Something to be done at a time.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Act {
    Begin(What),
    Continue(u8),
    Restart(u8),
}

/// What is still to come in a round.
pub(super) struct Events<'a> {
    left: Vec<(Duration, Act)>,
    relay: Option<&'a Relay>,
    weather: Weather,
    counts: HashMap<&'static str, u64>,
}

impl<'a> Events<'a> {
    pub(super) fn new(list: Vec<Event>, relay: Option<&'a Relay>) -> Self {
        let left = list
            .into_iter()
            .map(|event| (Duration::from_millis(event.at_ms), Act::Begin(event.what)));
        Self {
            left: left.collect(),
            relay,
            weather: Weather::default(),
            counts: HashMap::new(),
        }
    }

    /// How long nothing need be done. Short, so that the end of a round is seen.
    pub(super) fn pause(&self) -> Duration {
        Duration::from_millis(10)
    }

    pub(super) fn are_over(&self) -> bool {
        self.left.is_empty()
    }

    pub(super) fn weather(&self) -> Weather {
        self.weather
    }

    pub(super) fn counts(&self) -> HashMap<&'static str, u64> {
        self.counts.clone()
    }

    /// Does what is due at this time of the round.
    pub(super) fn fire(&mut self, crew: &mut Crew, now: Duration) -> io::Result<()> {
        for act in self.take_due(now) {
            match act {
                Act::Begin(what) => self.begin(crew, now, what),
                Act::Continue(rank) => crew.signal(rank, Signal::SIGCONT),
                Act::Restart(rank) => crew.restart(rank)?,
            }
        }
        Ok(())
    }

    /// Takes out what is due. A rank that was stopped twice goes on when the longer stop is over,
    /// and one that was killed is started when nobody is stopped: earlier it would find the others
    /// stopped for longer than it may wait for them.
    fn take_due(&mut self, now: Duration) -> Vec<Act> {
        let stop_of = |(at, act): &(Duration, Act)| match act {
            Act::Continue(rank) if *at > now => Some(*rank),
            _ => None,
        };
        let stopped: Vec<u8> = self.left.iter().filter_map(stop_of).collect();
        let is_due = |(at, act): &(Duration, Act)| {
            *at <= now && (stopped.is_empty() || !matches!(act, Act::Restart(_)))
        };
        let (due, left): (Vec<_>, Vec<_>) = self.left.drain(..).partition(is_due);
        self.left = left;
        let mut acts: Vec<Act> = due.into_iter().map(|(_, act)| act).collect();
        acts.retain(|act| !matches!(act, Act::Continue(rank) if stopped.contains(rank)));
        acts
    }

    fn begin(&mut self, crew: &mut Crew, now: Duration, what: What) {
        let later = |milliseconds| now + Duration::from_millis(milliseconds);
        let word = match what {
            What::Weather(weather) => {
                self.weather = weather;
                if let Some(relay) = self.relay {
                    relay.set(weather);
                }
                return;
            }
            What::Pause(rank, length) => {
                crew.signal(rank, Signal::SIGSTOP);
                self.left.push((later(length), Act::Continue(rank)));
                "pause"
            }
            What::Suspend(length) => {
                for rank in 0..crew.starter.setting.ranks {
                    crew.signal(rank, Signal::SIGSTOP);
                    self.left.push((later(length), Act::Continue(rank)));
                }
                "suspend"
            }
            What::Kill(rank, after) => {
                crew.kill(rank);
                self.left.push((later(after), Act::Restart(rank)));
                "kill"
            }
            What::Fork(rank, length, closes) => {
                crew.send(rank, &Order::Fork(length, closes));
                if closes { "close" } else { "fork" }
            }
            What::Away(rank, length) => {
                crew.send(rank, &Order::Away(length));
                "away"
            }
            What::Deaf(rank, length) => {
                crew.send(rank, &Order::Deaf(length));
                "deaf"
            }
            What::Lazy(rank, length) => {
                crew.send(rank, &Order::Lazy(length));
                "lazy"
            }
        };
        *self.counts.entry(word).or_default() += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pause_within_a_suspension_does_not_end_it() {
        let mut events = Events::new(Vec::new(), None);
        let at = Duration::from_millis;
        events.left = vec![
            (at(8517), Act::Continue(0)),
            (at(8517), Act::Continue(1)),
            (at(2214), Act::Continue(1)),
        ];
        assert_eq!(events.take_due(at(2300)), []);
        let last = [Act::Continue(0), Act::Continue(1)];
        assert_eq!(events.take_due(at(8517)), last);
        assert!(events.are_over());
    }

    #[test]
    fn nobody_is_started_while_others_are_stopped() {
        let mut events = Events::new(Vec::new(), None);
        let at = Duration::from_millis;
        events.left = vec![(at(8517), Act::Continue(0)), (at(2214), Act::Restart(1))];
        assert_eq!(events.take_due(at(2300)), []);
        assert!(!events.are_over());
        let last = [Act::Continue(0), Act::Restart(1)];
        assert_eq!(events.take_due(at(8517)), last);
        assert!(events.are_over());
    }
}
