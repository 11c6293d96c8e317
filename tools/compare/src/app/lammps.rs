// SPDX-License-Identifier: Apache-2.0 OR MIT
//! LAMMPS: a Lennard-Jones solid that melts. Each step exchanges the atoms near the borders. Every
//! few steps LAMMPS rebuilds its lists and atoms migrate to other ranks.
//!
//! Called through program. The trajectory is deterministic for a number of ranks, so all printed
//! digits must be the same. Source of the input's words and the log's form: the LAMMPS
//! documentation, "Commands" and "Screen and logfile output".

use super::folder::{left, write};
use super::program::{Measured, Outcome, Program, Size};
use crate::error::Error;
use std::path::Path;
use weft_statistics::interval::Better;

/// LAMMPS.
pub struct Lammps;

/// Cells along an edge (each holds four atoms), and steps: chosen for about a second, and about
/// ten, on two cores.
fn extent(size: Size) -> (usize, usize) {
    match size {
        Size::Quick => (10, 400),
        Size::Usual => (20, 1000),
    }
}

impl Program for Lammps {
    fn name(&self) -> &'static str {
        "lammps"
    }

    fn title(&self) -> &'static str {
        "LAMMPS"
    }

    fn files(&self) -> &'static [(&'static str, &'static str)] {
        &[("lmp", "lammps")]
    }

    fn input(&self, size: Size) -> String {
        let (cells, steps) = extent(size);
        format!(
            "Lennard-Jones melt of {} atoms, {steps} steps",
            4 * cells.pow(3)
        )
    }

    fn prepare(&self, folder: &Path, _: Size) -> Result<(), Error> {
        write(&folder.join("melt.lmp"), include_str!("input/melt.lmp"))
    }

    fn command(&self, _: &Path, _: u16, size: Size) -> Result<Vec<String>, Error> {
        let (cells, steps) = extent(size);
        let line = format!(
            "lmp -in melt.lmp -var cells {cells} -var steps {steps} -log log.melt -screen none"
        );
        Ok(line.split(' ').map(str::to_owned).collect())
    }

    fn read(&self, folder: &Path) -> Result<Outcome, Error> {
        parse(&left(&folder.join("log.melt"))?)
    }

    fn result_name(&self) -> &'static str {
        "thermodynamic output"
    }
}

fn parse(log: &str) -> Result<Outcome, Error> {
    let result: Vec<String> = log
        .lines()
        .map(str::trim)
        .skip_while(|line| !line.starts_with("Step"))
        .take_while(|line| !line.starts_with("Loop"))
        .map(str::to_owned)
        .collect();
    let speed = log
        .lines()
        .filter_map(|line| line.strip_prefix("Performance:"))
        .flat_map(|line| line.split(','))
        .find_map(|part| part.trim().strip_suffix(" timesteps/s"));
    let speed: f64 = speed
        .and_then(|text| text.trim().parse().ok())
        .ok_or_else(|| Error::result("LAMMPS reported no timesteps/s"))?;
    if result.len() < 3 {
        return Err(Error::result("LAMMPS printed no thermodynamic output"));
    }
    Ok(Outcome {
        figures: vec![Measured {
            name: "speed",
            unit: "timesteps/s",
            better: Better::More,
            value: speed,
        }],
        result,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const LOG: &str = "LAMMPS (x)\nStep Temp\n  0 3.0\n 25 1.5\nLoop time of 1 on 2 procs\n\
                       Performance: 172800.0 tau/day, 400.25 timesteps/s\n";

    #[test]
    fn speed_and_thermodynamic_output_are_read() {
        let outcome = parse(LOG).expect("a whole log");
        assert_eq!(outcome.figures[0].value, 400.25);
        assert_eq!(outcome.result, ["Step Temp", "0 3.0", "25 1.5"]);
    }

    #[test]
    fn broken_off_log_is_no_result() {
        assert!(parse("Step Temp\n 0 3.0\n").is_err());
        assert!(parse("Performance: 1 tau/day, 2 timesteps/s\n").is_err());
    }
}
