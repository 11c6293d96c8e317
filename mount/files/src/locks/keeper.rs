// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The locks that this node keeps for the job: one table for each file that is locked, and when
//! each node was heard of last. A node that is not heard of loses its locks. Without messages, and
//! with a clock that is handed in; [`crate::locks`] carries what is said.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use crate::locks::messages::{Many, Reply, Request, Session, Wish};
use crate::locks::table::{Count, Table, Ticket, Waiting};

/// What is kept for one node at most, over all files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Ranges that are locked, as they are after merging. A lock that splits others, and those that
    /// waited, may pass the limit by two each.
    pub ranges: u32,
    /// Programs that wait.
    pub waiting: u32,
}

impl Default for Limits {
    /// Specified (4.7).
    fn default() -> Self {
        Self {
            ranges: 16_384,
            waiting: 1024,
        }
    }
}

/// Somebody who waited has a lock now, and must hear of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Grant {
    /// Where it waits.
    pub node: u64,
    /// The session of that node.
    pub session: u64,
    /// Which one.
    pub ticket: u64,
}

/// What is known of a node.
#[derive(Debug)]
struct Met {
    session: u64,
    heard: Instant,
    /// It must begin a new session.
    is_over: bool,
    /// It may hold locks, or believe that it does.
    has_locks: bool,
}

#[derive(Debug, Default)]
struct State {
    tables: HashMap<String, Table>,
    nodes: HashMap<u64, Met>,
    /// Of all tables together.
    counts: HashMap<u64, Count>,
}

/// All tables of this node.
#[derive(Debug)]
pub struct Keeper {
    own: u64,
    lease: Duration,
    limits: Limits,
    state: Mutex<State>,
}

impl Keeper {
    /// On the node `own`. Other nodes lose their locks if they are not heard of for `lease`.
    pub fn new(own: u64, lease: Duration, limits: Limits) -> Self {
        Self {
            own,
            lease,
            limits,
            state: Mutex::default(),
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Does what a node asks for.
    pub fn serve(&self, request: &Request, now: Instant) -> (Reply, Vec<Grant>) {
        let mut state = self.state();
        let mut grants = Vec::new();
        if !state.hears(request.session, now, &mut grants) {
            return (Reply::Over, grants);
        }
        if request.wish == Wish::Renew {
            return (Reply::Done, grants);
        }
        if let Some(what) = state.is_full(request, self.limits) {
            return (Reply::Full(what), grants);
        }
        let mut table = state.tables.remove(&request.key).unwrap_or_default();
        let before = table.count();
        let (reply, served) = serve(&mut table, request);
        state.recount(&before, &table.count());
        if !table.is_empty() {
            state.tables.insert(request.key.clone(), table);
        }
        grants.extend(state.grants(served));
        (reply, grants)
    }

    /// A node is gone in this session, with all that it held.
    pub fn drop_node(&self, node: u64, session: u64) -> Vec<Grant> {
        let mut state = self.state();
        match state.nodes.get_mut(&node) {
            Some(met) if met.session == session && met.has_locks => {
                met.is_over = true;
                met.has_locks = false;
            }
            _ => return Vec::new(),
        }
        state.drop_node(node)
    }

    /// A node was not reached: its session is over, but it may not know that yet, and keeps its
    /// locks until it must.
    pub fn end_session(&self, node: u64, session: u64) {
        let mut state = self.state();
        let met = state.nodes.get_mut(&node);
        if let Some(met) = met.filter(|met| met.session == session) {
            met.is_over = true;
        }
    }

    /// Nodes that were not heard of for too long are gone.
    pub fn expire(&self, now: Instant) -> Vec<Grant> {
        // They count from when they asked; a tenth more is for clocks of different pace.
        let limit = self.lease + self.lease / 10;
        let mut state = self.state();
        let is_silent = |met: &Met| met.has_locks && met.heard + limit < now;
        let silent = state.nodes.iter_mut();
        let silent = silent.filter(|(node, met)| **node != self.own && is_silent(met));
        let mut gone = Vec::new();
        for (node, met) in silent {
            met.is_over = true;
            met.has_locks = false;
            gone.push(*node);
        }
        let mut grants = Vec::new();
        for node in gone {
            grants.extend(state.drop_node(node));
        }
        grants
    }
}

impl State {
    /// Whether a node may go on in this session. In a new one it has no locks.
    fn hears(&mut self, session: Session, now: Instant, grants: &mut Vec<Grant>) -> bool {
        let new = Met {
            session: session.number,
            heard: now,
            is_over: false,
            has_locks: true,
        };
        match self.nodes.get_mut(&session.node) {
            Some(met) if met.session == session.number => {
                if !met.is_over {
                    met.heard = now;
                }
                !met.is_over
            }
            Some(met) if met.session < session.number && session.is_new => {
                *met = new;
                grants.extend(self.drop_node(session.node));
                true
            }
            None if session.is_new => {
                self.nodes.insert(session.node, new);
                true
            }
            _ => false,
        }
    }

    fn drop_node(&mut self, node: u64) -> Vec<Grant> {
        let tables = self.tables.values_mut();
        let served = tables.flat_map(|table| table.drop_node(node)).collect();
        self.tables.retain(|_, table| !table.is_empty());
        self.counts.clear();
        let counts: Vec<_> = self.tables.values().map(Table::count).collect();
        for after in &counts {
            self.recount(&HashMap::new(), after);
        }
        self.grants(served)
    }

    /// Of what a node has too much already for what it asks. Who gives up has less, unless a range
    /// falls into two.
    fn is_full(&self, request: &Request, limits: Limits) -> Option<Many> {
        let count = self.counts.get(&request.session.node)?;
        let has_all_ranges = count.ranges >= limits.ranges as usize;
        let Limits { ranges, waiting } = limits;
        match request.wish {
            Wish::Take | Wish::Wait if has_all_ranges => Some(Many::Ranges(ranges)),
            Wish::Wait if count.waiting >= waiting as usize => Some(Many::Waiting(waiting)),
            Wish::Release if has_all_ranges => {
                let table = self.tables.get(&request.key)?;
                let splits = table.is_within(request.lock.holder, request.lock.span);
                splits.then_some(Many::Ranges(ranges))
            }
            _ => None,
        }
    }

    /// What one table has of each node changed.
    fn recount(&mut self, before: &HashMap<u64, Count>, after: &HashMap<u64, Count>) {
        for (node, had) in before {
            let count = self.counts.entry(*node).or_default();
            count.ranges -= had.ranges;
            count.waiting -= had.waiting;
        }
        for (node, has) in after {
            let count = self.counts.entry(*node).or_default();
            count.ranges += has.ranges;
            count.waiting += has.waiting;
        }
        self.counts.retain(|_, count| *count != Count::default());
    }

    fn grants(&self, served: Vec<Ticket>) -> Vec<Grant> {
        let grant = |ticket: Ticket| {
            let met = self.nodes.get(&ticket.node)?;
            Some(Grant {
                node: ticket.node,
                session: met.session,
                ticket: ticket.number,
            })
        };
        served.into_iter().filter_map(grant).collect()
    }
}

fn serve(table: &mut Table, request: &Request) -> (Reply, Vec<Ticket>) {
    let lock = request.lock;
    let ticket = Ticket {
        node: request.session.node,
        number: request.ticket,
    };
    match request.wish {
        Wish::Renew => (Reply::Done, Vec::new()),
        Wish::Take => match table.take(lock) {
            Ok(served) => (Reply::Done, served),
            Err(other) => (Reply::Taken(other), Vec::new()),
        },
        Wish::Wait => {
            let (waiting, served) = table.wait(ticket, lock);
            let reply = match waiting {
                Waiting::Granted => Reply::Done,
                Waiting::Waits => Reply::Waits,
                Waiting::Deadlock => Reply::Deadlock,
            };
            (reply, served)
        }
        Wish::Release => (Reply::Done, table.release(lock.holder, lock.span)),
        Wish::Test => match table.in_the_way(&lock) {
            Some(other) => (Reply::Taken(other), Vec::new()),
            None => (Reply::Done, Vec::new()),
        },
        Wish::Cancel => match table.cancel(ticket) {
            (true, served) => (Reply::Done, served),
            (false, served) => (Reply::Granted, served),
        },
    }
}
