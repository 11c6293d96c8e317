// SPDX-License-Identifier: Apache-2.0 OR MIT
//! LAMMPS: a Lennard-Jones solid that melts, and water with PPPM. Each step exchanges the atoms
//! near the borders. Every few steps LAMMPS rebuilds its lists and atoms migrate to other ranks.
//! PPPM adds 3D FFTs over all ranks to each step.
//!
//! Called through program. The trajectory is deterministic for a number of ranks, so all printed
//! digits must be the same. Source of the input's words and the log's form: the LAMMPS
//! documentation, "Commands", "Screen and logfile output" and "SPC water model".

use super::folder::{left, write};
use super::program::{Measured, Outcome, Program, Size};
use crate::error::Error;
use std::path::Path;
use weft_statistics::interval::Better;

/// Where it writes.
const LOG: &str = "log.run";

/// LAMMPS.
pub struct Lammps {
    case: &'static str,
    /// What it is, in words.
    what: &'static str,
    /// Atoms in a cell.
    cell: usize,
    /// Cells along an edge, and steps.
    quick: (usize, usize),
    usual: (usize, usize),
    /// Files of the input; the first holds the commands.
    input: &'static [(&'static str, &'static str)],
}

/// A melt. Its extents, as the water's: chosen for about a second, and about ten, on two cores.
pub const MELT: Lammps = Lammps {
    case: "melt",
    what: "Lennard-Jones melt",
    cell: 4,
    quick: (10, 400),
    usual: (20, 1000),
    input: &[("melt.lmp", include_str!("input/melt.lmp"))],
};
/// Rigid water with long-range electrostatics.
pub const WATER: Lammps = Lammps {
    case: "water",
    what: "SPC/E water with PPPM",
    cell: 3,
    quick: (8, 100),
    usual: (12, 400),
    input: &[
        ("water.lmp", include_str!("input/water.lmp")),
        ("water.mol", include_str!("input/water.mol")),
    ],
};

impl Lammps {
    fn extent(&self, size: Size) -> (usize, usize) {
        match size {
            Size::Quick => self.quick,
            Size::Usual => self.usual,
        }
    }
}

impl Program for Lammps {
    fn case(&self) -> &'static str {
        self.case
    }

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
        let (cells, steps) = self.extent(size);
        let atoms = self.cell * cells.pow(3);
        format!("{} of {atoms} atoms, {steps} steps", self.what)
    }

    fn prepare(&self, folder: &Path, _: Size) -> Result<(), Error> {
        let mut files = self.input.iter();
        files.try_for_each(|(name, text)| write(&folder.join(name), text))
    }

    fn command(&self, _: &Path, _: u16, size: Size) -> Result<Vec<String>, Error> {
        let (cells, steps) = self.extent(size);
        let line = format!(
            "lmp -in {} -var cells {cells} -var steps {steps} -log {LOG} -screen none",
            self.input[0].0
        );
        Ok(line.split(' ').map(str::to_owned).collect())
    }

    fn read(&self, folder: &Path) -> Result<Outcome, Error> {
        parse(&left(&folder.join(LOG))?)
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
    let figures = vec![
        Measured {
            name: "speed",
            unit: "timesteps/s",
            better: Better::More,
            value: speed,
        },
        Measured::communication_s(
            communication(log)
                .ok_or_else(|| Error::result("LAMMPS reported no time in communication"))?,
        ),
    ];
    Ok(Outcome { figures, result })
}

/// The line `Comm` of the breakdown of MPI tasks: the average over the ranks. What PPPM sends is
/// not in it, but in the line `Kspace`, together with what PPPM computes.
fn communication(log: &str) -> Option<f64> {
    let mut lines = log
        .lines()
        .skip_while(|line| !line.starts_with("MPI task timing"));
    let line = lines.find_map(|line| line.strip_prefix("Comm "))?;
    line.split('|').nth(2)?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Lines of a run of the water on two ranks, shortened.
    const LOG: &str = "LAMMPS (7 Jan 2022)\nStep Temp\n  0 3.0\n 25 1.5\n\
        Loop time of 1 on 2 procs\n\
        Performance: 172800.0 tau/day, 400.25 timesteps/s\n\
        MPI task timing breakdown:\n\
        Section |  min time  |  avg time  |  max time  |%varavg| %total\n\
        ---------------------------------------------------------------\n\
        Pair    | 0.89158    | 0.96559    | 1.0396     |   7.5 | 33.25\n\
        Kspace  | 1.0523     | 1.13       | 1.2078     |   7.3 | 38.91\n\
        Comm    | 0.18011    | 0.18351    | 0.18691    |   0.8 |  6.32\n\
        Other   |            | 0.003686   |            |       |  0.13\n";

    #[test]
    fn speed_and_thermodynamic_output_are_read() {
        let outcome = parse(LOG).expect("a whole log");
        assert_eq!(outcome.figures[0].value, 400.25);
        assert_eq!(
            (outcome.figures[1].name, outcome.figures[1].value),
            ("communication", 0.18351)
        );
        assert_eq!(outcome.result, ["Step Temp", "0 3.0", "25 1.5"]);
    }

    #[test]
    fn broken_off_log_is_no_result() {
        assert!(parse("Step Temp\n 0 3.0\n").is_err());
        assert!(parse(LOG.split("MPI task").next().expect("a part")).is_err());
        assert!(parse("Performance: 1 tau/day, 2 timesteps/s\n").is_err());
    }
}
