// SPDX-License-Identifier: Apache-2.0 OR MIT
//! IOR with a file for each rank, in the form that AWS published for Mountpoint (docs/ior.md), with
//! shorter blocks: `weft bench ior` under `weft run`.

use std::path::Path;
use std::time::Duration;

use serde_json::Value;

use crate::commands::{self, Outcome};
use crate::fault::Fault;

/// The file of each rank.
pub const FILE_BYTES: u64 = 128 << 20;

/// What IOR does, and measures.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Phase {
    /// `-w`; IOR removes the files again, outside the time that it tells.
    Write,
    /// `-r`, and the files stay.
    Read,
}

/// Runs IOR; the figure is its `bw`, from the first open to the last close, in MB/s.
///
/// # Errors
/// There is no MPI, a rank fails, or the figure is not in what IOR prints.
pub fn run(phase: Phase, ranks: u64, files: &Path, limit: Duration) -> Result<Outcome, Fault> {
    let weft = std::env::current_exe().map_err(Fault::system("find the program weft"))?;
    let weft = commands::text(&weft);
    let name = format!("-o={}", commands::text(files));
    let options: &[&str] = match phase {
        Phase::Write => &["-w"],
        Phase::Read => &["-r", "-k"],
    };
    let (block, ranks_word) = (format!("-b={FILE_BYTES}"), ranks.to_string());
    let mut command = commands::words(&weft, &["run", "-q", "--transport", "native"]);
    command.args([
        "-n",
        &ranks_word,
        "--",
        &weft,
        "bench",
        "ior",
        "-F",
        "-a=POSIX",
    ]);
    command.args(["-i=1", "-t=16m", &block, "-O", "summaryFormat=JSON", &name]);
    let ended = commands::run(command.args(options), limit)?;
    let mib = mib_each_second(&ended.said);
    let moved = mib.map(|mib| (mib * f64::from(1 << 20) / 1e6, ranks * FILE_BYTES));
    commands::told(&command, ended, moved)
}

/// `bwMiB` of the only result in IOR's summary.
fn mib_each_second(said: &str) -> Option<f64> {
    let begin = said.find('{')?;
    let value: Value = serde_json::from_str(&said[begin..]).ok()?;
    value["tests"][0]["Results"][0][0]["bwMiB"].as_f64()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rate_is_in_the_summary_behind_what_else_is_printed() {
        let said = "weft: a note\n{\"tests\": [{\"Results\": [[{\"bwMiB\": 2.5}]]}]}";
        assert_eq!(mib_each_second(said), Some(2.5));
        for wrong in ["", "{", "{}", "{\"tests\": [{\"Results\": [[]]}]}"] {
            assert_eq!(mib_each_second(wrong), None, "{wrong}");
        }
    }
}
