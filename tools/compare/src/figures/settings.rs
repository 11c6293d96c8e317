// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The command line of `weft bench figures`.
//!
//! Read by figures; each kind of figure reads the options that concern it.

use super::list::DEFINITIONS;
use clap::Parser;
use std::path::PathBuf;

/// The options.
#[derive(Parser, Clone, Debug)]
#[command(
    name = "weft bench figures",
    about = "Measure published figures again on this machine, as one page and SVG files"
)]
pub struct Settings {
    /// Which figures; all without a name
    #[arg(value_name = "NAME", value_parser = known)]
    pub names: Vec<String>,
    /// Folder to write to; made when it is not there
    #[arg(long, value_name = "DIR")]
    pub out: PathBuf,
    /// Folder of the files that IOR writes; the output folder without it
    #[arg(long, value_name = "DIR")]
    pub files: Option<PathBuf>,
    /// Fewer rounds and sizes: seconds a figure
    #[arg(long)]
    pub quick: bool,
    /// The MPI of the measured figures, as `weft run --mpi` knows it
    #[arg(long, value_name = "MPI", default_value = "auto")]
    pub mpi: String,
    /// End a run after SECONDS and call it failed
    #[arg(
        long,
        value_name = "SECONDS",
        default_value_t = 120,
        value_parser = clap::value_parser!(u64).range(1..=86400)
    )]
    pub timeout: u64,
}

fn known(name: &str) -> Result<String, String> {
    let names: Vec<&str> = DEFINITIONS.iter().map(|definition| definition.id).collect();
    if names.contains(&name) {
        return Ok(name.to_owned());
    }
    Err(format!(
        "'{name}' is none of the figures {}",
        names.join(", ")
    ))
}
