// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Locks of files that hold across the job: docs/job-cache.md, clause 4. For each file one node
//! keeps the table of its locks ([`keeper`], [`table`]), the same node for the whole job. The
//! others ask it ([`messages`]) and remember what their programs hold ([`seat`]). Here questions
//! are carried to and fro; [`crate::lock_calls`] has the calls of programs.

pub mod keeper;
pub mod messages;
pub mod seat;
pub mod table;
pub mod waiting;

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use tokio::runtime::Handle;
use tokio::sync::OnceCell;
use tokio::time::{Instant, sleep, timeout_at};

use crate::fault::{Fault, Reason};
use crate::job::{ELSE, FOLLOWS, Neighbours, refusal};
use crate::locks::keeper::{Grant, Keeper, Limits};
use crate::locks::messages::{About, Answer, Many, Notice, Reply, Request, Session, Wish};
use crate::locks::seat::{Asked, Place, Seat};
use crate::locks::table::{Holder, Lock, Span};
use crate::owners;
use crate::turns::Turns;

/// Specified (4.4): a node that is not heard of for so long loses its locks.
pub const LEASE: Duration = Duration::from_secs(10);
/// Chosen: between two attempts to reach a node that may not have begun yet.
const PAUSE: Duration = Duration::from_millis(200);
/// Chosen: answered attempts to begin a session before a lock is refused.
const RENEWALS: usize = 3;
/// All of a file.
pub const WHOLE: Span = Span {
    first: 0,
    last: u64::MAX,
};

/// The locks of this node's programs, and those that it keeps for the job.
pub struct Locks {
    neighbours: Arc<dyn Neighbours>,
    runtime: Handle,
    seat: Seat,
    keeper: Keeper,
    /// One question at a time that changes what programs hold of a file, until its answer is known
    /// here: the keeper does not know their order.
    turns: Turns,
    began: Instant,
    /// Of this mount, among those that were at this place.
    term: u64,
    lease: Duration,
    /// Set once no lock can be held that an earlier mount at this place kept.
    is_known: OnceCell<()>,
}

impl Locks {
    /// Among these nodes, with no locks; tasks run on `runtime`. Nodes that are silent for `lease`
    /// lose their locks.
    pub fn new(neighbours: Arc<dyn Neighbours>, runtime: Handle, lease: Duration) -> Arc<Self> {
        let own = neighbours.own();
        let locks = Arc::new(Self {
            seat: Seat::new(own, lease),
            keeper: Keeper::new(own as u64, lease, Limits::default()),
            turns: Turns::default(),
            neighbours,
            runtime,
            began: Instant::now(),
            term: fastrand::u64(..),
            lease,
            is_known: OnceCell::new(),
        });
        let weak = Arc::downgrade(&locks);
        let period = lease / 5;
        locks.runtime.spawn(async move {
            loop {
                sleep(period).await;
                let Some(locks) = weak.upgrade() else { return };
                locks.renew();
            }
        });
        locks
    }

    /// The kernel's number of who asks, as the job knows it.
    pub fn holder(&self, owner: u64) -> Holder {
        Holder {
            node: self.neighbours.own() as u64,
            owner,
        }
    }

    /// Whether locks that were taken by an open file are lost.
    ///
    /// # Errors
    /// `Broken` where they are.
    pub fn check(&self, handle: u64) -> Result<(), Fault> {
        if self.seat.is_lost(handle, Instant::now()) {
            let text = "the lock of this file is lost: the node that keeps it was silent, or \
                        began anew. Close the file, open it again and lock it again";
            return Err(Fault::because(Reason::Broken, text));
        }
        Ok(())
    }

    /// The locks that were taken by an open file are taken for lost.
    pub fn lose(&self, handle: u64) {
        self.seat.lose(handle);
    }

    /// Whether a holder has locks of some bytes of a file.
    pub fn has(&self, ino: u64, owner: u64, span: Span) -> bool {
        self.seat.has(ino, self.holder(owner), span)
    }

    /// Whether an open file was the last one by which somebody took a lock that it still has.
    pub fn has_by(&self, ino: u64, handle: u64) -> bool {
        !self.seat.taken_by(ino, handle).is_empty()
    }

    /// An open file is closed: what was taken by it last is given up. Its holders may have taken
    /// other locks since by other open files; those stay.
    pub async fn closed(self: &Arc<Self>, ino: u64, handle: u64) {
        let turn = self.turns.take(ino).await;
        for lock in self.seat.taken_by(ino, handle) {
            let _ = self.release_in_turn(ino, lock.holder, lock.span).await;
        }
        self.seat.closed(handle);
        drop(turn);
    }

    /// What is in the way of a lock, if anything is.
    ///
    /// # Errors
    /// `NoLocks` where the node that keeps the locks does not answer.
    pub async fn test(self: &Arc<Self>, key: String, asked: &Asked) -> Result<Option<Lock>, Fault> {
        let using = self.using(asked.ino, key);
        match self.ask(&using.place, Wish::Test, asked.lock).await {
            Some((_, Reply::Taken(other))) => Ok(Some(other)),
            Some((_, Reply::Done)) => Ok(None),
            _ => Err(no_locks(&using.place)),
        }
    }

    /// Takes a lock, without waiting.
    ///
    /// # Errors
    /// `Taken`; `NoLocks` where the node that keeps the locks does not answer.
    pub async fn take(self: &Arc<Self>, key: String, asked: &Asked) -> Result<(), Fault> {
        let using = self.using(asked.ino, key);
        let _turn = self.turns.take(asked.ino).await;
        let place = &using.place;
        match self.ask(place, Wish::Take, asked.lock).await {
            Some((_, Reply::Taken(_))) => Err(Reason::Taken.into()),
            Some((_, Reply::Full(what))) => Err(too_many(place, what)),
            Some((session, Reply::Done)) if self.seat.holds(place.keeper, session, asked) => Ok(()),
            _ => Err(no_locks(place)),
        }
    }

    /// Gives up a range. Nothing is asked where the holder has nothing.
    ///
    /// # Errors
    /// `NoLocks` where the node that keeps the locks does not answer; then they are lost. Also
    /// where the rest of a lock would be one range too many; then it is still held.
    pub async fn release(
        self: &Arc<Self>,
        ino: u64,
        holder: Holder,
        span: Span,
    ) -> Result<(), Fault> {
        let _turn = self.turns.take(ino).await;
        self.release_in_turn(ino, holder, span).await
    }

    async fn release_in_turn(
        self: &Arc<Self>,
        ino: u64,
        holder: Holder,
        span: Span,
    ) -> Result<(), Fault> {
        let Some(place) = self.seat.begin_release(ino, holder, span) else {
            return Ok(());
        };
        let using = Using {
            locks: Arc::clone(self),
            ino,
            place,
        };
        let lock = Lock {
            holder,
            span,
            is_exclusive: false,
            process: 0,
        };
        let released = self.ask(&using.place, Wish::Release, lock).await;
        if let Some((_, Reply::Full(what))) = released {
            return Err(too_many(&using.place, what));
        }
        self.seat.released(ino, holder, span);
        match released {
            Some((_, Reply::Done)) => Ok(()),
            _ => Err(no_locks(&using.place)),
        }
    }

    /// The answer to what another node says about locks. Who speaks in the name of a third one is
    /// refused.
    pub async fn answer(self: &Arc<Self>, node: usize, about: About) -> [Bytes; 2] {
        if about.node().is_some_and(|named| named != node as u64) {
            return refusal(
                ELSE,
                "the question names another node than the one that asks",
            );
        }
        match about {
            About::Request(request) => self.serve(&request).await.write(),
            About::Notice(Notice::Granted { session, ticket }) => {
                let hears = u8::from(self.seat.granted(node, session, ticket));
                [Bytes::from_static(&[FOLLOWS]), Bytes::from(vec![hears])]
            }
            About::Notice(Notice::Begun { term, .. }) => {
                self.seat.keeper_begun(node, term);
                [Bytes::from_static(&[FOLLOWS]), Bytes::from_static(&[1])]
            }
        }
    }

    fn using(self: &Arc<Self>, ino: u64, key: String) -> Using {
        let keeper = owners::heaviest(self.neighbours.node_count(), format!("K{key}").as_bytes());
        Using {
            place: self.seat.begin(ino, Place { key, keeper }),
            locks: Arc::clone(self),
            ino,
        }
    }

    /// A session with the keeper that it knows. A keeper that this node never reached may begin
    /// soon, as this node itself.
    async fn session(self: &Arc<Self>, place: &Place) -> Option<Session> {
        let mut answered = 0;
        loop {
            let session = self.seat.session(place.keeper, Instant::now());
            if !session.is_new {
                return Some(session);
            }
            let renewed = self.ask_in(place, session, Wanted::renewal(session)).await;
            if renewed == Some(Reply::Done) && answered < RENEWALS {
                // Unless the answer came later than the session lasts: a keeper that begins waits
                // for the others.
                answered += 1;
                continue;
            }
            if self.began.elapsed() > self.lease / 2 {
                return None;
            }
            sleep(PAUSE).await;
        }
    }

    async fn ask(self: &Arc<Self>, place: &Place, wish: Wish, lock: Lock) -> Option<(u64, Reply)> {
        let session = self.session(place).await?;
        let wanted = Wanted {
            wish,
            lock,
            ticket: 0,
        };
        let reply = self.ask_in(place, session, wanted).await?;
        Some((session.number, reply))
    }

    /// The answer, if the session lasts.
    async fn ask_in(
        self: &Arc<Self>,
        place: &Place,
        session: Session,
        wanted: Wanted,
    ) -> Option<Reply> {
        let request = Request {
            session,
            wish: wanted.wish,
            key: place.key.clone(),
            lock: wanted.lock,
            ticket: wanted.ticket,
        };
        let (sent, keeper) = (Instant::now(), place.keeper);
        let answer = if keeper == self.neighbours.own() {
            Some(self.serve(&request).await)
        } else {
            // A keeper that begins may wait for a node that has not begun.
            let patience = if session.is_new {
                self.lease * 3 / 2
            } else {
                self.lease
            };
            let answer = self
                .neighbours
                .ask_soon(keeper, request.write(), patience)
                .await;
            answer.ok().and_then(Answer::read)
        };
        let Some(answer) = answer.filter(|answer| answer.reply != Reply::Over) else {
            self.seat.over(keeper, session.number);
            return None;
        };
        let (number, term) = (session.number, answer.term);
        let lasts = self.seat.answered(keeper, number, term, sent);
        lasts.then_some(answer.reply)
    }

    async fn serve(self: &Arc<Self>, request: &Request) -> Answer {
        self.is_known.get_or_init(|| self.begin_to_keep()).await;
        let (reply, grants) = self.keeper.serve(request, Instant::now());
        self.deliver(grants);
        Answer {
            term: self.term,
            reply,
        }
    }

    /// All nodes give up what an earlier mount at this place kept for them, or are silent for so
    /// long that they have lost it.
    async fn begin_to_keep(self: &Arc<Self>) {
        let own = self.neighbours.own();
        let until = self.began + self.lease + self.lease / 10;
        if Instant::now() >= until {
            return;
        }
        let others = (0..self.neighbours.node_count()).filter(|node| *node != own);
        let told = others.map(|node| {
            let locks = Arc::clone(self);
            let (keeper, term) = (own as u64, self.term);
            let notice = Notice::Begun { keeper, term }.write();
            self.runtime.spawn(timeout_at(until, async move {
                let (nodes, lease) = (&locks.neighbours, locks.lease);
                while nodes.ask_soon(node, notice.clone(), lease).await.is_err() {
                    sleep(PAUSE).await;
                }
            }))
        });
        for told in told.collect::<Vec<_>>() {
            let _ = told.await;
        }
    }

    /// Tells those who waited that they have a lock. A node that does not know of this any more
    /// knows of no locks of its session; one that is not reached may.
    fn deliver(self: &Arc<Self>, grants: Vec<Grant>) {
        for grant in grants {
            let locks = Arc::clone(self);
            self.runtime.spawn(async move {
                let Grant { node, session, .. } = grant;
                match hears(&locks, grant).await {
                    Some(true) => {}
                    Some(false) => locks.deliver(locks.keeper.drop_node(node, session)),
                    None => locks.keeper.end_session(node, session),
                }
            });
        }
    }

    /// Has the keepers of this node's locks count it as alive, and drops nodes that are silent.
    fn renew(self: &Arc<Self>) {
        let now = Instant::now();
        for keeper in self.seat.to_renew(now) {
            let session = self.seat.session(keeper, now);
            let locks = Arc::clone(self);
            let place = Place {
                key: String::new(),
                keeper,
            };
            self.runtime.spawn(async move {
                if !session.is_new {
                    let renewal = Wanted::renewal(session);
                    locks.ask_in(&place, session, renewal).await;
                }
            });
        }
        let grants = self.keeper.expire(now);
        self.deliver(grants);
    }
}

/// A call about the locks of a file is under way.
struct Using {
    locks: Arc<Locks>,
    ino: u64,
    place: Place,
}

impl Drop for Using {
    fn drop(&mut self) {
        self.locks.seat.end(self.ino);
    }
}

/// What a keeper is asked for.
#[derive(Clone, Copy)]
struct Wanted {
    wish: Wish,
    lock: Lock,
    /// Of one who waits; else 0.
    ticket: u64,
}

impl Wanted {
    /// About no lock.
    fn renewal(session: Session) -> Self {
        let lock = Lock {
            holder: Holder {
                node: session.node,
                owner: 0,
            },
            span: WHOLE,
            is_exclusive: false,
            process: 0,
        };
        Self {
            wish: Wish::Renew,
            lock,
            ticket: 0,
        }
    }
}

/// What a keeper keeps for one node, and no more of it.
fn too_many(place: &Place, what: Many) -> Fault {
    let text = format!(
        "node {} of the job, which keeps the locks of `{}`, keeps {what} for this node, which is \
         the limit; give up some locks, or lock larger ranges",
        place.keeper, place.key
    );
    Fault::because(Reason::NoLocks, text)
}

fn no_locks(place: &Place) -> Fault {
    let text = format!(
        "node {} of the job, which keeps the locks of `{}`, does not answer",
        place.keeper, place.key
    );
    Fault::because(Reason::NoLocks, text)
}

/// What a node says of a lock; nothing if it does not answer.
async fn hears(locks: &Locks, grant: Grant) -> Option<bool> {
    let Grant {
        node,
        session,
        ticket,
    } = grant;
    let node = node as usize;
    if node == locks.neighbours.own() {
        return Some(locks.seat.granted(node, session, ticket));
    }
    if node >= locks.neighbours.node_count() {
        return Some(false);
    }
    let notice = Notice::Granted { session, ticket };
    let neighbours = &locks.neighbours;
    let answer = neighbours.ask_soon(node, notice.write(), locks.lease).await;
    let answer = answer.ok()?;
    (answer.first() == Some(&FOLLOWS)).then_some(answer[..] == [FOLLOWS, 1])
}
