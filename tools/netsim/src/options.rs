// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The command line of `weft sim`. Called by lib; read by scenario.

use std::path::PathBuf;

use clap::{Parser, ValueEnum};
use serde::Serialize;

/// What traffic to simulate.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Scenario {
    /// All other hosts send one message to the first at the same moment
    Incast,
    /// Every host sends one message to one other, nobody gets two
    Permutation,
    /// A ring allreduce over all hosts in random places
    Allreduce,
    /// Every host sends a message to every other, 8 at a time
    Alltoall,
    /// A permutation during which a spine silently drops everything
    SpineFailure,
    /// A stream between two hosts over 4 paths of 500 Mbit/s, one of which swallows everything for half a second
    Blackhole,
    /// The same with one path at a tenth of its rate
    SlowPath,
}

impl Scenario {
    /// Whether it is a stream between two hosts.
    pub fn is_stream(self) -> bool {
        matches!(self, Self::Blackhole | Self::SlowPath)
    }
}

/// Simulates Weft's inter-node transport on a leaf-spine network, beside a TCP-like baseline and a single path
#[derive(Clone, Debug, Parser)]
#[command(name = "weft sim", after_help = EXAMPLES)]
pub struct Options {
    /// Traffic
    #[arg(value_enum)]
    pub scenario: Scenario,
    /// Hosts, 2 to 4096 [default: 49 for incast, 64 for allreduce and alltoall, otherwise 128]
    #[arg(long)]
    pub hosts: Option<usize>,
    /// Bytes of each message [default: 2 MB; 64 KiB for alltoall and streams; 16 MB in all for allreduce]
    #[arg(long)]
    pub bytes: Option<u64>,
    /// Repeats a run exactly
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// Paths of the machine, 1 to 64
    #[arg(long, default_value_t = 64)]
    pub paths: u8,
    /// Rate of every link in Gb/s, 1 to 800
    #[arg(long, default_value_t = 100)]
    pub rate: u64,
    /// Largest IP packet in bytes, 1280 to 9000
    #[arg(long, default_value_t = 4096)]
    pub mtu: u16,
    /// Queue of every switch port in KiB
    #[arg(long, default_value_t = 512)]
    pub queue: u64,
    /// Packets of a million that every link loses, 0 to 100000
    #[arg(long, default_value_t = 0)]
    pub loss: u32,
    /// Leave out the baseline and the single path
    #[arg(long)]
    pub alone: bool,
    /// Check every invariant at every event (slow)
    #[arg(long)]
    pub check: bool,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
    /// Draw the distribution of slowdowns
    #[arg(long, value_name = "FILE.svg")]
    pub plot: Option<PathBuf>,
}

const EXAMPLES: &str = "\
Slowdown is time divided by ideal: the time of the bytes, headers included, at the rate of the links, and of one crossing.

Examples:
  weft sim incast                              48 hosts to 1, 2 MB each
  weft sim permutation --hosts 1024 --json     the whole machine room
  weft sim spine-failure --plot failure.svg    what a broken switch costs
  weft sim blackhole                           how long a stream pauses when one of four paths dies";

/// A value that cannot be simulated.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{option} is {value}; {rule}")]
pub struct BadOption {
    option: &'static str,
    value: u64,
    rule: &'static str,
}

impl Options {
    /// How many hosts take part.
    pub fn host_count(&self) -> usize {
        self.hosts.unwrap_or(match self.scenario {
            Scenario::Incast => 49,
            Scenario::Allreduce | Scenario::Alltoall => 64,
            Scenario::Permutation | Scenario::SpineFailure => 128,
            Scenario::Blackhole | Scenario::SlowPath => 2,
        })
    }

    /// Bytes of a message, or of the vector that is reduced.
    pub fn message_bytes(&self) -> u64 {
        self.bytes.unwrap_or(match self.scenario {
            Scenario::Alltoall | Scenario::Blackhole | Scenario::SlowPath => 64 << 10,
            Scenario::Allreduce => 16_000_000,
            Scenario::Incast | Scenario::Permutation | Scenario::SpineFailure => 2_000_000,
        })
    }

    /// Checks ranges that clap does not.
    ///
    /// # Errors
    /// The first value out of range.
    pub fn check(&self) -> Result<(), BadOption> {
        let rules = [
            (
                "--hosts",
                self.host_count() as u64,
                2,
                4096,
                "it must be 2 to 4096",
            ),
            (
                "--bytes",
                self.message_bytes(),
                1,
                1 << 40,
                "it must be 1 byte to 1 TiB",
            ),
            (
                "--paths",
                u64::from(self.paths),
                1,
                64,
                "it must be 1 to 64",
            ),
            ("--rate", self.rate, 1, 800, "it must be 1 to 800 Gb/s"),
            (
                "--mtu",
                u64::from(self.mtu),
                1280,
                9000,
                "it must be 1280 to 9000 bytes",
            ),
            (
                "--loss",
                u64::from(self.loss),
                0,
                100_000,
                "it must be at most 100000 of a million",
            ),
            (
                "--queue",
                self.queue,
                16,
                1 << 20,
                "it must be 16 KiB to 1 GiB",
            ),
        ];
        if self.scenario.is_stream() && self.host_count() != 2 {
            return Err(BadOption {
                option: "--hosts",
                value: self.host_count() as u64,
                rule: "a stream has 2",
            });
        }
        for (option, value, least, most, rule) in rules {
            if value < least || value > most {
                return Err(BadOption {
                    option,
                    value,
                    rule,
                });
            }
        }
        Ok(())
    }
}
