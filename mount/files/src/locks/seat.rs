// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What the programs of this node hold and wait for, as this node knows it, and its sessions with
//! the nodes that keep the tables. Without messages; [`crate::locks`] carries what is said.
//!
//! A session lasts as long as its keeper answers. When it is over, the locks that were held in it
//! are lost, and calls on the files that had them fail: nobody goes on in the belief that it holds
//! a lock that somebody else may hold.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use tokio::sync::oneshot;
use tokio::time::Instant;

use crate::locks::messages::Session;
use crate::locks::table::{Holder, Lock, Span, Table};

/// A file of which somebody holds, wants or gives up locks.
#[derive(Debug)]
struct File {
    /// With the key when the first of these locks was asked for: it stays so under a new name.
    place: Place,
    /// By the open file that took a lock last. Of each holder no byte is in two of them.
    mine: HashMap<u64, Table>,
    /// Calls that are under way.
    users: usize,
}

/// What is known of a session with a keeper.
#[derive(Debug, Clone, Copy)]
struct Open {
    number: u64,
    valid_until: Option<Instant>,
    /// Which mount of the keeper's node answered.
    term: Option<u64>,
}

/// One who waits here.
#[derive(Debug)]
struct Expected {
    asked: Asked,
    keeper: usize,
    session: u64,
    /// Its holder gave up some of these bytes meanwhile.
    is_disturbed: bool,
    granted: oneshot::Sender<Granted>,
}

/// What one who waits hears.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Granted {
    /// It has the lock.
    Held,
    /// Nobody knows whether its holder gave it up again: the keeper must be asked once more.
    Again,
    /// The session is over.
    Over,
}

/// Which lock a program asks for.
#[derive(Debug, Clone, Copy)]
pub struct Asked {
    /// The node of the file.
    pub ino: u64,
    /// The open file by which it asks.
    pub handle: u64,
    /// The lock.
    pub lock: Lock,
}

/// Where the locks of a file are kept.
#[derive(Debug, Clone)]
pub struct Place {
    /// Their name there.
    pub key: String,
    /// By which node.
    pub keeper: usize,
}

#[derive(Debug, Default)]
struct State {
    own: usize,
    files: HashMap<u64, File>,
    sessions: HashMap<usize, Open>,
    waiting: HashMap<u64, Expected>,
    /// By open file: the node, and who took locks by it and still has some.
    handles: HashMap<u64, (u64, BTreeSet<u64>)>,
    /// Open files whose locks were lost.
    lost: HashSet<u64>,
    last_ticket: u64,
    last_session: u64,
}

/// All locks of this node's programs.
#[derive(Debug)]
pub struct Seat {
    lease: Duration,
    state: Mutex<State>,
}

impl Seat {
    /// Of the node `own`; a session lasts for `lease` after the last question that was answered.
    pub fn new(own: usize, lease: Duration) -> Self {
        let since = SystemTime::now().duration_since(UNIX_EPOCH);
        let state = State {
            own,
            // Greater than those of a mount that ran here before.
            last_session: since.unwrap_or_default().as_nanos() as u64,
            ..State::default()
        };
        Self {
            lease,
            state: Mutex::new(state),
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A call about locks of a file begins; `place` is where they are kept if it is the first.
    pub fn begin(&self, ino: u64, place: Place) -> Place {
        let mut state = self.state();
        let file = state.files.entry(ino).or_insert_with(|| File {
            place,
            mine: HashMap::new(),
            users: 0,
        });
        file.users += 1;
        file.place.clone()
    }

    /// A holder gives up a range: a call begins, if the holder has locks of the file.
    pub fn begin_release(&self, ino: u64, holder: Holder, span: Span) -> Option<Place> {
        let mut state = self.state();
        let file = state.files.get_mut(&ino).filter(|file| file.has(holder))?;
        file.users += 1;
        let place = file.place.clone();
        for expected in state.waiting.values_mut() {
            let lock = &expected.asked.lock;
            let is_of_holder = expected.asked.ino == ino && lock.holder == holder;
            expected.is_disturbed |= is_of_holder && lock.span.meets(span);
        }
        Some(place)
    }

    /// A call ends.
    pub fn end(&self, ino: u64) {
        let mut state = self.state();
        if let Some(file) = state.files.get_mut(&ino) {
            file.users -= 1;
            if file.users == 0 && file.mine.is_empty() {
                state.files.remove(&ino);
            }
        }
    }

    /// The session with a keeper, begun where there is none.
    pub fn session(&self, keeper: usize, now: Instant) -> Session {
        let mut state = self.state();
        if state.is_past(keeper, now) {
            state.end_session(keeper);
        }
        if !state.sessions.contains_key(&keeper) {
            state.last_session += 1;
            let open = Open {
                number: state.last_session,
                valid_until: None,
                term: None,
            };
            state.sessions.insert(keeper, open);
        }
        let open = state.sessions[&keeper];
        Session {
            node: state.own as u64,
            number: open.number,
            is_new: open.valid_until.is_none(),
        }
    }

    /// The mount `term` of a keeper answered what was asked at `sent`. Whether the session still
    /// lasts.
    pub fn answered(&self, keeper: usize, number: u64, term: u64, sent: Instant) -> bool {
        let until = sent + self.lease;
        let mut state = self.state();
        let open = state.sessions.get_mut(&keeper);
        let Some(open) = open.filter(|open| open.number == number) else {
            return false;
        };
        if *open.term.get_or_insert(term) != term {
            state.end_session(keeper);
            return false;
        }
        open.valid_until = open.valid_until.max(Some(until));
        true
    }

    /// A session is over, if it is this one: its locks are lost, and who waits waits in vain.
    pub fn over(&self, keeper: usize, number: u64) {
        let mut state = self.state();
        let is_this = |open: &Open| open.number == number;
        if state.sessions.get(&keeper).is_some_and(is_this) {
            state.end_session(keeper);
        }
    }

    /// The mount `term` of a keeper has begun: what another one answered before is over. It may
    /// have answered itself before this is heard.
    pub fn keeper_begun(&self, keeper: usize, term: u64) {
        let mut state = self.state();
        let is_old = |open: &Open| open.term.is_some_and(|known| known != term);
        if state.sessions.get(&keeper).is_some_and(is_old) {
            state.end_session(keeper);
        }
    }

    /// A program has a lock; false where the session is over by now.
    pub fn holds(&self, keeper: usize, session: u64, asked: &Asked) -> bool {
        self.state().holds(keeper, session, asked)
    }

    /// Somebody will wait; its number, and what tells how that ends.
    pub fn expect(
        &self,
        keeper: usize,
        session: u64,
        asked: Asked,
    ) -> (u64, oneshot::Receiver<Granted>) {
        let (granted, hears) = oneshot::channel();
        let mut state = self.state();
        state.last_ticket += 1;
        let ticket = state.last_ticket;
        let expected = Expected {
            asked,
            keeper,
            session,
            is_disturbed: false,
            granted,
        };
        state.waiting.insert(ticket, expected);
        (ticket, hears)
    }

    /// It waits no more.
    pub fn forget(&self, ticket: u64) {
        self.state().waiting.remove(&ticket);
    }

    /// A keeper says that somebody who waited has the lock. False where nobody waits there: the
    /// keeper then takes all locks of the session, so it is over here, too.
    pub fn granted(&self, keeper: usize, session: u64, ticket: u64) -> bool {
        let mut state = self.state();
        let hears = state.granted(keeper, session, ticket);
        let open = state.sessions.get(&keeper);
        if !hears && open.is_some_and(|open| open.number == session) {
            state.end_session(keeper);
        }
        hears
    }

    /// A program gave up a range.
    pub fn released(&self, ino: u64, holder: Holder, span: Span) {
        let mut state = self.state();
        let State { files, handles, .. } = &mut *state;
        let Some(file) = files.get_mut(&ino) else {
            return;
        };
        file.cut(holder, span);
        if !file.has(holder) {
            handles.retain(|_, (of, owners)| {
                let is_last = *of == ino && owners.remove(&holder.owner) && owners.is_empty();
                !is_last
            });
        }
    }

    /// Whether a holder has locks of some bytes of a file.
    pub fn has(&self, ino: u64, holder: Holder, span: Span) -> bool {
        let state = self.state();
        let locks = state.files.get(&ino).into_iter().flat_map(File::locks);
        let mut own = locks.filter(|lock| lock.holder == holder);
        own.any(|lock| lock.span.meets(span))
    }

    /// The locks that were taken last by an open file.
    pub fn taken_by(&self, ino: u64, handle: u64) -> Vec<Lock> {
        let state = self.state();
        let file = state.files.get(&ino);
        let table = file.and_then(|file| file.mine.get(&handle));
        table.map_or(Vec::new(), |table| table.held().to_vec())
    }

    /// The locks that were taken by an open file are taken for lost.
    pub fn lose(&self, handle: u64) {
        self.state().lost.insert(handle);
    }

    /// An open file is closed.
    pub fn closed(&self, handle: u64) {
        let mut state = self.state();
        state.lost.remove(&handle);
        state.handles.remove(&handle);
    }

    /// Whether locks that were taken by an open file are lost.
    pub fn is_lost(&self, handle: u64, now: Instant) -> bool {
        let mut state = self.state();
        if let Some((ino, _)) = state.handles.get(&handle)
            && let Some(file) = state.files.get(ino)
            && !file.mine.is_empty()
        {
            let keeper = file.place.keeper;
            if state.is_past(keeper, now) {
                state.end_session(keeper);
            }
        }
        state.lost.contains(&handle)
    }

    /// The keepers that must hear of this node. Sessions that are past end here.
    pub fn to_renew(&self, now: Instant) -> Vec<usize> {
        let mut state = self.state();
        for keeper in state.sessions.keys().copied().collect::<Vec<_>>() {
            if state.is_past(keeper, now) {
                state.end_session(keeper);
            }
        }
        let used = state.files.values().map(|file| file.place.keeper);
        let used: BTreeSet<usize> = used.filter(|keeper| *keeper != state.own).collect();
        used.into_iter().collect()
    }
}

impl File {
    fn locks(&self) -> impl Iterator<Item = &Lock> {
        self.mine.values().flat_map(Table::held)
    }

    fn has(&self, holder: Holder) -> bool {
        self.mine.values().any(|table| table.has(holder))
    }

    fn cut(&mut self, holder: Holder, span: Span) {
        self.mine.retain(|_, table| {
            let _ = table.release(holder, span);
            !table.is_empty()
        });
    }
}

impl State {
    /// Whether the session with a keeper has lasted its time. That with this node itself stays.
    fn is_past(&self, keeper: usize, now: Instant) -> bool {
        let open = self.sessions.get(&keeper);
        let until = open.and_then(|open| open.valid_until);
        keeper != self.own && until.is_some_and(|until| until < now)
    }

    /// Whether a session lasts still.
    fn lasts(&self, keeper: usize, session: u64) -> bool {
        let is_this = |open: &Open| open.number == session;
        let open = self.sessions.get(&keeper);
        open.is_some_and(is_this) && !self.is_past(keeper, Instant::now())
    }

    fn granted(&mut self, keeper: usize, session: u64, ticket: u64) -> bool {
        let expected = self.waiting.get(&ticket);
        if expected.is_none_or(|expected| expected.keeper != keeper) {
            return false;
        }
        let Some(expected) = self.waiting.remove(&ticket) else {
            return false;
        };
        let granted = if expected.session != session || !self.lasts(keeper, session) {
            Granted::Over
        } else if expected.is_disturbed {
            Granted::Again
        } else if self.holds(keeper, session, &expected.asked) {
            Granted::Held
        } else {
            Granted::Over
        };
        let hears = expected.granted.send(granted).is_ok();
        hears && granted != Granted::Over
    }

    fn holds(&mut self, keeper: usize, session: u64, asked: &Asked) -> bool {
        if !self.lasts(keeper, session) {
            return false;
        }
        let Some(file) = self.files.get_mut(&asked.ino) else {
            return false;
        };
        // Nothing of this node is in the way: the keeper has looked.
        file.cut(asked.lock.holder, asked.lock.span);
        let _ = file.mine.entry(asked.handle).or_default().take(asked.lock);
        let new = || (asked.ino, BTreeSet::new());
        let (_, owners) = self.handles.entry(asked.handle).or_insert_with(new);
        owners.insert(asked.lock.holder.owner);
        true
    }

    fn end_session(&mut self, keeper: usize) {
        self.sessions.remove(&keeper);
        let kept = self
            .files
            .iter_mut()
            .filter(|(_, file)| file.place.keeper == keeper);
        for (ino, file) in kept {
            let mine = std::mem::take(&mut file.mine);
            for (handle, (of, owners)) in &self.handles {
                let mut held = mine.values().flat_map(Table::held);
                if of == ino && held.any(|lock| owners.contains(&lock.holder.owner)) {
                    self.lost.insert(*handle);
                }
            }
        }
        self.files
            .retain(|_, file| file.users > 0 || !file.mine.is_empty());
        let waiting = std::mem::take(&mut self.waiting);
        for (ticket, expected) in waiting {
            if expected.keeper == keeper {
                let _ = expected.granted.send(Granted::Over);
            } else {
                self.waiting.insert(ticket, expected);
            }
        }
    }
}
