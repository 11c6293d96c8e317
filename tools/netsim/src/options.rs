// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The command line of `weft sim`. Called by lib; read by scenario.

use std::ffi::OsString;
use std::ops::RangeInclusive;
use std::path::PathBuf;

use clap::error::ErrorKind;
use clap::parser::ValueSource;
use clap::{CommandFactory, FromArgMatches, Parser, ValueEnum};
use serde::Serialize;

/// What traffic to simulate.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Scenario {
    /// All other hosts send one message to the first at the same moment
    Incast,
    /// Every host sends one message, and every host receives one
    Permutation,
    /// A ring allreduce over all hosts in random places
    Allreduce,
    /// Every host sends a message to every other, 8 at a time
    Alltoall,
    /// A permutation during which a spine silently drops everything
    SpineFailure,
    /// A stream between two hosts over 4 paths of 500 Mbit/s, one of which drops everything for
    /// half a second
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

/// Simulates Weft's inter-node transport on a leaf-spine network, beside a TCP-like baseline and a
/// single path
#[derive(Clone, Debug, Parser)]
#[command(name = "weft sim", after_help = EXAMPLES)]
pub struct Options {
    /// Traffic
    #[arg(value_enum)]
    pub scenario: Scenario,
    /// Hosts, 2 to 4096 [default: 49 for incast, 64 for allreduce and alltoall, otherwise 128]
    #[arg(long, value_name = "N", value_parser = number::<usize>(2..=4096, ""))]
    #[arg(allow_negative_numbers = true)]
    pub hosts: Option<usize>,
    /// Bytes of each message, 1 to 2^40 [default: 2 MB; 64 KiB for alltoall and streams; 16 MB in
    /// all for allreduce]
    #[arg(long, value_parser = number::<u64>(1..=1 << 40, " bytes"), allow_negative_numbers = true)]
    pub bytes: Option<u64>,
    /// Seed of everything random: the same seed repeats a run exactly
    #[arg(long, default_value_t = 1, allow_negative_numbers = true)]
    #[arg(value_parser = number::<u64>(0..=u64::MAX, ""))]
    pub seed: u64,
    /// Paths between two hosts that Weft uses, 1 to 64
    #[arg(long, value_name = "N", default_value_t = 64, value_parser = number::<u8>(1..=64, ""))]
    #[arg(allow_negative_numbers = true)]
    pub paths: u8,
    /// Rate of every link in Gb/s, 1 to 800
    #[arg(
        long,
        value_name = "GBIT",
        default_value_t = 100,
        allow_negative_numbers = true
    )]
    #[arg(value_parser = number::<u64>(1..=800, " Gb/s"))]
    pub rate: u64,
    /// Largest IP packet in bytes, 1280 to 9000
    #[arg(
        long,
        value_name = "BYTES",
        default_value_t = 4096,
        allow_negative_numbers = true
    )]
    #[arg(value_parser = number::<u16>(1280..=9000, " bytes"))]
    pub mtu: u16,
    /// Queue of every switch port in KiB, 16 to 1048576
    #[arg(
        long,
        value_name = "KIB",
        default_value_t = 512,
        allow_negative_numbers = true
    )]
    #[arg(value_parser = number::<u64>(16..=1 << 20, " KiB"))]
    pub queue: u64,
    /// Of a million packets, how many every link loses, 0 to 100000
    #[arg(
        long,
        value_name = "N",
        default_value_t = 0,
        allow_negative_numbers = true
    )]
    #[arg(value_parser = number::<u32>(0..=100_000, " packets of a million"))]
    pub loss: u32,
    /// Hosts know each other: each exchange of the traffic is preceded by four messages of 8 bytes,
    /// which do not count
    #[arg(long)]
    pub met: bool,
    /// Leave out the baseline and the single path
    #[arg(long)]
    pub alone: bool,
    /// Check every invariant at every event (slow)
    #[arg(long)]
    pub check: bool,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
    /// Draw the distribution of slowdowns; of a stream, how fast it goes over time
    #[arg(long, value_name = "FILE.svg")]
    pub plot: Option<PathBuf>,
}

const EXAMPLES: &str = "\
Slowdown is time divided by ideal: the time of the bytes, headers included, at the rate of the \
links, and of one crossing.

Examples:
  weft sim incast                              48 hosts to 1, 2 MB each
  weft sim permutation --hosts 1024 --json     1,024 hosts
  weft sim spine-failure --plot failure.svg    what a broken switch costs
  weft sim blackhole                           how long a stream pauses when one of four paths \
  dies";

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

    /// Reads the words after `weft sim`.
    ///
    /// # Errors
    /// clap's, which also carries the help text: a value out of range, or an option that the
    /// scenario would not heed.
    pub fn read(words: impl IntoIterator<Item = OsString>) -> Result<Self, clap::Error> {
        let words = std::iter::once(OsString::from("weft sim")).chain(words);
        let mut command = Self::command();
        let matches = command.try_get_matches_from_mut(words)?;
        let options = Self::from_arg_matches(&matches)?;
        if options.scenario.is_stream() {
            let said = |name: &&&str| matches.value_source(name) == Some(ValueSource::CommandLine);
            let refused = FIXED_IN_STREAMS.iter().find(said);
            if let Some(name) = refused.filter(|name| **name != "hosts" || options.hosts != Some(2))
            {
                let text = format!(
                    "--{name} has no effect on a stream: it runs between 2 hosts over 4 paths of \
                     500 Mbit/s with 9000-byte packets; leave it out"
                );
                return Err(command.error(ErrorKind::ArgumentConflict, text));
            }
        }
        Ok(options)
    }
}

/// What the network of a stream fixes.
const FIXED_IN_STREAMS: [&str; 7] = ["hosts", "rate", "mtu", "queue", "loss", "met", "check"];

/// Reads a whole number of a range; the error names the range in words.
fn number<T: TryFrom<u64>>(
    range: RangeInclusive<u64>,
    unit: &'static str,
) -> impl Fn(&str) -> Result<T, String> + Clone + Send + Sync + 'static {
    move |text| {
        let value = text.parse().ok().filter(|value| range.contains(value));
        let (least, most) = (range.start(), range.end());
        value
            .and_then(|value| T::try_from(value).ok())
            .ok_or_else(|| format!("it must be a whole number from {least} to {most}{unit}"))
    }
}
