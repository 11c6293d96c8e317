// SPDX-License-Identifier: Apache-2.0 OR MIT
//! How long a closing endpoint waits for remotes that have not taken what was reported as sent.
//!
//! A send is complete for its sender once it is copied, and its program may end then. A remote that
//! computes takes nothing meanwhile. So the endpoint waits as long as such a remote lives, and says
//! so after a while. A remote in the same process is another case: the thread that closes may be
//! the one that would have to make progress there. Asked by closing.rs.

use std::time::{Duration, Instant};

/// How long to wait for remotes of the same process while nothing moves, and in all. Chosen: as the
/// srd route waits for silent remotes.
const OWN_SILENT: Duration = Duration::from_millis(200);
const OWN: Duration = Duration::from_secs(2);

/// How long to wait for other remotes while nothing moves. Chosen: longer than most programs
/// compute between two calls of their MPI; so a remote that never takes its messages does not keep
/// us for ever.
const OTHERS_SILENT: Duration = Duration::from_secs(600);

/// When the user is told what is waited for. Chosen: nobody wonders before.
const TELL_AFTER: Duration = Duration::from_secs(10);

/// Until then the waiting thread only yields. Chosen: most remotes answer sooner.
const YIELDS_FOR: Duration = Duration::from_millis(1);

/// What to do next.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Verdict {
    Wait,
    /// As [`Self::Wait`], and tell the user.
    Tell,
    Close,
}

/// See the module.
#[derive(Debug)]
pub(super) struct Patience {
    began: Instant,
    /// When something moved last.
    moved: Instant,
    has_told: bool,
}

impl Patience {
    pub(super) fn begin(now: Instant) -> Self {
        Self {
            began: now,
            moved: now,
            has_told: false,
        }
    }

    /// Something was sent, or arrived.
    pub(super) fn note_moved(&mut self, now: Instant) {
        self.moved = now;
    }

    /// `are_own`: all remotes that are waited for are endpoints of this process.
    pub(super) fn judge(&mut self, now: Instant, are_own: bool) -> Verdict {
        let (silent, waited) = (now - self.moved, now - self.began);
        let is_over = match are_own {
            true => silent > OWN_SILENT || waited > OWN,
            false => silent > OTHERS_SILENT,
        };
        if is_over {
            return Verdict::Close;
        }
        let tells = silent > TELL_AFTER && !self.has_told;
        self.has_told |= tells;
        if tells { Verdict::Tell } else { Verdict::Wait }
    }

    /// Lets others use the processor, after a round in which nothing moved.
    pub(super) fn rest(&self, now: Instant) {
        if now - self.moved < YIELDS_FOR {
            std::thread::yield_now();
        } else {
            std::thread::sleep(YIELDS_FOR);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn remotes_of_this_process_are_waited_for_shortly_and_others_while_they_live() {
        let start = Instant::now();
        let at = |milliseconds| start + Duration::from_millis(milliseconds);
        let mut patience = Patience::begin(start);
        assert_eq!(patience.judge(at(150), true), Verdict::Wait);
        assert_eq!(patience.judge(at(250), true), Verdict::Close);
        assert_eq!(patience.judge(at(250), false), Verdict::Wait);
        patience.note_moved(at(1_900));
        assert_eq!(patience.judge(at(1_950), true), Verdict::Wait);
        assert_eq!(patience.judge(at(2_050), true), Verdict::Close, "in all");
        assert_eq!(patience.judge(at(12_000), false), Verdict::Tell);
        assert_eq!(patience.judge(at(13_000), false), Verdict::Wait, "once");
        assert_eq!(patience.judge(at(602_000), false), Verdict::Close);
    }
}
