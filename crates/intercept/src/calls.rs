// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The calls that may be served, how many of them went which way, and the report of that to
//! `weft run`. Counted by communicators; sent once, at MPI_Finalize. Also sends what other_tool
//! says.
//!
//! The report is a line of JSON to the socket that FI_WEFT_REPORT names, as the provider's are
//! (crates/provider). The text is put together by hand: numbers and fixed names need no library.

use std::fmt::Write;

use weft_facts::collective::NAMES;
use weft_os::local_socket::Connection;

/// A collective, with its forms; its number is its place in [`NAMES`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Call {
    /// MPI_Barrier.
    Barrier,
    /// MPI_Bcast.
    Bcast,
    /// MPI_Reduce.
    Reduce,
    /// MPI_Allreduce.
    Allreduce,
    /// MPI_Gather and MPI_Gatherv.
    Gather,
    /// MPI_Allgather and MPI_Allgatherv.
    Allgather,
    /// MPI_Scatter and MPI_Scatterv.
    Scatter,
    /// MPI_Alltoall, MPI_Alltoallv and MPI_Alltoallw.
    Alltoall,
    /// MPI_Reduce_scatter and MPI_Reduce_scatter_block.
    ReduceScatter,
    /// MPI_Scan.
    Scan,
    /// MPI_Exscan.
    Exscan,
}

/// How many calls of each went which way.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Calls {
    /// Served by Weft.
    weft: [u64; NAMES.len()],
    /// Left to the MPI.
    mpi: [u64; NAMES.len()],
}

impl Calls {
    /// No calls.
    pub const NONE: Self = Self {
        weft: [0; NAMES.len()],
        mpi: [0; NAMES.len()],
    };

    /// One more; answers how many that are.
    #[inline]
    pub fn add(&mut self, call: Call, is_served: bool) -> u64 {
        let counts = if is_served {
            &mut self.weft
        } else {
            &mut self.mpi
        };
        counts.get_mut(call as usize).map_or(0, |count| {
            *count += 1;
            *count
        })
    }

    /// All counts: those that Weft served, then those that the MPI did.
    pub fn counts(&self) -> impl Iterator<Item = u64> {
        self.weft.iter().chain(&self.mpi).copied()
    }

    /// As many more as those.
    pub fn add_all(&mut self, others: &Self) {
        for (sum, count) in self.weft.iter_mut().zip(others.weft) {
            *sum += count;
        }
        for (sum, count) in self.mpi.iter_mut().zip(others.mpi) {
            *sum += count;
        }
    }

    /// Tells whoever started the job, if it listens: a job must not end differently because nobody
    /// does. Nothing if there were none.
    pub fn tell(&self) {
        if *self == Self::NONE {
            return;
        }
        send_report(&self.describe());
    }

    fn describe(&self) -> String {
        let mut collectives = String::new();
        for ((name, weft), mpi) in NAMES.iter().zip(self.weft).zip(self.mpi) {
            let comma = if collectives.is_empty() { "" } else { "," };
            if weft + mpi > 0 {
                // Writing to a String cannot fail.
                let _ = write!(
                    collectives,
                    r#"{comma}"{name}":{{"weft":{weft},"mpi":{mpi}}}"#
                );
            }
        }
        format!(r#""collectives":{{{collectives}}}"#)
    }
}

/// Sends a report with these members to whoever started the job, if it listens.
pub fn send_report(members: &str) {
    let socket = std::env::var(weft_facts::parameter::REPORT.variable).unwrap_or_default();
    // "1" asks for words of the provider's (crates/provider, summary).
    if socket.is_empty() || socket == "1" {
        return;
    }
    let (version, pid) = (env!("CARGO_PKG_VERSION"), weft_os::process::own_pid());
    let text = format!(r#"{{"weft":"{version}","pid":{pid},{members}}}"#);
    if let Ok(connection) = Connection::open(&socket) {
        let _ = connection.send_bytes(text.as_bytes());
    }
}

/// What stands for any text between the quotes of JSON: what would end it becomes `_`.
pub fn text_of(text: &str) -> String {
    let stays = |letter: char| !letter.is_control() && letter != '"' && letter != '\\';
    text.chars()
        .map(|letter| if stays(letter) { letter } else { '_' })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_says_which_calls_went_which_way() {
        let mut calls = Calls::NONE;
        calls.add(Call::Bcast, true);
        calls.add(Call::Bcast, false);
        let mut all = Calls::NONE;
        all.add(Call::Exscan, false);
        all.add_all(&calls);
        assert_eq!(
            all.describe(),
            r#""collectives":{"bcast":{"weft":1,"mpi":1},"exscan":{"weft":0,"mpi":1}}"#
        );
    }

    #[test]
    fn no_text_ends_its_quotes() {
        assert_eq!(text_of("/a \"b\"\\\n/ö.so"), "/a _b___/ö.so");
    }
}
