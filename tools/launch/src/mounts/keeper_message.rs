// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What a keeper says, to ranks and to who holds it: one line each. Both ends are processes of one
//! user and of one version of Weft; a line that is none of these is taken for silence.

use std::io::{self, BufRead, BufReader, Read};
use std::time::Duration;

/// The longest line, in bytes. Chosen: a store's refusal is a few sentences.
const LONGEST_BYTES: usize = 8192;
/// How long a rank waits for the buckets to be mounted. Chosen: a store that does not answer is
/// given up after five attempts of some seconds each.
pub(crate) const PATIENCE: Duration = Duration::from_secs(300);
/// What a rank says when its program has ended.
pub(crate) const ENDED: &[u8] = b"ended\n";

/// What is said where a keeper ended without a word.
pub(crate) const GONE: &str = "the process that kept the mounts was killed; whether all that was \
                               written is published is not known";

/// One line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum KeeperMessage {
    /// All is mounted.
    Ready,
    /// It is not.
    Refused {
        /// Why, and what to do.
        why: String,
        /// Whether the one that is told is the one to say so to the user.
        is_first: bool,
    },
    /// What was written is in the buckets; or other ranks still run.
    Done,
    /// Something that was written is not in its bucket.
    Failed(String),
}

impl KeeperMessage {
    /// As it is sent.
    pub(crate) fn to_line(&self) -> String {
        let (word, rest) = match self {
            Self::Ready => ("ready", ""),
            Self::Done => ("done", ""),
            Self::Failed(why) => ("failed", why.as_str()),
            Self::Refused { why, is_first } if *is_first => ("refused-first", why.as_str()),
            Self::Refused { why, .. } => ("refused", why.as_str()),
        };
        let mut line = format!("{word} {}", rest.replace(['\n', '\r'], " "));
        let mut end = line.len().min(LONGEST_BYTES - 1);
        while !line.is_char_boundary(end) {
            end -= 1;
        }
        line.truncate(end);
        line.push('\n');
        line
    }

    /// As it came; `None` for what no keeper says.
    pub(crate) fn from_line(line: &str) -> Option<Self> {
        let (word, rest) = line.strip_suffix('\n')?.split_once(' ')?;
        let why = rest.to_owned();
        let refused = |why, is_first| Some(Self::Refused { why, is_first });
        match word {
            "ready" => Some(Self::Ready),
            "done" => Some(Self::Done),
            "failed" => Some(Self::Failed(why)),
            "refused" => refused(why, false),
            "refused-first" => refused(why, true),
            _ => None,
        }
    }
}

/// The word that comes; `None` where the other end goes away instead.
///
/// # Errors
/// Those of reading; `WouldBlock` after [`PATIENCE`].
pub(crate) fn read(from: &mut impl Read) -> io::Result<Option<KeeperMessage>> {
    let mut line = String::new();
    let read = BufReader::new(from.take(LONGEST_BYTES as u64)).read_line(&mut line);
    match read {
        Err(error) if error.kind() == io::ErrorKind::ConnectionReset => Ok(None),
        read => read.map(|_| KeeperMessage::from_line(&line)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_said_is_read_and_nothing_else() {
        let refused = |is_first| KeeperMessage::Refused {
            why: "no such bucket".to_owned(),
            is_first,
        };
        for word in [
            KeeperMessage::Ready,
            KeeperMessage::Done,
            KeeperMessage::Failed("a: denied".to_owned()),
            refused(true),
            refused(false),
        ] {
            assert_eq!(KeeperMessage::from_line(&word.to_line()), Some(word));
        }
        for line in ["", "ready", "ready \n.", "hello x\n", "\n"] {
            assert_eq!(KeeperMessage::from_line(line), None, "{line:?}");
        }
        let long = KeeperMessage::Failed("ä\n".repeat(LONGEST_BYTES)).to_line();
        assert!(long.len() <= LONGEST_BYTES && long.matches('\n').count() == 1);
        assert_eq!(
            read(&mut &b"ready \nrest"[..]).unwrap(),
            Some(KeeperMessage::Ready)
        );
        assert_eq!(read(&mut &b""[..]).unwrap(), None);
    }
}
