// SPDX-License-Identifier: Apache-2.0 OR MIT
//! When it is time to say again that one is alive. Called by both sides of the agent
//! protocol, which hear each
//! other: neither may answer a word with a word, or the two talk as fast as the machine lets them
//! and take the processors from the ranks.

use std::time::{Duration, Instant};

/// Words at even distances, whatever is heard between them.
#[derive(Debug)]
pub(crate) struct Heartbeat {
    period: Duration,
    next: Instant,
}

impl Heartbeat {
    /// The first word is due now.
    pub(crate) fn new(period: Duration) -> Self {
        Self {
            period,
            next: Instant::now(),
        }
    }

    /// How long to listen until the next word is due.
    pub(crate) fn left(&self) -> Duration {
        self.next.saturating_duration_since(Instant::now())
    }

    /// Whether a word is due; then the next one is a period away.
    pub(crate) fn is_due(&mut self) -> bool {
        let now = Instant::now();
        let due = now >= self.next;
        if due {
            self.next = now + self.period;
        }
        due
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Barrier;
    use std::sync::mpsc::{Receiver, Sender, channel};

    /// Talks as both sides do, once both are there; answers how many words it said and how many it
    /// may have.
    fn talk(start: &Barrier, words: &Sender<()>, heard: &Receiver<()>) -> (u32, u32) {
        const PERIOD_MS: u64 = 20;
        start.wait();
        let begin = Instant::now();
        let mut heartbeat = Heartbeat::new(Duration::from_millis(PERIOD_MS));
        let mut count = 0;
        while count == 0 || begin.elapsed() < Duration::from_millis(200) {
            // What is heard wakes us up before our time.
            let _ = heard.recv_timeout(heartbeat.left());
            if heartbeat.is_due() {
                count += 1;
                let _ = words.send(());
            }
        }
        let most = begin.elapsed().as_millis() as u32 / PERIOD_MS as u32 + 1;
        (count, most)
    }

    #[test]
    fn two_who_hear_each_other_do_not_talk_faster_than_one() {
        let ((to_there, here), (to_here, there)) = (channel(), channel());
        let start = Barrier::new(2);
        let counts = std::thread::scope(|scope| {
            let other = scope.spawn(|| {
                let (words, heard) = (to_here, here);
                talk(&start, &words, &heard)
            });
            [
                talk(&start, &to_there, &there),
                other.join().expect("talks"),
            ]
        });
        assert!(
            counts
                .iter()
                .all(|(count, most)| (1..=*most).contains(count)),
            "said and at most: {counts:?}"
        );
    }
}
