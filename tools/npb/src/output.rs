// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What the kernels print: NPB's layout, or JSON lines that the comparison and the figures read.
//!
//! Called by npb. Rank 0 writes.

use std::io::Write;

use serde_json::json;
use weft_mpi::Communicator;

use crate::class::Class;
use crate::kernel::Kernel;
use weft_ranks::refusal::Failed;

/// What a kernel found on its way.
#[derive(Clone, Debug, PartialEq)]
pub enum Detail {
    /// FT's checksums.
    Checksums(Vec<(f64, f64)>),
    /// IS's keys.
    Keys(usize),
}

/// What one run brought.
#[derive(Clone, Debug, PartialEq)]
pub struct Outcome {
    /// Which kernel.
    pub kernel: Kernel,
    /// Its size.
    pub class: Class,
    /// See [`Detail`].
    pub detail: Detail,
    /// How many iterations were timed.
    pub iterations: usize,
    /// The slowest rank's time.
    pub seconds: f64,
    /// Of it, in MPI's calls: the mean over the ranks.
    pub communication: f64,
    /// Operations of all ranks by NPB's formula.
    pub operations: f64,
    /// Whether the results are the published ones.
    pub is_verified: bool,
}

impl Outcome {
    /// Millions of operations per second.
    pub fn rate(&self) -> f64 {
        self.operations / 1e6 / self.seconds
    }
}

/// The version whose layout this is, and whose program.
const VERSION: &str = concat!("3.4.2+weft.", env!("CARGO_PKG_VERSION"));

/// A number as Fortran's `D` descriptors write it: two digits of exponent after one digit before
/// the point.
fn fortran(value: f64) -> String {
    let text = format!("{value:.12E}");
    let (digits, exponent) = text.split_once('E').unwrap_or((&text, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    let sign = if exponent < 0 { '-' } else { '+' };
    format!("{digits}D{sign}{:02}", exponent.abs())
}

/// The head of one run in NPB's layout.
fn head(outcome: &Outcome, ranks: usize) -> String {
    let name = outcome.kernel.name();
    let mut text = format!("\n\n NAS Parallel Benchmarks 3.4 -- {name} Benchmark\n\n");
    match &outcome.detail {
        Detail::Checksums(sums) => {
            let [x, y, z] = outcome.class.grid();
            text += &format!(" Size                : {x:5}x{y:4}x{z:4}\n");
            text += &format!(" Iterations          : {:14}\n", outcome.iterations);
            text += &format!(" Number of processes : {ranks:14}\n");
            text += " Layout type         :             1D\n";
            for (step, (re, im)) in sums.iter().enumerate() {
                text += &format!(
                    " T ={:5}     Checksum ={:>22}{:>22}\n",
                    step + 1,
                    fortran(*re),
                    fortran(*im)
                );
            }
            let verdict = if outcome.is_verified {
                "successful"
            } else {
                "failed"
            };
            text += &format!(
                " Result verification {verdict}\n class = {}\n",
                outcome.class
            );
        }
        Detail::Keys(keys) => {
            text += &format!(" Size:  {keys}  (class {})\n", outcome.class);
            text += &format!(
                " Iterations:   {}\n Number of processes:     {ranks}\n",
                outcome.iterations
            );
        }
    }
    text
}

/// One run in NPB's layout.
pub fn text(outcome: &Outcome, ranks: usize) -> String {
    let size = match &outcome.detail {
        Detail::Checksums(_) => {
            let [x, y, z] = outcome.class.grid();
            format!("{x:4}x{y:4}x{z:4}")
        }
        Detail::Keys(keys) => keys.to_string(),
    };
    let kind = match outcome.kernel {
        Kernel::Ft => "floating point",
        Kernel::Is => "keys ranked",
    };
    let verdict = if outcome.is_verified {
        "SUCCESSFUL"
    } else {
        "UNSUCCESSFUL"
    };
    let lines = [
        ("Class", outcome.class.to_string()),
        ("Size", size),
        ("Iterations", outcome.iterations.to_string()),
        ("Time in seconds", format!("{:.4}", outcome.seconds)),
        ("In communication", format!("{:.6}", outcome.communication)),
        ("Total processes", ranks.to_string()),
        ("Mop/s total", format!("{:.2}", outcome.rate())),
        (
            "Mop/s/process",
            format!("{:.2}", outcome.rate() / ranks as f64),
        ),
        ("Operation type", kind.to_owned()),
        ("Verification", verdict.to_owned()),
        ("Version", VERSION.to_owned()),
    ];
    let body: String = lines
        .iter()
        .map(|(key, value)| format!(" {key:<16}= {value:>24}\n"))
        .collect();
    format!(
        "{}\n\n {} Benchmark Completed.\n{body}",
        head(outcome, ranks),
        outcome.kernel.name()
    )
}

/// The first JSON line, which says which MPI it is.
///
/// # Errors
/// When it cannot be written.
pub fn begin(world: &Communicator<'_>, class: Class) -> Result<(), Failed> {
    let session = world.session();
    let line = json!({
        "type": "header",
        "mpi": session.library_version(),
        "library": session.library().path().display().to_string(),
        "ranks": world.size(),
        "class": class.to_string(),
    });
    write(world, &format!("{line}\n"))
}

/// One run, in NPB's layout or as a JSON line.
///
/// # Errors
/// When it cannot be written.
pub fn print(world: &Communicator<'_>, outcome: &Outcome, json: bool) -> Result<(), Failed> {
    if !json {
        return write(world, &text(outcome, world.size()));
    }
    let line = json!({
        "type": "row",
        "kernel": outcome.kernel.name(),
        "class": outcome.class.to_string(),
        "size_bytes": 0,
        "value": outcome.rate(),
        "median": outcome.rate(),
        "unit": "Mop/s",
        "seconds": outcome.seconds,
        "communication_seconds": outcome.communication,
        "verified": outcome.is_verified,
    });
    write(world, &format!("{line}\n"))
}

fn write(world: &Communicator<'_>, text: &str) -> Result<(), Failed> {
    if world.rank() > 0 {
        return Ok(());
    }
    let mut out = std::io::stdout().lock();
    out.write_all(text.as_bytes())
        .and_then(|()| out.flush())
        .map_err(|error| {
            Failed::new(format!(
                "results cannot be written: {error}; make room where the output goes"
            ))
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn layout_is_npbs() {
        let outcome = Outcome {
            kernel: Kernel::Ft,
            class: Class::S,
            detail: Detail::Checksums(Class::S.checksums().to_vec()),
            iterations: 6,
            seconds: 0.07,
            communication: 0.0123,
            operations: 176e6,
            is_verified: true,
        };
        let text = text(&outcome, 2);
        // Lines of a published run.
        for line in [
            " NAS Parallel Benchmarks 3.4 -- FT Benchmark",
            " Size                :    64x  64x  64",
            " Number of processes :              2",
            " T =    1     Checksum =    5.546087004964D+02    4.845363331978D+02",
            " Result verification successful",
            " FT Benchmark Completed.",
            " Class           =                        S",
            " Size            =             64x  64x  64",
            " In communication=                 0.012300",
            " Verification    =               SUCCESSFUL",
        ] {
            assert!(text.lines().any(|found| found == line), "{line}\n{text}");
        }
        assert!(
            super::text(
                &Outcome {
                    is_verified: false,
                    ..outcome
                },
                2
            )
            .contains("UNSUCCESSFUL")
        );
    }
}
