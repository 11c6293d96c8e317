// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What the job and its workers say to each other: one line of JSON each, on the worker's standard
//! streams.

use std::net::SocketAddr;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::finding::Finding;
use crate::traffic::{Life, Stream, Traffic};

/// What a worker is, given to it as its only argument.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Role {
    /// Who it is.
    pub life: Life,
    /// Its address.
    pub address: SocketAddr,
    /// libfabric, if not the one that the loader finds.
    pub libfabric: Option<PathBuf>,
    /// Where its ledgers go.
    pub folder: PathBuf,
    /// What all messages have in common.
    pub traffic: Traffic,
    /// Entries of its completion queue; 0 leaves it to the provider.
    pub queue_entries: usize,
    /// Receives that it keeps posted.
    pub receives: usize,
    /// Operations of its own that may be under way.
    pub window: usize,
    /// How many ranks there are.
    pub ranks: u8,
}

/// A process to talk to.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct Peer {
    /// Who.
    pub life: Life,
    /// Where.
    pub address: SocketAddr,
}

/// To a worker.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum Order {
    /// A round is prepared: so many messages will go to each of these.
    Begin {
        /// The round.
        round: u16,
        /// All others.
        peers: Vec<Peer>,
        /// Messages of each stream.
        budget: u32,
    },
    /// Everybody is prepared: the round begins.
    Go,
    /// This rank was killed.
    Gone(u8),
    /// It was started again.
    Back(Peer),
    /// Stay out of the library for so many milliseconds.
    Away(u64),
    /// Post no receives for so many milliseconds.
    Deaf(u64),
    /// Read one completion now and then for so many milliseconds.
    Lazy(u64),
    /// Fork a helper that lives for so many milliseconds, and perhaps closes what it inherited.
    Fork(u64, bool),
    /// Post no more messages, and say how many were posted.
    Stop,
    /// Receive all of these, end everything, and say so.
    Drain(Vec<(Stream, u32)>),
    /// Say what is under way, for a report about a hang.
    Describe,
    /// Give up what has not ended, and write that down.
    Abandon,
    /// Close everything and end.
    Quit,
}

/// How far a worker is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Progress {
    /// Messages posted.
    pub sent: u64,
    /// Messages received.
    pub received: u64,
    /// Bytes received.
    pub bytes: u64,
    /// One-sided operations that ended.
    pub one_sided: u64,
    /// Receives cancelled, and peeks.
    pub other: u64,
    /// Everything that moved, to see a hang.
    pub steps: u64,
    /// It has posted all it was told to.
    pub is_idle: bool,
}

/// From a worker.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum Word {
    /// The endpoint is open.
    Ready,
    /// The answer to `Begin`.
    Begun,
    /// Each fifth of a second.
    Progress(Progress),
    /// The answer to `Stop`: messages posted on each stream.
    Posted(Vec<(Stream, u32)>),
    /// The answer to `Drain` and `Abandon`: the ledger of the round is written.
    Quiet,
    /// Something is wrong that needs no ledger.
    Complaint(Finding),
    /// The answer to `Describe`.
    State(String),
}

impl Role {
    /// The file of this process's ledger of a round.
    pub fn ledger(folder: &std::path::Path, life: Life, round: u16) -> PathBuf {
        folder.join(format!("ledger-{}-{}-{round}", life.rank, life.generation))
    }
}
