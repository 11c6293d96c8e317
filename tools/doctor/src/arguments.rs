// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What the user may write after `weft doctor` and `weft info`.
//!
//! Called by `lib.rs`.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Args, Parser};

/// The words of `weft doctor`.
#[derive(Debug, Parser)]
#[command(
    name = "weft doctor",
    no_binary_name = true,
    disable_version_flag = true,
    about = "Check what keeps Weft from working or from being fast here, and say how to fix it",
    after_help = "Each check ends as ok, warn, fail or, with the reason, not tried.\n\
                  Exit codes: 0 nothing is wrong; 1 something could be better (warn); 2 Weft does\n\
                  not work here (fail), or wrong usage. What was not tried is no failure.\n\n\
                  Run it where the job will run: in the same container, batch job and environment."
)]
pub struct DoctorArguments {
    /// One JSON object instead of text
    #[arg(long)]
    pub json: bool,
    /// Say why each check matters, also where the result is good
    #[arg(long)]
    pub explain: bool,
    /// Start no jobs, so do not try the MPIs
    #[arg(long)]
    pub quick: bool,
    /// Check these hosts, for example a,b, and say what differs between them
    #[arg(long, value_name = "LIST", conflicts_with = "hostfile")]
    pub hosts: Option<String>,
    /// Check the hosts in FILE, which has the form that weft run reads
    #[arg(long, value_name = "FILE")]
    pub hostfile: Option<PathBuf>,
    /// The program that starts processes on other hosts [default: ssh]
    #[arg(long, value_name = "PROGRAM")]
    pub launcher: Option<OsString>,
    /// How many seconds a host may take to answer
    #[arg(long, value_name = "SECONDS", default_value_t = 120, allow_negative_numbers = true,
        value_parser = clap::value_parser!(u32).range(1..=3600))]
    pub host_timeout: u32,
    /// Mount this bucket, for example s3://data/run7, list it, read a file, and unmount it
    #[arg(long, value_name = "BUCKET")]
    pub bucket: Option<String>,
    /// Also measure whether the network from the first of --hosts to the second limits each flow,
    /// by six seconds of TCP at full speed
    #[arg(long)]
    pub flows: bool,
    /// Does what is done without it, too: as it was called when jobs were not tried by themselves
    #[arg(long = "try", hide = true, conflicts_with = "quick")]
    pub trial: bool,
    /// Hidden options.
    #[command(flatten)]
    pub other_side: OtherSide,
}

/// What has this process be the other side of a check, on this host or on another.
#[derive(Debug, Args)]
pub struct OtherSide {
    /// Comes to a socket of another process: the other side of the checks of first contact
    #[arg(long, hide = true, value_name = "NAME")]
    pub visit: Option<String>,
    /// Reads a few bytes of another process: the other side of the single-copy check
    #[arg(long, hide = true, value_name = "PID:ADDRESS")]
    pub read_memory: Option<String>,
    /// Maps a few bytes of another process: the other side of the check of direct access
    #[arg(long, hide = true, value_name = "PID:ADDRESS")]
    pub map_memory: Option<String>,
    /// Takes variables from its input, and does what the other words say: how --bucket comes to
    /// the hosts of --hosts
    #[arg(long, hide = true)]
    pub take_variables: bool,
    /// Looks into a mounted bucket: the other side of --bucket
    #[arg(long, hide = true, value_name = "FOLDER")]
    pub read_bucket: Option<PathBuf>,
    /// Sends datagrams back until its input ends: one side of --hosts
    #[arg(long, hide = true)]
    pub echo_datagrams: bool,
    /// Counts datagrams that come back from these addresses: the other side
    #[arg(long, hide = true, value_name = "ADDRESS:PORT,...")]
    pub count_datagrams: Option<String>,
    /// Takes TCP flows until its input ends: one side of --flows
    #[arg(long, hide = true)]
    pub take_flows: bool,
    /// Gives so many TCP flows to an address: the other side
    #[arg(long, hide = true, value_name = "ADDRESS:PORT,COUNT")]
    pub give_flows: Option<String>,
}

/// The words of `weft info`.
#[derive(Debug, Parser)]
#[command(
    name = "weft info",
    no_binary_name = true,
    disable_version_flag = true,
    about = "Show the version, the MPIs found, the machine, the protocols and every parameter"
)]
pub struct InfoArguments {
    /// One JSON object instead of text
    #[arg(long)]
    pub json: bool,
}
