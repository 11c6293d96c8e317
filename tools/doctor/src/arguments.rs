// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What the user may write after `weft doctor` and `weft info`.
//!
//! Called by `lib.rs`.

use clap::Parser;

/// The words of `weft doctor`.
#[derive(Debug, Parser)]
#[command(
    name = "weft doctor",
    no_binary_name = true,
    disable_version_flag = true,
    about = "Check what keeps Weft from working or from being fast here, and say how to fix it",
    after_help = "Exit codes: 0 all well; 1 something could be better; 2 Weft does not work here, or wrong usage.\n\n\
                  Run it where the job will run: in the same container, batch job and environment."
)]
pub struct DoctorArguments {
    /// One JSON object instead of text
    #[arg(long)]
    pub json: bool,
    /// Say for good results too why they matter
    #[arg(long)]
    pub explain: bool,
    /// Also run two ranks over Weft under each MPI
    #[arg(long = "try")]
    pub trial: bool,
    /// Reads a few bytes of another process: the other side of the single-copy check
    #[arg(long, hide = true, value_name = "PID:ADDRESS")]
    pub read_memory: Option<String>,
    /// Maps a few bytes of another process: the other side of the check of direct access
    #[arg(long, hide = true, value_name = "PID:ADDRESS")]
    pub map_memory: Option<String>,
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
