// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What one process says that it sent and received in one round, and the file it says it in.
//!
//! Written by the worker as things happen, so that a killed process leaves what it knew; read by
//! the job, judged by the
//! checker.

use std::fs::File;
use std::io::{self, Read, Write};
use std::path::Path;

use crate::traffic::{Identity, Life};

/// How a send ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SendEnd {
    /// With a completion, or without one where none was asked for.
    Well,
    /// With libfabric's error number.
    Failed(u32),
    /// Not within the time that the job waits.
    Never,
}

/// One send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sent {
    /// Which message.
    pub identity: Identity,
    /// How it ended.
    pub end: SendEnd,
}

/// What a receive asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Asked {
    /// One rank; `None` for any.
    pub source: Option<u8>,
    /// Tag and ignored bits; `None` for untagged messages.
    pub tag: Option<(u64, u64)>,
}

/// What is wrong with a message by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flaw {
    /// The byte at this place.
    Byte(u32),
    /// It has this length.
    Length(u32),
    /// The tag is another one than the message was sent with.
    Tag,
    /// The completion data is another one, or there is none where there should be some.
    Data,
    /// The queue names another source.
    Source,
    /// Nobody of this job sends such messages.
    Unknown,
}

/// One message received.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Received {
    /// Which message it says it is.
    pub identity: Identity,
    /// Receives are numbered as they are posted, over tagged and untagged ones.
    pub post: u64,
    /// The place in a multi-receive buffer.
    pub offset: u32,
    /// What the receive asked for.
    pub asked: Asked,
    /// What is wrong with it, if anything.
    pub flaw: Option<Flaw>,
}

/// One entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Entry {
    /// A send has ended.
    Sent(Sent),
    /// A message has come.
    Received(Received),
}

/// All entries of one process in one round.
#[derive(Clone, Debug)]
pub struct Ledger {
    /// Whose.
    pub life: Life,
    /// Killed in this round: the ledger may lack its last entries.
    pub is_cut_short: bool,
    /// In the order in which things happened.
    pub entries: Vec<Entry>,
}

impl Ledger {
    /// Messages that came.
    pub fn received(&self) -> impl Iterator<Item = &Received> {
        self.entries.iter().filter_map(|entry| match entry {
            Entry::Received(received) => Some(received),
            Entry::Sent(_) => None,
        })
    }

    /// Sends that were posted.
    pub fn sent(&self) -> impl Iterator<Item = &Sent> {
        self.entries.iter().filter_map(|entry| match entry {
            Entry::Sent(sent) => Some(sent),
            Entry::Received(_) => None,
        })
    }
}

/// Words of an entry in a file.
const WORDS: usize = 5;
const ENTRY_BYTES: usize = WORDS * 8;
const ANY: u64 = u64::MAX;

impl Entry {
    fn to_words(self) -> [u64; WORDS] {
        match self {
            Self::Sent(sent) => {
                let end = match sent.end {
                    SendEnd::Well => 0,
                    SendEnd::Never => 1,
                    SendEnd::Failed(error) => 2 + u64::from(error),
                };
                [0, sent.identity.packed(), end, 0, 0]
            }
            Self::Received(received) => {
                let (flaw, detail) = match received.flaw {
                    None => (0, 0),
                    Some(Flaw::Byte(at)) => (1, at),
                    Some(Flaw::Length(length)) => (2, length),
                    Some(Flaw::Tag) => (3, 0),
                    Some(Flaw::Data) => (4, 0),
                    Some(Flaw::Source) => (5, 0),
                    Some(Flaw::Unknown) => (6, 0),
                };
                let source = received.asked.source.map_or(0xff, u64::from);
                let (tag, ignore) = received.asked.tag.unwrap_or((ANY, ANY));
                // The ignored bits are none, the number of the tag, or all: two bits say which.
                let ignored = match ignore {
                    0 => 0,
                    crate::traffic::TAG_NUMBER_BITS => 1,
                    _ => 2,
                };
                let kind = 1 | flaw << 8 | source << 16 | ignored << 24 | u64::from(detail) << 32;
                let place = received.post << 24 | u64::from(received.offset & 0x00ff_ffff);
                let is_tagged = u64::from(received.asked.tag.is_some());
                [kind, received.identity.packed(), place, tag, is_tagged]
            }
        }
    }

    fn from_words(words: [u64; WORDS]) -> Self {
        let identity = Identity::unpacked(words[1]);
        if words[0] & 0xff == 0 {
            let end = match words[2] {
                0 => SendEnd::Well,
                1 => SendEnd::Never,
                error => SendEnd::Failed((error - 2) as u32),
            };
            return Self::Sent(Sent { identity, end });
        }
        let detail = (words[0] >> 32) as u32;
        let flaw = match words[0] >> 8 & 0xff {
            0 => None,
            1 => Some(Flaw::Byte(detail)),
            2 => Some(Flaw::Length(detail)),
            3 => Some(Flaw::Tag),
            4 => Some(Flaw::Data),
            5 => Some(Flaw::Source),
            _ => Some(Flaw::Unknown),
        };
        let source = (words[0] >> 16) as u8;
        let ignore = match words[0] >> 24 & 3 {
            0 => 0,
            1 => crate::traffic::TAG_NUMBER_BITS,
            _ => ANY,
        };
        Self::Received(Received {
            identity,
            post: words[2] >> 24,
            offset: (words[2] & 0x00ff_ffff) as u32,
            asked: Asked {
                source: (source != 0xff).then_some(source),
                tag: (words[4] == 1).then_some((words[3], ignore)),
            },
            flaw,
        })
    }
}

/// Writes entries to a file, each turn of the worker's loop.
pub struct Writer {
    file: File,
    waiting: Vec<u8>,
}

impl Writer {
    /// Makes the file.
    ///
    /// # Errors
    /// Those of open(2).
    pub fn create(path: &Path) -> io::Result<Self> {
        Ok(Self {
            file: File::create(path)?,
            waiting: Vec::new(),
        })
    }

    /// Notes an entry.
    pub fn add(&mut self, entry: Entry) {
        let words = entry.to_words();
        self.waiting
            .extend(words.iter().flat_map(|word| word.to_le_bytes()));
    }

    /// Hands all entries to the kernel, which keeps them if this process is killed.
    ///
    /// # Errors
    /// Those of write(2).
    pub fn flush(&mut self) -> io::Result<()> {
        if !self.waiting.is_empty() {
            self.file.write_all(&self.waiting)?;
            self.waiting.clear();
        }
        Ok(())
    }
}

/// Reads what a process has written; an entry that was cut short is left out.
///
/// # Errors
/// Those of read(2).
pub fn read(path: &Path) -> io::Result<Vec<Entry>> {
    let mut bytes = Vec::new();
    File::open(path)?.read_to_end(&mut bytes)?;
    let word = |bytes: &[u8]| u64::from_le_bytes(bytes.try_into().unwrap_or_default());
    let entries = bytes.chunks_exact(ENTRY_BYTES).map(|entry| {
        let mut words = [0; WORDS];
        for (at, bytes) in entry.chunks_exact(8).enumerate() {
            words[at] = word(bytes);
        }
        Entry::from_words(words)
    });
    Ok(entries.collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_survive_the_file_and_one_cut_short_is_left_out() {
        let identity = Identity::unpacked(0x1234_5678_9abc_def0);
        let sent = |end| Entry::Sent(Sent { identity, end });
        let received = |source, tag, flaw| {
            Entry::Received(Received {
                identity,
                post: 1 << 30,
                offset: 65_000,
                asked: Asked { source, tag },
                flaw,
            })
        };
        let entries = vec![
            sent(SendEnd::Well),
            sent(SendEnd::Never),
            sent(SendEnd::Failed(104)),
            received(None, None, None),
            received(Some(3), Some((9, 0)), Some(Flaw::Byte(7))),
            received(Some(0), Some((9, 0xff)), Some(Flaw::Length(0))),
            received(None, Some((9, u64::MAX)), Some(Flaw::Unknown)),
        ];
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("ledger");
        let mut writer = Writer::create(&path).unwrap();
        for entry in &entries {
            writer.add(*entry);
        }
        writer.flush().unwrap();
        writer.file.write_all(&[1; 13]).unwrap();
        assert_eq!(read(&path).unwrap(), entries);
    }
}
