// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `init` and `hello`: how long MPI_Init takes, and a program that only starts.
//!
//! Called by runner instead of its loop over sizes. init's time is that of MPI_Init alone. It does
//! not contain the time to find and open the library; a directly linked program does that before it
//! starts. The loader's work is in neither.

use crate::description::Startup;
use crate::format::version;
use crate::options::{Settings, Style};
use serde_json::json;
use std::time::Duration;
use weft_mpi::{Communicator, Operation, Result};

/// Least, mean and greatest time over the ranks, in milliseconds.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Times {
    least: f64,
    mean: f64,
    greatest: f64,
}

/// The whole output of rank 0. `init` is how long this rank's MPI_Init took.
///
/// # Errors
/// What MPI reports.
pub fn text(
    which: Startup,
    settings: &Settings,
    world: &Communicator<'_>,
    init: Duration,
) -> Result<String> {
    if which == Startup::Hello {
        return Ok(hello(settings.shown.style, world.size()));
    }
    let milliseconds = init.as_secs_f64() * 1e3;
    let times = Times {
        least: weft_ranks::agree::over_ranks(world, milliseconds, Operation::Min)?,
        mean: weft_ranks::agree::over_ranks(world, milliseconds, Operation::Sum)?
            / world.size() as f64,
        greatest: weft_ranks::agree::over_ranks(world, milliseconds, Operation::Max)?,
    };
    Ok(init_text(settings.shown.style, world.size(), times))
}

fn hello(style: Style, ranks: usize) -> String {
    match version(style) {
        None => format!(
            "{}\n",
            json!({"type": "row", "benchmark": "hello", "ranks": ranks})
        ),
        Some(version) => format!(
            "# OSU MPI Hello World Test v{version}\nThis is a test with {ranks} processes\n"
        ),
    }
}

/// OSU prints whole milliseconds, cut off; JSON has them all.
fn init_text(style: Style, ranks: usize, times: Times) -> String {
    let Times {
        least,
        mean,
        greatest,
    } = times;
    match version(style) {
        None => format!(
            "{}\n",
            json!({
                "type": "row", "benchmark": "init", "ranks": ranks,
                "value": mean, "min": least, "max": greatest, "unit": "ms"
            })
        ),
        Some(version) => format!(
            "# OSU MPI Init Test v{version}\nnprocs: {ranks}, min: {} ms, max: {} ms, avg: {} ms\n",
            least as u64, greatest as u64, mean as u64
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TIMES: Times = Times {
        least: 31.9,
        mean: 35.5,
        greatest: 40.25,
    };

    #[test]
    fn init_looks_as_in_osu() {
        assert_eq!(
            init_text(Style::Osu7, 4, TIMES),
            "# OSU MPI Init Test v7.5\nnprocs: 4, min: 31 ms, max: 40 ms, avg: 35 ms\n"
        );
    }

    #[test]
    fn hello_looks_as_in_osu() {
        assert_eq!(
            hello(Style::Osu5, 2),
            "# OSU MPI Hello World Test v5.6.2\nThis is a test with 2 processes\n"
        );
    }

    #[test]
    fn json_keeps_fractions_of_milliseconds() {
        let row: serde_json::Value =
            serde_json::from_str(&init_text(Style::Json, 4, TIMES)).expect("JSON");
        assert_eq!((&row["value"], &row["unit"]), (&json!(35.5), &json!("ms")));
    }
}
