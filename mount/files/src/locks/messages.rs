// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What the mounts of a job say to each other about locks, as bytes: docs/job-cache.md, clause 4.
//! [`crate::locks::seat`] asks, [`crate::locks::keeper`] answers.

use std::fmt;

use bytes::{Buf, BufMut, Bytes, BytesMut};

use crate::job::FOLLOWS;
use crate::job_messages::{VERSION, key};
use crate::locks::table::{Holder, Lock, Span};

/// Specified (4.2): to the keeper of a file's locks.
const TO_KEEPER: u8 = 4;
/// Specified (4.2): from the keeper to a node that has locks there, or waits.
const FROM_KEEPER: u8 = 5;

/// What a keeper is asked to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wish {
    /// Count the node as alive.
    Renew,
    /// Take a lock, if nothing is in its way.
    Take,
    /// Take a lock, as soon as nothing is in its way.
    Wait,
    /// Give up a range.
    Release,
    /// Say what is in a lock's way.
    Test,
    /// Wait no more.
    Cancel,
}

const WISHES: [Wish; 6] = [
    Wish::Renew,
    Wish::Take,
    Wish::Wait,
    Wish::Release,
    Wish::Test,
    Wish::Cancel,
];

/// Who asks: a node, in one of its sessions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Session {
    /// The node.
    pub node: u64,
    /// Greater than those of its sessions before.
    pub number: u64,
    /// The keeper has answered nothing in it.
    pub is_new: bool,
}

/// A question to a keeper.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Request {
    /// Who asks.
    pub session: Session,
    /// What for.
    pub wish: Wish,
    /// The key of the file.
    pub key: String,
    /// Which lock; its holder is of the node that asks.
    pub lock: Lock,
    /// Of one who waits, or waits no more.
    pub ticket: u64,
}

/// What a keeper answers, and which mount of its node that is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Answer {
    /// Another one for each mount.
    pub term: u64,
    /// To the question.
    pub reply: Reply,
}

/// What a keeper answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reply {
    /// Done: the lock is held, given up, not in anybody's way, or nobody waits for it any more.
    Done,
    /// This lock is in the way.
    Taken(Lock),
    /// It waits, and hears when it has the lock.
    Waits,
    /// It would wait for somebody who waits for it.
    Deadlock,
    /// The session is over: the node has no locks here any more.
    Over,
    /// Who should wait no more has the lock.
    Granted,
    /// The keeper keeps so many already for this node.
    Full(Many),
}

/// Of what a keeper keeps a limited number for each node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Many {
    /// Locks: the ranges that are left after merging, of all files.
    Ranges(u32),
    /// Programs that wait.
    Waiting(u32),
}

impl fmt::Display for Many {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ranges(limit) => write!(f, "{limit} locked ranges"),
            Self::Waiting(limit) => write!(f, "{limit} waiting programs"),
        }
    }
}

/// A notice of a keeper.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Notice {
    /// Who waited has the lock.
    Granted {
        /// The session of the node that waited.
        session: u64,
        /// Who waited.
        ticket: u64,
    },
    /// The keeper has begun, and knows of no locks: sessions from before are over.
    Begun {
        /// Which node it is.
        keeper: u64,
        /// Which mount of that node.
        term: u64,
    },
}

/// A question about locks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum About {
    /// To this node as a keeper.
    Request(Request),
    /// From a keeper.
    Notice(Notice),
}

impl About {
    /// The node in whose name it is said, where the words say so.
    pub fn node(&self) -> Option<u64> {
        match self {
            Self::Request(request) => Some(request.session.node),
            Self::Notice(Notice::Begun { keeper, .. }) => Some(*keeper),
            Self::Notice(Notice::Granted { .. }) => None,
        }
    }
}

impl Request {
    /// As bytes.
    pub fn write(&self) -> Bytes {
        let mut to = BytesMut::new();
        to.put_slice(&[VERSION, TO_KEEPER]);
        to.put_u64_le(self.session.node);
        to.put_u64_le(self.session.number);
        to.put_u8(u8::from(self.session.is_new));
        let wish = WISHES.iter().position(|wish| *wish == self.wish);
        to.put_u8(wish.unwrap_or_default() as u8);
        to.put_u64_le(self.ticket);
        put_lock(&mut to, &self.lock);
        to.put_u32_le(self.key.len() as u32);
        to.put_slice(self.key.as_bytes());
        to.freeze()
    }
}

impl Notice {
    /// As bytes.
    pub fn write(self) -> Bytes {
        let mut to = BytesMut::new();
        to.put_slice(&[VERSION, FROM_KEEPER]);
        match self {
            Self::Granted { session, ticket } => {
                to.put_u8(0);
                to.put_u64_le(session);
                to.put_u64_le(ticket);
            }
            Self::Begun { keeper, term } => {
                to.put_u8(1);
                to.put_u64_le(keeper);
                to.put_u64_le(term);
            }
        }
        to.freeze()
    }
}

impl Answer {
    /// As bytes.
    pub fn write(self) -> [Bytes; 2] {
        let mut to = BytesMut::new();
        to.put_u64_le(self.term);
        self.reply.put(&mut to);
        [Bytes::from_static(&[FOLLOWS]), to.freeze()]
    }

    /// From bytes.
    pub fn read(mut from: Bytes) -> Option<Self> {
        if from.try_get_u8().ok()? != FOLLOWS {
            return None;
        }
        Some(Self {
            term: from.try_get_u64_le().ok()?,
            reply: Reply::read(&mut from)?,
        })
    }
}

impl Reply {
    fn put(self, to: &mut BytesMut) {
        match self {
            Self::Done => to.put_u8(0),
            Self::Taken(lock) => {
                to.put_u8(1);
                put_lock(to, &lock);
            }
            Self::Waits => to.put_u8(2),
            Self::Deadlock => to.put_u8(3),
            Self::Over => to.put_u8(4),
            Self::Granted => to.put_u8(5),
            Self::Full(Many::Ranges(limit)) => {
                to.put_u8(6);
                to.put_u32_le(limit);
            }
            Self::Full(Many::Waiting(limit)) => {
                to.put_u8(7);
                to.put_u32_le(limit);
            }
        }
    }

    fn read(from: &mut Bytes) -> Option<Self> {
        Some(match from.try_get_u8().ok()? {
            0 => Self::Done,
            1 => Self::Taken(lock(from)?),
            2 => Self::Waits,
            3 => Self::Deadlock,
            4 => Self::Over,
            5 => Self::Granted,
            6 => Self::Full(Many::Ranges(from.try_get_u32_le().ok()?)),
            7 => Self::Full(Many::Waiting(from.try_get_u32_le().ok()?)),
            _ => return None,
        })
    }
}

/// A question about locks, if it is one.
pub fn read(mut from: Bytes) -> Option<About> {
    if from.try_get_u8().ok()? != VERSION {
        return None;
    }
    match from.try_get_u8().ok()? {
        TO_KEEPER => request(&mut from).map(About::Request),
        FROM_KEEPER => notice(&mut from).map(About::Notice),
        _ => None,
    }
}

fn request(from: &mut Bytes) -> Option<Request> {
    let session = Session {
        node: from.try_get_u64_le().ok()?,
        number: from.try_get_u64_le().ok()?,
        is_new: from.try_get_u8().ok()? != 0,
    };
    let wish = *WISHES.get(usize::from(from.try_get_u8().ok()?))?;
    let ticket = from.try_get_u64_le().ok()?;
    let lock = lock(from)?;
    let key = key(from)?;
    let is_own = lock.holder.node == session.node && lock.span.first <= lock.span.last;
    is_own.then_some(Request {
        session,
        wish,
        key,
        lock,
        ticket,
    })
}

fn notice(from: &mut Bytes) -> Option<Notice> {
    match from.try_get_u8().ok()? {
        0 => Some(Notice::Granted {
            session: from.try_get_u64_le().ok()?,
            ticket: from.try_get_u64_le().ok()?,
        }),
        1 => Some(Notice::Begun {
            keeper: from.try_get_u64_le().ok()?,
            term: from.try_get_u64_le().ok()?,
        }),
        _ => None,
    }
}

fn put_lock(to: &mut BytesMut, lock: &Lock) {
    to.put_u64_le(lock.holder.node);
    to.put_u64_le(lock.holder.owner);
    to.put_u64_le(lock.span.first);
    to.put_u64_le(lock.span.last);
    to.put_u8(u8::from(lock.is_exclusive));
    to.put_u32_le(lock.process);
}

fn lock(from: &mut Bytes) -> Option<Lock> {
    let mut number = || from.try_get_u64_le().ok();
    let holder = Holder {
        node: number()?,
        owner: number()?,
    };
    let span = Span {
        first: number()?,
        last: number()?,
    };
    Some(Lock {
        holder,
        span,
        is_exclusive: from.try_get_u8().ok()? != 0,
        process: from.try_get_u32_le().ok()?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lock_of(node: u64) -> Lock {
        Lock {
            holder: Holder { node, owner: 7 },
            span: Span {
                first: 1,
                last: u64::MAX,
            },
            is_exclusive: true,
            process: 99,
        }
    }

    #[test]
    fn questions_and_answers_are_read_as_they_were_written() {
        for wish in WISHES {
            let request = Request {
                session: Session {
                    node: 3,
                    number: 1 << 60,
                    is_new: wish == Wish::Take,
                },
                wish,
                key: "a/ü".to_owned(),
                lock: lock_of(3),
                ticket: 5,
            };
            let bytes = request.write();
            assert_eq!(read(bytes.clone()), Some(About::Request(request)));
            for length in 0..bytes.len() {
                assert_eq!(read(bytes.slice(..length)), None);
            }
        }
        let notices = [
            Notice::Granted {
                session: 4,
                ticket: 5,
            },
            Notice::Begun { keeper: 2, term: 9 },
        ];
        for notice in notices {
            assert_eq!(read(notice.write()), Some(About::Notice(notice)));
        }
        let replies = [
            Reply::Done,
            Reply::Taken(lock_of(1)),
            Reply::Waits,
            Reply::Deadlock,
            Reply::Over,
            Reply::Granted,
            Reply::Full(Many::Ranges(9)),
            Reply::Full(Many::Waiting(1 << 20)),
        ];
        for reply in replies {
            let answer = Answer { term: 8, reply };
            assert_eq!(Answer::read(answer.write().concat().into()), Some(answer));
        }
    }

    #[test]
    fn locks_of_other_nodes_and_ranges_that_are_none_are_refused() {
        let mut request = Request {
            session: Session {
                node: 3,
                number: 1,
                is_new: false,
            },
            wish: Wish::Take,
            key: String::new(),
            lock: lock_of(2),
            ticket: 0,
        };
        assert_eq!(read(request.write()), None);
        request.lock = lock_of(3);
        request.lock.span = Span { first: 2, last: 1 };
        assert_eq!(read(request.write()), None);
    }
}
