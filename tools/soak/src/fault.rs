// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The faults that a soak knows, and sets of them as they stand on the command line.
//!
//! Used by options, schedule and report.

use std::fmt;
use std::str::FromStr;

/// One kind of fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Fault {
    /// Packets are dropped.
    Loss,
    /// Packets come twice.
    Duplication,
    /// Packets overtake each other.
    Reordering,
    /// Bytes of packets are changed.
    Corruption,
    /// Old packets come again.
    Replay,
    /// Paths swallow everything.
    Paths,
    /// What is no datagram is dropped.
    Firewall,
    /// A process is stopped for a while (SIGSTOP).
    Pause,
    /// All processes are, as when a machine is suspended.
    Suspend,
    /// A process is killed and started again.
    Kill,
    /// A process forks a helper, which does nothing.
    Fork,
    /// It closes the endpoint that it inherited.
    Close,
    /// A process computes and does not call the library.
    Away,
    /// A process posts no receives.
    Deaf,
    /// A process hardly reads its completion queue.
    Lazy,
}

/// All of them, with their words.
pub const ALL: [(Fault, &str); 15] = [
    (Fault::Loss, "loss"),
    (Fault::Duplication, "duplication"),
    (Fault::Reordering, "reordering"),
    (Fault::Corruption, "corruption"),
    (Fault::Replay, "replay"),
    (Fault::Paths, "paths"),
    (Fault::Firewall, "firewall"),
    (Fault::Pause, "pause"),
    (Fault::Suspend, "suspend"),
    (Fault::Kill, "kill"),
    (Fault::Fork, "fork"),
    (Fault::Close, "close"),
    (Fault::Away, "away"),
    (Fault::Deaf, "deaf"),
    (Fault::Lazy, "lazy"),
];

/// Some faults.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FaultSet(Vec<Fault>);

impl FaultSet {
    /// Whether it is among them.
    pub fn has(&self, fault: Fault) -> bool {
        self.0.contains(&fault)
    }

    /// The set without these.
    #[must_use]
    pub fn without(&self, others: &[Fault]) -> Self {
        let kept = self.0.iter().filter(|fault| !others.contains(fault));
        Self(kept.copied().collect())
    }
}

impl FromStr for FaultSet {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "all" => return Ok(Self(ALL.iter().map(|(fault, _)| *fault).collect())),
            "none" => return Ok(Self(Vec::new())),
            _ => {}
        }
        let find = |word: &str| {
            let known = ALL.iter().find(|(_, known)| *known == word);
            known.map(|(fault, _)| *fault).ok_or_else(|| {
                let all: Vec<&str> = ALL.iter().map(|(_, word)| *word).collect();
                format!(
                    "{word:?} is no fault; there are all, none, {}",
                    all.join(", ")
                )
            })
        };
        text.split(',')
            .map(find)
            .collect::<Result<_, _>>()
            .map(Self)
    }
}

impl fmt::Display for FaultSet {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_empty() {
            return out.write_str("none");
        }
        if self.0.len() == ALL.len() {
            return out.write_str("all");
        }
        let words = ALL.iter().filter(|(fault, _)| self.has(*fault));
        let words: Vec<&str> = words.map(|(_, word)| *word).collect();
        out.write_str(&words.join(","))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sets_are_written_as_they_are_read() {
        for text in ["all", "none", "loss", "loss,kill,lazy"] {
            let set: FaultSet = text.parse().unwrap();
            assert_eq!(set.to_string(), text);
        }
        assert!("loss,".parse::<FaultSet>().is_err());
    }
}
