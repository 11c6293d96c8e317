// SPDX-License-Identifier: Apache-2.0 OR MIT
//! When it is time to say again that one is alive. Called by posts and guard, which hear each other: neither may answer
//! a word with a word, or the two talk as fast as the machine lets them and take the processors from the ranks.

use std::time::{Duration, Instant};

/// Words at even distances, whatever is heard between them.
#[derive(Debug)]
pub(crate) struct Beat {
    period: Duration,
    next: Instant,
}

impl Beat {
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
    use std::sync::mpsc::{Receiver, Sender, channel};

    /// Talks as both sides do; answers how many words it said.
    fn talk(end: Instant, period: Duration, words: &Sender<()>, heard: &Receiver<()>) -> u32 {
        let mut beat = Beat::new(period);
        let mut count = 0;
        while Instant::now() < end {
            // What is heard wakes us up before our time.
            let _ = heard.recv_timeout(beat.left());
            if beat.is_due() {
                count += 1;
                let _ = words.send(());
            }
        }
        count
    }

    #[test]
    fn two_who_hear_each_other_do_not_talk_faster_than_one() {
        let period = Duration::from_millis(20);
        let start = Instant::now();
        let end = start + Duration::from_millis(200);
        let ((to_there, here), (to_here, there)) = (channel(), channel());
        let other = std::thread::spawn(move || talk(end, period, &to_here, &here));
        let counts = [
            talk(end, period, &to_there, &there),
            other.join().expect("talks"),
        ];
        let most = start.elapsed().as_millis() as u32 / 20 + 1;
        assert!(
            counts.iter().all(|count| (1..=most).contains(count)),
            "{counts:?}, at most {most}"
        );
    }
}
