// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Which node of a job fetches what: rendezvous hashing, docs/job-cache.md, clause 1.
//! [`crate::job`] asks here.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use sha2::{Digest, Sha256};

/// Specified (1.3).
const DEAD: Duration = Duration::from_secs(30);
/// Specified (1.3).
const BEGINNING: Duration = Duration::from_secs(5);

/// What this node knows of another one.
#[derive(Clone, Default)]
struct Known {
    has_answered: bool,
    /// When it was silent last, and until when it counts as dead for that.
    dead: Option<(Instant, Instant)>,
}

impl Known {
    fn is_dead(&self, now: Instant) -> bool {
        self.dead.is_some_and(|(_, until)| until > now)
    }

    /// When it counted as dead, or as alive, for the first time.
    fn changed(&self, now: Instant) -> Option<Instant> {
        let (since, until) = self.dead?;
        Some(if until > now { since } else { until })
    }
}

/// The nodes, and who did not answer.
pub struct Owners {
    own: usize,
    begun: Instant,
    known: Mutex<Vec<Known>>,
}

impl Owners {
    /// Of `count` nodes; `own` is this one.
    pub fn new(own: usize, count: usize) -> Self {
        Self {
            own,
            begun: Instant::now(),
            known: Mutex::new(vec![Known::default(); count]),
        }
    }

    fn known(&self) -> MutexGuard<'_, Vec<Known>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The node to ask for a subject; nobody where that is this one.
    pub fn ask_whom(&self, subject: &[u8]) -> Option<usize> {
        let known = self.known();
        let now = Instant::now();
        let living = (0..known.len()).filter(|node| !known[*node].is_dead(now));
        let owner = living.max_by_key(|node| weight(*node, subject));
        owner.filter(|owner| *owner != self.own)
    }

    /// Whether a node counts as dead now.
    pub fn is_dead(&self, node: usize) -> bool {
        self.known()[node].is_dead(Instant::now())
    }

    /// A node answered.
    pub fn note_answer(&self, node: usize) {
        self.known()[node].has_answered = true;
    }

    /// Whether a node that cannot be reached may only not have begun yet, so that asking it again
    /// is worth it: this node has just begun itself, and never had an answer from it.
    pub fn may_begin_yet(&self, node: usize) -> bool {
        !self.known()[node].has_answered && self.begun.elapsed() < BEGINNING
    }

    /// A node did not answer. Whether it counted as alive until now.
    pub fn is_silent(&self, node: usize) -> bool {
        let now = Instant::now();
        let known = &mut self.known()[node];
        let since = match known.dead {
            Some((since, until)) if until > now => since,
            _ => now,
        };
        known.dead = Some((since, now + DEAD));
        since == now
    }

    /// Since when every subject has had the owner that it has now, in this node's view.
    pub fn same_since(&self) -> Instant {
        let now = Instant::now();
        let known = self.known();
        let changed = known.iter().filter_map(|known| known.changed(now));
        changed.max().unwrap_or(self.begun)
    }
}

/// The owner of a subject that stays so whatever becomes of the node (4.1).
pub fn heaviest(count: usize, subject: &[u8]) -> usize {
    let nodes = 0..count;
    nodes.max_by_key(|node| weight(*node, subject)).unwrap_or(0)
}

/// Specified (1.3).
fn weight(node: usize, subject: &[u8]) -> u64 {
    let mut digest = Sha256::new();
    digest.update((node as u64).to_le_bytes());
    digest.update(subject);
    let mut first = [0; 8];
    first.copy_from_slice(&digest.finalize()[..8]);
    u64::from_le_bytes(first)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn owner(owners: &Owners, subject: u32) -> usize {
        let subject = subject.to_le_bytes();
        owners.ask_whom(&subject).unwrap_or(owners.own)
    }

    #[test]
    fn nodes_agree_and_have_equal_shares_and_a_dead_one_costs_its_own_alone() {
        let nodes: Vec<Owners> = (0..4).map(|own| Owners::new(own, 4)).collect();
        let mut shares = [0; 4];
        for subject in 0..4000 {
            let at = owner(&nodes[0], subject);
            assert!(nodes.iter().all(|node| owner(node, subject) == at));
            shares[at] += 1;
        }
        assert!(
            shares.iter().all(|share| (850..1150).contains(share)),
            "{shares:?}"
        );
        let view = Owners::new(0, 4);
        assert!(view.is_silent(2) && !view.is_silent(2));
        for subject in 0..4000 {
            let before = owner(&nodes[0], subject);
            let now = owner(&view, subject);
            assert!(now != 2 && (before == 2 || before == now));
        }
    }

    #[test]
    fn owners_are_the_same_since_a_node_was_silent_first() {
        let view = Owners::new(0, 3);
        assert_eq!(view.same_since(), view.begun);
        view.is_silent(1);
        let since = view.same_since();
        assert!(since >= view.begun);
        view.is_silent(1);
        assert_eq!(view.same_since(), since, "it was dead already");
        view.is_silent(2);
        assert!(view.same_since() >= since);
    }
}
