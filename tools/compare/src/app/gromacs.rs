// SPDX-License-Identifier: Apache-2.0 OR MIT
//! GROMACS: a box of rigid water with particle-mesh Ewald. Each step has 3D FFTs, a halo exchange
//! and constraints.
//!
//! Called through program. With -reprod the energies are deterministic for a number of ranks, so
//! all digits must be the same; -reprod also turns off the balancing of domains during the run.
//! Source: the GROMACS manual, "gmx solvate", "gmx grompp", "gmx mdrun", "gmx energy".

use super::folder::{helper, left, write};
use super::program::{Measured, Outcome, Program, Size};
use crate::error::Error;
use std::path::Path;
use weft_statistics::interval::Better;

/// GROMACS.
pub struct Gromacs;

/// Edge of the equilibrated box of 216 waters that GROMACS brings along, in nanometres. Whole
/// copies of it do not overlap. Specified by its file spc216.gro.
const BOX_NM: f64 = 1.86206;
/// Terms of the energy file that are compared: the first ones, up to the total energy and the
/// temperature.
const TERMS: &str = "1 2 3 4 5 6 7 8 9\n";

/// Lines of the cycle accounting that count sending, receiving and waiting for it. The last two
/// are parts of `PME mesh`; the others are not parts of each other.
const COMMUNICATION: [&str; 5] = [
    "Comm. coord.",
    "Wait + Comm. F",
    "Comm. energies",
    "PME redist. X/F",
    "PME 3D-FFT Comm.",
];

/// Copies of the box along an edge, and steps (chosen: seconds, and some ten seconds, on two
/// cores).
fn extent(size: Size) -> (usize, usize) {
    match size {
        Size::Quick => (2, 200),
        Size::Usual => (3, 400),
    }
}

impl Program for Gromacs {
    fn name(&self) -> &'static str {
        "gromacs"
    }

    fn title(&self) -> &'static str {
        "GROMACS"
    }

    fn files(&self) -> &'static [(&'static str, &'static str)] {
        &[("gmx", "gromacs"), ("gmx_mpi", "gromacs")]
    }

    fn input(&self, size: Size) -> String {
        let (copies, steps) = extent(size);
        format!(
            "box of {} waters with PME, {steps} steps",
            216 * copies.pow(3)
        )
    }

    fn prepare(&self, folder: &Path, size: Size) -> Result<(), Error> {
        write(&folder.join("topol.top"), include_str!("input/water.top"))?;
        write(&folder.join("water.mdp"), include_str!("input/water.mdp"))?;
        write(&folder.join("terms"), TERMS)?;
        let edge = format!("{:.5}", BOX_NM * extent(size).0 as f64);
        let solvate = format!(
            "gmx -quiet solvate -cs spc216 -box {edge} {edge} {edge} -o box.gro -p topol.top"
        );
        let grompp = "gmx -quiet grompp -f water.mdp -c box.gro -p topol.top -o water.tpr";
        for line in [solvate.as_str(), grompp] {
            helper(folder, &line.split(' ').collect::<Vec<_>>(), None)?;
        }
        Ok(())
    }

    fn command(&self, _: &Path, _: u16, size: Size) -> Result<Vec<String>, Error> {
        let line = format!(
            "gmx_mpi -quiet mdrun -s water.tpr -deffnm run -reprod -ntomp 1 -nb cpu -pin off \
            -nsteps {}",
            extent(size).1
        );
        Ok(line.split(' ').map(str::to_owned).collect())
    }

    fn read(&self, folder: &Path) -> Result<Outcome, Error> {
        let log = left(&folder.join("run.log"))?;
        let speed = speed(&log)
            .ok_or_else(|| Error::result("GROMACS reported no ns/day; did it run to its end?"))?;
        let words = ["gmx", "-quiet", "energy", "-f", "run.edr", "-o", "run.xvg"];
        helper(folder, &words, Some(&folder.join("terms")))?;
        let result = numbers(&left(&folder.join("run.xvg"))?);
        if result.is_empty() {
            return Err(Error::result("GROMACS stored no energies"));
        }
        let mut figures = vec![Measured {
            name: "speed",
            unit: "ns/day",
            better: Better::More,
            value: speed,
        }];
        // A single rank does not communicate.
        figures.extend(communication(&log).map(Measured::communication_s));
        Ok(Outcome { figures, result })
    }

    fn result_name(&self) -> &'static str {
        "energies"
    }
}

/// The first number of the line `Performance:`, which is ns/day.
fn speed(log: &str) -> Option<f64> {
    let line = log
        .lines()
        .rev()
        .find_map(|line| line.strip_prefix("Performance:"))?;
    line.split_whitespace().next()?.parse().ok()
}

/// Seconds by the wall clock, over all lines of the accounting that count communication.
fn communication(log: &str) -> Option<f64> {
    let accounting = log
        .lines()
        .skip_while(|line| !line.contains("A C C O U N T I N G"));
    let seconds: Vec<f64> = accounting.filter_map(line_seconds).collect();
    (!seconds.is_empty()).then(|| seconds.iter().sum())
}

/// What a line of the accounting adds: ranks, threads, calls and seconds stand behind its name.
fn line_seconds(line: &str) -> Option<f64> {
    let name = COMMUNICATION.iter();
    let rest = name
        .filter_map(|name| line.trim_start().strip_prefix(name))
        .next()?;
    rest.split_whitespace().nth(3)?.parse().ok()
}

/// Lines of an XVG file that hold numbers.
fn numbers(text: &str) -> Vec<String> {
    text.lines()
        .filter(|line| !line.starts_with(['#', '@']) && !line.trim().is_empty())
        .map(str::to_owned)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn speed_is_the_first_figure_of_the_last_performance_line() {
        let log = "x\n                 (ns/day)    (hour/ns)\nPerformance:       12.345        \
        1.944\nFinished\n";
        assert_eq!(speed(log), Some(12.345));
        assert_eq!(speed("nothing"), None);
    }

    /// Lines of a run on two ranks, shortened.
    const LOG: &str = "     R E A L   C Y C L E   A N D   T I M E   A C C O U N T I N G

 Computing:          Num   Num      Call    Wall time         Giga-Cycles
                     Ranks Threads  Count      (s)         total sum    %
-----------------------------------------------------------------------------
 Domain decomp.         2    1          3       0.015          0.073   0.9
 DD comm. load          2    1          2       0.000          0.000   0.0
 Comm. coord.           2    1         98       0.058          0.284   3.6
 Force                  2    1        101       0.434          2.121  26.9
 Wait + Comm. F         2    1        101       0.069          0.337   4.3
 PME mesh               2    1        101       0.912          4.462  56.5
 Comm. energies         2    1         11       0.037          0.179   2.3
 Rest                                           0.007          0.034   0.4
-----------------------------------------------------------------------------
 Breakdown of PME mesh computation
 PME redist. X/F        2    1        202       0.465          2.276  28.8
 PME 3D-FFT             2    1        202       0.038          0.185   2.3
 PME 3D-FFT Comm.       2    1        202       0.132          0.643   8.2
";

    #[test]
    fn communication_is_the_sum_over_the_lines_that_count_it() {
        let seconds = communication(LOG).expect("two ranks");
        assert!((seconds - 0.761).abs() < 1e-9, "{seconds}");
        assert_eq!(
            communication(" Comm. coord. 2 1 98 0.058 0.284 3.6\n"),
            None
        );
        assert_eq!(
            communication("A C C O U N T I N G\n Force 1 1 9 0.1 1 9\n"),
            None
        );
    }

    #[test]
    fn comments_of_the_energy_file_are_no_result() {
        assert_eq!(numbers("# made by\n@ title\n 0.0 1.0\n\n"), [" 0.0 1.0"]);
    }
}
