// SPDX-License-Identifier: Apache-2.0 OR MIT
//! OpenFOAM, decomposed over the ranks: each time step or iteration solves for the pressure, with
//! many small sums over all ranks.
//!
//! Called through program. The solvers' residuals must be the same in all printed digits. Source:
//! the OpenFOAM user guide.
//!
//! - [`cavity`]: the lid-driven cavity, whose input is written here
//! - [`examples`]: pitzDaily and motorBike, from Debian's package of examples

pub mod cavity;
pub mod examples;

use super::folder::{helper, left, write};
use super::job::{OUTPUT, SECONDS};
use super::program::{Measured, Outcome};
use crate::error::Error;
use std::path::Path;
use weft_statistics::interval::Better;

/// Seconds of a day.
const DAY_SECONDS: f64 = 86400.0;

/// The solver for a number of ranks; the mesh is decomposed into slabs before.
fn solve(folder: &Path, ranks: u16, solver: &str) -> Result<Vec<String>, Error> {
    if ranks == 1 {
        return Ok(words(solver));
    }
    let (rows, columns) = super::hpcc::grid(ranks);
    let body = format!(
        "numberOfSubdomains {ranks};\nmethod simple;\nsimpleCoeffs {{ n ({columns} {rows} 1); \
        delta 0.001; }}\n"
    );
    dictionary(folder, "system/decomposeParDict", "dictionary", &body)?;
    tool(folder, "decomposePar")?;
    Ok(words(&format!("{solver} -parallel")))
}

/// What a run left: its speed and its residuals.
fn read(folder: &Path) -> Result<Outcome, Error> {
    parse(&left(&folder.join(OUTPUT))?, &left(&folder.join(SECONDS))?)
}

/// A command line that finds the settings that Debian's packages bring, unless the user's
/// environment names others.
fn words(line: &str) -> Vec<String> {
    let place = std::env::var("WM_PROJECT_DIR").unwrap_or_else(|_| "/usr/share/openfoam".into());
    let set = ["env".to_owned(), format!("WM_PROJECT_DIR={place}")];
    set.into_iter()
        .chain(line.split(' ').map(str::to_owned))
        .collect()
}

/// Runs one of OpenFOAM's tools to its end.
fn tool(folder: &Path, line: &str) -> Result<(), Error> {
    takes(folder)?;
    let words = words(line);
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    helper(folder, &words, None)
}

/// OpenFOAM removes spaces and quotes from paths, and ends where it met one (fileNameI.H, `valid`).
fn takes(folder: &Path) -> Result<(), Error> {
    let bytes = folder.as_os_str().as_encoded_bytes();
    if bytes
        .iter()
        .any(|byte| b" \t\n\x0b\x0c\r\"'".contains(byte))
    {
        return Err(Error::Missing(format!(
            "OpenFOAM takes no spaces or quotes in a path, and it is to run in {}; name a folder \
             without in TMPDIR",
            folder.display()
        )));
    }
    Ok(())
}

/// Writes a file in OpenFOAM's form.
fn dictionary(folder: &Path, place: &str, class: &str, body: &str) -> Result<(), Error> {
    let path = folder.join(place);
    let parent = path.parent().unwrap_or(folder);
    std::fs::create_dir_all(parent).map_err(Error::file("make", parent))?;
    let object = place.rsplit('/').next().unwrap_or(place);
    let head =
        format!("FoamFile {{ version 2.0; format ascii; class {class}; object {object}; }}\n");
    write(&path, &(head + body))
}

/// Runs that fit in a day by the wall clock, the job's start included (the solver itself tells
/// processor time, which waiting may not take), and every residual.
fn parse(text: &str, seconds: &str) -> Result<Outcome, Error> {
    let result: Vec<String> = text
        .lines()
        .filter(|line| {
            line.contains("Initial residual") || line.starts_with("time step continuity")
        })
        .map(|line| line.trim().to_owned())
        .collect();
    let seconds = seconds
        .trim()
        .parse::<f64>()
        .ok()
        .filter(|seconds| *seconds > 0.0)
        .ok_or_else(|| Error::result("the run's duration was not kept"))?;
    if result.is_empty() || !text.lines().any(|line| line.trim() == "End") {
        return Err(Error::result("OpenFOAM did not run to its end"));
    }
    Ok(Outcome {
        figures: vec![Measured {
            name: "speed",
            unit: "runs/day",
            better: Better::More,
            value: DAY_SECONDS / seconds,
        }],
        result,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const LOG: &str = "Time = 0.005\nsmoothSolver:  Solving for Ux, Initial residual = 1, Final \
    residual = 8e-06, No Iterations 19\n\
                       time step continuity errors : sum local = 8e-09\nExecutionTime = 0.5 s  \
                       ClockTime = 1 s\n\nEnd\n\n";

    #[test]
    fn runs_per_day_and_residuals_are_read() {
        let outcome = parse(LOG, "0.5\n").expect("a whole log");
        assert_eq!(outcome.figures[0].value, 172_800.0);
        assert_eq!(outcome.result.len(), 2);
    }

    #[test]
    fn a_folder_that_openfoam_does_not_take_is_named_with_what_helps() {
        takes(Path::new("/tmp/weft-app-ä;x")).expect("a path that it takes");
        for path in ["/tmp/a b/run", "/tmp/it's", "/a\tb", "/\"a\""] {
            let text = takes(Path::new(path)).unwrap_err().to_string();
            assert!(text.contains(path) && text.contains("TMPDIR"), "{text}");
        }
    }

    #[test]
    fn run_that_broke_off_is_no_result() {
        assert!(parse(LOG.trim_end().trim_end_matches("End"), "0.5").is_err());
        assert!(parse("End\n", "0.5").is_err());
    }
}
