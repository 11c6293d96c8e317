// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What a keeper tells a rank: one line.
//!
//! Written by `keeper.rs`, read by `meeting.rs`. Both are processes of one user and of one version
//! of Weft; a line that is none of these is an error all the same.

use weft_job::size::ShmSize;

/// The longest line, in bytes. Chosen: a refusal is one sentence.
pub(crate) const LONGEST_BYTES: u64 = 4096;

/// What came of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Answer {
    /// The namespaces are there, with a `/dev/shm` of this size.
    Ready(ShmSize),
    /// This host refuses.
    Refused {
        /// Why, and what to do.
        why: String,
        /// The rank that is told started the keeper, and is the one to say so: of ranks that start
        /// one at the same time only one does.
        is_first: bool,
    },
}

impl Answer {
    /// As it is sent.
    pub(crate) fn to_line(&self) -> String {
        match self {
            Self::Ready(size) => format!("ready {size}\n"),
            Self::Refused { why, is_first } => {
                let word = if *is_first {
                    "refused-first"
                } else {
                    "refused"
                };
                format!("{word} {}\n", why.replace('\n', " "))
            }
        }
    }

    /// As it came; `None` for what no keeper says.
    pub(crate) fn from_line(line: &str) -> Option<Self> {
        let line = line.strip_suffix('\n')?;
        let (word, rest) = line.split_once(' ')?;
        let refused = |is_first| {
            let why = rest.to_owned();
            Some(Self::Refused { why, is_first })
        };
        match word {
            "ready" => rest.parse().ok().map(Self::Ready),
            "refused" => refused(false),
            "refused-first" => refused(true),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_said_is_read_and_nothing_else() {
        let refused = |why: &str, is_first| {
            let why = why.to_owned();
            Answer::Refused { why, is_first }
        };
        for answer in [
            Answer::Ready("try:4g".parse().unwrap()),
            refused("this host refuses: it says no", false),
            refused("this host refuses: it says no", true),
        ] {
            assert_eq!(Answer::from_line(&answer.to_line()), Some(answer));
        }
        for line in ["", "ready 4g", "ready\n", "ready 4\n", "hello 4g\n", "\n"] {
            assert_eq!(Answer::from_line(line), None, "{line:?}");
        }
        let lines = refused("a\nready 4g", false).to_line();
        assert_eq!(lines.matches('\n').count(), 1);
    }
}
