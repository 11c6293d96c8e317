// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Questions about files that several nodes write, and their answers, as bytes: docs/job-cache.md,
//! clause 5. Bytes that do not have the specified form are refused.

use std::time::Duration;

use bytes::{Buf, BufMut, Bytes, BytesMut};
use weft_store::ObjectInfo;

use crate::attribute_object::{Modified, Time};
use crate::fault::{Fault, Reason};
use crate::job_messages::{VERSION, object, put_object, put_text, text};
use crate::mode::Mode;

/// Specified (5.2): kinds of questions.
const NAME: u8 = 6;
const WRITE: u8 = 7;
const READ: u8 = 8;
const CALL: u8 = 9;
/// Specified (5.2): the offset that stands for the end of the file.
const AT_END: u64 = u64::MAX;
/// Specified (5.2): the longest write and read.
pub const DATA_BYTES: u64 = 1 << 20;

/// Specified (5.4): the beginning of an answer.
pub const FOLLOWS: u8 = 0;
/// Specified (5.4).
pub const MISSING: u8 = 1;
/// Specified (5.4).
pub const NOT_YET: u8 = 3;
/// Specified (5.4).
pub const REFUSED: u8 = 4;

/// Specified (5.4): the places of reasons are their numbers.
const REASONS: [Reason; 19] = [
    Reason::Broken,
    Reason::NotFound,
    Reason::Denied,
    Reason::ReadOnly,
    Reason::Exists,
    Reason::NotEmpty,
    Reason::NotFolder,
    Reason::IsFolder,
    Reason::Invalid,
    Reason::NameTooLong,
    Reason::Busy,
    Reason::Stale,
    Reason::NotOpen,
    Reason::TooLarge,
    Reason::NoSpace,
    Reason::Unsupported,
    Reason::NoAttribute,
    Reason::TooMuch,
    Reason::TooManyOpen,
];

/// An open file at its owner.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct FileAt {
    /// Of the owner's mount: another mount of the same node has another one.
    pub session: u64,
    /// Which of its files.
    pub number: u64,
}

/// What is asked by a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ByName {
    /// Open it.
    Open { mode: Mode, creates: bool },
    /// What is it like?
    Look,
    /// Remove it.
    Unlink,
    /// It is about to change, or changed, by a rename.
    Changes,
    /// It was made.
    Made,
    /// If somebody writes it, its content has this time until the next write.
    SetTime(Time),
    /// It is a folder that is about to be renamed: write what was set in it.
    Moves,
}

/// What is asked of an open file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Call {
    /// close(2).
    Flush,
    /// fsync(2).
    Sync,
    /// ftruncate(2).
    Resize(u64),
    /// The last descriptor is closed.
    Close,
    /// What is it like?
    Look,
    /// How did the call or write with this number end?
    Wait,
    /// Its content has this time until the next write.
    SetTime(Time),
}

/// A question.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ask {
    /// By a name, of a node.
    Name {
        node: u64,
        what: ByName,
        key: String,
    },
    /// Write.
    Write {
        file: FileAt,
        number: u64,
        /// The end of the file where there is none.
        offset: Option<u64>,
        data: Bytes,
    },
    /// Read.
    Read {
        file: FileAt,
        offset: u64,
        size: u64,
    },
    /// The rest.
    Call {
        file: FileAt,
        number: u64,
        call: Call,
    },
    /// Which of these open files has the node that is asked no more?
    Held { session: u64, numbers: Vec<u64> },
}

/// What the owner knows of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Seen {
    /// Somebody has it open for writing: there is more than the store has.
    pub is_draft: bool,
    /// Size and time; of what is no draft also the entity tag.
    pub info: ObjectInfo,
}

/// What the owner of a name answers who looks for it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Looked {
    /// It knows more than the store, or may.
    Seen(Seen),
    /// It does not, and knows since when nobody has made the name.
    NotMade(Duration),
}

/// Specified (5.1, 6.1).
pub fn subject(key: &str) -> Vec<u8> {
    [b"W", key.as_bytes()].concat()
}

/// Whether a question is one of these.
pub fn is_shared(question: &[u8]) -> bool {
    matches!(question, [VERSION, NAME..=CALL, ..])
}

fn flags(mode: Mode, creates: bool) -> u8 {
    let all = [
        mode.writes,
        mode.appends,
        mode.truncates,
        creates,
        mode.is_new,
    ];
    let bits = all.iter().enumerate();
    bits.map(|(place, is_set)| u8::from(*is_set) << place).sum()
}

impl Ask {
    /// Whether every mount of a job answers it, whether files are shared or not.
    pub fn is_of_names(&self) -> bool {
        let what = match self {
            Self::Name { what, .. } => what,
            _ => return false,
        };
        matches!(what, ByName::Look | ByName::Made | ByName::Moves)
    }

    /// As bytes.
    pub fn write(&self) -> Bytes {
        let mut to = BytesMut::new();
        to.put_u8(VERSION);
        match self {
            Self::Name { node, what, key } => {
                let (number, flags) = match what {
                    ByName::Open { mode, creates } => (0, flags(*mode, *creates)),
                    ByName::Look => (1, 0),
                    ByName::Unlink => (2, 0),
                    ByName::Changes => (3, 0),
                    ByName::Made => (4, 0),
                    ByName::SetTime(_) => (5, 0),
                    ByName::Moves => (6, 0),
                };
                to.put_slice(&[NAME, number, flags]);
                to.put_u64_le(*node);
                put_text(&mut to, key);
                if let ByName::SetTime(at) = what {
                    to.put_slice(&at.bytes());
                }
            }
            Self::Write {
                file,
                number,
                offset,
                data,
            } => {
                to.reserve(40 + data.len());
                to.put_u8(WRITE);
                put_file(&mut to, *file);
                to.put_u64_le(*number);
                to.put_u64_le(offset.unwrap_or(AT_END));
                to.put_slice(data);
            }
            Self::Read { file, offset, size } => {
                to.put_u8(READ);
                put_file(&mut to, *file);
                to.put_u64_le(*offset);
                to.put_u64_le(*size);
            }
            Self::Call { file, number, call } => {
                let (what, size) = match call {
                    Call::Flush => (0, 0),
                    Call::Sync => (1, 0),
                    Call::Resize(size) => (2, *size),
                    Call::Close => (3, 0),
                    Call::Look => (4, 0),
                    Call::Wait => (5, 0),
                    Call::SetTime(at) => (7, u64::from_le_bytes(at.bytes())),
                };
                to.put_slice(&[CALL, what]);
                put_file(&mut to, *file);
                to.put_u64_le(*number);
                to.put_u64_le(size);
            }
            Self::Held { session, numbers } => {
                to.put_slice(&[CALL, 6]);
                to.put_u64_le(*session);
                put_numbers(&mut to, numbers);
            }
        }
        to.freeze()
    }

    /// From bytes.
    pub fn read(mut from: Bytes) -> Option<Self> {
        let from = &mut from;
        if from.try_get_u8().ok()? != VERSION {
            return None;
        }
        match from.try_get_u8().ok()? {
            NAME => by_name(from),
            WRITE => {
                let (file, number) = (file(from)?, from.try_get_u64_le().ok()?);
                let offset = from.try_get_u64_le().ok()?;
                let data = from.split_off(0);
                (data.len() as u64 <= DATA_BYTES).then_some(Self::Write {
                    file,
                    number,
                    offset: (offset != AT_END).then_some(offset),
                    data,
                })
            }
            READ => {
                let file = file(from)?;
                let (offset, size) = (from.try_get_u64_le().ok()?, from.try_get_u64_le().ok()?);
                (size <= DATA_BYTES).then_some(Self::Read { file, offset, size })
            }
            CALL => call(from),
            _ => None,
        }
    }
}

fn by_name(from: &mut Bytes) -> Option<Ask> {
    let (what, flags) = (from.try_get_u8().ok()?, from.try_get_u8().ok()?);
    let node = from.try_get_u64_le().ok()?;
    let is_set = |place: u8| flags & (1 << place) != 0;
    let what = match what {
        0 => ByName::Open {
            mode: Mode {
                writes: is_set(0),
                appends: is_set(1),
                truncates: is_set(2),
                is_new: is_set(4),
                ..Mode::default()
            },
            creates: is_set(3),
        },
        1 => ByName::Look,
        2 => ByName::Unlink,
        3 => ByName::Changes,
        4 => ByName::Made,
        5 => {
            let key = text(from)?;
            let what = ByName::SetTime(time(from)?);
            return Some(Ask::Name { node, what, key });
        }
        6 => ByName::Moves,
        _ => return None,
    };
    let key = text(from)?;
    Some(Ask::Name { node, what, key })
}

fn time(from: &mut Bytes) -> Option<Time> {
    from.try_get_u64_le()
        .ok()
        .map(|number| Time::from_bytes(number.to_le_bytes()))
}

fn call(from: &mut Bytes) -> Option<Ask> {
    let what = from.try_get_u8().ok()?;
    if what == 6 {
        let session = from.try_get_u64_le().ok()?;
        let numbers = numbers(from)?;
        return Some(Ask::Held { session, numbers });
    }
    let (file, number) = (file(from)?, from.try_get_u64_le().ok()?);
    let size = from.try_get_u64_le().ok()?;
    let call = match what {
        0 => Call::Flush,
        1 => Call::Sync,
        2 => Call::Resize(size),
        3 => Call::Close,
        4 => Call::Look,
        5 => Call::Wait,
        7 => Call::SetTime(Time::from_bytes(size.to_le_bytes())),
        _ => return None,
    };
    Some(Ask::Call { file, number, call })
}

/// As bytes.
pub fn put_file(to: &mut BytesMut, file: FileAt) {
    to.put_u64_le(file.session);
    to.put_u64_le(file.number);
}

/// From bytes.
pub fn file(from: &mut Bytes) -> Option<FileAt> {
    Some(FileAt {
        session: from.try_get_u64_le().ok()?,
        number: from.try_get_u64_le().ok()?,
    })
}

/// Yes or no, from bytes.
pub fn flag(from: &mut Bytes) -> Option<bool> {
    from.try_get_u8().ok().map(|byte| byte != 0)
}

/// As bytes.
pub fn put_numbers(to: &mut BytesMut, numbers: &[u64]) {
    for number in numbers {
        to.put_u64_le(*number);
    }
}

/// From bytes.
pub fn numbers(from: &mut Bytes) -> Option<Vec<u64>> {
    let mut all = Vec::new();
    while !from.is_empty() {
        all.push(from.try_get_u64_le().ok()?);
    }
    Some(all)
}

/// As bytes: a time that was set, and for which content.
pub fn put_modified(to: &mut BytesMut, modified: Option<&Modified>) {
    to.put_u8(u8::from(modified.is_some()));
    if let Some(modified) = modified {
        to.put_slice(&modified.at.bytes());
        put_text(to, &modified.etag);
    }
}

/// From bytes.
pub fn modified(from: &mut Bytes) -> Option<Option<Modified>> {
    if !flag(from)? {
        return Some(None);
    }
    let (at, etag) = (time(from)?, text(from)?);
    Some(Some(Modified { at, etag }))
}

/// As bytes.
pub fn put_seen(to: &mut BytesMut, seen: &Seen) {
    to.put_u8(u8::from(seen.is_draft));
    put_object(to, &seen.info);
}

/// From bytes.
pub fn seen(from: &mut Bytes) -> Option<Seen> {
    Some(Seen {
        is_draft: from.try_get_u8().ok()? != 0,
        info: object(from)?,
    })
}

/// The answer to what failed.
pub fn refused(fault: &Fault) -> Bytes {
    let place = REASONS.iter().position(|reason| *reason == fault.reason);
    let mut to = BytesMut::new();
    to.put_slice(&[REFUSED, place.unwrap_or(0) as u8]);
    if let Some(cause) = &fault.cause {
        to.put_slice(cause.as_bytes());
    }
    to.freeze()
}

/// What follows an answer's first byte; nothing where the answer does not come yet.
///
/// # Errors
/// What the owner says; `NotFound`; `Broken` for what is no answer.
pub fn answered(mut answer: Bytes) -> Result<Option<Bytes>, Fault> {
    match answer.try_get_u8() {
        Ok(FOLLOWS) => Ok(Some(answer)),
        Ok(MISSING) => Err(Reason::NotFound.into()),
        Ok(NOT_YET) => Ok(None),
        Ok(REFUSED) if !answer.is_empty() => {
            let reason = REASONS.get(usize::from(answer.get_u8()));
            let reason = reason.copied().unwrap_or(Reason::Broken);
            let words = String::from_utf8_lossy(&answer);
            Err(match &*words {
                "" => reason.into(),
                words => Fault::because(reason, words),
            })
        }
        _ => Err(not_understood(&answer)),
    }
}

/// As bytes: the owner does not know of a name, which nobody has made for so long.
pub fn not_made(age: Duration) -> Bytes {
    let mut to = BytesMut::new();
    to.put_u8(MISSING);
    to.put_u64_le(age.as_nanos() as u64);
    to.freeze()
}

/// From bytes: the answer to who looks for a name.
///
/// # Errors
/// As [`answered`].
pub fn looked(mut answer: Bytes) -> Result<Looked, Fault> {
    if answer.first() == Some(&MISSING) {
        answer.advance(1);
        let age = answer.try_get_u64_le();
        let age = age.map_err(|_| not_understood(&answer))?;
        return Ok(Looked::NotMade(Duration::from_nanos(age)));
    }
    let mut found = answered(answer)?.ok_or(Reason::Broken)?;
    let seen = seen(&mut found).ok_or_else(|| not_understood(&found))?;
    Ok(Looked::Seen(seen))
}

/// An answer that is none.
pub fn not_understood(words: &[u8]) -> Fault {
    let words = String::from_utf8_lossy(words);
    let text = format!(
        "another mount of the job does not share files that are written (`{words}`); give all \
         mounts of the job --shared-writes"
    );
    Fault::because(Reason::Broken, text)
}

#[cfg(test)]
#[path = "messages_tests.rs"]
mod tests;
