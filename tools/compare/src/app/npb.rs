// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `weft bench ft` and `weft bench is`: all-to-all exchanges of equal and of unequal blocks.
//!
//! Called through program. The kernels compare their results with the published ones themselves, so
//! each run must say that they are right. docs/npb.md describes the kernels.

use super::folder::left;
use super::job::OUTPUT;
use super::program::{Measured, Outcome, Program, Size};
use crate::error::Error;
use std::path::Path;
use weft_statistics::interval::Better;

/// One of the kernels.
pub struct Npb {
    name: &'static str,
    title: &'static str,
}

/// Three-dimensional Fourier transforms.
pub const FT: Npb = Npb {
    name: "ft",
    title: "NPB FT",
};
/// Ranking of keys.
pub const IS: Npb = Npb {
    name: "is",
    title: "NPB IS",
};

/// What each run must say alike.
const SAID: [&str; 5] = [
    "Class",
    "Size",
    "Iterations",
    "Total processes",
    "Verification",
];

/// The class (chosen: a second, and some seconds, on two cores).
fn class(size: Size) -> &'static str {
    match size {
        Size::Quick => "W",
        Size::Usual => "A",
    }
}

impl Program for Npb {
    fn name(&self) -> &'static str {
        self.name
    }

    fn title(&self) -> &'static str {
        self.title
    }

    fn files(&self) -> &'static [(&'static str, &'static str)] {
        &[]
    }

    fn input(&self, size: Size) -> String {
        format!("class {}", class(size))
    }

    fn prepare(&self, _: &Path, _: Size) -> Result<(), Error> {
        Ok(())
    }

    fn command(&self, _: &Path, _: u16, size: Size) -> Result<Vec<String>, Error> {
        let weft = std::env::current_exe().map_err(Error::start("weft"))?;
        let words = ["bench", self.name, "--class", class(size)].map(str::to_owned);
        Ok([weft.to_string_lossy().into_owned()]
            .into_iter()
            .chain(words)
            .collect())
    }

    fn read(&self, folder: &Path) -> Result<Outcome, Error> {
        parse(&left(&folder.join(OUTPUT))?)
    }

    fn result_name(&self) -> &'static str {
        "checks"
    }
}

fn parse(text: &str) -> Result<Outcome, Error> {
    let value = |key: &str| {
        let mut pairs = text.lines().filter_map(|line| line.split_once('='));
        let found = pairs.find(|(name, _)| name.trim() == key);
        found
            .map(|(_, value)| value.trim().to_owned())
            .ok_or_else(|| Error::Result(format!("the kernel printed no {key}")))
    };
    let number = |key: &str| {
        let text = value(key)?;
        let bad = |_| Error::Result(format!("the kernel printed no number, but {key} = {text}"));
        text.parse::<f64>().map_err(bad)
    };
    let mut result = Vec::new();
    for key in SAID {
        result.push(format!("{key} = {}", value(key)?));
    }
    if value("Verification")? != "SUCCESSFUL" {
        return Err(Error::result(
            "the kernel's results are not the published ones",
        ));
    }
    Ok(Outcome {
        figures: vec![
            Measured {
                name: "speed",
                unit: "Mop/s",
                better: Better::More,
                value: number("Mop/s total")?,
            },
            Measured::communication_s(number("In communication")?),
        ],
        result,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const OUTPUT: &str = " IS Benchmark Completed.\n Class           =                        W\n \
        Size            =                  1048576\n Iterations      =                       10\n \
        Time in seconds =                   0.0153\n \
        In communication=                 0.004200\n Total processes =                        2\n \
        Mop/s total     =                   684.97\n Mop/s/process   =                   342.49\n \
        Operation type  =              keys ranked\n Verification    =               SUCCESSFUL\n";

    #[test]
    fn speed_and_verdict_are_read() {
        let outcome = parse(OUTPUT).expect("a whole run");
        assert_eq!(outcome.figures[0].value, 684.97);
        assert_eq!(outcome.figures[1].value, 0.0042);
        assert_eq!(outcome.result[1], "Size = 1048576");
        assert_eq!(outcome.result[4], "Verification = SUCCESSFUL");
    }

    #[test]
    fn wrong_results_and_broken_off_runs_are_no_result() {
        for bad in [
            OUTPUT.replace("SUCCESSFUL", "UNSUCCESSFUL"),
            OUTPUT.replace("684.97", "fast"),
            OUTPUT.replace("Mop/s total", "Mop/s"),
            OUTPUT.replace("Verification", "Version"),
        ] {
            assert!(parse(&bad).is_err(), "{bad}");
        }
    }
}
