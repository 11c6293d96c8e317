// SPDX-License-Identifier: Apache-2.0 OR MIT
//! HPC Challenge: linear solver, matrix transpose, random updates, Fourier transform, latency and
//! bandwidth, each with its own check.
//!
//! Called through program. The output contains times, so digits are not compared; but each of the
//! program's own checks must pass in every run. Source of the input's lines: the package's own
//! example and README.

use super::folder::{left, write};
use super::program::{Measured, Outcome, Program, Size};
use crate::error::Error;
use std::path::Path;
use weft_statistics::interval::Better;

/// HPC Challenge.
pub struct Hpcc;

/// Where it writes.
const OUTPUT: &str = "hpccoutf.txt";
/// Error of the Fourier transform at most (chosen: far above rounding, far below any lost message).
const FFT_ERROR: f64 = 1e-12;

/// What is reported: key in the output, name, unit, what is good, and how many of the output's
/// units go into one of ours.
const FIGURES: [(&str, &str, &str, Better, f64); 8] = [
    ("HPL_Tflops", "HPL", "Gflop/s", Better::More, 1000.0),
    ("PTRANS_GBs", "PTRANS", "GB/s", Better::More, 1.0),
    (
        "MPIRandomAccess_GUPs",
        "random access",
        "Mupdates/s",
        Better::More,
        1000.0,
    ),
    ("MPIFFT_Gflops", "FFT", "Gflop/s", Better::More, 1.0),
    (
        "AvgPingPongLatency_usec",
        "ping-pong latency",
        "us",
        Better::Less,
        1.0,
    ),
    (
        "AvgPingPongBandwidth_GBytes",
        "ping-pong bandwidth",
        "GB/s",
        Better::More,
        1.0,
    ),
    (
        "RandomlyOrderedRingLatency_usec",
        "ring latency",
        "us",
        Better::Less,
        1.0,
    ),
    (
        "RandomlyOrderedRingBandwidth_GBytes",
        "ring bandwidth",
        "GB/s",
        Better::More,
        1.0,
    ),
];

/// Lines that the output must hold.
const CHECKS: [&str; 4] = [
    "Success=1",
    "PTRANS_residual=0",
    "MPIRandomAccess_Errors=0",
    "MPIRandomAccess_LCG_Errors=0",
];

/// Order of the matrix (chosen: about ten seconds, and about a minute, on two cores).
fn order(size: Size) -> usize {
    match size {
        Size::Quick => 800,
        Size::Usual => 2000,
    }
}

/// The ranks as rows and columns, as square as can be.
pub fn grid(ranks: u16) -> (u16, u16) {
    let rows = (1..=ranks)
        .take_while(|rows| u32::from(*rows) * u32::from(*rows) <= u32::from(ranks))
        .filter(|rows| ranks.is_multiple_of(*rows))
        .last()
        .unwrap_or(1);
    (rows, ranks / rows)
}

impl Program for Hpcc {
    fn name(&self) -> &'static str {
        "hpcc"
    }

    fn title(&self) -> &'static str {
        "HPC Challenge"
    }

    fn files(&self) -> &'static [(&'static str, &'static str)] {
        &[("hpcc", "hpcc")]
    }

    fn input(&self, size: Size) -> String {
        format!("matrices of order {}", order(size))
    }

    fn prepare(&self, _: &Path, _: Size) -> Result<(), Error> {
        Ok(())
    }

    fn command(&self, folder: &Path, ranks: u16, size: Size) -> Result<Vec<String>, Error> {
        let (rows, columns) = grid(ranks);
        let text = include_str!("input/hpccinf.txt")
            .replace("@ORDER@", &order(size).to_string())
            .replace("@ROWS@", &rows.to_string())
            .replace("@COLUMNS@", &columns.to_string());
        write(&folder.join("hpccinf.txt"), &text)?;
        Ok(vec!["hpcc".into()])
    }

    fn read(&self, folder: &Path) -> Result<Outcome, Error> {
        parse(&left(&folder.join(OUTPUT))?)
    }

    fn result_name(&self) -> &'static str {
        "checks"
    }
}

fn number(text: &str, key: &str) -> Option<f64> {
    let value = text
        .lines()
        .filter_map(|line| line.trim().split_once('='))
        .find(|(name, _)| *name == key)?
        .1;
    value.trim().parse().ok()
}

fn parse(text: &str) -> Result<Outcome, Error> {
    for check in CHECKS {
        if !text.lines().any(|line| line.trim() == check) {
            let problem = format!("a check of HPC Challenge failed: no line {check}");
            return Err(Error::Result(problem));
        }
    }
    if text.contains("FAILED") || !text.contains("PASSED") {
        return Err(Error::result(
            "a residual of HPC Challenge's linear solver is too large",
        ));
    }
    let error = number(text, "MPIFFT_maxErr");
    let error = error.ok_or_else(|| Error::result("HPC Challenge checked no FFT"))?;
    if error.is_nan() || error > FFT_ERROR {
        let problem = format!("the FFT is wrong by {error}, allowed is {FFT_ERROR}");
        return Err(Error::Result(problem));
    }
    let mut figures = Vec::new();
    for (key, name, unit, better, factor) in FIGURES {
        // Latency and bandwidth are not measured by a single rank.
        if let Some(value) = number(text, key).filter(|value| *value > 0.0) {
            figures.push(Measured {
                name,
                unit,
                better,
                value: value * factor,
            });
        }
    }
    let mut result: Vec<String> = CHECKS.iter().map(|check| (*check).to_owned()).collect();
    result.push("residuals passed, FFT error small".into());
    Ok(Outcome { figures, result })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn output(error: &str, residual: &str) -> String {
        format!(
            "{}\nx ...... {residual}\nMPIFFT_maxErr={error}\nHPL_Tflops=0.002\nPTRANS_GBs=1.5\n",
            CHECKS.join("\n")
        )
    }

    #[test]
    fn figures_are_read_in_everyday_units() {
        let outcome = parse(&output("1e-15", "PASSED")).expect("all checks hold");
        let found: Vec<_> = outcome
            .figures
            .iter()
            .map(|figure| (figure.name, figure.value))
            .collect();
        assert_eq!(found, [("HPL", 2.0), ("PTRANS", 1.5)]);
    }

    #[test]
    fn failed_check_is_no_result() {
        for bad in [
            output("0.1", "PASSED"),
            output("1e-15", "FAILED"),
            output("nan", "PASSED"),
        ] {
            assert!(parse(&bad).is_err());
        }
        let lost = output("1e-15", "PASSED").replace("PTRANS_residual=0", "PTRANS_residual=3");
        assert!(
            parse(&lost)
                .unwrap_err()
                .to_string()
                .contains("PTRANS_residual=0")
        );
    }

    #[test]
    fn grid_holds_all_ranks_and_is_nearly_square() {
        for (ranks, expected) in [
            (1, (1, 1)),
            (2, (1, 2)),
            (6, (2, 3)),
            (7, (1, 7)),
            (16, (4, 4)),
        ] {
            assert_eq!(grid(ranks), expected);
        }
    }
}
